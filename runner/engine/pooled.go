package engine

import (
	"context"
	"fmt"
	"slices"
)

// GGUF's numbers for how a model makes one vector of a text.
const (
	poolingMean = 1
	poolingCLS  = 2
	poolingLast = 3
	poolingRank = 4
)

// pooledItem is an input for a model that pools.
type pooledItem struct {
	ctx  context.Context //nolint:containedctx // a request on its way through a channel
	ids  []int
	done chan pooledResult // has room for one
}

type pooledResult struct {
	row []float32
	err error
}

// packedAtOnce is how many inputs of one request are in the queue together.
const packedAtOnce = 4 * pooledTogether

// packedRows gives what a model that pools over a batch makes of each input. They share batches, also with those of others.
func (e *Engine) packedRows(ctx context.Context, inputs [][]int) ([][]float32, error) {
	var out [][]float32
	for some := range slices.Chunk(inputs, packedAtOnce) {
		items := make([]*pooledItem, len(some))
		for i, ids := range some {
			items[i] = &pooledItem{ctx: ctx, ids: ids, done: make(chan pooledResult, 1)}
		}
		if err := e.submit(ctx, func(l *loop) { l.packed = append(l.packed, items...) }); err != nil {
			return nil, err
		}
		var failed error
		for _, p := range items { // all are waited for, so that nothing of the request is left in the loop
			r := <-p.done
			out = append(out, r.row)
			if failed == nil {
				failed = r.err
			}
		}
		if failed != nil {
			return nil, failed
		}
	}
	return out, nil
}

// stepPooled computes the first inputs that fit in a batch together. llama.cpp pools over a batch: each must be in it whole.
func (l *loop) stepPooled() {
	n, size := 0, 0
	for _, p := range l.packed {
		if n == l.together || size+len(p.ids) > l.width {
			break
		}
		n, size = n+1, size+len(p.ids)
	}
	items := l.packed[:n]
	l.packed = l.packed[n:]
	l.batch.Clear()
	for s, p := range items {
		if !l.encoder {
			l.ctx.KvCacheSeqRm(s, 0, -1)
		}
		for i, id := range p.ids {
			l.batch.Add(id, nil, i, true, s)
		}
	}
	err := l.ctx.Decode(l.batch)
	if err != nil {
		err = fmt.Errorf("engine: a batch of %d: %w", size, err)
	} else {
		l.ctx.Synchronize()
	}
	for s, p := range items {
		r := pooledResult{err: err}
		if err == nil {
			if r.row = l.native.pooledRow(s, l.pooling == poolingRank); r.row == nil {
				r.err = errNoEmbedding
			}
		}
		p.done <- r
	}
	if l.decoded != nil {
		l.decoded(make([]part, n))
	}
}
