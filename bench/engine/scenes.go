package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/bench/beside"
)

// single is the decoding rate of one stream. Which side begins alternates.
func single(ctx context.Context, b *beside.Bench) (float64, error) {
	us, peer, err := b.Pair(ctx, 4, 1)
	if err != nil {
		return 0, err
	}
	return rates(ctx, b, us, peer, 1)
}

// many is the tokens a second of several clients in all, prompts included.
func many(clients, ours, peers int) func(context.Context, *beside.Bench) (float64, error) {
	return func(ctx context.Context, b *beside.Bench) (float64, error) {
		us, peer, err := b.Pair(ctx, ours, peers)
		if err != nil {
			return 0, err
		}
		return rates(ctx, b, us, peer, clients)
	}
}

func rates(ctx context.Context, b *beside.Bench, us, peer *beside.Server, clients int) (float64, error) {
	if err := beside.WarmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	got := map[*beside.Server][]float64{}
	for i := range b.Pairs {
		sides := []*beside.Server{us, peer}
		if i%2 == 1 {
			sides = []*beside.Server{peer, us}
		}
		for _, s := range sides {
			var requests []beside.Request
			for c := range clients {
				requests = append(requests, beside.Request{Model: "q05", Prompt: story(i*clients + c), Tokens: 64})
			}
			answers, took, err := s.AskAll(ctx, requests)
			if err != nil {
				return 0, err
			}
			if clients == 1 {
				got[s] = append(got[s], answers[0].Rate())
				continue
			}
			tokens := 0
			for _, a := range answers {
				tokens += a.Tokens
			}
			got[s] = append(got[s], float64(tokens)/took.Seconds())
		}
	}
	return beside.Show(us.Name(), "tokens/s", got[us]) / beside.Show(peer.Name(), "tokens/s", got[peer]), nil
}

// prefix is the time to the first token of a prompt whose first 1,000 tokens another client sent, by that of the other client.
func prefix(ctx context.Context, b *beside.Bench) (float64, error) {
	us, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: 4, Loaded: 1}, b.Servers...)
	if err != nil {
		return 0, err
	}
	if err := us.Warm(ctx, "q05"); err != nil {
		return 0, err
	}
	var cold, again, ratios []float64
	for i := range b.Pairs {
		shared := fmt.Sprintf("Database number %d.\n", i+100) + schemaText(30, 12)
		var times []float64
		for _, question := range []string{"How many customers are there?", "Which order is the largest?"} {
			beside.Idle() // another client
			a, err := us.Ask(ctx, beside.Request{Model: "q05", Prompt: beside.ChatML(shared + "\n" + question), Tokens: 4})
			if err != nil {
				return 0, err
			}
			times = append(times, a.First().Seconds())
		}
		cold, again, ratios = append(cold, times[0]), append(again, times[1]), append(ratios, times[1]/times[0])
	}
	beside.Show("first time", "s", cold)
	beside.Show("from another client", "s", again)
	return beside.Median(ratios), nil
}

// gap is the longest pause of a running stream while a prompt of 3,000 tokens is read for somebody else.
func gap(ctx context.Context, b *beside.Bench) (float64, error) {
	us, peer, err := b.Pair(ctx, 4, 4)
	if err != nil {
		return 0, err
	}
	if err := beside.WarmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	got := map[*beside.Server][]float64{}
	for i := range b.Pairs {
		for _, s := range []*beside.Server{us, peer} {
			v, err := oneGap(ctx, s, i)
			if err != nil {
				return 0, err
			}
			got[s] = append(got[s], v.Seconds())
		}
	}
	return beside.Show(us.Name(), "s", got[us]) / beside.Show(peer.Name(), "s", got[peer]), nil
}

func oneGap(ctx context.Context, s *beside.Server, round int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		a   *beside.Answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		a, err := s.Ask(ctx, beside.Request{Model: "q05", Prompt: "1, 2, 3, 4, 5, 6, 7, 8, 9, 10,", Tokens: 3500})
		done <- result{a, err}
	}()
	// The other comes once the stream runs.
	select {
	case r := <-done:
		return 0, fmt.Errorf("the stream ended at once: %v", r.err)
	case <-time.After(3 * time.Second):
	}
	begin := time.Now()
	long, err := s.Ask(ctx, beside.Request{Model: "q05", Prompt: fmt.Sprintf("Document %d.\n", round) + schemaText(90, 12) + "\nIn one word:", Tokens: 2})
	if err != nil {
		return 0, err
	}
	read := time.Now()
	cancel()
	r := <-done
	if r.a == nil || r.err != nil && !errors.Is(r.err, context.Canceled) {
		return 0, r.err
	}
	last := r.a.Times[len(r.a.Times)-1]
	if last.Before(read.Add(-5 * time.Second)) {
		return 0, fmt.Errorf("%s: the stream had ended before the prompt was read", s.Name())
	}
	fmt.Printf("  %s: %d tokens read in %.1f s, longest gap %.2f s\n", s.Name(), long.Prompt, read.Sub(begin).Seconds(), r.a.Gap().Seconds())
	return r.a.Gap(), nil
}
