package gateway

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/gin-gonic/gin"

	"sluice/agent"
	"sluice/fault"
	"sluice/sqlguard"
)

// auditedSource puts each statement of an ask into the ledger before it runs, and into the list of those that run.
type auditedSource struct {
	agent.Source
	s      *server
	c      *gin.Context
	cancel context.CancelCauseFunc // of the whole ask
}

func (a auditedSource) Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	approved, err := a.Source.Approve(ctx, sql, profile, may)
	if err != nil {
		a.s.meters.statement(askKind, ended(ctx, err))
	}
	return approved, err
}

func (a auditedSource) Run(ctx context.Context, approved sqlguard.Approved) (array.RecordReader, error) {
	if err := a.s.record(a.c, "ask.run", map[string]any{"database": a.Name(), "sql": approved.Shown()}); err != nil {
		return nil, err
	}
	st, done := a.s.begin(a.c, askKind, a.Name(), shown(approved), a.cancel)
	end := func(err error) {
		done()
		a.s.meters.statement(askKind, ended(ctx, err))
	}
	rows, err := a.Source.Run(ctx, approved)
	if err != nil {
		end(err)
		return nil, err
	}
	return watch(rows, st, end), nil
}

// askAudited asks the agent. In the ledger are the statements that run, and what came of the ask before anybody sees it; neither
// the question nor the answer: people write there what no ledger should keep for ever. The ask's id leads to them. Who cancels
// a statement of it ends the ask.
func (s *server) askAudited(c *gin.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	q.Copy = s.copyDoor(c, src)
	a, err := s.cfg.Agent.Ask(ctx, auditedSource{Source: src, s: s, c: c, cancel: cancel}, q)
	if fault.CodeOf(err) == fault.Canceled {
		err = ended(ctx, err)
	}
	if err != nil {
		return a, err
	}
	details := map[string]any{"ask": a.ID, "database": src.Name(), "outcome": string(a.Outcome), "model": a.Model, "attempts": a.Attempts}
	if a.Table != nil {
		details["rows"] = len(a.Table.Rows)
	}
	if a.Copy != nil {
		details["copy_request"] = a.Copy.ID
	}
	return a, s.record(c, "ask.end", details)
}
