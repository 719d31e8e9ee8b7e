package main

import (
	"context"
	"fmt"
	"hash/fnv"
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

	mu     sync.Mutex
	numCtx int
	words  []string // the vocabulary so far; a word's index is its id
	ids    map[string]int
	held   string // the last prompt, for the prefix cache it pretends to have
}

func (f *fake) Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error) {
	begin := time.Now()
	s, err := ofPath(f.script, req.ModelPath)
	if err != nil {
		return runner.LoadReport{}, fault.Wrap(err, fault.Invalid, "fakerunner", "%v", err)
	}
	f.script = s
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
	f.numCtx = req.NumCtx
	if s.train > 0 {
		f.numCtx = min(f.numCtx, s.train)
	}
	return runner.LoadReport{
		NumCtx: f.numCtx, TrainCtx: s.train, Embedding: f.width(), Pooled: s.pooled,
		WeightBytes: s.weights, KVBytes: s.kv, Took: time.Since(begin),
	}, nil
}

func (f *fake) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	begin := time.Now()
	s, prompt, err := ofPrompt(f.script, req.Prompt)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "fakerunner", "%v", err)
	}
	if s.pooled {
		return fault.New(fault.Invalid, "fakerunner", "this model makes embeddings only; it cannot answer a prompt")
	}
	if s.hang {
		select {}
	}
	if err := wait(ctx, s.delay); err != nil {
		return err
	}
	usage, err := f.read(prompt, req.Truncate)
	if err != nil {
		return err
	}
	usage.PromptDuration = time.Since(begin)

	begin = time.Now()
	answer := words(prompt)
	if s.text != "" {
		answer = words(s.text)
	}
	if s.tokens == 0 {
		s.tokens = len(answer)
	}
	var text strings.Builder
	reason, sent := "length", 0
	for n := 0; req.NumPredict < 0 || n < req.NumPredict; n++ {
		if s.tokens > 0 && n == s.tokens {
			reason = "stop"
			break
		}
		if s.dieAfter > 0 && n == s.dieAfter {
			die()
		}
		if s.errAfter > 0 && n == s.errAfter {
			return fault.New(fault.Busy, "fakerunner", "the script lets the answer fail")
		}
		if s.rate > 0 {
			err = wait(ctx, time.Duration(float64(time.Second)/s.rate))
		}
		if err != nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		word := fmt.Sprintf(" w%d", n)
		if n < len(answer) {
			word = answer[n]
		}
		usage.EvalTokens++
		text.WriteString(word)
		safe, stop := cut(text.String(), req.Stop)
		if safe > sent {
			if err := emit(runner.Chunk{Text: text.String()[sent:safe]}); err != nil {
				return err
			}
			sent = safe
		}
		if stop {
			reason = "stop"
			break
		}
	}
	rest := text.String()[sent:]
	if safe, stop := cut(text.String(), req.Stop); stop {
		rest = text.String()[sent:safe]
	}
	usage.EvalDuration = time.Since(begin)
	return emit(runner.Chunk{Text: rest, Done: true, DoneReason: reason, Usage: &usage})
}

// read counts the prompt, and how much of it the last one began with.
func (f *fake) read(prompt string, truncate bool) (runner.Usage, error) {
	tokens := words(prompt)
	if len(tokens) == 0 {
		return runner.Usage{}, fault.New(fault.Invalid, "fakerunner", "the prompt is empty")
	}
	usage := runner.Usage{PromptTokens: len(tokens)}
	if len(tokens) > f.numCtx {
		if !truncate {
			return usage, fault.New(fault.Invalid, "fakerunner",
				"the input length exceeds the context length: the prompt has %d tokens, the context %d", len(tokens), f.numCtx)
		}
		usage.PromptTokens, usage.Truncated = f.numCtx, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	held := words(f.held)
	for usage.CachedTokens < min(len(held), usage.PromptTokens-1) && held[usage.CachedTokens] == tokens[usage.CachedTokens] {
		usage.CachedTokens++
	}
	f.held = prompt
	return usage, nil
}

func (f *fake) Embed(_ context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	var out runner.EmbedResponse
	for i, text := range req.Inputs {
		tokens := words(text)
		if len(tokens) == 0 {
			return runner.EmbedResponse{}, fault.New(fault.Invalid, "fakerunner", "input %d is empty", i)
		}
		if len(tokens) > f.numCtx {
			if !req.Truncate {
				return runner.EmbedResponse{}, fault.New(fault.Invalid, "fakerunner",
					"the input length exceeds the context length: input %d has %d tokens, the context %d", i, len(tokens), f.numCtx)
			}
			tokens, out.Truncated = tokens[:f.numCtx], true
		}
		vector := make([]float32, f.width())
		for j := range vector {
			h := fnv.New32a()
			fmt.Fprint(h, j, strings.Join(tokens, ""))
			vector[j] = float32(h.Sum32())/float32(1<<31) - 1
		}
		out.Vectors = append(out.Vectors, vector)
		out.PromptTokens += len(tokens)
	}
	return out, nil
}

func (f *fake) Tokenize(_ context.Context, text string) ([]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := []int{}
	for _, w := range words(text) {
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

func (f *fake) width() int {
	if f.script.width > 0 {
		return f.script.width
	}
	return 8
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

// cut says how much of a text may be sent: up to the earliest stop string, or up to what may become one.
func cut(text string, stops []string) (safe int, stop bool) {
	safe = len(text)
	for _, s := range stops {
		if i := strings.Index(text, s); i >= 0 && s != "" && (i < safe || !stop) {
			safe, stop = i, true
		}
	}
	for _, s := range stops {
		for n := len(s) - 1; n > 0 && !stop; n-- {
			if strings.HasSuffix(text, s[:n]) {
				safe = min(safe, len(text)-n)
				break
			}
		}
	}
	return safe, stop
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
