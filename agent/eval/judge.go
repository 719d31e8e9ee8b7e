package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/fault"
	"sluice/sqlguard"
)

// Limits of score.py for one statement.
const (
	statementTime = 10 * time.Second
	statementRows = 200_000
)

var errStatementTime = fmt.Errorf("eval: a statement took over %s", statementTime)

// Verdict says how one question's statement did: correct, wrong, empty_result, empty, no_table, or "error: …".
type Verdict struct {
	ID      string   `json:"id"`
	DB      string   `json:"db"`
	Verdict string   `json:"verdict"`
	Tags    []string `json:"-"`

	Declined bool `json:"-"` // the agent said no
}

// Class is the verdict without an error's text.
func (v Verdict) Class() string {
	class, _, _ := strings.Cut(v.Verdict, ":")
	return class
}

// Judge gives verdicts on statements for the questions of one set. Not for concurrent use.
type Judge struct{ databases *databases }

// NewJudge makes a judge for the set in dir. The databases are DuckDB files, built as they are needed, in a new folder below
// workDir (the system's temporary folder when empty); Close removes them.
func NewJudge(dir, workDir string) (*Judge, error) {
	on, err := newFiles(workDir)
	if err != nil {
		return nil, err
	}
	return &Judge{databases: newDatabases(dir, on)}, nil
}

// NewPostgresJudge makes a judge whose databases are built on a PostgreSQL server, as they are needed. The URL's user must be
// able to make databases and roles; what is read is read by a role of the run's own, which can do nothing else. Close removes
// all of it, and the next judge does where a process was killed. A server that does not answer is Busy.
func NewPostgresJudge(ctx context.Context, dir, server string) (*Judge, error) {
	on, err := newScratch(ctx, server)
	if err != nil {
		return nil, err
	}
	return &Judge{databases: newDatabases(dir, on)}, nil
}

// Close closes and removes the databases.
func (j *Judge) Close() error { return j.databases.close() }

// Verdict judges one statement. An error means that there is no verdict: the set is broken, or ctx ended.
func (j *Judge) Verdict(ctx context.Context, q Question, sql string) (Verdict, error) {
	v := Verdict{ID: q.ID, DB: q.DB, Tags: q.Tags}
	golds := make([][][]value, len(q.Gold))
	for i, gold := range q.Gold {
		rows, err := j.rows(ctx, q.DB, gold)
		if err != nil {
			return Verdict{}, fmt.Errorf("eval: gold %d of %s: %w", i+1, q.ID, err)
		}
		golds[i] = rows
	}
	sql = trim(strings.TrimRight(trim(sql), ";"))
	switch {
	case sql == "":
		v.Verdict = "empty"
		return v, nil
	case !hasFrom(sql):
		v.Verdict = "no_table" // constants are not answers
		return v, nil
	}
	pred, err := j.rows(ctx, q.DB, sql)
	if ctx.Err() != nil {
		return Verdict{}, fmt.Errorf("eval: judge %s: %w", q.ID, context.Cause(ctx))
	}
	if err != nil {
		v.Verdict = "error: " + reason(err)
		return v, nil
	}
	v.Verdict = compareAll(q, golds, pred)
	return v, nil
}

func compareAll(q Question, golds [][][]value, pred [][]value) string {
	for i, gold := range golds {
		var key *int
		if len(q.OrderKey) > 0 {
			if i >= len(q.OrderKey) {
				break
			}
			key = q.OrderKey[i]
		}
		if match(gold, pred, q.tagged("ordered"), q.tagged("listing"), key) {
			return "correct"
		}
	}
	if len(pred) == 0 {
		return "empty_result"
	}
	return "wrong"
}

// rows runs a statement, through the gate like any other, and reads its normalised rows.
func (j *Judge) rows(ctx context.Context, db, sql string) ([][]value, error) {
	src, err := j.databases.source(ctx, db)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, statementTime, errStatementTime)
	defer cancel()
	rows, err := readRows(ctx, src, sql)
	if err != nil && errors.Is(context.Cause(ctx), errStatementTime) {
		return nil, fault.Wrap(err, fault.TooLarge, "eval.rows", "INTERRUPT: the statement took over %s", statementTime)
	}
	return rows, err
}

func readRows(ctx context.Context, src source, sql string) ([][]value, error) {
	reader, err := query(ctx, src, sql)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	fields := reader.Schema().Fields()
	read := cell
	if src.Dialect() == sqlguard.Postgres {
		read = psycopgCell
	}
	var rows [][]value
	for len(rows) < statementRows && reader.Next() {
		batch := reader.RecordBatch()
		for i := range int(min(batch.NumRows(), int64(statementRows-len(rows)))) {
			row := make([]value, batch.NumCols())
			for c := range row {
				if row[c], err = read(fields[c], batch.Column(c), i); err != nil {
					return nil, err
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, reader.Err()
}

func query(ctx context.Context, src source, sql string) (array.RecordReader, error) {
	approved, err := src.Approve(ctx, sql, sqlguard.ReadOnly, func(sqlguard.Relation) bool { return true })
	if err != nil {
		return nil, err
	}
	if approved.Explain() {
		return nil, fault.New(fault.Refused, "eval.rows", "not one SELECT")
	}
	return src.Run(ctx, approved)
}

// reason is an error's first line, as far as it may be shown, in at most 160 characters.
func reason(err error) string {
	line, _, _ := strings.Cut(fault.Public(err).Msg, "\n")
	if runes := []rune(line); len(runes) > 160 {
		line = string(runes[:160])
	}
	return line
}
