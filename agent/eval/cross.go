package eval

import (
	"context"

	"sluice/access"
	"sluice/agent"
	"sluice/rag"
)

// folds of the cross-validation, and how many confirmed pairs the agent is given, the nearest first.
const (
	folds        = 5
	nearestPairs = 5
)

// crossed plays the verified pairs of the Learning Loop, by cross-validation: a question is asked as if a person had confirmed
// the golds of the other folds' questions about the same database, and never with its own fold's. The folds are by the
// place in the set, so they are the same whatever part of it is asked.
type crossed struct {
	fold  map[string]int        // by the question's id
	pairs map[string][]foldPair // by the database
	asked Question
}

type foldPair struct {
	fold int
	agent.Pair
}

func newCrossed(set []Question) *crossed {
	c := &crossed{fold: map[string]int{}, pairs: map[string][]foldPair{}}
	for _, q := range set {
		if !q.answerable() {
			continue
		}
		f := len(c.pairs[q.DB]) % folds
		c.fold[q.ID] = f
		c.pairs[q.DB] = append(c.pairs[q.DB], foldPair{f, agent.Pair{Question: q.Question, SQL: q.Gold[0], ID: q.ID, By: "the set"}})
	}
	return c
}

// known is agent.Config.Verified for the question that is being asked. One that has no answer is in no fold: it may see all.
func (c *crossed) known(_ context.Context, _ access.Principal, database, question string) ([]agent.Pair, error) {
	mine, in := c.fold[c.asked.ID]
	var others []agent.Pair
	var texts []string
	for _, p := range c.pairs[database] {
		if !in || p.fold != mine {
			others, texts = append(others, p.Pair), append(texts, p.Question)
		}
	}
	var out []agent.Pair
	for _, at := range rag.Nearest(question, texts, nearestPairs) {
		out = append(out, others[at])
	}
	return out, nil
}
