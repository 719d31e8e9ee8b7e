package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
	"sluice/runner/engine"
)

// endless is a request whose answer goes on until it is cancelled.
func endless(prompt string) runner.GenerateRequest {
	req := runnertest.Request(prompt, -1)
	req.Shift = true
	// So hot that any token may come; an end token is then one among hundreds.
	req.Sampling = runner.Sampling{Temperature: 5, TopP: 1, TypicalP: 1, Seed: 3}
	return req
}

// running starts an endless answer and waits for its first text. stop ends it.
func (e *local) running(prompt string) (stop func()) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	first, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // it may end by itself
			_ = e.Generate(ctx, endless(prompt), func(runner.Chunk) error { once.Do(func() { close(first) }); return nil })
		}
	}()
	<-first
	return func() { cancel(); <-ended }
}

func TestALongPromptDoesNotStopAStream(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	stop := e.running("A story:")
	defer stop()
	together := 0
	e.watch(func(batch []engine.BatchPart) {
		read, answers := 0, 0
		for _, p := range batch {
			read += readTokens(p)
			if !p.Reading {
				answers++
			}
		}
		if read > 32 && answers > 0 {
			t.Errorf("beside an answer %d tokens of a prompt were read: %+v", read, batch)
		}
		if read > 0 && answers == 0 {
			return // the stream was at its end, or between two
		}
		if read > 0 {
			together++
		}
	})
	e.must(runnertest.Request(words("long", 400), 1))
	if together < 8 {
		t.Errorf("%d batches had both; the prompt takes more than that", together)
	}
}

func TestAShortPromptDoesNotWaitForALongOne(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	var order []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	reading := make(chan struct{})
	var once sync.Once
	e.watch(func([]engine.BatchPart) { once.Do(func() { close(reading) }) })
	for _, req := range []runner.GenerateRequest{runnertest.Request(words("long", 400), 1), runnertest.Request("short", 1)} {
		wg.Go(func() {
			e.must(req)
			mu.Lock()
			order = append(order, req.Prompt[:4])
			mu.Unlock()
		})
		<-reading
	}
	wg.Wait()
	if order[0] != "shor" {
		t.Errorf("order %v", order)
	}
}

func TestAClientThatLeftIsForgottenBetweenTwoBatches(t *testing.T) {
	e, _ := tiny(t, "llama", func(r *runner.LoadRequest) { r.Parallel = 1 })
	left := errors.New("the client left")
	for name, req := range map[string]runner.GenerateRequest{
		"while its prompt is read": runnertest.Request(words("x", 400), 5),
		"while it is answered":     endless("y"),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			behind := 0
			e.watch(func(batch []engine.BatchPart) {
				if ctx.Err() != nil {
					behind++
				}
				if batch[0].Reading == (req.NumPredict > 0) {
					cancel(left)
				}
			})
			if _, err := e.ask(ctx, req); !errors.Is(err, left) {
				t.Errorf("error %v", err)
			}
			e.idle()
			if behind > 0 {
				t.Errorf("%d batches behind it", behind)
			}
		})
	}
	t.Run("while it waits", func(t *testing.T) {
		stop := e.running("z")
		defer stop()
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := make(chan struct{})
		go func() {
			for {
				if _, waiting, _, err := e.State(); waiting > 0 || err != nil {
					close(waits)
					return
				}
			}
		}()
		go func() { <-waits; cancel(left) }()
		if _, err := e.ask(ctx, runnertest.Request("w", 1)); !errors.Is(err, left) {
			t.Errorf("error %v", err)
		}
		if busy, waiting, _, _ := e.State(); busy > 1 || waiting != 0 {
			t.Errorf("%d busy, %d waiting", busy, waiting)
		}
	})
}

func TestASlowReaderStopsNobodyElse(t *testing.T) {
	e, _ := tiny(t, "llama", func(r *runner.LoadRequest) { r.Parallel = 2 })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	first := make(chan struct{})
	var once sync.Once
	defer func() { cancel(); wg.Wait(); e.idle() }()
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = e.Generate(ctx, endless("slow"), func(runner.Chunk) error {
				once.Do(func() { close(first) })
				<-ctx.Done()
				return nil
			})
		}
	})
	<-first
	// More tokens than the slow one may be ahead.
	for i := range 8 {
		req := endless(fmt.Sprint("fast", i))
		req.NumPredict = 300
		e.must(req)
	}
}

func TestRequestsBeyondTheSlotsComeInTurn(t *testing.T) {
	e, report := tiny(t, "llama", func(r *runner.LoadRequest) { r.Parallel = 2 })
	if report.Parallel != 2 {
		t.Errorf("report %+v", report)
	}
	most := 0
	e.watch(func(batch []engine.BatchPart) { most = max(most, len(batch)) })
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() { e.must(runnertest.Request(fmt.Sprintf("%d is a number", i), 6)) })
	}
	wg.Wait()
	if most != 2 {
		t.Errorf("up to %d were computed together", most)
	}
	e.idle()
}

func TestAPrefixIsSharedAcrossSlots(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	prefix := words("schema", 150)
	e.must(runnertest.Request(prefix+" first", 3))
	stop := e.running(prefix + " a story") // its slot is taken
	defer stop()
	if u := e.must(runnertest.Request(prefix+" second", 3)).usage; u.CachedTokens < u.PromptTokens-10 {
		t.Errorf("usage %+v", u)
	}
	if u := e.must(runnertest.Request("something else", 3)).usage; u.CachedTokens > 5 {
		t.Errorf("usage %+v", u)
	}
	if u := e.must(runnertest.Request(prefix+" first", 3)).usage; u.CachedTokens < u.PromptTokens-10 {
		t.Errorf("an unrelated prompt pushed the long prefix out: %+v", u)
	}
}

func TestAPromptThatSeveralBringAtOnceIsReadOnce(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	var wg sync.WaitGroup
	prompt := words("schema", 300)
	var tokens int
	for i := range 4 {
		wg.Go(func() {
			a := e.must(runnertest.Request(fmt.Sprint(prompt, i), 2))
			if i == 0 {
				tokens = a.usage.PromptTokens
			}
		})
	}
	wg.Wait()
	if read := e.sum(readTokens); read > tokens+4*20 {
		t.Errorf("%d tokens were read for 4 prompts of %d that begin alike", read, tokens)
	}
}

func TestSeveralAnswersFromOneReading(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	req := endless(words("tell", 200))
	req.N, req.NumPredict = 6, 12 // more than slots
	a := e.must(req)
	if len(a.texts) != 6 || a.usage.EvalTokens > 6*12 || a.usage.EvalTokens < 6 {
		t.Errorf("%d answers, usage %+v", len(a.texts), a.usage)
	}
	if read := e.sum(readTokens); read > a.usage.PromptTokens+6 {
		t.Errorf("%d tokens were read for a prompt of %d", read, a.usage.PromptTokens)
	}
	if again := e.must(req); !slices.Equal(values(a.texts), values(again.texts)) {
		t.Errorf("the same seeds gave %q and %q", values(a.texts), values(again.texts))
	}
	if texts := values(a.texts); len(slices.Compact(slices.Sorted(slices.Values(texts)))) < 5 {
		t.Errorf("answers %q", texts)
	}
	for _, n := range []int{-1, 17} {
		req.N = n
		_, err := e.ask(t.Context(), req)
		runnertest.WantCode(t, err, fault.Invalid)
	}
	req.N, req.NumPredict = 3, 0
	if a := e.must(req); a.usage.EvalTokens != 0 {
		t.Errorf("usage %+v", a.usage)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req.N, req.NumPredict = 16, -1
	e.watch(func([]engine.BatchPart) { cancel() })
	if _, err := e.ask(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	e.idle()
}

func values(m map[int]string) []string {
	out := make([]string, len(m))
	for i, s := range m {
		out[i] = s
	}
	return out
}

func TestThreadsAndPingComeBetweenBatches(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	stop := e.running("go on")
	for _, n := range []int{2, 1, 1 << 20} {
		if err := e.SetThreads(t.Context(), n); err != nil {
			t.Error(err)
		}
		if err := e.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if _, _, threads, _ := e.State(); n < 3 && threads != n || threads > 1024 {
			t.Errorf("asked for %d threads, there are %d", n, threads)
		}
	}
	runnertest.WantCode(t, e.SetThreads(t.Context(), 0), fault.Invalid)
	stop()
	if err := e.Ping(t.Context()); err != nil { // idle
		t.Error(err)
	}
}

func TestEmbeddingsAndAnswersShareTheLoop(t *testing.T) {
	e, _ := tiny(t, "llama", func(r *runner.LoadRequest) { r.Parallel = 2 })
	inputs := make([]string, 40)
	for i := range inputs {
		inputs[i] = words(fmt.Sprint(i), 60)
	}
	started, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	e.watch(func([]engine.BatchPart) { once.Do(func() { close(started) }) })
	var several runner.EmbedResponse
	go func() {
		defer close(ended)
		var err error
		if several, err = e.Embed(t.Context(), runner.EmbedRequest{Inputs: inputs}); err != nil {
			t.Error(err)
		}
	}()
	<-started
	e.must(runnertest.Request("a question between", 4))
	select {
	case <-ended:
		t.Error("the answer waited for the whole list")
	default:
	}
	<-ended
	for i, text := range inputs {
		one, err := e.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{text}})
		if err != nil || len(several.Vectors) != len(inputs) {
			t.Fatalf("%v, %d vectors", err, len(several.Vectors))
		}
		if c := cosine(one.Vectors[0], several.Vectors[i]); c < 0.9999 {
			t.Errorf("input %d: cosine %f of alone and in the list", i, c)
		}
	}
	// Embeddings are off again: an answer is as before.
	if a, b := e.must(runnertest.Request("again", 4)), e.must(runnertest.Request("again", 4)); a.texts[0] != b.texts[0] {
		t.Errorf("%q and %q", a.texts[0], b.texts[0])
	}
}

func TestAnEncoderPacksInputs(t *testing.T) {
	e, report := tiny(t, "bert", nil)
	if !report.Pooled || report.Memory[0].KV != 0 || report.Parallel != 4 {
		t.Errorf("report %+v", report)
	}
	var inputs []string
	for i := range 100 {
		inputs = append(inputs, strings.Repeat(fmt.Sprintf("text %d ", i), 1+i%7))
	}
	several, err := e.Embed(t.Context(), runner.EmbedRequest{Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	batches := len(e.batches)
	e.mu.Unlock()
	if batches > 10 {
		t.Errorf("%d batches for %d inputs", batches, len(inputs))
	}
	for i, text := range inputs {
		one, err := e.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		if c := cosine(one.Vectors[0], several.Vectors[i]); c < 0.9999 {
			t.Errorf("input %d: cosine %f of alone and in the list", i, c)
		}
	}
	_, err = e.ask(t.Context(), runnertest.Request("hello", 1))
	runnertest.WantCode(t, err, fault.Invalid)
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the client left")
	cancel(left)
	if _, err := e.Embed(ctx, runner.EmbedRequest{Inputs: inputs}); !errors.Is(err, left) {
		t.Errorf("error %v", err)
	}
	e.idle()
}
