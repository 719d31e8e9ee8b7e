package engine

import (
	"context"
	"time"

	"github.com/ollama/ollama/llama"

	"sluice/runner"
)

// Reasons why an answer ended, in Ollama's words.
const (
	stopped   = "stop"
	cutLength = "length"
)

// generation is one answer in the making. It is used by the loop's goroutine only.
type generation struct {
	prompt prompt
	params llama.SamplingParams
	limit  int // tokens
	shift  bool
	answer *answer
	emit   func(runner.Chunk) error
	usage  runner.Usage
}

// maxContexts bounds an answer that would go on for ever through context shifts, as Ollama does: 10 times the context.
const maxContexts = 10

func newGeneration(m *loaded, req runner.GenerateRequest, p prompt, grammar string, emit func(runner.Chunk) error) *generation {
	limit := req.NumPredict
	if most := maxContexts * m.numCtx; limit < 0 || limit > most {
		limit = most
	}
	return &generation{
		prompt: p, params: samplingParams(req.Sampling, grammar, m.numCtx), limit: limit, shift: req.Shift,
		answer: newAnswer(req.Stop), emit: emit,
		usage: runner.Usage{PromptTokens: len(p.tokens), Truncated: p.truncated},
	}
}

// run reads the prompt and answers it.
func (g *generation) run(ctx context.Context, l *loop) error {
	begin := time.Now()
	cached, err := l.read(ctx, g.prompt.tokens)
	if err != nil {
		return err
	}
	if err := l.sampler.prepare(l.model, g.params, g.prompt.tokens); err != nil {
		return err
	}
	g.usage.CachedTokens, g.usage.PromptDuration = cached, time.Since(begin)

	begin = time.Now()
	reason, err := g.sample(ctx, l)
	if err != nil {
		return err
	}
	g.usage.EvalDuration = time.Since(begin)
	return g.emit(runner.Chunk{Text: g.answer.rest(), Done: true, DoneReason: reason, Usage: &g.usage})
}

// sample draws tokens until the answer ends.
func (g *generation) sample(ctx context.Context, l *loop) (reason string, err error) {
	for g.usage.EvalTokens < g.limit {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		id := l.sampler.Sample(l.ctx, l.row)
		g.usage.EvalTokens++ // the end token counts, as it does in Ollama
		if l.model.TokenIsEog(id) {
			return stopped, nil
		}
		// Only what Sample returned may be accepted: any other token throws through cgo under a grammar.
		l.sampler.Accept(id, true)
		text, end := g.answer.add(l.model.TokenToPiece(id))
		if text != "" {
			if err := g.emit(runner.Chunk{Text: text}); err != nil {
				return "", err
			}
		}
		if end {
			return stopped, nil
		}
		if g.usage.EvalTokens == g.limit {
			break // nobody needs what would follow this token
		}
		if len(l.held) == l.numCtx && !(g.shift && l.shift(g.prompt.keep)) {
			break
		}
		if err := l.decode([]int{id}); err != nil {
			return "", err
		}
	}
	return cutLength, nil
}
