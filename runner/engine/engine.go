package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ollama/ollama/llama"

	"sluice/fault"
	"sluice/runner"
)

// Engine implements runner.Engine. Its loop lives as long as the process, which loads one model in its life.
type Engine struct {
	jobs   chan *job
	loaded atomic.Pointer[loaded] // nil before Load
}

var _ runner.Engine = (*Engine)(nil)

// New makes an engine without a model.
func New() *Engine { return &Engine{jobs: make(chan *job)} }

// loaded is what never changes after Load, so that any goroutine may read it.
type loaded struct {
	model   *llama.Model
	vocab   int // number of tokens
	numCtx  int // tokens of the sequence
	pooled  bool
	addsBOS bool
}

// job is work for the loop.
type job struct {
	ctx  context.Context
	run  func(context.Context, *loop) error
	done chan error // buffered: the loop never waits for the one who asked
}

// submit runs work on the loop and waits for its end. The loop itself checks ctx between batches.
func (e *Engine) submit(ctx context.Context, run func(context.Context, *loop) error) (done <-chan error, err error) {
	j := &job{ctx: ctx, run: run, done: make(chan error, 1)}
	select {
	case e.jobs <- j:
		return j.done, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// chunkBuffer is how many pieces of text an answer may be ahead of a slow reader before the loop waits for it.
const chunkBuffer = 1024

// Generate answers a prompt. Errors that name what the caller can change are Invalid.
func (e *Engine) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	m := e.loaded.Load()
	if m == nil {
		return errNotLoaded()
	}
	if m.pooled {
		return fault.New(fault.Invalid, "engine.Generate", "this model makes embeddings only; it cannot answer a prompt")
	}
	grammar, err := compile(req.Schema)
	if err != nil {
		return err
	}
	prompt, err := m.prompt(req)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks := make(chan runner.Chunk, chunkBuffer)
	g := newGeneration(m, req, prompt, grammar, func(c runner.Chunk) error {
		select {
		case chunks <- c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	done, err := e.submit(ctx, g.run)
	if err != nil {
		return err
	}
	for {
		select {
		case c := <-chunks:
			if err := emit(c); err != nil {
				cancel()
				<-done
				return err
			}
		case err := <-done:
			for { // the loop has ended: what is in the channel is all there is
				select {
				case c := <-chunks:
					if err := emit(c); err != nil {
						return err
					}
				default:
					return err
				}
			}
		}
	}
}

// prompt is a prompt's tokens after truncation.
type prompt struct {
	tokens    []int
	keep      int // the first tokens, which truncation and shifting spare
	truncated bool
}

// prompt tokenizes, and cuts what does not fit as Ollama does: num_keep tokens at the front and as many of the tail as fit.
func (m *loaded) prompt(req runner.GenerateRequest) (prompt, error) {
	tokens, err := m.model.Tokenize(req.Prompt, true, true)
	if err != nil {
		return prompt{}, fault.Wrap(err, fault.Invalid, "engine.Generate", "the prompt could not be tokenized")
	}
	if len(tokens) == 0 {
		// An empty batch is refused by llama.cpp with a bare code.
		return prompt{}, fault.New(fault.Invalid, "engine.Generate", "the prompt is empty")
	}
	keep := req.NumKeep
	if keep < 0 {
		keep = len(tokens)
	}
	if m.addsBOS {
		keep++
	}
	keep = min(keep, len(tokens), m.numCtx-1) // at least one token must be free to go
	if len(tokens) <= m.numCtx {
		return prompt{tokens: tokens, keep: keep}, nil
	}
	if !req.Truncate {
		return prompt{}, fault.New(fault.Invalid, "engine.Generate",
			"the input length exceeds the context length: the prompt has %d tokens, the context %d", len(tokens), m.numCtx)
	}
	cut := append(tokens[:keep:keep], tokens[len(tokens)-(m.numCtx-keep):]...)
	return prompt{tokens: cut, keep: keep, truncated: true}, nil
}

// Tokenize gives the ids of a text, without BOS or EOS. Special tokens written in the text count as such.
func (e *Engine) Tokenize(_ context.Context, text string) ([]int, error) {
	m := e.loaded.Load()
	if m == nil {
		return nil, errNotLoaded()
	}
	tokens, err := m.model.Tokenize(text, false, true)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return tokens, nil
}

// Detokenize gives the text of ids. An id that the vocabulary lacks is Invalid: llama.cpp would abort.
func (e *Engine) Detokenize(_ context.Context, tokens []int) (string, error) {
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

func errNotLoaded() error {
	return fault.New(fault.Conflict, "engine", "no model is loaded")
}
