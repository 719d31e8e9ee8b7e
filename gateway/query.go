package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/gin-gonic/gin"

	"sluice/agent"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

type queryRequest struct {
	Database string          `json:"database"`
	SQL      string          `json:"sql"`
	Params   json.RawMessage `json:"params"`
	MaxRows  *int            `json:"max_rows"`
}

// check refuses what is wrong.
func (q *queryRequest) check() error {
	const op = "gateway.query"
	if q.MaxRows != nil && *q.MaxRows < 0 {
		return fault.New(fault.Invalid, op, "max_rows must not be negative")
	}
	_, err := q.values()
	return err
}

// values reads the parameters as a source takes them: nil, bool, int64, float64 or string. A number with a point or an
// exponent, or beyond 64 bits, is a float.
func (q *queryRequest) values() ([]any, error) {
	const op = "gateway.query"
	if !present(q.Params) {
		return nil, nil
	}
	var list []any
	dec := json.NewDecoder(bytes.NewReader(q.Params))
	dec.UseNumber()
	if err := dec.Decode(&list); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, op, "params must be a list")
	}
	for i, v := range list {
		switch v := v.(type) {
		case nil, bool, string:
		case json.Number:
			if n, err := v.Int64(); err == nil {
				list[i] = n
			} else if f, err := v.Float64(); err == nil {
				list[i] = f
			} else {
				return nil, fault.Wrap(err, fault.Invalid, op, "parameter %d is beyond the numbers that there are", i+1)
			}
		default:
			return nil, fault.New(fault.Invalid, op, "parameter %d must be a text, a number, true, false or null", i+1)
		}
	}
	return list, nil
}

// rows is the cap of a result: what was asked for, cut to most; most itself when nothing was. 0 as most is no cap.
func (q *queryRequest) rows(most int) int {
	if q.MaxRows == nil || most > 0 && *q.MaxRows > most {
		return most
	}
	return *q.MaxRows
}

// execute takes one statement: a query, a write, COPY … TO LAKE, or CREATE or DROP EXTERNAL TABLE.
func (s *server) execute(c *gin.Context) {
	var req queryRequest
	err := decodeStrict(c, &req)
	if err == nil {
		err = req.check()
	}
	var src *database.Source
	var stmt sqlguard.Statement
	if err == nil {
		src, stmt, err = s.statement(c, req.Database, req.SQL)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	if values, _ := req.values(); len(values) > 0 && stmt.Query == "" {
		s.fail(c, fault.New(fault.Invalid, "gateway.query", "only a query takes parameters"))
		return
	}
	if stmt.Query == "" {
		s.onLake(c, src, stmt, req.SQL)
		return
	}
	if sqlguard.Writes(stmt.Query) {
		s.write(c, src, stmt.Query, &req)
		return
	}
	s.query(c, src, stmt.Query, &req)
}

// statement reads one statement for a database that the caller may read.
func (s *server) statement(c *gin.Context, from, sql string) (*database.Source, sqlguard.Statement, error) {
	if sql == "" {
		return nil, sqlguard.Statement{}, fault.New(fault.Invalid, "gateway.query", "sql is required")
	}
	src, err := s.source(c, from)
	if err != nil {
		return nil, sqlguard.Statement{}, err
	}
	stmt, err := sqlguard.Classify(sql)
	return src, stmt, err
}

// query runs a read and writes its rows as the caller accepts them. The first rows are fetched before a byte goes out,
// so that a statement which fails at once has a status of its own.
func (s *server) query(c *gin.Context, src *database.Source, sql string, req *queryRequest) {
	whole := false
	defer func() { // a stream that breaks off panics
		err := failureOf(c)
		if err == nil && !whole {
			err = fault.Bug("a statement that panicked")
		}
		s.meters.statement(queryKind, err)
	}()
	ctx, cancel := s.statementContext(c.Request.Context())
	defer cancel(nil)
	s.read(ctx, cancel, c, src, sql, req)
	whole = true
}

func (s *server) read(ctx context.Context, cancel context.CancelCauseFunc, c *gin.Context, src *database.Source, sql string, req *queryRequest) {
	approved, err := src.Approve(ctx, sql, agent.ProfileOf(principal(c)), mayRead(c, src))
	if err != nil {
		s.fail(c, ended(ctx, err))
		return
	}
	st, done := s.begin(c, queryKind, src.Name(), shown(approved), cancel)
	defer done()
	values, _ := req.values() // checked before
	rows, err := src.RunParams(ctx, approved, values)
	if err != nil {
		s.fail(c, ended(ctx, err))
		return
	}
	reader := watch(rows, st, nil)
	defer reader.Release()
	form, stream := accepts(c.Request.Header)
	if !stream {
		s.queryJSON(ctx, c, reader, approved, req.rows(s.cfg.MaxRows))
		return
	}
	first := reader.Next()
	if err := reader.Err(); !first && err != nil {
		s.fail(c, ended(ctx, err))
		return
	}
	most := -1
	if req.MaxRows != nil {
		most = *req.MaxRows
	}
	s.stream(ctx, c, form, &batches{RecordReader: reader, first: first, left: most})
}

var errStatementTime = errors.New("gateway: the statement took longer than the limit")

// statementContext bounds a statement by the configured time. Its caller calls cancel in any case.
func (s *server) statementContext(parent context.Context) (ctx context.Context, cancel context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(parent)
	if s.cfg.StatementTimeout == 0 {
		return ctx, end
	}
	ctx, stop := context.WithTimeoutCause(ctx, s.cfg.StatementTimeout, errStatementTime)
	return ctx, func(cause error) {
		end(cause)
		stop()
	}
}

// ended tells why a statement failed whose context ended: somebody cancelled it, the limit of time, or the caller left.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	var by *cancelled
	switch {
	case errors.As(cause, &by):
		return fault.Wrap(err, fault.Canceled, "gateway.query", "the statement was cancelled by '%s'", by.by)
	case errors.Is(cause, errStatementTime):
		return &fault.Error{Code: fault.TooLarge, Op: "gateway.query", Err: err, Msg: "the statement took longer than this server's limit for one", Hint: "ask for less"}
	}
	return fault.Wrap(err, fault.Canceled, "gateway.query", "the request was cancelled")
}

func (s *server) queryJSON(ctx context.Context, c *gin.Context, reader array.RecordReader, approved sqlguard.Approved, most int) {
	table, err := collect(reader, most, maxJSON)
	if err != nil {
		s.fail(c, ended(ctx, err))
		return
	}
	meta := gin.H{}
	if scans := approved.Scans(); len(scans) > 0 {
		list := make([]gin.H, len(scans))
		for i, scan := range scans {
			list[i] = gin.H{"table": scan.Relation.Schema + "." + scan.Relation.Name, "files_opened": scan.Opened, "files_total": scan.Total}
		}
		meta["scans"] = list
	}
	reply(c, table, meta)
}
