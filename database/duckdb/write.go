package duckdb

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// statementTypes are what the engine itself must take a statement for, by what the gate found it to be.
var statementTypes = map[string]duck.StatementType{
	"INSERT": duck.StatementTypeInsert, "UPDATE": duck.StatementTypeUpdate, "DELETE": duck.StatementTypeDelete, "TRUNCATE": duck.StatementTypeDelete,
	"CREATE TABLE": duck.StatementTypeCreate, "CREATE TABLE AS": duck.StatementTypeCreate, "CREATE INDEX": duck.StatementTypeCreate,
	"ALTER TABLE": duck.StatementTypeAlter, "DROP TABLE": duck.StatementTypeDrop, "DROP VIEW": duck.StatementTypeDrop, "DROP INDEX": duck.StatementTypeDrop,
}

// Write runs one statement in a transaction of its own (database.Source.Write). DuckDB lets others read meanwhile, and
// others write: two that change the same rows, or the same table, are a Conflict for the later one.
func (e *Engine) Write(ctx context.Context, a sqlguard.Approved, params []any, take func(array.RecordReader) error) (int64, error) {
	if !e.cfg.Writable {
		return 0, fault.New(fault.Refused, "database.Write", "the database %s is only read", e.cfg.Name)
	}
	own, err := e.Catalog(ctx)
	if err != nil {
		return 0, err
	}
	if err := e.enter(); err != nil { // left by rows.free
		return 0, err
	}
	c, err := connect(e.in.db)
	if err != nil {
		e.running.Done()
		return 0, fault.Wrap(err, fault.Internal, "database.Write", "database %s cannot be reached", e.cfg.Name)
	}
	what := about{view: readsView(own, a)}
	for _, p := range a.Parts() {
		what.external = what.external || len(p.Scans()) > 0
	}
	r := &rows{ctx: ctx, conn: c, engine: e, about: what, refs: 1, stop: c.watch(ctx)}
	defer r.Release() // which rolls back what is not committed
	n, err := r.write(a, params, take)
	if err != nil {
		return 0, r.writeError(err)
	}
	r.stop() // from here on nobody interrupts: the commit happens whole, or fails
	if ctx.Err() != nil {
		return 0, r.runError(context.Cause(ctx))
	}
	if err := c.exec("COMMIT"); err != nil {
		return 0, r.writeError(err)
	}
	if a.Writing().Schema {
		e.in.schemas.Add(1)
	}
	return n, nil
}

// write runs a statement in an open transaction.
func (r *rows) write(a sqlguard.Approved, params []any, take func(array.RecordReader) error) (int64, error) {
	if err := r.conn.exec("BEGIN TRANSACTION"); err != nil {
		return 0, err
	}
	var all duck.ExtractedStatements
	count := duck.ExtractStatements(r.conn.c, a.SQL(), &all)
	defer duck.DestroyExtracted(&all)
	if count != 1 {
		return 0, fault.Bug("an approved write is %d statements to the engine", count)
	}
	var st duck.PreparedStatement
	if duck.PrepareExtractedStatement(r.conn.c, all, 0, &st) != duck.StateSuccess {
		err := &engineError{msg: duck.PrepareError(st)}
		duck.DestroyPrepare(&st)
		return 0, err
	}
	r.stmt = &st
	want, known := statementTypes[a.Writing().Command]
	if got := duck.PreparedStatementType(st); !known || got != want {
		return 0, fault.Bug("an approved %s is a statement of the type %d to the engine", a.Writing().Command, got)
	}
	if err := bind(st, params); err != nil {
		return 0, err
	}
	var pending duck.PendingResult
	defer duck.DestroyPending(&pending)
	if duck.PendingPrepared(st, &pending) != duck.StateSuccess {
		return 0, &engineError{msg: duck.PendingError(pending)}
	}
	if duck.ExecutePending(pending, &r.result) != duck.StateSuccess {
		return 0, &engineError{kind: duck.ResultErrorType(&r.result), msg: duck.ResultError(&r.result)}
	}
	switch {
	case a.Writing().Rows:
		if err := r.columns(); err != nil {
			return 0, err
		}
		return 0, take(r)
	case a.Writing().Schema:
		return 0, nil
	}
	return int64(duck.RowsChanged(&r.result)), nil
}

// writeError classifies what the engine said of a write. Whoever writes may read the whole database, so names in it are no
// secret to them.
func (r *rows) writeError(err error) error {
	var e *engineError
	if r.ctx.Err() != nil || !errors.As(err, &e) {
		return r.runError(err)
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	class, text, _ := strings.Cut(e.msg, ": ")
	text, _, _ = strings.Cut(text, "\n")
	as := func(code fault.Code, format string, args ...any) *fault.Error {
		f := fault.Wrap(err, code, "database.Write", format, args...)
		f.Kind = "query"
		return f
	}
	lower := strings.ToLower(e.msg)
	switch {
	case (class == "TransactionContext Error" || class == "Transaction Error") && strings.Contains(lower, "conflict"):
		f := as(fault.Conflict, "another statement changed the same rows or the same table meanwhile, and nothing of this one was kept")
		f.Hint = "send it again"
		return f
	case class == "Constraint Error" || class == "TransactionContext Error" && strings.Contains(text, "Constraint Error: "):
		if i := strings.LastIndex(text, "Constraint Error: "); i >= 0 { // found at the commit
			text = text[i+len("Constraint Error: "):]
		}
		return as(fault.Invalid, "a constraint of the table does not allow it: %s", text)
	case class == "Catalog Error" || class == "Dependency Error":
		return as(fault.Invalid, "the statement failed: %s", text)
	}
	return r.runError(err)
}
