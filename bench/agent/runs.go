package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"sluice/agent/eval"
	"sluice/bench/beside"
)

// measure is what all scenes share: a run is made once, however many figures come of it.
type measure struct {
	set, keep, postgres string
	sizes, tags         []string
	cold                int
	done                map[string]*result
}

type result struct {
	eval.Summary
	err error
}

// run asks a model the whole set, plainly or as the agent.
func (m *measure) run(ctx context.Context, b *beside.Bench, size string, plain bool) (*result, error) {
	if !slices.Contains(m.sizes, size) {
		return nil, fmt.Errorf("the %s model was not asked (SIZES)", size)
	}
	name := size + "-agent"
	if plain {
		name = size + "-plain"
	}
	if r, ok := m.done[name]; ok {
		return r, r.err
	}
	r := &result{}
	m.done[name] = r
	r.err = func() (err error) {
		server, err := b.Server(ctx, beside.Setup{Ours: true, Loaded: 1})
		if err != nil {
			return err
		}
		folder := m.keep
		if folder == "" {
			folder = b.Dir
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		cfg := eval.Config{Dir: m.set, Tags: m.tags, Model: size, Plain: plain, Postgres: m.postgres, Completer: &remote{server: server}, Progress: os.Stderr}
		f, done, err := eval.OpenLines(filepath.Join(folder, name+".jsonl"), true, cfg.How())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cfg.Out, cfg.Done = f, done
		report, err := eval.Run(ctx, cfg)
		if err != nil {
			return err
		}
		r.Summary = report.Summary()
		fmt.Printf("  %s (%s)\n", name, ggufs()[size])
		return r.Print(os.Stdout)
	}()
	return r, r.err
}

func (m *measure) accuracy(size string) func(context.Context, *beside.Bench) (float64, error) {
	return func(ctx context.Context, b *beside.Bench) (float64, error) {
		r, err := m.run(ctx, b, size, false)
		if err != nil {
			return 0, err
		}
		return r.Accuracy, nil
	}
}

// gain is in points over the plain prompt of the same server.
func (m *measure) gain(size string) func(context.Context, *beside.Bench) (float64, error) {
	return func(ctx context.Context, b *beside.Bench) (float64, error) {
		plain, err := m.run(ctx, b, size, true)
		if err != nil {
			return 0, err
		}
		ours, err := m.run(ctx, b, size, false)
		if err != nil {
			return 0, err
		}
		return ours.Accuracy - plain.Accuracy, nil
	}
}

// declinedRight is the share of the questions without an answer that were declined, of the model that does worst.
func (m *measure) declinedRight(ctx context.Context, b *beside.Bench) (float64, error) {
	return m.worst(ctx, b, func(s eval.Summary) (float64, int) { return float64(s.DeclinedRight), s.Unanswerable }, math.Min)
}

// declinedWrong is the share of the questions with an answer that were declined, of the model that does worst.
func (m *measure) declinedWrong(ctx context.Context, b *beside.Bench) (float64, error) {
	return m.worst(ctx, b, func(s eval.Summary) (float64, int) { return float64(s.DeclinedWrong), s.Asked }, math.Max)
}

func (m *measure) worst(ctx context.Context, b *beside.Bench, share func(eval.Summary) (float64, int), of func(a, b float64) float64) (worst float64, err error) {
	for i, size := range m.sizes {
		r, err := m.run(ctx, b, size, false)
		if err != nil {
			return 0, err
		}
		n, all := share(r.Summary)
		if all == 0 {
			return 0, errors.New("the questions asked have none of this kind")
		}
		if n /= float64(all); i == 0 {
			worst = n
		}
		worst = of(worst, n)
	}
	return worst, nil
}

// leaks counts those of all answers of the agent.
func (m *measure) leaks(ctx context.Context, b *beside.Bench) (n float64, err error) {
	for _, size := range m.sizes {
		r, err := m.run(ctx, b, size, false)
		if err != nil {
			return 0, err
		}
		n += float64(len(r.Leaks))
	}
	return n, nil
}
