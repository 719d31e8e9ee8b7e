package engine

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/ollama/ollama/llama"

	"sluice/fault"
	"sluice/runner"
	sluicegrammar "sluice/runner/grammar"
)

// Engine implements runner.Engine. Its loop lives as long as the process, which loads one model in its life.
type Engine struct {
	work   chan func(*loop) // done by the loop between two batches
	wake   chan struct{}    // has room for one: somebody reads again, or left
	loaded atomic.Pointer[loaded]
	other  atomic.Pointer[runner.Engine] // the engine that loaded the model instead, where llama.cpp cannot
}

var _ runner.Engine = (*Engine)(nil)

// New makes an engine without a model.
func New() *Engine {
	return &Engine{work: make(chan func(*loop)), wake: make(chan struct{}, 1)}
}

// loaded is what never changes after Load, so that any goroutine may read it.
type loaded struct {
	model    *llama.Model
	context  *llama.Context // the loop's: others reach it through between
	engine   *Engine
	vocab    int // number of tokens
	numCtx   int // tokens of a sequence
	parallel int
	width    int // tokens of a batch
	pooling  int // how the model makes one vector of a text by itself: GGUF's number, 0 not at all
	pooled   bool
	packs    bool // it pools over a batch, which holds whole inputs
	encoder  bool // its tokens look both ways: it has no cache
	reranks  bool // its one "vector" is the score of a pair of texts
	addsBOS  bool
	splits   bool            // texts are split by a regular expression: see longestRun
	specials func() []string // texts of the special tokens

	vision      bool // it takes images
	wholeImages bool // the rows of an image look at each other, and must be in one batch
	eye         *eye
	pairs       pairs
}

// isEnd says whether a token ends an answer.
func (m *loaded) isEnd(id int) bool { return m.model.TokenIsEog(id) }

// between runs f when no batch is computed, and waits for it.
func (m *loaded) between(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	if err := m.engine.submit(ctx, func(*loop) { done <- f() }); err != nil {
		return err
	}
	return <-done
}

// submit hands work to the loop, which does it between two batches.
func (e *Engine) submit(ctx context.Context, f func(*loop)) error {
	select {
	case e.work <- f:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poke has the loop look whether a reader has caught up, or left.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// follow hands what the loop puts into the outbox to emit, until its end. When emit fails, or ctx ends, the loop is told by
// cancel and the end still awaited: then nothing of the request is left in it.
func (e *Engine) follow(ctx context.Context, cancel context.CancelCauseFunc, out *outbox, emit func(runner.Chunk) error) error {
	left := ctx.Done()
	for {
		select {
		case <-left:
			e.poke()
			left = nil
		case <-out.ready:
		}
		chunks, done, err := out.take()
		if len(chunks) >= outboxRoom {
			e.poke()
		}
		for _, c := range chunks {
			if ctx.Err() != nil {
				break
			}
			if err := emit(c); err != nil {
				cancel(err)
			}
		}
		if done {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx) // the last chunk was not given to it
			}
			return err
		}
	}
}

// maxAnswers is how many answers one prompt may get.
const maxAnswers = 16

// Generate answers a prompt. Errors that name what the caller can change are Invalid.
func (e *Engine) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	if o := e.other.Load(); o != nil {
		return (*o).Generate(ctx, req, emit)
	}
	m := e.loaded.Load()
	switch {
	case m == nil:
		return errNotLoaded()
	case m.reranks:
		return fault.New(fault.Invalid, "engine.Generate", "this model scores pairs of texts only; it cannot answer a prompt")
	case m.pooled:
		return fault.New(fault.Invalid, "engine.Generate", "this model makes embeddings only; it cannot answer a prompt")
	case req.N < 0 || req.N > maxAnswers:
		return fault.New(fault.Invalid, "engine.Generate", "n is %d; it must be from 1 to %d", req.N, maxAnswers)
	case req.TopLogprobs < 0 || req.TopLogprobs > 20:
		return fault.New(fault.Invalid, "engine.Generate", "top_logprobs is %d; it must be from 0 to 20", req.TopLogprobs)
	case req.Draft != runner.DraftAuto && req.Draft != runner.DraftOff && req.Draft != runner.DraftExpect:
		return fault.New(fault.Invalid, "engine.Generate", "draft %q is unknown", req.Draft)
	}
	gbnf, err := m.grammar(req)
	if err != nil {
		return err
	}
	prompt, err := m.prompt(ctx, req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := newOutbox()
	answers := newGenerations(ctx, m, req, prompt, gbnf, out)
	if err := e.submit(ctx, func(l *loop) { l.queue = append(l.queue, answers...) }); err != nil {
		return err
	}
	return e.follow(ctx, cancel, out, emit)
}

// newGenerations makes the answers to a request. Those after the first find their prompt read by it.
func newGenerations(ctx context.Context, m *loaded, req runner.GenerateRequest, p prompt, gbnf string, out *outbox) []*generation {
	limit := req.NumPredict
	if most := maxContexts * m.numCtx; limit < 0 || limit > most {
		limit = most
	}
	top := -1
	if req.Logprobs {
		top = req.TopLogprobs
	}
	answers := make([]*generation, max(req.N, 1))
	all := &group{out: out, left: len(answers), usage: runner.Usage{PromptTokens: len(p.inputs), Truncated: p.truncated}}
	for i := range answers {
		params := samplingOf(req.Sampling, m.numCtx)
		if params.seed != randomSeed {
			params.seed += uint32(i)
		}
		answers[i] = &generation{
			ctx: ctx, group: all, out: out, index: i, model: m, prompt: p.inputs, owner: req.Owner, keep: p.keep, limit: limit, shift: req.Shift,
			params: params, binding: binding{gbnf: gbnf, after: req.After}, top: top, draft: req.Draft, stops: req.Stop,
		}
	}
	return answers
}

// grammar is the GBNF that the request asks for, which llama.cpp has parsed once to see that it can.
func (m *loaded) grammar(req runner.GenerateRequest) (string, error) {
	gbnf := req.Grammar
	switch {
	case req.Schema != "" && gbnf != "":
		return "", fault.New(fault.Invalid, "engine.Generate", "a request has a schema or a grammar, not both")
	case gbnf != "":
		if err := sluicegrammar.Check(gbnf); err != nil {
			return "", err
		}
	case req.Schema != "":
		var err error
		if gbnf, err = sluicegrammar.Compile(req.Schema); err != nil {
			return "", err
		}
	default:
		return "", nil
	}
	g, ok := newGrammar(vocabOf(m.model), gbnf)
	if !ok {
		return "", fault.New(fault.Invalid, "engine.Generate", "the grammar is no GBNF that llama.cpp can read: see that each rule "+
			"is defined, that there is one named root, and that none begins with itself; the server's log says more")
	}
	g.free()
	return gbnf, nil
}

// prompt is a prompt after truncation.
type prompt struct {
	inputs    []input
	keep      int // the first inputs, which truncation and shifting spare
	truncated bool
}

// prompt tokenizes, and cuts what does not fit as Ollama does: num_keep tokens at the front and as many of the tail as fit.
func (m *loaded) prompt(ctx context.Context, req runner.GenerateRequest) (prompt, error) {
	inputs, err := m.inputs(ctx, req)
	if err != nil {
		return prompt{}, err
	}
	if len(inputs) == 0 {
		// An empty batch is refused by llama.cpp with a bare code.
		return prompt{}, fault.New(fault.Invalid, "engine.Generate", "the prompt is empty")
	}
	keep := req.NumKeep
	if keep < 0 {
		keep = len(inputs)
	}
	if m.addsBOS {
		keep++
	}
	keep = min(keep, len(inputs), m.numCtx-1) // at least one token must be free to go
	if len(inputs) <= m.numCtx {
		return prompt{inputs: inputs, keep: keep}, nil
	}
	if !req.Truncate {
		return prompt{}, fault.New(fault.Invalid, "engine.Generate",
			"the input length exceeds the context length: the prompt has %d tokens, the context %d", len(inputs), m.numCtx)
	}
	cut := append(inputs[:keep:keep], inputs[len(inputs)-(m.numCtx-keep):]...)
	return prompt{inputs: cut, keep: keep, truncated: true}, nil
}

// Tokenize gives the ids of a text. Special tokens written in the text count as such; special adds BOS and EOS as the model has it.
func (e *Engine) Tokenize(ctx context.Context, text string, special bool) ([]int, error) {
	if o := e.other.Load(); o != nil {
		return (*o).Tokenize(ctx, text, special)
	}
	m := e.loaded.Load()
	if m == nil {
		return nil, errNotLoaded()
	}
	return m.tokenize(text, special)
}

// Detokenize gives the text of ids. An id that the vocabulary lacks is Invalid: llama.cpp would abort.
func (e *Engine) Detokenize(ctx context.Context, tokens []int) (string, error) {
	if o := e.other.Load(); o != nil {
		return (*o).Detokenize(ctx, tokens)
	}
	m := e.loaded.Load()
	if m == nil {
		return "", errNotLoaded()
	}
	var b strings.Builder
	for i, id := range tokens {
		if id < 0 || id >= m.vocab {
			return "", fault.New(fault.Invalid, "engine.Detokenize", "token %d is %d; the model has ids from 0 to %d", i, id, m.vocab-1)
		}
		b.WriteString(m.model.TokenToPiece(id))
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}

// SetThreads changes how many cores are computed on, from the next batch on. More than there are would all but stand still.
func (e *Engine) SetThreads(ctx context.Context, n int) error {
	if o := e.other.Load(); o != nil {
		return (*o).SetThreads(ctx, n)
	}
	m := e.loaded.Load()
	if m == nil {
		return errNotLoaded()
	}
	if n <= 0 {
		return fault.New(fault.Invalid, "engine.SetThreads", "threads is %d; it must be at least 1", n)
	}
	return e.onLoop(ctx, func(l *loop) { l.native.setThreads(min(n, runtime.NumCPU())) })
}

// Ping returns between two batches, or at once when none is computed.
func (e *Engine) Ping(ctx context.Context) error {
	if o := e.other.Load(); o != nil {
		return (*o).Ping(ctx)
	}
	if e.loaded.Load() == nil {
		return errNotLoaded()
	}
	return e.onLoop(ctx, func(*loop) {})
}

// onLoop has the loop do something, and waits for it.
func (e *Engine) onLoop(ctx context.Context, f func(*loop)) error {
	done := make(chan struct{})
	if err := e.submit(ctx, func(l *loop) { f(l); close(done) }); err != nil {
		return err
	}
	<-done
	return nil
}

func errNotLoaded() error {
	return fault.New(fault.Conflict, "engine", "no model is loaded")
}
