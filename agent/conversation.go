package agent

import (
	"context"
	"strings"
	"time"

	"sluice/rag"
	"sluice/sqlguard"
)

// How much of a conversation the model gets to see.
const (
	maxTurns     = 3
	maxTurnBytes = 1 << 10 // of a turn's question, of its SQL, and of its result
	maxTurnRows  = 5

	slowestTurn = 5 * time.Second // of its statement on the database, or an eighth of the ask's time
)

// earlierTurn is a turn that passed the gate again.
type earlierTurn struct {
	question, sql string
	result        string // as comments
	relations     []sqlguard.Relation
}

// rememberEarlier takes the last turns whose SQL the asker may still run, and reads what it gives now. What a caller says
// of an earlier result is never shown to the model.
func (k *ask) rememberEarlier(ctx context.Context) error {
	turns := k.q.Earlier[max(0, len(k.q.Earlier)-maxTurns):]
	for _, t := range turns {
		question, sql := rag.OneLine(t.Question, 0), strings.TrimSpace(t.SQL)
		if question == "" || sql == "" || len(question) > maxTurnBytes || len(sql) > maxTurnBytes || strings.Contains(sql, "```") {
			continue
		}
		approved, err := k.src.Approve(ctx, sql, ProfileOf(k.q.Who), k.may)
		if err != nil || approved.Explain() {
			if err != nil && (ctx.Err() != nil || !blamesStatement(err)) {
				return err
			}
			continue
		}
		turn := earlierTurn{question: question, sql: rag.OneLine(approved.Shown(), 0), relations: approved.Relations()}
		if hidden := k.agent.cfg.HideValues; hidden == nil || !hidden(k.src.Name()) {
			if turn.result, err = k.earlierResult(ctx, approved); err != nil {
				return err
			}
			if turn.result == "" {
				continue
			}
		}
		k.earlier = append(k.earlier, turn)
	}
	return nil
}

// earlierResult says what a statement of an earlier turn gives now; "" when it does not run, or not soon.
func (k *ask) earlierResult(ctx context.Context, approved sqlguard.Approved) (string, error) {
	short, cancel := context.WithTimeout(ctx, min(slowestTurn, k.agent.cfg.Timeout/8))
	defer cancel()
	table, err := read(short, k.src, approved, maxTurnRows, maxTurnBytes/2)
	switch {
	case err == nil:
		return "-- Its result: " + rag.OneLine(describe(table), maxTurnBytes) + "\n", nil
	case ctx.Err() != nil, short.Err() == nil && !blamesStatement(err):
		return "", err
	}
	return "", nil
}
