package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// fake implements runner.Engine.
type fake struct {
	script script

	numCtx   int           // set by Load
	parallel int           // set by Load
	slots    chan struct{} // one per sequence

	batch sync.RWMutex // held while one is computed

	mu    sync.Mutex
	words []string // the vocabulary so far; a word's index is its id
	ids   map[string]int
	held  []string // the last prompts, for the prefix cache that it pretends to have
	hung  bool     // a call with hang=1 came: it is never again between two batches
}

func (f *fake) Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error) {
	begin := time.Now()
	s, err := ofPath(f.script, req.ModelPath)
	if err != nil {
		return runner.LoadReport{}, fault.Wrap(err, fault.Invalid, "fakerunner", "%v", err)
	}
	f.script = s
	if err := s.placed(req.Placement); err != nil {
		return runner.LoadReport{}, err
	}
	const steps = 10
	for i := range steps {
		progress(float32(i) / steps)
		if err := wait(ctx, s.load/steps); err != nil {
			return runner.LoadReport{}, err
		}
		if s.loadDie && i == steps/2 {
			die()
		}
	}
	if s.loadError == fault.TooLarge.String() {
		return runner.LoadReport{}, noMemory("the script says so")
	}
	if s.loadError != "" {
		for _, c := range fault.Codes() {
			if c.String() == s.loadError {
				return runner.LoadReport{}, fault.New(c, "fakerunner", "the script lets the load fail")
			}
		}
		return runner.LoadReport{}, fmt.Errorf("load_error=%s is no code", s.loadError)
	}
	if req.NumCtx <= 0 {
		return runner.LoadReport{}, fault.New(fault.Invalid, "fakerunner", "num_ctx is %d; it must be at least 1", req.NumCtx)
	}
	f.numCtx, f.parallel = req.NumCtx, max(1, req.Parallel)
	if s.train > 0 {
		f.numCtx = min(f.numCtx, s.train)
	}
	memory := s.memory(req.Placement, f.numCtx*f.parallel)
	if err := s.fits(memory); err != nil {
		return runner.LoadReport{}, err
	}
	f.slots = make(chan struct{}, f.parallel)
	fmt.Fprintln(os.Stderr, "fakerunner: threads", req.NumThread)
	return runner.LoadReport{
		Backend: "fake", Parallel: f.parallel, Vision: s.vision, Reranks: s.reranks,
		NumCtx: f.numCtx, TrainCtx: s.train, Embedding: f.width(), Pooled: s.pooled || s.reranks,
		Memory: memory, Took: time.Since(begin),
	}, nil
}

// SetThreads only tells what it was told.
func (f *fake) SetThreads(_ context.Context, n int) error {
	if n < 1 {
		return fault.New(fault.Invalid, "fakerunner", "%d threads; at least 1 is needed", n)
	}
	fmt.Fprintln(os.Stderr, "fakerunner: threads", n)
	return nil
}

// Ping waits for as long as the script says that a batch takes.
func (f *fake) Ping(ctx context.Context) error {
	f.mu.Lock()
	hung := f.hung
	f.mu.Unlock()
	if hung {
		select {}
	}
	f.batch.RLock()
	defer f.batch.RUnlock()
	return wait(ctx, f.script.ping)
}

func (f *fake) Tokenize(_ context.Context, text string, special bool) ([]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := words(text)
	if special {
		list = append([]string{bos}, list...)
	}
	ids := []int{}
	for _, w := range list {
		id, known := f.ids[w]
		if !known {
			if f.ids == nil {
				f.ids = map[string]int{}
			}
			id = len(f.words)
			f.ids[w] = id
			f.words = append(f.words, w)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// bos is what stands in front of a text when special tokens are asked for.
const bos = "<s>"

func (f *fake) Detokenize(_ context.Context, tokens []int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for i, id := range tokens {
		if id < 0 || id >= len(f.words) {
			return "", fault.New(fault.Invalid, "fakerunner", "token %d is %d; the model has %d", i, id, len(f.words))
		}
		b.WriteString(f.words[id])
	}
	return b.String(), nil
}

// words splits before each space.
func words(text string) []string {
	var out []string
	for i, start := 1, 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ' ' {
			out = append(out, text[start:i])
			start = i
		}
	}
	return out
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// die ends the child as kill -9 does, with a last word in the log.
func die() {
	fmt.Fprintln(os.Stderr, "fakerunner: the script lets it die here")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
