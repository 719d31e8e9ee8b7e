package gateway

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// written is what a write may answer with: the rows of RETURNING as a query's, or none, and how many rows it changed.
type written struct {
	Columns   []database.Column   `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	RowCount  int64               `json:"row_count"` // that were changed; 0 for a change of tables
	Truncated bool                `json:"truncated"` // not all rows of RETURNING are shown
	Command   string              `json:"command"`   // such as INSERT or CREATE TABLE
}

// write runs one statement that changes rows or tables of a writable database. The answer is JSON whatever the caller accepts:
// it is whole before the change is made for good.
func (s *server) write(c *gin.Context, src *database.Source, sql string, req *queryRequest) {
	ctx, cancel := s.statementContext(c.Request.Context())
	defer cancel(nil)
	out, err := s.writeOn(ctx, cancel, c, src, sql, req)
	if fault.CodeOf(err) == fault.Canceled { // what failed in another way tells more than that it was to end
		err = ended(ctx, err)
	}
	s.meters.statement(writeKind, err)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, out)
}

func (s *server) writeOn(ctx context.Context, cancel context.CancelCauseFunc, c *gin.Context, src *database.Source, sql string, req *queryRequest) (written, error) {
	out := written{Columns: []database.Column{}, Rows: [][]json.RawMessage{}}
	if src.Writable() { // else the gate's answer, which is the same for everybody
		if err := access.MayWrite(principal(c), src.Name()); err != nil {
			return out, err
		}
	}
	approved, err := src.Approve(ctx, sql, sqlguard.Write, mayRead(c, src))
	if err != nil {
		return out, err
	}
	values, _ := req.values() // checked before
	st, done := s.begin(c, writeKind, src.Name(), shown(approved), cancel)
	defer done()
	out.Command = approved.Writing().Command
	take := func(rows array.RecordReader) error {
		got, err := collect(watch(rows, st, nil), req.rows(s.cfg.MaxRows), maxJSON)
		if err == nil {
			out.Columns, out.Rows, out.Truncated = got.Columns, got.Rows, got.Truncated
		}
		return err
	}
	details := map[string]any{"database": src.Name(), "sql": approved.Shown(), "command": out.Command}
	err = s.audited(c, "write", details, func() (err error) {
		out.RowCount, err = src.Write(ctx, approved, values, take)
		return err
	})
	return out, err
}
