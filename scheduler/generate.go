package scheduler

import (
	"context"

	"sluice/models"
	"sluice/runner"
)

// Completion is what a lease's model shall go on from, and how.
type Completion struct {
	Prompt      string
	Chat        *runner.Chat // what Prompt was rendered from, for runners that render by themselves; nil for a text
	Options     models.Options
	Owner       string // for whom it is computed, as runner.GenerateRequest has it
	Images      [][]byte
	Schema      string // JSON Schema of the answer; "null" any JSON; "" unconstrained
	Grammar     string // GBNF; not together with Schema
	After       string // Schema or Grammar bind only behind this text
	Logprobs    bool
	TopLogprobs int
	N           int          // answers; 0 is 1
	Draft       runner.Draft // "": as the options say
	Truncate    bool         // cut a prompt that exceeds the context; else it is Invalid
	Shift       bool         // go on when the context is full by forgetting the older half; else end with "length"
}

// Generate answers a prompt on the leased runner: it is the one place where a model's options become a runner's request.
// It streams and fails as runner.Process.Generate does.
// A server elsewhere that cannot be reached before the first chunk is replaced by another runner of the model.
func (l *Lease) Generate(ctx context.Context, c Completion, emit func(runner.Chunk) error) error {
	begun := false
	return l.attempt(ctx, func(r Runner, report runner.LoadReport) error {
		return r.Generate(ctx, c.request(report), func(ch runner.Chunk) error {
			begun = true
			return emit(ch)
		})
	}, func() bool { return begun }, func(report runner.LoadReport) bool {
		return report.Chats || c.Chat == nil || c.Prompt != "" // a chat that nobody has rendered can only go where it is rendered
	})
}

// Embed embeds texts on the leased runner; a server elsewhere is replaced as in Generate.
func (l *Lease) Embed(ctx context.Context, req runner.EmbedRequest) (out runner.EmbedResponse, err error) {
	err = l.whole(ctx, func(r Runner) (err error) {
		out, err = r.Embed(ctx, req)
		return err
	})
	return out, err
}

// Rerank scores documents on the leased runner; a server elsewhere is replaced as in Generate.
func (l *Lease) Rerank(ctx context.Context, req runner.RerankRequest) (out runner.RerankResponse, err error) {
	err = l.whole(ctx, func(r Runner) (err error) {
		out, err = r.Rerank(ctx, req)
		return err
	})
	return out, err
}

// whole is an attempt at a call that answers in one piece.
func (l *Lease) whole(ctx context.Context, call func(Runner) error) error {
	return l.attempt(ctx, func(r Runner, _ runner.LoadReport) error { return call(r) },
		func() bool { return false }, func(runner.LoadReport) bool { return true })
}

// request is what a runner with this report is asked.
func (c Completion) request(report runner.LoadReport) runner.GenerateRequest {
	o := c.Options
	return runner.GenerateRequest{
		Prompt: c.Prompt, Chat: c.Chat, Owner: c.Owner, Images: c.Images, Schema: c.Schema, Grammar: c.Grammar, After: c.After,
		Logprobs: c.Logprobs, TopLogprobs: c.TopLogprobs, N: c.N, Draft: draft(c), Truncate: c.Truncate, Shift: c.Shift,
		NumPredict: numPredict(o.NumPredict, report.NumCtx), NumKeep: o.NumKeep, Stop: o.Stop,
		Sampling: runner.Sampling{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP,
			RepeatLastN: o.RepeatLastN, RepeatPenalty: o.RepeatPenalty, PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			Seed: o.Seed,
		},
	}
}

// draft takes the caller's word before that of the options.
func draft(c Completion) runner.Draft {
	if c.Draft != runner.DraftAuto {
		return c.Draft
	}
	if c.Options.Draft == "auto" {
		return runner.DraftAuto
	}
	return runner.Draft(c.Options.Draft)
}

// numPredict bounds an answer: one without a limit ends after one context, a limit far beyond the context is ten of them.
// Ollama lets both go on for ten contexts: a small model that repeats itself then computes for a quarter of an hour for a chat's
// title, which Open WebUI asks for without a limit. Where the context is not known,
// elsewhere, the server there bounds it.
func numPredict(asked, numCtx int) int {
	switch {
	case numCtx == 0 && asked <= 0:
		return -1
	case numCtx == 0:
		return asked
	case asked <= 0:
		return numCtx
	}
	return min(asked, 10*numCtx)
}
