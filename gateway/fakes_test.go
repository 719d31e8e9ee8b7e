package gateway

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"time"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler"
)

// The keys of the fixture.
const (
	adminKey    = "slc_admin"
	readOnlyKey = "slc_readonly"
	writerKey   = "slc_writer"
	agentKey    = "slc_agent"
	narrowKey   = "slc_narrow"
	wrongKey    = "slc_wrong"
)

// fakeRunner answers with the words of its script, one a chunk. A token is a word.
type fakeRunner struct {
	mu       sync.Mutex
	script   []string   // words of the answer; nil: "one", "two", "three"
	scripts  [][]string // of several answers; those without one have script
	failAt   int        // the chunk before which it fails with err, or panics where that is nil; 0 never
	err      error
	hold     chan struct{}   // when set: after the first chunk it waits for this or for the end of ctx
	nan      map[string]bool // texts whose embedding would hold a NaN: the engine refuses them
	badAt    int             // the input whose vector holds a NaN all the same, counted from 1; 0 none
	stop     string          // the stop text that every answer ends with
	numCtx   int             // of every load; 0: what is asked for
	lateDone bool            // the last chunk is one of its own, as of an engine that ends all answers at once
	special  int             // tokens that Tokenize puts around a text where that is asked for
	cached   int             // tokens of the prompt that are reported as not read again
	requests []runner.GenerateRequest
	ended    chan error // when set: gets the error with which each Generate ended

	// ranks makes the models rerankers: the score of a document for a query.
	ranks func(query, document string) float32
}

// start gives a runner of the same script and with a life of its own.
func (f *fakeRunner) start() scheduler.Runner {
	return &liveFake{fakeRunner: f, done: make(chan struct{})}
}

type liveFake struct {
	*fakeRunner
	done chan struct{}
	once sync.Once
}

func (l *liveFake) Done() <-chan struct{} { return l.done }
func (l *liveFake) Err() error            { return nil }
func (l *liveFake) Stop(context.Context) error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (f *fakeRunner) Load(_ context.Context, req runner.LoadRequest, _ func(float32)) (runner.LoadReport, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.numCtx > 0 {
		req.NumCtx = f.numCtx
	}
	return runner.LoadReport{Backend: "llama", Parallel: max(1, req.Parallel), Reranks: f.ranks != nil, NumCtx: req.NumCtx, TrainCtx: 4096, Embedding: 8, Memory: []runner.DeviceMemory{{Device: runner.CPU, Weights: 993, KV: 100, Compute: 10}, {Device: "CUDA0", Weights: 7}}, Took: time.Millisecond}, nil
}

func (f *fakeRunner) last() runner.GenerateRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		return runner.GenerateRequest{}
	}
	return f.requests[len(f.requests)-1]
}

func (f *fakeRunner) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) (err error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	script, scripts, hold, ended, cached := f.script, f.scripts, f.hold, f.ended, f.cached
	f.mu.Unlock()
	if ended != nil {
		defer func() { ended <- err }()
	}
	if script == nil {
		script = []string{"one", " two", " 三👋"}
	}
	answers, reasons, n := make([][]string, max(1, req.N)), make([]string, max(1, req.N)), 0
	for i := range answers {
		answers[i], reasons[i] = script, "stop"
		if i < len(scripts) && scripts[i] != nil {
			answers[i] = scripts[i]
		}
		if req.NumPredict < len(answers[i]) {
			answers[i], reasons[i] = answers[i][:max(0, req.NumPredict)], "length"
		}
	}
	usage := &runner.Usage{PromptTokens: len(strings.Fields(req.Prompt)), CachedTokens: cached, PromptDuration: time.Millisecond}
	// The answers take turns, a word each, and end at different times, as those of one batch do.
	for left := len(answers); left > 0; n++ {
		for i := range answers {
			if n > len(answers[i]) {
				continue
			}
			ch := runner.Chunk{Index: i}
			if n < len(answers[i]) {
				if f.failAt == n+1 {
					if f.err == nil {
						panic("secret of the runner")
					}
					return f.err
				}
				usage.EvalTokens++
				ch.Text = answers[i][n]
				if req.Logprobs {
					ch.Logprobs = []runner.Logprob{fakeLogprob(ch.Text, req.TopLogprobs)}
				}
			} else {
				left--
				ch.DoneReason, ch.Stop = reasons[i], f.stop
				if left == 0 && !f.lateDone {
					ch.Done, ch.Usage = true, usage
				}
			}
			if err := emit(ch); err != nil {
				return err
			}
			if hold != nil && ch.Text != "" {
				select {
				case <-hold:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
	}
	if f.lateDone {
		return emit(runner.Chunk{Text: "too late", Done: true, Usage: usage})
	}
	return nil
}

func fakeLogprob(word string, top int) runner.Logprob {
	l := runner.Logprob{Token: word, Bytes: []byte(word), Logprob: -0.5}
	for i := range top {
		l.Top = append(l.Top, runner.Logprob{Token: fmt.Sprintf("alt%d", i), Bytes: []byte("a"), Logprob: -float64(i) - 0.5})
	}
	return l
}

func (f *fakeRunner) Embed(_ context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var res runner.EmbedResponse
	for i, text := range req.Inputs {
		words := strings.Fields(text)
		if len(words) > 16 {
			if !req.Truncate {
				return res, fault.New(fault.Invalid, "fake", "the input is longer than the context")
			}
			res.Truncated = true
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		v := make([]float32, 8)
		for j := range v {
			v[j] = float32(h.Sum64()>>(8*j)&0xff) + 1
		}
		if f.nan[text] {
			return runner.EmbedResponse{}, fault.New(fault.Invalid, "fake", "the model gave no number at position 3 of the vector of input %d", i)
		}
		if i == f.badAt-1 {
			v[3] = float32(math.NaN())
		}
		res.Vectors = append(res.Vectors, v)
		res.PromptTokens += len(words)
	}
	return res, nil
}

func (f *fakeRunner) Tokenize(_ context.Context, text string, special bool) ([]int, error) {
	n := len(strings.Fields(text))
	if special {
		n += f.special
	}
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = i
	}
	return tokens, nil
}

func (f *fakeRunner) Detokenize(_ context.Context, tokens []int) (string, error) {
	return strings.Repeat("w ", len(tokens)), nil
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (f *fakeRunner) Rerank(_ context.Context, req runner.RerankRequest) (runner.RerankResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ranks == nil {
		return runner.RerankResponse{}, fault.New(fault.Invalid, "fake", "this model does not score pairs of texts")
	}
	var res runner.RerankResponse
	for _, doc := range req.Documents {
		res.Scores = append(res.Scores, f.ranks(req.Query, doc))
		res.PromptTokens += len(strings.Fields(req.Query + " " + doc))
	}
	return res, nil
}

func (f *fakeRunner) SetThreads(context.Context, int) error { return nil }
