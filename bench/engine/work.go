package main

import (
	"context"
	"fmt"
	"time"

	"sluice/bench/beside"
)

// lookup is the rate with prompt-lookup drafts by that without, on texts that must be the same.
func lookup(prompts func() []string, mode string) func(context.Context, *beside.Bench) (float64, error) {
	return func(ctx context.Context, b *beside.Bench) (float64, error) {
		us, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: 4, Loaded: 1}, b.Servers...)
		if err != nil {
			return 0, err
		}
		if err := us.Warm(ctx, "q05"); err != nil {
			return 0, err
		}
		var with, without, ratios []float64
		for i := range b.Pairs {
			for j, prompt := range prompts() {
				modes := []string{"off", mode}
				if (i+j)%2 == 1 {
					modes = []string{mode, "off"}
				}
				// The prompt is read before, so that both answers begin from one state: a token that is read in a batch of its own has
				// slightly other numbers than one read with others, and a near tie then falls the other way.
				for range 2 {
					if _, err := us.Ask(ctx, beside.Request{Model: "q05", Prompt: prompt, Tokens: 1, Options: map[string]any{"draft": "off"}}); err != nil {
						return 0, err
					}
				}
				got := map[string]*beside.Answer{}
				for _, m := range modes {
					a, err := us.Ask(ctx, beside.Request{Model: "q05", Prompt: prompt, Tokens: 96, Options: map[string]any{"draft": m}})
					if err != nil {
						return 0, err
					}
					got[m] = a
				}
				if err := sameText(got["off"], got[mode]); err != nil {
					return 0, fmt.Errorf("prompt %d: %w", j, err)
				}
				if got[mode].Tokens < 12 {
					return 0, fmt.Errorf("prompt %d: only %d tokens: %q", j, got[mode].Tokens, got[mode].Text())
				}
				without, with = append(without, got["off"].Decoding()), append(with, got[mode].Decoding())
				ratios = append(ratios, with[len(with)-1]/without[len(without)-1])
			}
		}
		beside.Show("drafts off", "tokens/s", without)
		beside.Show("drafts "+mode, "tokens/s", with)
		beside.Show("each prompt's ratio", "", ratios)
		return beside.Median(ratios), nil
	}
}

// sameText refuses answers of which one is not what the model writes without guesses.
func sameText(plain, drafted *beside.Answer) error {
	if plain.Text() != drafted.Text() {
		return fmt.Errorf("the texts differ:\n%q\n%q", plain.Text(), drafted.Text())
	}
	return nil
}

// grammar is the milliseconds that the schema of 100 tables adds to each token.
func grammar(ctx context.Context, b *beside.Bench) (float64, error) {
	us, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: 4, Loaded: 1}, b.Servers...)
	if err != nil {
		return 0, err
	}
	if err := us.Warm(ctx, "q05"); err != nil {
		return 0, err
	}
	format := tablesSchema(100, 14)
	var with, without, more []float64
	for i := range b.Pairs {
		got := map[bool]float64{}
		for _, constrained := range []bool{i%2 == 0, i%2 != 0} {
			r := beside.Request{Model: "q05", Prompt: beside.ChatML(tablesQuestion(i)), Tokens: 48}
			if constrained {
				r.Fields = map[string]any{"format": format}
			}
			a, err := us.Ask(ctx, r)
			if err != nil {
				return 0, err
			}
			if a.Tokens < 12 {
				return 0, fmt.Errorf("only %d tokens: %q", a.Tokens, a.Text())
			}
			got[constrained] = 1000 / a.Decoding()
		}
		with, without = append(with, got[true]), append(without, got[false])
		more = append(more, got[true]-got[false])
	}
	beside.Show("without a grammar", "ms/token", without)
	beside.Show("schema of 100 tables", "ms/token", with)
	return beside.Median(more), nil
}

// nbest is the time of four answers to one prompt of 1,200 tokens by that of four requests to the peer, which takes four at a time too.
func nbest(ctx context.Context, b *beside.Bench) (float64, error) {
	us, peer, err := b.Pair(ctx, 4, 4)
	if err != nil {
		return 0, err
	}
	if err := beside.WarmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	var ours, theirs []float64
	for i := range b.Pairs {
		r := beside.Request{Model: "q05", Prompt: beside.ChatML(fmt.Sprintf("Database number %d.\n", i+500) + schemaText(36, 12) + "\nWrite a query with a join and explain it at length."),
			Tokens: 48, Options: map[string]any{"temperature": 0.7, "seed": i}}
		one := r
		one.Fields = map[string]any{"n": 4}
		a, err := us.Ask(ctx, one)
		if err != nil {
			return 0, err
		}
		if len(a.Texts) != 4 {
			return 0, fmt.Errorf("n = 4 gave %d answers", len(a.Texts))
		}
		ours = append(ours, a.End.Sub(a.Begin).Seconds())
		var four []beside.Request
		for j := range 4 {
			other := r
			other.Options = map[string]any{"temperature": 0.7, "seed": 4*i + j}
			four = append(four, other)
		}
		_, took, err := peer.AskAll(ctx, four)
		if err != nil {
			return 0, err
		}
		theirs = append(theirs, took.Seconds())
		if i == 0 {
			fmt.Printf("  a prompt of %d tokens\n", a.Prompt)
		}
	}
	return beside.Show(us.Name(), "s", ours) / beside.Show(peer.Name(), "s", theirs), nil
}

// twoModels is the time that two models take one after the other by the time that they take together.
func twoModels(ctx context.Context, b *beside.Bench) (float64, error) {
	us, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: 4, Loaded: 2})
	if err != nil {
		return 0, err
	}
	requests := func(i int) []beside.Request {
		return []beside.Request{{Model: "q05", Prompt: story(i), Tokens: 64}, {Model: "smol", Prompt: storySmol(i), Tokens: 192}}
	}
	for _, name := range []string{"q05", "smol"} {
		if err := us.Warm(ctx, name); err != nil {
			return 0, err
		}
	}
	// A rate over each side's own tokens: a model may end early.
	var turn, together []float64
	for i := range b.Pairs {
		for _, both := range []bool{i%2 == 0, i%2 != 0} {
			begin := time.Now()
			tokens := 0
			list := requests(i)
			if both {
				answers, _, err := us.AskAll(ctx, list)
				if err != nil {
					return 0, err
				}
				tokens = answers[0].Tokens + answers[1].Tokens
			} else {
				for _, r := range list {
					a, err := us.Ask(ctx, r)
					if err != nil {
						return 0, err
					}
					tokens += a.Tokens
				}
			}
			rate := float64(tokens) / time.Since(begin).Seconds()
			if both {
				together = append(together, rate)
			} else {
				turn = append(turn, rate)
			}
		}
	}
	t := beside.Show("one after the other", "tokens/s", turn)
	return beside.Show("together", "tokens/s", together) / t, nil
}
