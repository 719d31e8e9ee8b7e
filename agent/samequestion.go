package agent

import (
	"context"
	"strings"
	"time"

	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

// How much of confirmed questions the model gets to see.
const (
	maxPairs     = 3       // as examples
	maxPairBytes = 2 << 10 // of one, question and SQL
)

// verified looks up questions whose SQL was confirmed. One that is this question (rag.SameQuestion) is answered by its SQL,
// without the model, after it passed the gate for the asker; others, also those that differ in a number or a value alone, become
// examples. done says that it was answered.
func (k *ask) verified(ctx context.Context) (done bool, err error) {
	if k.agent.cfg.Verified == nil {
		return false, nil
	}
	pairs, err := k.agent.cfg.Verified(ctx, k.q.Who, k.src.Name(), k.q.Question)
	if err != nil {
		return false, err
	}
	for _, p := range pairs {
		same := rag.SameQuestion(p.Question, k.q.Question) && k.q.Evidence == "" && len(k.earlier) == 0
		if !same && (len(k.pairs) == maxPairs || len(p.Question)+len(p.SQL) > maxPairBytes) {
			continue
		}
		approved, err := k.src.Approve(ctx, p.SQL, ProfileOf(k.q.Who), k.may)
		if err != nil {
			if ctx.Err() != nil || !blamesStatement(err) && fault.CodeOf(err) != fault.NotFound {
				return false, err
			}
			continue // he may not read what it reads, or it is there no more
		}
		if approved.Explain() || len(approved.Relations()) == 0 {
			continue // no such thing is kept, whoever wrote it into the store
		}
		if !same {
			k.pairs = append(k.pairs, Pair{Question: rag.OneLine(p.Question, 0), SQL: rag.OneLine(approved.Shown(), 0)})
			continue
		}
		if done, err := k.confirmed(ctx, p, approved); err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// confirmed answers with a pair's SQL as it runs now. One that does not run any more answers nothing.
func (k *ask) confirmed(ctx context.Context, p Pair, approved sqlguard.Approved) (done bool, err error) {
	t := &try{Candidate: Candidate{Written: approved.Shown(), Round: "verified", Votes: 1, SQL: approved.Shown()}, approved: approved, at: time.Now()}
	k.tries = append(k.tries, t)
	k.tell("candidate", t.SQL)
	k.tell("gate", "allowed")
	if err := k.rows(ctx, t); err != nil {
		return false, err
	}
	t.Took = time.Since(t.at)
	if !k.choose() {
		k.tries = nil
		return false, nil
	}
	k.answer.Verified, k.answer.VerifiedBy, k.answer.VerifiedAt, k.answer.VerifiedID = true, p.By, p.At, p.ID
	return true, nil
}

// Confirmed says who confirmed the SQL of an answer and when, for a person to read: "confirmed by ann on 2026-11-30". It is ""
// when nobody did.
func (a Answer) Confirmed() string {
	if !a.Verified {
		return ""
	}
	said := "confirmed"
	if a.VerifiedBy != "" {
		said += " by " + strings.Join(strings.Fields(a.VerifiedBy), " ")
	}
	if !a.VerifiedAt.IsZero() {
		said += " on " + a.VerifiedAt.UTC().Format(time.DateOnly)
	}
	return said
}
