package agent

import (
	"context"
	"fmt"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
	"sluice/store"
)

// What the Learning Loop keeps, as the control store has it. Rooms that may not know the store know these.
type (
	Asked          = store.Ask
	AskedFilter    = store.AskFilter
	Mark           = store.Mark
	Verified       = store.Verified
	VerifiedFilter = store.VerifiedFilter
	Place          = store.Place    // in a list
	KeptRelation   = store.Relation // a table, as it is kept
)

// MaxVerified is how many pairs one owner may have for a database.
const MaxVerified = store.MaxVerified

// RecordIn makes a Config's Record: each ask is kept in a control store.
func RecordIn(s *store.Store) func(context.Context, Record) error {
	return func(ctx context.Context, r Record) error { return s.InsertAsk(ctx, r.Asked()) }
}

// nearestPairs is how many verified questions an ask looks at: some of them may not pass the gate for the asker.
const nearestPairs = 8

// VerifiedIn makes a Config's Verified: of the pairs in a control store, those that serve the asker and are nearest to the
// question.
func VerifiedIn(s *store.Store) func(ctx context.Context, who access.Principal, database, question string) ([]Pair, error) {
	return func(ctx context.Context, who access.Principal, database, question string) ([]Pair, error) {
		found, err := s.VerifiedFor(ctx, database, who.Owner, who.KeyID, func(of []string) []int { return rag.Nearest(question, of, nearestPairs) })
		pairs := make([]Pair, len(found))
		for i, v := range found {
			pairs[i] = Pair{ID: v.ID, Question: v.Question, SQL: v.SQL, By: v.VerifiedBy, At: v.VerifiedAt}
		}
		return pairs, err
	}
}

// Asked is a record as it is kept.
func (r Record) Asked() Asked {
	a := Asked{
		ID: r.ID, KeyID: r.KeyID, Owner: r.Owner, Database: r.Database, Question: r.Question, WrittenSQL: r.Written, ExecutedSQL: r.SQL,
		Outcome: string(r.Outcome), Reason: r.Reason, Model: r.Model, ModelCalls: r.ModelCalls, Duration: r.Took, CreatedAt: r.At,
		Attempts: r.Attempts, Agreed: r.Agreed, Tables: kept(r.Tables), Timings: r.Timings, VerifiedID: r.VerifiedID, Readable: kept(r.Readable), Follows: r.Follows,
	}
	for _, c := range r.Candidates {
		a.Candidates = append(a.Candidates, store.Candidate{Written: c.Written, Mended: c.Mended, SQL: c.SQL, Round: c.Round, Verdict: string(c.Verdict), Reason: c.Reason,
			Rows: c.Rows, Votes: c.Votes, TookMS: c.Took.Milliseconds()})
	}
	return a
}

func kept(relations []sqlguard.Relation) (out []store.Relation) {
	for _, r := range relations {
		out = append(out, store.Relation{Schema: r.Schema, Name: r.Name})
	}
	return out
}

// readable are all relations that the asker could read; nil when nobody looked.
func (k *ask) readable() []sqlguard.Relation {
	if k.known == nil {
		return nil
	}
	return k.known.Relations()
}

// broken records an ask that came to no answer, and gives the error that ended it.
func (a *Agent) broken(ctx context.Context, k *ask, started time.Time, outcome Outcome, err error) error {
	k.close()
	k.answer.Outcome, k.answer.SQL, k.answer.Reason = outcome, "", fault.Public(err).Msg
	if late := a.record(ctx, k, started); late != nil {
		return fmt.Errorf("%w (and it could not be recorded: %s)", err, late)
	}
	return err
}
