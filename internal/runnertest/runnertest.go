// Package runnertest is the contract of a runner, as a suite of tests. It runs against internal/fakerunner and against the
// real engine, so that the fake cannot drift into promises that the engine does not keep.
package runnertest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"sluice/fault"
	"sluice/runner"
)

// What the suite's model must be loaded with.
const (
	NumCtx   = 256
	Parallel = 4
)

// prompt makes any model go on for some tokens.
const prompt = "Here is a list of the numbers from one to twelve: one, two, three, four,"

// Load starts a runner with a model loaded, of NumCtx and Parallel. The model writes text: it neither takes images nor
// scores pairs of texts. The suite stops it.
type Load func(t *testing.T) (*runner.Process, runner.LoadReport)

// Exercise runs what every runner must do, the fake too. An engine must pass ExerciseGrammar besides. ExerciseLoads is about loads.
func Exercise(t *testing.T, load Load) {
	s := begin(t, load)
	t.Run("the report says what was loaded", s.loaded)
	t.Run("a second load is a conflict", s.secondLoad)
	t.Run("an answer ends with one last chunk", s.lastChunk)
	t.Run("num_predict is exact", s.numPredict)
	t.Run("a prompt read before is cached but for one token", s.cached)
	t.Run("a stop string ends the answer and is cut", s.stop)
	t.Run("a context that ends stops the answer", s.cancel)
	t.Run("an error of emit comes back", s.emitError)
	t.Run("a prompt that is too long is refused or cut", s.tooLong)
	t.Run("each input gives a vector", s.embed)
	t.Run("an empty input is refused", s.embedEmpty)
	t.Run("an input that is too long is refused or cut", s.embedTooLong)
	t.Run("token ids go back to the text", s.tokens)
	t.Run("several callers at once are all served", s.concurrent)
	t.Run("each of several callers gets its own text", s.ownText)
	t.Run("special tokens are added only when asked for", s.special)
	t.Run("of several answers each has one end", s.answers)
	t.Run("each token has its probability", s.logprobs)
	t.Run("without being asked for there are none", s.noLogprobs)
	t.Run("guessing ahead changes no text", s.drafts)
	t.Run("threads may change at any time", s.threads)
	t.Run("a ping is answered, idle or busy", s.ping)
	t.Run("what the model cannot is refused", s.refusals)
}

// begin loads, and stops at the end of the test.
func begin(t *testing.T, load Load) *suite {
	p, report := load(t)
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := p.Err(); err != nil {
			t.Errorf("after stop, Err is %v", err)
		}
	})
	return &suite{p: p, report: report}
}

type suite struct {
	p      *runner.Process
	report runner.LoadReport
}

// Request is a greedy request, so that the same prompt gives the same answer.
func Request(prompt string, tokens int) runner.GenerateRequest {
	return runner.GenerateRequest{
		Prompt: prompt, NumPredict: tokens, Sampling: runner.Sampling{TopK: 1, TopP: 1, TypicalP: 1, RepeatPenalty: 1, Seed: 1},
	}
}

// Answer collects a whole answer, and fails the test when a chunk breaks the contract.
func Answer(t *testing.T, p *runner.Process, req runner.GenerateRequest) (text string, last runner.Chunk) {
	t.Helper()
	err := p.Generate(t.Context(), req, func(c runner.Chunk) error {
		if last.Done {
			t.Error("a chunk came after the last one")
		}
		if !utf8.ValidString(c.Text) {
			t.Errorf("chunk %q is no valid UTF-8", c.Text)
		}
		text += c.Text
		last = c
		return nil
	})
	if err != nil {
		t.Fatalf("generate: %v", err)
	}
	if !last.Done || last.Usage == nil || last.DoneReason != "stop" && last.DoneReason != "length" {
		t.Fatalf("the last chunk is %+v", last)
	}
	return text, last
}

// WantCode fails the test unless the error is a fault of the code with a text for the caller.
func WantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code || f.Msg == "" {
		t.Errorf("error %v; want a fault %v with a message", err, code)
	}
}

func (s *suite) loaded(t *testing.T) {
	r := s.report
	if r.NumCtx != NumCtx || r.Parallel != Parallel || r.Backend == "" || r.Embedding <= 0 || r.Pooled || r.Vision || r.Reranks {
		t.Errorf("report %+v", s.report)
	}
	if len(r.Memory) == 0 || r.Bytes() == 0 || r.GPUBytes() > r.Bytes() {
		t.Errorf("memory %+v", r.Memory)
	}
}

func (s *suite) secondLoad(t *testing.T) {
	_, err := s.p.Load(t.Context(), runner.LoadRequest{ModelPath: "other", NumCtx: NumCtx}, nil)
	WantCode(t, err, fault.Conflict)
}

func (s *suite) lastChunk(t *testing.T) {
	_, last := Answer(t, s.p, Request(prompt, 8))
	if u := last.Usage; u.PromptTokens <= 0 || u.EvalTokens <= 0 || u.PromptDuration <= 0 || u.EvalDuration <= 0 || u.Truncated {
		t.Errorf("usage %+v", *u)
	}
}

func (s *suite) numPredict(t *testing.T) {
	for _, n := range []int{0, 1, 5} {
		text, last := Answer(t, s.p, Request(prompt, n))
		if last.Usage.EvalTokens != n || last.DoneReason != "length" || (n == 0) != (text == "") {
			t.Errorf("num_predict %d: %q, %d tokens, done %s", n, text, last.Usage.EvalTokens, last.DoneReason)
		}
	}
}

func (s *suite) cached(t *testing.T) {
	_, first := Answer(t, s.p, Request("Something else entirely.", 1))
	if first.Usage.CachedTokens >= first.Usage.PromptTokens {
		t.Errorf("of a new prompt all is cached: %+v", *first.Usage)
	}
	Answer(t, s.p, Request(prompt, 1))
	_, again := Answer(t, s.p, Request(prompt, 1))
	if again.Usage.CachedTokens != again.Usage.PromptTokens-1 {
		t.Errorf("usage %+v; want all but one of the prompt cached", *again.Usage)
	}
}

func (s *suite) stop(t *testing.T) {
	Answer(t, s.p, Request(prompt, 1)) // so that both answers begin at the same cache
	full, _ := Answer(t, s.p, Request(prompt, 10))
	at := len(full) / 2
	stop := full[at:min(at+6, len(full))] // crosses the edge of a token
	at = strings.Index(full, stop)
	req := Request(prompt, 10)
	req.Stop = []string{"never in it", stop}
	text, last := Answer(t, s.p, req)
	if text != full[:at] || last.DoneReason != "stop" || last.Stop != stop {
		t.Errorf("stop %q in %q gave %q, done %s, stopped by %q", stop, full, text, last.DoneReason, last.Stop)
	}
}

func (s *suite) cancel(t *testing.T) {
	left := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	req := Request(prompt, -1)
	req.Shift = true
	err := s.p.Generate(ctx, req, func(runner.Chunk) error { cancel(left); return nil })
	if !errors.Is(err, left) {
		t.Errorf("error %v; want the cause of the context's end", err)
	}
	Answer(t, s.p, Request(prompt, 1)) // the engine is free again
}

func (s *suite) emitError(t *testing.T) {
	broken := errors.New("the client's connection broke")
	calls := 0
	req := Request(prompt, -1)
	req.Shift = true
	err := s.p.Generate(t.Context(), req, func(runner.Chunk) error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("error %v after %d calls", err, calls)
	}
	Answer(t, s.p, Request(prompt, 1))
}

func (s *suite) tooLong(t *testing.T) {
	req := Request(strings.Repeat("word ", 2*NumCtx), 1)
	err := s.p.Generate(t.Context(), req, func(runner.Chunk) error { return nil })
	WantCode(t, err, fault.Invalid)
	if err != nil && !strings.Contains(err.Error(), "the input length exceeds the context length") {
		t.Errorf("error %v", err)
	}
	req.Truncate = true
	_, last := Answer(t, s.p, req)
	if !last.Usage.Truncated || last.Usage.PromptTokens != NumCtx {
		t.Errorf("usage %+v; want the prompt cut to %d", *last.Usage, NumCtx)
	}
}

func (s *suite) embed(t *testing.T) {
	out, err := s.p.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a cat sits", "trade and revenue", "a cat sits"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Vectors) != 3 || out.PromptTokens <= 0 || out.Truncated {
		t.Fatalf("%d vectors, %d tokens, truncated %t", len(out.Vectors), out.PromptTokens, out.Truncated)
	}
	for _, v := range out.Vectors {
		if len(v) != s.report.Embedding {
			t.Fatalf("a vector of %d; the report says %d", len(v), s.report.Embedding)
		}
	}
	if same, other := cosine(out.Vectors[0], out.Vectors[2]), cosine(out.Vectors[0], out.Vectors[1]); same < 0.999 || other > same {
		t.Errorf("cosine of the same text %f, of another %f", same, other)
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func (s *suite) embedEmpty(t *testing.T) {
	_, err := s.p.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a cat", ""}})
	WantCode(t, err, fault.Invalid)
}

func (s *suite) embedTooLong(t *testing.T) {
	req := runner.EmbedRequest{Inputs: []string{strings.Repeat("word ", 2*NumCtx)}}
	_, err := s.p.Embed(t.Context(), req)
	WantCode(t, err, fault.Invalid)
	req.Truncate = true
	out, err := s.p.Embed(t.Context(), req)
	if err != nil || !out.Truncated || out.PromptTokens != NumCtx {
		t.Errorf("%v; truncated %t to %d tokens, want %d", err, out.Truncated, out.PromptTokens, NumCtx)
	}
}

func (s *suite) tokens(t *testing.T) {
	const text = "Grüße aus Köln, 日本語 and 👋"
	ids, err := s.p.Tokenize(t.Context(), text, false)
	if err != nil || len(ids) == 0 {
		t.Fatalf("tokenize: %v, %v", ids, err)
	}
	back, err := s.p.Detokenize(t.Context(), ids)
	if err != nil || back != text {
		t.Errorf("detokenize: %q, %v", back, err)
	}
	for _, id := range []int{-1, 1 << 30} {
		_, err = s.p.Detokenize(t.Context(), []int{ids[0], id})
		WantCode(t, err, fault.Invalid)
	}
}

func (s *suite) concurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			tokens := 0
			err := s.p.Generate(t.Context(), Request(prompt, 3), func(c runner.Chunk) error {
				if c.Usage != nil {
					tokens = c.Usage.EvalTokens
				}
				return nil
			})
			if err != nil || tokens != 3 {
				t.Errorf("%d tokens, %v", tokens, err)
			}
		})
	}
	wg.Wait()
}
