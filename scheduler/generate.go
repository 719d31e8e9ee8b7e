package scheduler

import (
	"context"

	"sluice/models"
	"sluice/runner"
)

// Completion is what a lease's model shall go on from, and how.
type Completion struct {
	Prompt   string
	Options  models.Options
	Schema   string // JSON Schema of the answer; "null" any JSON; "" unconstrained
	Truncate bool   // cut a prompt that exceeds the context; else it is Invalid
	Shift    bool   // go on when the context is full by forgetting the older half; else end with "length"
}

// Generate answers a prompt on the leased runner: it is the one place where a model's options become a runner's request.
// It streams and fails as runner.Process.Generate does.
func (l *Lease) Generate(ctx context.Context, c Completion, emit func(runner.Chunk) error) error {
	o := c.Options
	return l.runner.Generate(ctx, runner.GenerateRequest{
		Prompt: c.Prompt, Schema: c.Schema, Truncate: c.Truncate, Shift: c.Shift,
		NumPredict: numPredict(o.NumPredict, l.report.NumCtx), NumKeep: o.NumKeep, Stop: o.Stop,
		Sampling: runner.Sampling{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP,
			RepeatLastN: o.RepeatLastN, RepeatPenalty: o.RepeatPenalty, PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			Seed: o.Seed,
		},
	}, emit)
}

// numPredict bounds an answer as Ollama does: no limit, or one far beyond the context, is ten contexts. Without it a
// model that never ends would go on for ever through context shifts.
func numPredict(asked, numCtx int) int {
	if most := 10 * numCtx; asked <= 0 || asked > most {
		return most
	}
	return asked
}
