package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5/pgconn"
)

// A batch ends at so many rows or at so many bytes on the wire, whichever comes first.
const (
	batchRows  = 8192
	batchBytes = 4 << 20
	maxColumns = 1664 // of any result of PostgreSQL (MaxTupleAttributeNumber)
)

// statement is one text to run, with what its errors may say.
type statement struct {
	sql     string
	params  []any
	timeout time.Duration
	hide    bool // it reads what may hide rows: errors must not show the server's text
	exact   bool // no number may be rounded to its column's type
}

// rows streams the result of one statement. It owns a connection until the last row is read, the statement fails or the
// reader is released. Next is called by one goroutine; Retain, Release and Err may be called by any.
type rows struct {
	ctx    context.Context // ends with the caller's, and with the last Release
	cancel context.CancelFunc
	caller context.Context
	engine *Engine
	stmt   statement
	start  time.Time

	lease  *lease // nil after the end
	result *pgconn.ResultReader
	ahead  bool // the row that result stands on is not taken yet

	schema *arrow.Schema
	cols   []column

	refs    atomic.Int64
	mu      sync.Mutex
	current arrow.RecordBatch
	err     error
}

var _ array.RecordReader = (*rows)(nil)

// stream prepares and starts a statement. It returns when the first row is there, or when there is none.
func (e *Engine) stream(ctx context.Context, s statement) (*rows, error) {
	r := &rows{caller: ctx, engine: e, stmt: s}
	r.refs.Store(1)
	r.ctx, r.cancel = context.WithCancel(ctx)
	var err error
	if r.lease, err = e.take(r.ctx, true, transaction{timeout: s.timeout}); err != nil {
		r.cancel()
		return nil, err
	}
	r.start = time.Now()
	begun := false
	defer func() { // a panic keeps no connection either
		if !begun {
			r.end()
			r.Release()
		}
	}()
	if err := r.begin(); err != nil {
		return nil, err
	}
	begun = true
	return r, nil
}

func (r *rows) begin() error {
	c := r.lease.conn
	c.exact = r.stmt.exact
	desc, err := c.pg.Prepare(r.ctx, "", r.stmt.sql, nil)
	if err != nil {
		return r.failed(err)
	}
	values, err := bindText(desc.ParamOIDs, r.stmt.params)
	if err != nil {
		return err
	}
	if len(desc.Fields) > maxColumns {
		return oddAnswer()
	}
	formats := make([]int16, len(desc.Fields))
	fields := make([]arrow.Field, len(desc.Fields))
	r.cols = make([]column, len(desc.Fields))
	asked, err := c.learn(r.ctx, desc.Fields)
	if err == nil && asked {
		// The question took the place of the unnamed statement. A name would outlive it behind a pooler.
		desc, err = c.pg.Prepare(r.ctx, "", r.stmt.sql, nil)
	}
	if err != nil {
		return r.failed(err)
	}
	for i, f := range desc.Fields {
		r.cols[i] = c.column(f.Name, f.DataTypeOID, f.TypeModifier)
		fields[i], formats[i] = r.cols[i].field, r.cols[i].format
	}
	r.schema = arrow.NewSchema(fields, nil)
	if len(formats) == 0 {
		r.result = c.pg.ExecPrepared(r.ctx, "", values, nil, nil)
	} else {
		r.result = c.pg.ExecStatement(r.ctx, desc, values, nil, formats)
	}
	if r.ahead = r.result.NextRow(); r.ahead {
		return nil
	}
	return r.finish()
}

// finish ends the result after its last row and gives the connection back. The error is what ended it early.
func (r *rows) finish() error {
	_, err := r.result.Close()
	if err != nil {
		err = r.failed(err)
	}
	r.end()
	return err
}

// end gives the connection back: for another use when nothing runs in it and nobody may have sent a cancel request.
func (r *rows) end() {
	l := r.lease
	if l == nil {
		return
	}
	r.lease, r.result = nil, nil
	if r.ctx.Err() != nil || l.pg.IsBusy() || l.pg.IsClosed() {
		l.abandon()
		return
	}
	l.done()
}

// Schema gives the columns of the result.
func (r *rows) Schema() *arrow.Schema { return r.schema }

// Retain adds a user; each must Release.
func (r *rows) Retain() { r.refs.Add(1) }

// Release ends the statement when the last user is gone, finished or not. A Next that waits for the server returns.
func (r *rows) Release() {
	switch n := r.refs.Add(-1); {
	case n < 0:
		r.refs.Store(0)
		return
	case n > 0:
		return
	}
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	r.end()
	for _, c := range r.cols {
		if c.builder != nil { // of a statement that failed before its columns were planned
			c.builder.Release()
		}
	}
	r.cols = nil
}

func (r *rows) drop() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

// Next reads the next batch. It is false at the end and after an error; a batch that an error cuts is not given.
func (r *rows) Next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
	if r.lease == nil || r.err != nil {
		return false
	}
	n, err := r.fill()
	if err != nil {
		r.err = err
		r.end()
		return false
	}
	if n == 0 {
		return false
	}
	arrays := make([]arrow.Array, len(r.cols))
	for i := range r.cols {
		arrays[i] = r.cols[i].take()
	}
	r.current = array.NewRecordBatch(r.schema, arrays, int64(n))
	for _, a := range arrays {
		a.Release()
	}
	return true
}

// fill appends rows to the builders, up to the size of a batch. After the last one the connection is given back.
func (r *rows) fill() (n int, err error) {
	room, size := 0, 0
	for n < batchRows && size < batchBytes {
		if !r.ahead && !r.result.NextRow() {
			return n, r.finish()
		}
		r.ahead = false
		if n == room { // few rows are common, and so are many
			room = min(max(4*room, 64), batchRows)
			for i := range r.cols {
				r.cols[i].builder.Reserve(room - n)
			}
		}
		values := r.result.Values()
		if len(values) != len(r.cols) {
			return 0, oddAnswer()
		}
		for i := range r.cols {
			v := values[i]
			if v == nil {
				r.cols[i].builder.AppendNull()
				continue
			}
			size += len(v)
			if err := r.cols[i].value(v); err != nil {
				return 0, r.shown(err)
			}
		}
		n++
	}
	return n, nil
}

// RecordBatch gives the batch that Next read; it lives until the next call of Next.
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
