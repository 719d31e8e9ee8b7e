package main

import (
	"context"
	"fmt"
	"time"
)

// lookup is the rate with prompt-lookup drafts by that without, on texts that must be the same.
func lookup(prompts func() []string, mode string) func(context.Context, *bench) (float64, error) {
	return func(ctx context.Context, b *bench) (float64, error) {
		us, err := b.server(ctx, setup{ours: true, parallel: 4, loaded: 1}, b.servers...)
		if err != nil {
			return 0, err
		}
		if err := us.warm(ctx, "q05"); err != nil {
			return 0, err
		}
		var with, without, ratios []float64
		for i := range b.pairs {
			for j, prompt := range prompts() {
				modes := []string{"off", mode}
				if (i+j)%2 == 1 {
					modes = []string{mode, "off"}
				}
				// The prompt is read before, so that both answers begin from one state: a token that is read in a batch of its own has
				// slightly other numbers than one read with others, and a near tie then falls the other way.
				for range 2 {
					if _, err := us.ask(ctx, request{model: "q05", prompt: prompt, tokens: 1, options: map[string]any{"draft": "off"}}); err != nil {
						return 0, err
					}
				}
				got := map[string]*answer{}
				for _, m := range modes {
					a, err := us.ask(ctx, request{model: "q05", prompt: prompt, tokens: 96, options: map[string]any{"draft": m}})
					if err != nil {
						return 0, err
					}
					got[m] = a
				}
				if err := sameText(got["off"], got[mode]); err != nil {
					return 0, fmt.Errorf("prompt %d: %w", j, err)
				}
				if got[mode].tokens < 12 {
					return 0, fmt.Errorf("prompt %d: only %d tokens: %q", j, got[mode].tokens, got[mode].text())
				}
				without, with = append(without, got["off"].decoding()), append(with, got[mode].decoding())
				ratios = append(ratios, with[len(with)-1]/without[len(without)-1])
			}
		}
		show("drafts off", "tokens/s", without)
		show("drafts "+mode, "tokens/s", with)
		show("each prompt's ratio", "", ratios)
		return median(ratios), nil
	}
}

// sameText refuses answers of which one is not what the model writes without guesses.
func sameText(plain, drafted *answer) error {
	if plain.text() != drafted.text() {
		return fmt.Errorf("the texts differ:\n%q\n%q", plain.text(), drafted.text())
	}
	return nil
}

// decoding is tokens a second after the first token. Several may come in one line, so the first line counts none.
func (a *answer) decoding() float64 {
	return float64(a.tokens-1) / a.end.Sub(a.times[0]).Seconds()
}

// grammar is the milliseconds that the schema of 100 tables adds to each token.
func grammar(ctx context.Context, b *bench) (float64, error) {
	us, err := b.server(ctx, setup{ours: true, parallel: 4, loaded: 1}, b.servers...)
	if err != nil {
		return 0, err
	}
	if err := us.warm(ctx, "q05"); err != nil {
		return 0, err
	}
	format := tablesSchema(100, 14)
	var with, without, more []float64
	for i := range b.pairs {
		got := map[bool]float64{}
		for _, constrained := range []bool{i%2 == 0, i%2 != 0} {
			r := request{model: "q05", prompt: chatML(tablesQuestion(i)), tokens: 48}
			if constrained {
				r.fields = map[string]any{"format": format}
			}
			a, err := us.ask(ctx, r)
			if err != nil {
				return 0, err
			}
			if a.tokens < 12 {
				return 0, fmt.Errorf("only %d tokens: %q", a.tokens, a.text())
			}
			got[constrained] = 1000 / a.decoding()
		}
		with, without = append(with, got[true]), append(without, got[false])
		more = append(more, got[true]-got[false])
	}
	show("without a grammar", "ms/token", without)
	show("schema of 100 tables", "ms/token", with)
	return median(more), nil
}

// nbest is the time of four answers to one prompt of 1,200 tokens by that of four requests to the peer, which takes four at a time too.
func nbest(ctx context.Context, b *bench) (float64, error) {
	us, peer, err := b.pair(ctx, 4, 4)
	if err != nil {
		return 0, err
	}
	if err := warmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	var ours, theirs []float64
	for i := range b.pairs {
		r := request{model: "q05", prompt: chatML(fmt.Sprintf("Database number %d.\n", i+500) + schemaText(36, 12) + "\nWrite a query with a join and explain it at length."),
			tokens: 48, options: map[string]any{"temperature": 0.7, "seed": i}}
		one := r
		one.fields = map[string]any{"n": 4}
		a, err := us.ask(ctx, one)
		if err != nil {
			return 0, err
		}
		if len(a.texts) != 4 {
			return 0, fmt.Errorf("n = 4 gave %d answers", len(a.texts))
		}
		ours = append(ours, a.end.Sub(a.begin).Seconds())
		var four []request
		for j := range 4 {
			other := r
			other.options = map[string]any{"temperature": 0.7, "seed": 4*i + j}
			four = append(four, other)
		}
		_, took, err := peer.askAll(ctx, four)
		if err != nil {
			return 0, err
		}
		theirs = append(theirs, took.Seconds())
		if i == 0 {
			fmt.Printf("  a prompt of %d tokens\n", a.prompt)
		}
	}
	return show(us.name(), "s", ours) / show(peer.name(), "s", theirs), nil
}

// twoModels is the time that two models take one after the other by the time that they take together.
func twoModels(ctx context.Context, b *bench) (float64, error) {
	us, err := b.server(ctx, setup{ours: true, parallel: 4, loaded: 2})
	if err != nil {
		return 0, err
	}
	requests := func(i int) []request {
		return []request{{model: "q05", prompt: story(i), tokens: 64}, {model: "smol", prompt: storySmol(i), tokens: 192}}
	}
	for _, name := range []string{"q05", "smol"} {
		if err := us.warm(ctx, name); err != nil {
			return 0, err
		}
	}
	// A rate over each side's own tokens: a model may end early.
	var turn, together []float64
	for i := range b.pairs {
		for _, both := range []bool{i%2 == 0, i%2 != 0} {
			begin := time.Now()
			tokens := 0
			list := requests(i)
			if both {
				answers, _, err := us.askAll(ctx, list)
				if err != nil {
					return 0, err
				}
				tokens = answers[0].tokens + answers[1].tokens
			} else {
				for _, r := range list {
					a, err := us.ask(ctx, r)
					if err != nil {
						return 0, err
					}
					tokens += a.tokens
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
	t := show("one after the other", "tokens/s", turn)
	return show("together", "tokens/s", together) / t, nil
}
