// Package eval measures the agent on question sets of the form of testdata/nl2sql/README.md: `sluice eval nl2sql`.
//
// A set is a folder with questions.jsonl and one folder for each database (schema.sql, data.sql). Each question is asked
// of the same agent that serves people; the SQL it wrote is judged by execution accuracy against the gold queries.
//
// A question of unanswerable.jsonl has no gold: the right answer is to decline.
//
// The rules are those of score.py, ported function by function, and tests hold the two to equal verdicts, on DuckDB and on
// PostgreSQL. Two things differ, on purpose: golds and predictions run only as statements that the gate approved, on a
// database that is opened read-only; so what the gate refuses is an "error: …" with the gate's reason, where score.py may
// have run it.
//
// Judge owns the open databases and what they were built in; nothing else here has state.
//
//	the run: ask, judge, write a line       run.go
//	the question files, a part of them      questions.go
//	a run's file of lines, going on         lines.go
//	building databases: DuckDB files        databases.go
//	… on a PostgreSQL server                scratch.go
//	Arrow cells as comparable values        value.go, python.go
//	… as psycopg2 gives PostgreSQL's        psycopg.go
//	when two results are the same           match.go
//	the verdict on one statement            judge.go
//	how the unanswerable were met           declines.go
//	what no answer may hold                 leaks.go
//	verified pairs by cross-validation      cross.go
//	the printed table                       report.go
//	declines, leaks, time                   summary.go
package eval
