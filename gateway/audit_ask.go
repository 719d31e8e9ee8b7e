package gateway

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/gin-gonic/gin"

	"sluice/agent"
	"sluice/sqlguard"
)

// auditedSource puts each statement of an ask into the ledger before it runs.
type auditedSource struct {
	agent.Source
	record func(sql string) error
}

func (a auditedSource) Run(ctx context.Context, approved sqlguard.Approved) (array.RecordReader, error) {
	if err := a.record(approved.Shown()); err != nil {
		return nil, err
	}
	return a.Source.Run(ctx, approved)
}

// askAudited asks the agent. In the ledger are the statements that run, and what came of the ask before anybody sees it; neither
// the question nor the answer: people write there what no ledger should keep for ever. The ask's id leads to them.
func (s *server) askAudited(c *gin.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
	audited := auditedSource{Source: src, record: func(sql string) error {
		return s.record(c, "ask.run", map[string]any{"database": src.Name(), "sql": sql})
	}}
	a, err := s.cfg.Agent.Ask(c.Request.Context(), audited, q)
	if err != nil {
		return a, err
	}
	details := map[string]any{"ask": a.ID, "database": src.Name(), "outcome": string(a.Outcome), "model": a.Model, "attempts": a.Attempts}
	if a.Table != nil {
		details["rows"] = len(a.Table.Rows)
	}
	return a, s.record(c, "ask.end", details)
}
