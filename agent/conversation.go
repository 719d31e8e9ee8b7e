package agent

import (
	"context"
	"strings"
	"time"

	"sluice/fault"
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

// verified looks up questions whose SQL was confirmed. One that is this question is answered by its SQL, without the
// model; others become examples. done says that it was.
func (k *ask) verified(ctx context.Context) (done bool, err error) {
	if k.agent.cfg.Verified == nil {
		return false, nil
	}
	pairs, err := k.agent.cfg.Verified(ctx, k.q.Who, k.src.Name(), k.q.Question)
	if err != nil {
		return false, err
	}
	for _, p := range pairs {
		approved, err := k.src.Approve(ctx, p.SQL, ProfileOf(k.q.Who), k.may)
		if err != nil {
			if ctx.Err() != nil || fault.CodeOf(err) == fault.Internal {
				return false, err
			}
			continue // he may not read what it reads, or it is there no more
		}
		if sameText(p.Question, k.q.Question) && k.q.Evidence == "" && len(k.earlier) == 0 {
			t := &try{Candidate: Candidate{Written: approved.Shown(), Round: "verified", Votes: 1, SQL: approved.Shown()}, approved: approved}
			k.tries = append(k.tries, t)
			k.tell("candidate", t.SQL)
			k.tell("gate", "allowed")
			if err := k.rows(ctx, t); err != nil {
				return false, err
			}
			if k.choose() {
				k.answer.Verified = true
				return true, nil
			}
			k.tries = nil
			continue
		}
		k.pairs = append(k.pairs, Pair{Question: p.Question, SQL: rag.OneLine(approved.Shown(), 0)})
	}
	k.pairs = k.pairs[:min(len(k.pairs), maxPairs)]
	return false, nil
}

// maxPairs is how many confirmed questions become examples.
const maxPairs = 3
