package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
	"sluice/sqlguard"
)

// Writable says that the engine can write; whether it may is the settings' word, and the role's on the server.
func (e *Engine) Writable() bool { return true }

// commitTimeout is for how long a commit may take. It goes on when its caller leaves: half a commit would be no answer.
const commitTimeout = 30 * time.Second

// Write runs one statement in a transaction of its own (database.Source.Write). The transaction begins as every other one
// does and then becomes one that writes.
func (e *Engine) Write(ctx context.Context, a sqlguard.Approved, params []any, take func(array.RecordReader) error) (_ int64, err error) {
	if !a.Valid() || a.Database() != e.cfg.Name || a.Writing().Command == "" {
		return 0, fault.New(fault.Refused, "postgres.Write", "the statement was not approved for the database %s", e.cfg.Name)
	}
	hide, err := e.guarded(ctx, a.Relations())
	if err != nil {
		return 0, err
	}
	l, err := e.take(ctx, true, transaction{timeout: e.cfg.StatementTimeout})
	if err != nil {
		return 0, err
	}
	defer func() {
		if ctx.Err() != nil || l.pg.IsBusy() || l.pg.IsClosed() {
			l.abandon()
			return
		}
		l.done() // which rolls back what is not committed
	}()
	w := &write{engine: e, lease: l, ctx: ctx, start: time.Now(), stmt: statement{sql: a.SQL(), params: params, timeout: e.cfg.StatementTimeout, hide: hide}}
	n, err := w.run(a.Writing(), take)
	if err != nil {
		return 0, w.failed(err)
	}
	if ctx.Err() != nil {
		return 0, w.failed(context.Cause(ctx))
	}
	if err := w.commit(); err != nil {
		return 0, err
	}
	if a.Writing().Schema {
		e.forget()
	}
	return n, nil
}

// write is one statement that writes while it runs.
type write struct {
	engine *Engine
	lease  *lease
	ctx    context.Context
	start  time.Time
	stmt   statement
}

func (w *write) run(what sqlguard.Writing, take func(array.RecordReader) error) (int64, error) {
	c := w.lease.conn
	if _, err := c.pg.Exec(w.ctx, "SET TRANSACTION READ WRITE").ReadAll(); err != nil {
		return 0, err
	}
	desc, err := c.pg.Prepare(w.ctx, "", w.stmt.sql, nil)
	if err != nil {
		return 0, err
	}
	if (len(desc.Fields) > 0) != what.Rows {
		return 0, fault.Bug("an approved %s gives %d columns", what.Command, len(desc.Fields))
	}
	values, err := bindText(desc.ParamOIDs, w.stmt.params)
	if err != nil {
		return 0, err
	}
	if what.Rows {
		return w.returning(what, desc, values, take)
	}
	res := c.pg.ExecPrepared(w.ctx, "", values, nil, nil).Read()
	if res.Err != nil {
		return 0, res.Err
	}
	if what.Schema { // CREATE TABLE AS tells of rows too
		return 0, didSo(what, res.CommandTag)
	}
	return res.CommandTag.RowsAffected(), didSo(what, res.CommandTag)
}

// tags are the server's own names of what was done, where they differ.
var tags = map[string]string{"TRUNCATE": "TRUNCATE TABLE", "CREATE TABLE AS": "SELECT"}

// didSo compares the server's word for what it did with what the gate found the statement to be.
func didSo(what sqlguard.Writing, tag pgconn.CommandTag) error {
	want := what.Command
	if t := tags[want]; t != "" {
		want = t
	}
	if s := tag.String(); s != want && !strings.HasPrefix(s, want+" ") && s != "CREATE TABLE AS" {
		return fault.Bug("an approved %s was %q to the server", what.Command, s)
	}
	return nil
}

// returning runs a statement with RETURNING and hands its rows to take.
func (w *write) returning(what sqlguard.Writing, desc *pgconn.StatementDescription, values [][]byte, take func(array.RecordReader) error) (int64, error) {
	c := w.lease.conn
	r := &returned{rows: &rows{caller: w.ctx, engine: w.engine, stmt: w.stmt, start: w.start}}
	r.refs.Store(1)
	r.ctx, r.cancel = context.WithCancel(w.ctx)
	defer r.Release()
	asked, err := c.learn(w.ctx, desc.Fields)
	if err == nil && asked { // the question took the place of the unnamed statement
		desc, err = c.pg.Prepare(w.ctx, "", w.stmt.sql, nil)
	}
	if err != nil {
		return 0, err
	}
	formats, fields := make([]int16, len(desc.Fields)), make([]arrow.Field, len(desc.Fields))
	r.cols = make([]column, len(desc.Fields))
	for i, f := range desc.Fields {
		r.cols[i] = c.column(f.Name, f.DataTypeOID, f.TypeModifier)
		fields[i], formats[i] = r.cols[i].field, r.cols[i].format
	}
	r.schema = arrow.NewSchema(fields, nil)
	r.result = c.pg.ExecStatement(w.ctx, desc, values, nil, formats)
	if err := take(r); err != nil {
		_, _ = r.result.Close() // reads what is left
		return 0, &notTaken{err}
	}
	for r.Next() { // the statement is through when its last row is read
	}
	tag, err := r.result.Close()
	if err := errors.Join(r.Err(), err); err != nil {
		return 0, err
	}
	return tag.RowsAffected(), didSo(what, tag)
}

// notTaken is the error of who was given the rows.
type notTaken struct{ error }

func (e *notTaken) Unwrap() error { return e.error }

// returned are the rows of a statement that goes on when they are read: its connection is not theirs.
type returned struct {
	*rows
}

// Next reads the next batch.
func (r *returned) Next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	if r.err != nil {
		return false
	}
	n, err := r.fill() // which gives no connection back: the rows have none
	if r.err = err; err != nil || n == 0 {
		return false
	}
	arrays := make([]arrow.Array, len(r.cols))
	for i := range r.cols {
		arrays[i] = r.cols[i].take()
		defer arrays[i].Release()
	}
	r.current = array.NewRecordBatch(r.schema, arrays, int64(n))
	return true
}

// commit ends the transaction for good. When the connection breaks in it, nobody can say what the server did.
func (w *write) commit() error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer stop()
	res, err := w.lease.pg.Exec(ctx, "COMMIT").ReadAll()
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "08") && !strings.HasPrefix(pg.Code, "57"):
		return w.refused(pg) // as a deferred constraint is
	case err != nil:
		f := fault.Wrap(scrubbed(err), fault.Internal, "postgres.Write", "the connection to the database %s broke at the commit: whether the statement took place is not known", w.engine.cfg.Name)
		f.Kind, f.Hint = "query", "look before you send it again"
		return f
	case len(res) != 1 || res[0].CommandTag.String() != "COMMIT":
		return fault.Bug("the database %s answered a commit in another way", w.engine.cfg.Name)
	}
	return nil
}

// failed classifies what ended a statement.
func (w *write) failed(err error) error {
	if w.ctx.Err() != nil {
		return fault.Wrap(context.Cause(w.ctx), fault.Canceled, "postgres.Write", "the statement was cancelled")
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return w.refused(pg)
	}
	var own *notTaken
	if errors.As(err, &own) {
		return own.error
	}
	return w.engine.statementError(err, "postgres.Write", w.stmt.hide, false)
}

// refused classifies an error of the server as a write's: who writes is told of constraints, and that another was there first.
func (w *write) refused(pg *pgconn.PgError) error {
	as := func(code fault.Code, hint, format string, args ...any) error {
		f := fault.Wrap(pg, code, "postgres.Write", format, args...)
		f.Kind, f.Hint = "query", hint
		return f
	}
	text := pg.Message
	if w.stmt.hide {
		text = hiddenText
	}
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case class == "23":
		return as(fault.Invalid, "", "a constraint of the table does not allow it: %s", text)
	case class == "40", pg.Code == "55P03":
		return as(fault.Conflict, "send it again", "another statement was at the same rows or the same table, and nothing of this one was kept")
	case pg.Code == "42501":
		return as(fault.Denied, "whoever runs the server can grant it that", "the role that the database %s is used as may not do what the statement asks", w.engine.cfg.Name)
	case class == "25":
		return as(fault.Refused, "", "the server of the database %s takes no writes: it is read-only, such as a standby", w.engine.cfg.Name)
	case class == "2B", class == "55", class == "44":
		return as(fault.Invalid, "", "the statement failed: %s", text)
	}
	late := w.stmt.timeout > 0 && time.Since(w.start) >= w.stmt.timeout
	return w.engine.statementError(pg, "postgres.Write", w.stmt.hide, late)
}
