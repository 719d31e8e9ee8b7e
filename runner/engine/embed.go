package engine

import (
	"context"
	"fmt"
	"math"

	"sluice/fault"
	"sluice/runner"
)

// Embed gives one vector per input. A model that pools by itself gives its pooled vector, another the vector of the last
// token. Vectors are not normalised.
func (e *Engine) Embed(ctx context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	m := e.loaded.Load()
	if m == nil {
		return runner.EmbedResponse{}, errNotLoaded()
	}
	out := runner.EmbedResponse{Vectors: make([][]float32, len(req.Inputs))}
	inputs := make([][]int, len(req.Inputs))
	for i, text := range req.Inputs {
		tokens, cut, err := m.input(i, text, req.Truncate)
		if err != nil {
			return runner.EmbedResponse{}, err
		}
		inputs[i] = tokens
		out.PromptTokens += len(tokens)
		out.Truncated = out.Truncated || cut
	}
	for i, tokens := range inputs {
		// A job per input, so that a long list does not hold up the answers of others.
		done, err := e.submit(ctx, func(ctx context.Context, l *loop) (err error) {
			out.Vectors[i], err = l.embed(ctx, tokens)
			return err
		})
		if err == nil {
			err = <-done
		}
		if err != nil {
			return runner.EmbedResponse{}, err
		}
		if at := notFinite(out.Vectors[i]); at >= 0 {
			return runner.EmbedResponse{}, fault.New(fault.Invalid, "engine.Embed",
				"the model gave no number at position %d of the vector of input %d; another quantization of it may not", at, i)
		}
	}
	return out, nil
}

// input tokenizes an input and cuts what does not fit. The closing token that the tokenizer adds, if any, stays the last.
func (m *loaded) input(i int, text string, truncate bool) (tokens []int, cut bool, err error) {
	plain, err := m.model.Tokenize(text, false, true)
	if err == nil {
		tokens, err = m.model.Tokenize(text, true, true)
	}
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Invalid, "engine.Embed", "input %d could not be tokenized", i)
	}
	if len(plain) == 0 {
		return nil, false, fault.New(fault.Invalid, "engine.Embed", "input %d is empty", i)
	}
	if len(tokens) <= m.numCtx {
		return tokens, false, nil
	}
	if !truncate {
		return nil, false, fault.New(fault.Invalid, "engine.Embed",
			"the input length exceeds the context length: input %d has %d tokens, the context %d", i, len(tokens), m.numCtx)
	}
	last := tokens[len(tokens)-1]
	tokens = tokens[:m.numCtx]
	if last != plain[len(plain)-1] {
		tokens[len(tokens)-1] = last
	}
	return tokens, true, nil
}

// embed evaluates one input.
func (l *loop) embed(ctx context.Context, tokens []int) ([]float32, error) {
	if l.pooled {
		l.clear() // pooling is over one batch: all tokens must be in it
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := l.decode(tokens); err != nil {
			return nil, err
		}
	} else if _, err := l.read(ctx, tokens); err != nil {
		return nil, err
	}
	vector := l.ctx.GetEmbeddingsSeq(sequence)
	if vector == nil {
		vector = l.ctx.GetEmbeddingsIth(l.row)
	}
	if vector == nil {
		return nil, fmt.Errorf("engine: llama.cpp gave no embedding")
	}
	return vector, nil
}

// notFinite is the index of the first NaN or infinity, or -1.
func notFinite(v []float32) int {
	for i, x := range v {
		if x64 := float64(x); math.IsNaN(x64) || math.IsInf(x64, 0) {
			return i
		}
	}
	return -1
}
