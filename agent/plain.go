package agent

import (
	"context"
	"time"
)

// plain answers with the plain prompt: one greedy call on a given schema, one statement, no help. It is what every
// technique is measured against.
func (k *ask) plain(ctx context.Context) error {
	k.tell("schema", "given")
	k.step = "having " + k.answer.Model + " write SQL"
	messages, err := plainPrompt(k.q.Schema, k.q.Question, k.q.Evidence)
	if err != nil {
		return err
	}
	texts, err := k.write(ctx, messages, "", 0, 1, false)
	if err != nil {
		return err
	}
	t := &try{Candidate: Candidate{Written: statement(texts[0]), Round: "plain", Votes: 1}, at: time.Now()}
	if done, err := k.consider(ctx, t); err != nil || done {
		return err
	}
	if !k.choose() {
		k.fail(k.tried())
	}
	return nil
}
