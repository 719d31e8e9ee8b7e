package engine

import (
	"context"
	"errors"
	"math"
	"sync"

	"sluice/fault"
	"sluice/runner"
)

// Embed gives one vector per input. A model that pools by itself gives its pooled vector, another the vector of the last
// token. Vectors are not normalised.
func (e *Engine) Embed(ctx context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	if o := e.other.Load(); o != nil {
		return (*o).Embed(ctx, req)
	}
	m := e.loaded.Load()
	switch {
	case m == nil:
		return runner.EmbedResponse{}, errNotLoaded()
	case m.reranks:
		return runner.EmbedResponse{}, fault.New(fault.Invalid, "engine.Embed", "this model scores pairs of texts; it makes no embeddings")
	}
	var out runner.EmbedResponse
	inputs := make([][]int, len(req.Inputs))
	for i, text := range req.Inputs {
		ids, cut, err := m.input(i, text, req.Truncate)
		if err != nil {
			return runner.EmbedResponse{}, err
		}
		inputs[i] = ids
		out.PromptTokens += len(ids)
		out.Truncated = out.Truncated || cut
	}
	var err error
	if out.Vectors, err = e.rows(ctx, m, inputs); err != nil {
		return runner.EmbedResponse{}, err
	}
	if err := allFinite(out.Vectors); err != nil {
		return runner.EmbedResponse{}, err
	}
	return out, nil
}

// input tokenizes an input and cuts what does not fit. The closing token that the tokenizer adds, if any, stays the last.
func (m *loaded) input(i int, text string, truncate bool) (ids []int, cut bool, err error) {
	plain, err := m.tokenize(text, false)
	if err == nil {
		ids, err = m.tokenize(text, true)
	}
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Invalid, "engine.Embed", "input %d could not be tokenized", i)
	}
	if len(plain) == 0 {
		return nil, false, fault.New(fault.Invalid, "engine.Embed", "input %d is empty", i)
	}
	if len(ids) <= m.numCtx {
		return ids, false, nil
	}
	if !truncate {
		return nil, false, fault.New(fault.Invalid, "engine.Embed",
			"the input length exceeds the context length: input %d has %d tokens, the context %d", i, len(ids), m.numCtx)
	}
	last := ids[len(ids)-1]
	ids = ids[:m.numCtx]
	if last != plain[len(plain)-1] {
		ids[len(ids)-1] = last
	}
	return ids, true, nil
}

// rows gives what the model makes of each input: a vector, or for one that reranks its scores. Each input has from 1 to
// numCtx ids. A long list never fills the queue: it has a few inputs in it at a time, and others come in between.
func (e *Engine) rows(ctx context.Context, m *loaded, inputs [][]int) ([][]float32, error) {
	for _, ids := range inputs {
		if len(ids) == 0 || len(ids) > m.numCtx {
			return nil, fault.Bug("an input of %d ids for a model that takes %d", len(ids), m.numCtx)
		}
	}
	if m.packs {
		return e.packedRows(ctx, inputs)
	}
	return inOrder(ctx, inputs, max(m.parallel/2, 1), func(ctx context.Context, ids []int) ([]float32, error) {
		return e.slotRow(ctx, m, ids)
	})
}

// slotRow reads an input as a prompt, and gives the vector of its last token.
func (e *Engine) slotRow(ctx context.Context, m *loaded, ids []int) ([]float32, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var row []float32
	out := newOutbox()
	g := &generation{ctx: ctx, group: &group{out: out, left: 1}, out: out, model: m, prompt: tokens(ids), top: -1}
	g.embedded = func(v []float32) {
		row = v
		if v == nil {
			out.finish(errNoEmbedding)
		}
		out.finish(nil)
	}
	if err := e.submit(ctx, func(l *loop) { l.queue = append(l.queue, g) }); err != nil {
		return nil, err
	}
	err := e.follow(ctx, cancel, out, nil)
	return row, err
}

var errNoEmbedding = errors.New("engine: llama.cpp gave no embedding")

// inOrder calls f for each input, a few at a time, and gives the results in order. The first error ends the others.
func inOrder(ctx context.Context, inputs [][]int, atOnce int, f func(context.Context, []int) ([]float32, error)) ([][]float32, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([][]float32, len(inputs))
	free := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, ids := range inputs {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			v, err := f(ctx, ids)
			if err != nil {
				cancel(err) // the first one counts
			}
			out[i] = v
			<-free
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// allFinite refuses vectors that hold a NaN or an infinity, which JSON cannot carry.
func allFinite(vectors [][]float32) error {
	for i, v := range vectors {
		if at := notFinite(v); at >= 0 {
			return fault.New(fault.Invalid, "engine.Embed",
				"the model gave no number at position %d of the vector of input %d; another quantization of it may not", at, i)
		}
	}
	return nil
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
