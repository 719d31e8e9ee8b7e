package main

import (
	"context"
	"fmt"
	"os"

	"sluice/agent/eval"
	"sluice/bench/beside"
)

// Of agent.latency: questions are asked in turns of so many, plainly and as the agent, so that a machine that slows down does so
// for both.
const (
	turn   = 5
	numCtx = 8192 // of both prompts
)

// latency is the median seconds of an answer over those of the plain prompt, on the same questions. Before each of them the model
// is loaded anew, which is not counted: its cache is empty, so both read all of their prompt.
func (m *measure) latency(ctx context.Context, b *beside.Bench) (float64, error) {
	size := m.sizes[0]
	server, err := b.Server(ctx, beside.Setup{Ours: true, Loaded: 1})
	if err != nil {
		return 0, err
	}
	seconds := map[bool][]float64{}
	for round := range max(1, m.cold/turn) {
		for _, plain := range []bool{round%2 == 0, round%2 != 0} {
			model := &remote{server: server}
			cfg := eval.Config{Dir: m.set, Tags: m.tags, Model: size, Plain: plain, Completer: model, Sample: eval.Sample{Seed: uint64(round), N: turn}, Progress: os.Stderr,
				Keep:   func(q eval.Question) bool { return len(q.Gold) > 0 },
				Before: func(ctx context.Context, _ eval.Question) error { return model.forget(ctx, size, numCtx) }}
			report, err := eval.Run(ctx, cfg)
			if err != nil {
				return 0, err
			}
			if first := model.calls[0]; first.cached > first.prompt/10 {
				return 0, fmt.Errorf("%d of %d tokens of a cold prompt were cached", first.cached, first.prompt)
			}
			for _, l := range report.Lines {
				seconds[plain] = append(seconds[plain], l.Seconds)
			}
		}
	}
	return beside.Show("agent", "s", seconds[false]) / beside.Show("plain prompt", "s", seconds[true]), nil
}
