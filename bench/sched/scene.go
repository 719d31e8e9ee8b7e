package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/bench/beside"
)

const (
	clients  = 8
	requests = 300
	pieces   = 5 // of the list, asked in turn
	numCtx   = 2048
	parallel = 4 // both sides
)

// outcome of the scene.
type outcome struct{ ours, peers side }

type side struct {
	first  []float64 // seconds to the first token, of the requests that were answered
	errors []error
	loads  int
}

// p95 is the time to the first token that 95 of 100 requests do not exceed.
func (o outcome) p95(s side) float64 {
	sorted := slices.Sorted(slices.Values(s.first))
	return sorted[(len(sorted)*95+99)/100-1]
}

// swap plays the scene.
func swap(ctx context.Context, b *beside.Bench) (o outcome, err error) {
	limit, err := limitFor(ctx, b)
	if err != nil {
		return o, err
	}
	b.EndAll()
	us, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: parallel, Memory: strconv.FormatUint(limit, 10)})
	if err != nil {
		return o, err
	}
	peer, err := b.Server(ctx, beside.Setup{Parallel: parallel, Loaded: 2}, us)
	if err != nil {
		return o, err
	}
	list := workload(1)
	for piece := range pieces {
		part := list[piece*requests/pieces : (piece+1)*requests/pieces]
		sides := []struct {
			s    *beside.Server
			into *side
		}{{us, &o.ours}, {peer, &o.peers}}
		if piece%2 == 1 {
			slices.Reverse(sides)
		}
		for _, at := range sides {
			begin := time.Now()
			play(ctx, at.s, part, at.into)
			fmt.Printf("  %-22s requests %3d to %3d  %5.1f s\n", at.s.Name(), piece*requests/pieces+1, (piece+1)*requests/pieces, time.Since(begin).Seconds())
		}
	}
	if o.ours.loads, err = ourLoads(ctx, us); err != nil {
		return o, err
	}
	if o.peers.loads, err = peersLoads(peer); err != nil {
		return o, err
	}
	for name, s := range map[string]side{us.Name(): o.ours, peer.Name(): o.peers} {
		if len(s.first) == 0 {
			return o, fmt.Errorf("%s answered nothing: %v", name, s.errors)
		}
		fmt.Printf("  %-22s first token: median %.2f s, p95 %.2f s; %d loads, %d errors\n", name, beside.Median(s.first), o.p95(s), s.loads, len(s.errors))
		for _, err := range s.errors[:min(3, len(s.errors))] {
			fmt.Printf("    %v\n", err)
		}
	}
	if o.ours.loads <= 3 || o.peers.loads <= 3 {
		return o, fmt.Errorf("%d and %d loads: nothing was evicted", o.ours.loads, o.peers.loads)
	}
	return o, nil
}

// limitFor finds a limit that any two of the models keep and all three exceed: halfway between, by what ours reports of each.
func limitFor(ctx context.Context, b *beside.Bench) (uint64, error) {
	s, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: parallel})
	if err != nil {
		return 0, err
	}
	for name := range files {
		if _, err := s.Ask(ctx, beside.Request{Model: name, Prompt: "Hello", Tokens: 1, Options: map[string]any{"num_ctx": numCtx}}); err != nil {
			return 0, err
		}
	}
	resp, err := s.Request(ctx, "GET", "/api/ps", nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var ps struct {
		Models []struct {
			Name string
			Size uint64
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&ps); err != nil {
		return 0, err
	}
	if len(ps.Models) != len(files) {
		return 0, fmt.Errorf("%d models are loaded, want %d", len(ps.Models), len(files))
	}
	all, least := uint64(0), ^uint64(0)
	for _, m := range ps.Models {
		fmt.Printf("  %-8s %5.0f MiB\n", m.Name, float64(m.Size)/(1<<20))
		all, least = all+m.Size, min(least, m.Size)
	}
	limit := all - least/2
	fmt.Printf("  limits.memory %5.0f MiB\n", float64(limit)/(1<<20))
	return limit, nil
}

// workload is the list of requests: the models in the shares 5:3:2, each with a short prompt of its own. A seed gives one list.
func workload(seed uint64) []beside.Request {
	r := rand.New(rand.NewPCG(seed, seed))
	names := []string{"q05", "q05", "q05", "q05", "q05", "smol", "smol", "smol", "gemma", "gemma"}
	list := make([]beside.Request, requests)
	for i := range list {
		list[i] = beside.Request{Model: names[r.IntN(len(names))], Tokens: 12, Options: map[string]any{"num_ctx": numCtx},
			Prompt: fmt.Sprintf("Story number %d. Once upon a time there were %d foxes who lived in a %s house", i, 2+r.IntN(8), []string{"red", "green", "yellow"}[r.IntN(3)])}
	}
	return list
}

// play has the clients take the requests in order.
func play(ctx context.Context, s *beside.Server, list []beside.Request, into *side) {
	next := make(chan beside.Request)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for r := range next {
				a, err := s.Ask(ctx, r)
				mu.Lock()
				if err != nil {
					into.errors = append(into.errors, err)
				} else {
					into.first = append(into.first, a.First().Seconds())
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range list {
		next <- r
	}
	close(next)
	wg.Wait()
}

// ourLoads reads the counter of loads that went well.
func ourLoads(ctx context.Context, s *beside.Server) (int, error) {
	resp, err := s.Request(ctx, "GET", "/metrics", nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), `sluice_model_loads_total{outcome="ready"} `); ok {
			v, err := strconv.ParseFloat(n, 64)
			return int(v), err
		}
	}
	return 0, fmt.Errorf("/metrics has no count of loads")
}

// peersLoads counts the line that Ollama 0.17.4 logs once for each load (server/sched.go:566). "llama runner started" is no
// measure: its own engine says it once a load, llama.cpp's twice.
func peersLoads(s *beside.Server) (int, error) {
	text, err := os.ReadFile(s.Log)
	return strings.Count(string(text), `msg="loaded runners"`), err
}
