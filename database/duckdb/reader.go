package duckdb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
)

// rows streams the result of one statement. It owns the connection, whose read-only transaction ends with it. Next is
// called by one goroutine; Retain, Release and Err may be called by any.
type rows struct {
	ctx    context.Context
	conn   *conn
	stop   func() // ends the watch for a cancelled ctx
	engine *Engine
	about  about

	stmt   *duck.PreparedStatement
	result duck.Result
	opts   duck.ArrowOptions
	raw    *arrow.Schema // as the engine makes batches
	schema *arrow.Schema // as they are handed out
	convs  []converter

	mu      sync.Mutex
	refs    int
	current arrow.RecordBatch
	err     error
	done    bool
}

var _ array.RecordReader = (*rows)(nil)

// about is what an error of a statement depends on.
type about struct {
	view     bool // it reads a view: errors must not show the engine's text
	external bool // it reads files, which a COPY may replace meanwhile
}

// start prepares and starts a statement on a fresh connection. On an error everything is freed.
func (e *Engine) start(ctx context.Context, sql string, params []any, what about) (*rows, error) {
	if err := e.enter(); err != nil { // left by rows.free
		return nil, err
	}
	c, err := connect(e.in.db)
	if err != nil {
		e.running.Done()
		return nil, fault.Wrap(err, fault.Internal, "database.Run", "database %s cannot be reached", e.cfg.Name)
	}
	r := &rows{ctx: ctx, conn: c, engine: e, about: what, refs: 1, stop: c.watch(ctx)}
	if err := r.begin(sql, params); err != nil {
		r.free()
		return nil, err
	}
	return r, nil
}

func (r *rows) begin(sql string, params []any) error {
	if err := r.conn.exec("BEGIN TRANSACTION READ ONLY"); err != nil {
		return r.runError(err)
	}
	st, err := r.conn.prepare(sql)
	if err != nil {
		return r.runError(err)
	}
	r.stmt = st
	if t := duck.PreparedStatementType(*st); t != duck.StatementTypeSelect && t != duck.StatementTypeExplain {
		return fault.Bug("an approved statement of the type %d is not a query", t)
	}
	if err := bind(*st, params); err != nil {
		return err
	}
	var pending duck.PendingResult
	defer duck.DestroyPending(&pending)
	if duck.PendingPreparedStreaming(*st, &pending) != duck.StateSuccess {
		return r.runError(&engineError{msg: duck.PendingError(pending)})
	}
	if duck.ExecutePending(pending, &r.result) != duck.StateSuccess {
		return r.runError(&engineError{kind: duck.ResultErrorType(&r.result), msg: duck.ResultError(&r.result)})
	}
	return r.columns()
}

// columns reads the columns of the result, and plans what becomes of them.
func (r *rows) columns() (err error) {
	r.opts = duck.ResultGetArrowOptions(&r.result)
	n := duck.ColumnCount(&r.result)
	types, names := make([]duck.LogicalType, n), make([]string, n)
	for i := range n {
		types[i], names[i] = duck.ColumnLogicalType(&r.result, i), duck.ColumnName(&r.result, i)
		defer duck.DestroyLogicalType(&types[i])
	}
	if r.raw, err = arrowSchema(r.opts, types, names); err != nil {
		return r.runError(err)
	}
	fields := r.raw.Fields()
	for i := range fields {
		if fields[i], err = restoreMaps(r.opts, fields[i], types[i]); err != nil {
			return r.runError(err)
		}
	}
	r.raw = arrow.NewSchema(fields, nil)
	r.schema, r.convs, err = converted(r.raw)
	return err
}

// Schema gives the columns of the result.
func (r *rows) Schema() *arrow.Schema { return r.schema }

// Retain adds a user; each must Release.
func (r *rows) Retain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refs++
}

// Release ends the statement when the last user is gone, finished or not.
func (r *rows) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs == 0 {
		return
	}
	if r.refs--; r.refs == 0 {
		r.drop()
		r.done = true
		r.free()
	}
}

// free gives back all that the statement holds. What must be destroyed first comes first.
func (r *rows) free() {
	r.stop()
	duck.DestroyArrowOptions(&r.opts)
	duck.DestroyResult(&r.result)
	if r.stmt != nil {
		duck.DestroyPrepare(r.stmt)
	}
	r.conn.close() // rolls the transaction back
	r.engine.running.Done()
}

func (r *rows) drop() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

// Next fetches the next batch, of some thousand rows. It is false at the end and after an error.
func (r *rows) Next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	if r.done || r.err != nil {
		return false
	}
	if r.ctx.Err() != nil {
		r.err = r.runError(context.Cause(r.ctx))
		return false
	}
	chunk := duck.FetchChunk(r.result)
	if chunk.Ptr == nil {
		r.done = true
		r.err = r.endError(duck.ResultError(&r.result))
		return false
	}
	defer duck.DestroyDataChunk(&chunk)
	if duck.DataChunkGetSize(chunk) == 0 {
		r.done = true
		r.err = r.endError("")
		return false
	}
	if r.current, r.err = r.batch(chunk); r.err != nil {
		return false
	}
	return true
}

// endError tells whether the end of the rows is the end of the result. An interrupt may look like it, with no error from
// the engine, so a ctx that is over makes it one: a cut result must never be taken for a whole one.
func (r *rows) endError(msg string) error {
	switch {
	case msg != "":
		return r.runError(&engineError{kind: duck.ResultErrorType(&r.result), msg: msg})
	case r.ctx.Err() != nil:
		return r.runError(context.Cause(r.ctx))
	}
	return nil
}

func (r *rows) batch(chunk duck.DataChunk) (arrow.RecordBatch, error) {
	raw, err := arrowBatch(r.opts, r.raw, chunk)
	if err != nil {
		return nil, r.runError(err)
	}
	defer raw.Release()
	cols := make([]arrow.Array, raw.NumCols())
	for i := range cols {
		cols[i] = raw.Column(i)
		if r.convs[i] == nil {
			continue
		}
		if cols[i], err = r.convs[i](cols[i]); err != nil {
			return nil, err
		}
		defer cols[i].Release()
	}
	return array.NewRecordBatch(r.schema, cols, raw.NumRows()), nil
}

// RecordBatch gives the batch that Next fetched; it lives until the next call of Next.
func (r *rows) RecordBatch() arrow.RecordBatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Record is RecordBatch under its old name.
func (r *rows) Record() arrow.RecordBatch { return r.RecordBatch() }

// Err gives the error that ended the rows early, classified.
func (r *rows) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

const hiddenByView = "the value that failed is not shown, because the statement reads a view"

// runError classifies what the engine said. Its text may hold values of what the statement reads; that is the caller's
// own to see, except behind a view, which may hide rows and columns.
func (r *rows) runError(err error) error {
	if cause := context.Cause(r.ctx); r.ctx.Err() != nil {
		return fault.Wrap(cause, fault.Canceled, "database.Run", "the statement was cancelled")
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var e *engineError
	if !errors.As(err, &e) {
		return fault.Wrap(err, fault.Internal, "database.Run", "the statement failed")
	}
	kind := e.kind
	class, text, _ := strings.Cut(e.msg, ": ")
	switch {
	case kind == duck.ErrorTypeOutOfMemory || class == "Out of Memory Error":
		f := fault.Wrap(err, fault.TooLarge, "database.Run", "the statement needs more memory than it may use")
		f.Kind, f.Hint = "limit", "read fewer rows or columns, or aggregate"
		return f
	case r.about.external && class == "IO Error" && (strings.Contains(text, "No such file or directory") || strings.Contains(text, "No files found")):
		f := fault.Wrap(err, fault.Busy, "database.Run", "the table was replaced while it was read; ask again")
		f.Kind, f.RetryAfter = "query", time.Second
		return f
	case class == "IO Error" || class == "Catalog Error" || class == "Permission Error" || class == "INTERNAL Error" || class == "FATAL Error":
		f := fault.Wrap(err, fault.Internal, "database.Run", "the database failed to run the statement")
		f.Kind = "query"
		return f
	}
	text, _, _ = strings.Cut(text, "\n")
	switch {
	case r.about.view:
		text = hiddenByView
	case r.about.external:
		text = "the value that failed is not shown, because the statement reads files" // the text may have their paths
	}
	f := fault.Wrap(err, fault.Invalid, "database.Run", "the statement failed: %s: %s", class, text)
	f.Kind = "query"
	if class == "Conversion Error" && strings.Contains(e.msg, "INT128") && strings.Contains(e.msg, "INT64") {
		f.Hint = "a sum of INTEGER is a BIGINT; sum(x::BIGINT) has room for 38 digits"
	}
	if class == "Conversion Error" && strings.Contains(e.msg, "DECIMAL(3,0)") {
		f.Hint = "a computed size, as in repeat(x, n) or lpad(x, n, ' '), is at most 999; a number in the statement may be larger"
	}
	return f
}
