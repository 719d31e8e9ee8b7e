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
func (l *Lease) Generate(ctx context.Context, c Completion, emit func(runner.Chunk) error) error {
	o := c.Options
	return l.runner.Generate(ctx, runner.GenerateRequest{
		Prompt: c.Prompt, Chat: c.Chat, Owner: c.Owner, Images: c.Images, Schema: c.Schema, Grammar: c.Grammar, After: c.After,
		Logprobs: c.Logprobs, TopLogprobs: c.TopLogprobs, N: c.N, Draft: draft(c), Truncate: c.Truncate, Shift: c.Shift,
		NumPredict: numPredict(o.NumPredict, l.report.NumCtx), NumKeep: o.NumKeep, Stop: o.Stop,
		Sampling: runner.Sampling{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP,
			RepeatLastN: o.RepeatLastN, RepeatPenalty: o.RepeatPenalty, PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			Seed: o.Seed,
		},
	}, emit)
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
// title, which Open WebUI asks for without a limit.
func numPredict(asked, numCtx int) int {
	if asked <= 0 {
		return numCtx
	}
	return min(asked, 10*numCtx)
}
