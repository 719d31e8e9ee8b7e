// Package eval measures the agent on question sets of the form of testdata/nl2sql/README.md: `sluice eval nl2sql`.
//
// A set is a folder with questions.jsonl and one folder for each database (schema.sql, data.sql). Each question is asked
// of the same agent that serves people; the SQL it wrote is judged by execution accuracy against the gold queries.
//
// The rules are those of score.py, ported function by function, and a test holds the two to equal verdicts. Two things
// differ, on purpose: golds and predictions run only as statements that the gate approved, on a database file opened
// read-only; so what the gate refuses is an "error: …" with the gate's reason, where score.py may have run it.
//
// Judge owns the open databases; nothing else here has state.
//
//	the run: ask, judge, write a line    run.go
//	the question file                    questions.go
//	building and reading databases       databases.go
//	Arrow cells as comparable values     value.go, python.go
//	when two results are the same        match.go
//	the verdict on one statement         judge.go
//	the printed table                    report.go
package eval
