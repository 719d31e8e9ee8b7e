package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"sluice/rag"
)

// repair shows the model the error of its statement and has it correct it, a few times. done says that the ask is decided.
func (k *ask) repair(ctx context.Context, of *round) (done bool, err error) {
	broken := k.repairable()
	for n := 0; !k.off().Repair && n < k.agent.cfg.Repairs && broken != nil && k.affords(ctx); n++ {
		r := &round{name: "repair", grammar: of.grammar, messages: slices.Concat(of.messages[:len(of.messages)-1], []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeAI, plainStart+broken.sql()+"\n```"),
			llms.TextParts(llms.ChatMessageTypeHuman, complaint(broken)),
			llms.TextParts(llms.ChatMessageTypeAI, plainStart),
		})}
		before := len(k.tries)
		if done, err := k.once(ctx, r, 0, 1); err != nil || done {
			return done, err
		}
		if len(k.tries) == before || k.any(Ran, Empty) {
			break // it wrote what it had written before, or something that works
		}
		if last := k.tries[len(k.tries)-1]; last.refusal != nil {
			broken = last
		}
	}
	return k.declinedByModel(), nil
}

// repairable is the candidate that is shown: the first that has an error.
func (k *ask) repairable() *try {
	for _, t := range k.tries {
		if t.refusal != nil && !t.write {
			return t
		}
	}
	return nil
}

// maxError bounds an error in a prompt, in characters.
const maxError = 400

// complaint says what is wrong with a statement. Errors of the gate and the database are bounded by the asker's rights.
func complaint(t *try) string {
	said := "-- That fails: " + rag.OneLine(t.refusal.Msg, maxError)
	if hint := strings.TrimSpace(t.refusal.Hint); hint != "" {
		said += " (" + rag.OneLine(hint, maxError) + ")"
	}
	return said + "\n-- Write the corrected statement.\n"
}

// tried says why there is no answer.
func (k *ask) tried() string {
	reason := k.answer.Model + " wrote no SQL"
	for _, t := range k.tries {
		switch {
		case t.Verdict == Cannot:
			continue
		case t.refusal != nil && t.Verdict == Refused:
			reason = "the SQL that " + k.answer.Model + " wrote was refused: " + t.Reason
		case t.refusal != nil:
			reason = "the database could not run the SQL that " + k.answer.Model + " wrote: " + t.Reason
		default:
			reason = t.Reason
		}
		break
	}
	if n := len(k.tries); n > 1 {
		reason += "; " + plural(n, "statement") + " were tried"
	}
	return reason
}
