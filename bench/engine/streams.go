package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/bench/beside"
)

// What gateway.streams asks for.
const (
	pace        = 20 * time.Millisecond // 50 tokens a second
	words       = 1000                  // of each stream: 20 s
	perModel    = 50                    // a model answers at most 64 at a time
	addedLimit  = 10 * time.Millisecond
	memoryLimit = 1.1 // of the middle of the run
)

// streams is how many streams at 50 tokens a second go through the gateway with at most 10 ms added to a token (99 of 100) and memory
// that does not grow. The runner is a fake that waits 20 ms and writes a word; what a gap has beyond 20 ms is taken for added, so the
// runner's own lateness counts against the gateway.
func streams(ctx context.Context, b *beside.Bench) (float64, error) {
	for _, n := range []int{200, 150, 100, 50} {
		ok, err := tryStreams(ctx, b, n)
		if err != nil {
			return 0, err
		}
		if ok {
			return float64(n), nil
		}
	}
	return 0, nil
}

func tryStreams(ctx context.Context, b *beside.Bench, n int) (bool, error) {
	models := (n + perModel - 1) / perModel
	b.EndAll()
	s, err := b.Server(ctx, beside.Setup{Ours: true, Parallel: perModel, Loaded: models, Fake: true})
	if err != nil {
		return false, err
	}
	for i := range models {
		path, err := copyOfModel(b, i)
		if err != nil {
			return false, err
		}
		if err := s.Create(ctx, modelName(i), path); err != nil {
			return false, err
		}
		// num_ctx is small so that the estimate of 50 caches fits the memory.
		if _, err := s.Ask(ctx, beside.Request{Model: modelName(i), Prompt: "{{tokens=1}} a", Tokens: 4, Options: map[string]any{"num_ctx": 256}}); err != nil {
			return false, err
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var added []time.Duration
	var errs []error
	for i := range n {
		wg.Go(func() {
			a, err := s.Ask(ctx, beside.Request{Model: modelName(i % models), Tokens: -1, Options: map[string]any{"num_ctx": 256, "num_predict": words},
				Prompt: fmt.Sprintf("{{tokens=%d&rate=50}} a", words)})
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); err != nil {
				return
			}
			for i := 2; i < len(a.Times); i++ {
				added = append(added, a.Times[i].Sub(a.Times[i-1])-pace)
			}
		})
	}
	middle, last := 0, 0
	half := time.After(words * pace / 2)
	end := time.After(words * pace * 9 / 10)
	for range 2 {
		select {
		case <-half:
			middle = memory(s)
		case <-end:
			last = memory(s)
		case <-ctx.Done():
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	if len(added) == 0 {
		return false, errors.New("no tokens")
	}
	slices.Sort(added)
	p50, p99 := added[len(added)/2], added[len(added)*99/100]
	fmt.Printf("  %d streams: added %.1f ms in the middle, %.1f ms at 99 of 100; %d tokens; memory %d MiB halfway, %d MiB near the end\n",
		n, p50.Seconds()*1000, p99.Seconds()*1000, len(added), middle>>20, last>>20)
	return p99 <= addedLimit && float64(last) <= memoryLimit*float64(middle), nil
}

func modelName(i int) string { return "fake" + strconv.Itoa(i) }

// copyOfModel makes a file of another digest: the server takes models of one blob for one.
func copyOfModel(b *beside.Bench, i int) (string, error) {
	path := filepath.Join(b.Dir, modelName(i)+".gguf")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	in, err := os.Open(filepath.Join(b.Models, files["smol"]))
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, io.MultiReader(in, strings.NewReader(strings.Repeat(strconv.Itoa(i), 32))))
	return path, errors.Join(err, out.Close())
}

// memory is the server's own resident memory, in bytes.
func memory(s *beside.Server) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}
