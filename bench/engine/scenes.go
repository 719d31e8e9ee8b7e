package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// single is the decoding rate of one stream. Which side begins alternates.
func single(ctx context.Context, b *bench) (float64, error) {
	us, peer, err := b.pair(ctx, 4, 1)
	if err != nil {
		return 0, err
	}
	return b.rates(ctx, us, peer, 1)
}

// many is the tokens a second of several clients in all, prompts included.
func many(clients, ours, peers int) func(context.Context, *bench) (float64, error) {
	return func(ctx context.Context, b *bench) (float64, error) {
		us, peer, err := b.pair(ctx, ours, peers)
		if err != nil {
			return 0, err
		}
		return b.rates(ctx, us, peer, clients)
	}
}

func (b *bench) rates(ctx context.Context, us, peer *server, clients int) (float64, error) {
	if err := warmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	got := map[*server][]float64{}
	for i := range b.pairs {
		sides := []*server{us, peer}
		if i%2 == 1 {
			sides = []*server{peer, us}
		}
		for _, s := range sides {
			var requests []request
			for c := range clients {
				requests = append(requests, request{model: "q05", prompt: story(i*clients + c), tokens: 64})
			}
			answers, took, err := s.askAll(ctx, requests)
			if err != nil {
				return 0, err
			}
			if clients == 1 {
				got[s] = append(got[s], answers[0].rate())
				continue
			}
			tokens := 0
			for _, a := range answers {
				tokens += a.tokens
			}
			got[s] = append(got[s], float64(tokens)/took.Seconds())
		}
	}
	return show(us.name(), "tokens/s", got[us]) / show(peer.name(), "tokens/s", got[peer]), nil
}

// prefix is the time to the first token of a prompt whose first 1,000 tokens another client sent, by that of the other client.
func prefix(ctx context.Context, b *bench) (float64, error) {
	us, err := b.server(ctx, setup{ours: true, parallel: 4, loaded: 1}, b.servers...)
	if err != nil {
		return 0, err
	}
	if err := us.warm(ctx, "q05"); err != nil {
		return 0, err
	}
	var cold, again, ratios []float64
	for i := range b.pairs {
		shared := fmt.Sprintf("Database number %d.\n", i+100) + schemaText(30, 12)
		var times []float64
		for _, question := range []string{"How many customers are there?", "Which order is the largest?"} {
			client.CloseIdleConnections() // another client
			a, err := us.ask(ctx, request{model: "q05", prompt: chatML(shared + "\n" + question), tokens: 4})
			if err != nil {
				return 0, err
			}
			times = append(times, a.first().Seconds())
		}
		cold, again, ratios = append(cold, times[0]), append(again, times[1]), append(ratios, times[1]/times[0])
	}
	show("first time", "s", cold)
	show("from another client", "s", again)
	return median(ratios), nil
}

// gap is the longest pause of a running stream while a prompt of 3,000 tokens is read for somebody else.
func gap(ctx context.Context, b *bench) (float64, error) {
	us, peer, err := b.pair(ctx, 4, 4)
	if err != nil {
		return 0, err
	}
	if err := warmAll(ctx, us, peer); err != nil {
		return 0, err
	}
	got := map[*server][]float64{}
	for i := range b.pairs {
		for _, s := range []*server{us, peer} {
			v, err := s.gap(ctx, i)
			if err != nil {
				return 0, err
			}
			got[s] = append(got[s], v.Seconds())
		}
	}
	return show(us.name(), "s", got[us]) / show(peer.name(), "s", got[peer]), nil
}

func (s *server) gap(ctx context.Context, round int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		a   *answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		a, err := s.ask(ctx, request{model: "q05", prompt: "1, 2, 3, 4, 5, 6, 7, 8, 9, 10,", tokens: 3500})
		done <- result{a, err}
	}()
	// The other comes once the stream runs.
	select {
	case r := <-done:
		return 0, fmt.Errorf("the stream ended at once: %v", r.err)
	case <-time.After(3 * time.Second):
	}
	begin := time.Now()
	long, err := s.ask(ctx, request{model: "q05", prompt: fmt.Sprintf("Document %d.\n", round) + schemaText(90, 12) + "\nIn one word:", tokens: 2})
	if err != nil {
		return 0, err
	}
	read := time.Now()
	cancel()
	r := <-done
	if r.a == nil || r.err != nil && !errors.Is(r.err, context.Canceled) {
		return 0, r.err
	}
	last := r.a.times[len(r.a.times)-1]
	if last.Before(read.Add(-5 * time.Second)) {
		return 0, fmt.Errorf("%s: the stream had ended before the prompt was read", s.name())
	}
	fmt.Printf("  %s: %d tokens read in %.1f s, longest gap %.2f s\n", s.name(), long.prompt, read.Sub(begin).Seconds(), r.a.gap().Seconds())
	return r.a.gap(), nil
}
