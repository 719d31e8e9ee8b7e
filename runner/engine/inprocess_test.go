package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"sluice/internal/tinygguf"
	"sluice/runner"
	"sluice/runner/engine"
)

// local is an engine in the test's own process, so that the test sees what is in a batch.
type local struct {
	*engine.Engine
	t       *testing.T
	mu      sync.Mutex
	batches [][]engine.BatchPart
}

// tiny loads a model of random weights: it computes in no time, and writes nonsense.
func tiny(t *testing.T, name string, change func(*runner.LoadRequest)) (*local, runner.LoadReport) {
	t.Helper()
	path, err := tinygguf.Write(t.TempDir(), name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return loadLocal(t, path, change)
}

func loadLocal(t *testing.T, path string, change func(*runner.LoadRequest)) (*local, runner.LoadReport) {
	t.Helper()
	e := &local{Engine: engine.New(), t: t}
	req := runner.LoadRequest{ModelPath: path, NumCtx: 1024, Parallel: 4, NumThread: 1, UseMmap: true}
	if change != nil {
		change(&req)
	}
	report, err := e.Load(t.Context(), req, func(float32) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.watch(nil)
	return e, report
}

// watch collects the batches, and calls each with them.
func (e *local) watch(each func(batch []engine.BatchPart)) {
	e.t.Helper()
	e.batches = nil
	err := e.OnDecode(func(batch []engine.BatchPart) {
		e.mu.Lock()
		e.batches = append(e.batches, batch)
		e.mu.Unlock()
		if each != nil {
			each(batch)
		}
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// sum adds up what f says of each part of the batches so far.
func (e *local) sum(f func(engine.BatchPart) int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, batch := range e.batches {
		for _, p := range batch {
			n += f(p)
		}
	}
	return n
}

func readTokens(p engine.BatchPart) int {
	if p.Reading {
		return p.Tokens
	}
	return 0
}

// answers is what a request gave.
type answers struct {
	texts    map[int]string
	reasons  map[int]string
	logprobs map[int][]runner.Logprob
	usage    runner.Usage
}

// ask collects the answers and fails the test when a chunk breaks the contract.
func (e *local) ask(ctx context.Context, req runner.GenerateRequest) (answers, error) {
	e.t.Helper()
	a := answers{map[int]string{}, map[int]string{}, map[int][]runner.Logprob{}, runner.Usage{}}
	done := false
	err := e.Generate(ctx, req, func(c runner.Chunk) error {
		if done || a.reasons[c.Index] != "" {
			e.t.Errorf("chunk %+v behind the last one", c)
		}
		if !utf8.ValidString(c.Text) {
			e.t.Errorf("chunk %q is no valid UTF-8", c.Text)
		}
		a.texts[c.Index] += c.Text
		a.logprobs[c.Index] = append(a.logprobs[c.Index], c.Logprobs...)
		if c.DoneReason != "" {
			a.reasons[c.Index] = c.DoneReason
		}
		if done = c.Done; done {
			a.usage = *c.Usage
		}
		return nil
	})
	if err == nil && (!done || len(a.reasons) != max(req.N, 1)) {
		e.t.Errorf("done %t, ends %v", done, a.reasons)
	}
	return a, err
}

func (e *local) must(req runner.GenerateRequest) answers {
	e.t.Helper()
	a, err := e.ask(e.t.Context(), req)
	if err != nil {
		e.t.Error(err)
	}
	return a
}

// idle fails the test unless nothing is left in the engine.
func (e *local) idle() {
	e.t.Helper()
	busy, waiting, _, err := e.State()
	if err != nil || busy != 0 || waiting != 0 {
		e.t.Errorf("%d busy, %d waiting, %v", busy, waiting, err)
	}
}

// words is a text of so many words, of which the first is its own.
func words(first string, n int) string {
	return first + strings.Repeat(" and so on", n/3)
}
