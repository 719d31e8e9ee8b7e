package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ollama/ollama/llama"

	"sluice/fault"
)

// loop owns the context of the model and all that belongs to it. Everything below runs on its one goroutine.
type loop struct {
	*loaded
	native   *native
	ctx      *llama.Context
	batch    *llama.Batch // of tokens
	rows     *llama.Batch // of image rows; made when first needed
	chunk    int          // positions of a batch at most, when nobody else is answering
	shared   int          // positions of prompts in a batch in which others answer
	together int          // inputs of a batch of a model that pools over it
	exact    bool         // the model cannot cut a sequence
	shifts   bool         // the model's positions can be moved

	slots  []*slot
	queue  []*generation // waiting for a slot, first come first
	packed []*pooledItem // inputs for a model that pools
	clock  int           // counts the answers begun
	turn   bool          // alternates between kinds of batch that are both wanted
	costs  costs
	wake   <-chan struct{} // a reader has caught up, or left
	embeds bool            // the context gives embeddings now

	decoded func([]part) // told of each batch; nil but in tests
}

// run computes batch after batch, and does between two of them what comes through work.
func (l *loop) run(work <-chan func(*loop)) {
	for {
		if l.step() {
			for more := true; more; { // all that came meanwhile
				select {
				case f, ok := <-work:
					if !ok {
						return
					}
					f(l)
				default:
					more = false
				}
			}
			continue
		}
		select { // nothing to compute
		case f, ok := <-work:
			if !ok {
				return
			}
			f(l)
		case <-l.wake:
		}
	}
}

// step computes one batch; false: there is none to compute.
func (l *loop) step() bool {
	l.reap()
	l.admit()
	l.turn = !l.turn
	if len(l.packed) > 0 {
		l.stepPooled()
		return true
	}
	if l.turn {
		return l.stepImage() || l.stepLast() || l.stepTokens()
	}
	return l.stepTokens() || l.stepImage() || l.stepLast()
}

// reap frees the slots and the places in the queue of those who left.
func (l *loop) reap() {
	gone := func(g *generation) bool {
		if g.ctx.Err() != nil {
			g.fail(context.Cause(g.ctx))
		}
		return g.group.failed
	}
	for _, s := range l.slots {
		if s.g != nil && gone(s.g) {
			l.release(s)
		}
	}
	l.queue = slices.DeleteFunc(l.queue, gone)
	l.packed = slices.DeleteFunc(l.packed, func(p *pooledItem) bool {
		if p.ctx.Err() != nil {
			p.done <- pooledResult{err: context.Cause(p.ctx)}
			return true
		}
		return false
	})
}

// admit gives idle slots to those who wait, in their order. One whose prompt another slot is about to read waits for that.
func (l *loop) admit() {
	for i := 0; i < len(l.queue); {
		g := l.queue[i]
		if !l.exact && promised(l.slots, g.prompt) {
			i++
			continue
		}
		p, ok := choose(l.slots, g.prompt, l.clock, l.exact)
		if !ok {
			return
		}
		l.queue = slices.Delete(l.queue, i, i+1)
		l.begin(g, p)
	}
}

// begin puts an answer into a slot, with the beginning of its prompt that is cached.
func (l *loop) begin(g *generation, p place) {
	to, from := l.slots[p.to], l.slots[p.from]
	l.clock++
	to.used, from.used = l.clock, l.clock
	own := known(l.slots, g.prompt, g.owner, p.n)
	if to != from {
		// Whole, then cut: llama.cpp aborts at a copy of a part.
		l.ctx.KvCacheSeqCp(from.id, to.id, 0, -1)
		to.held = slices.Clone(from.held)
	}
	to.g, to.owner = g, g.owner
	g.begin(l, min(l.cut(to, p.n), own))
}

// cut shortens a slot to its first n positions and gives n, or 0 where a model cannot go back.
func (l *loop) cut(s *slot, n int) int {
	if n == len(s.held) {
		return n
	}
	if n > 0 && l.ctx.KvCacheSeqRm(s.id, n, -1) {
		s.held = s.held[:n]
		return n
	}
	l.clear(s)
	return 0
}

// clear empties a slot. Clearing the whole cache would also fill it with zeros, which takes a while for a long context.
func (l *loop) clear(s *slot) {
	l.ctx.KvCacheSeqRm(s.id, 0, -1) // a whole sequence is never refused
	s.held = s.held[:0]
}

// release ends the slot's answer. What it holds stays for a later prompt.
func (l *loop) release(s *slot) {
	s.g.release()
	s.g = nil
}

// shift makes room in a full slot: it drops the older half of what follows the first keep positions, and moves the rest
// down. It says false when the model's positions cannot be moved.
func (l *loop) shift(s *slot, keep int) bool {
	if !l.shifts {
		return false
	}
	drop := max((len(s.held)-keep)/2, 1)
	if !l.ctx.KvCacheSeqRm(s.id, keep, keep+drop) {
		return false
	}
	l.ctx.KvCacheSeqAdd(s.id, keep+drop, len(s.held), -drop)
	s.held = append(s.held[:keep], s.held[keep+drop:]...)
	return true
}

// setEmbeddings switches between batches that give embeddings and such that do not.
func (l *loop) setEmbeddings(on bool) {
	if l.embeds != on {
		l.native.setEmbeddings(on)
		l.embeds = on
	}
}

// decode computes a batch. Its parts stand in the order of their slots, the only one that llama.cpp computes together.
// When it fails, what the slots hold is not known: they are emptied, and their answers end.
func (l *loop) decode(batch *llama.Batch, parts []part) error {
	batch.Clear()
	size := 0
	for i := range parts {
		p := &parts[i]
		p.row = size
		if len(p.in) == 0 || len(p.slot.held)+len(p.in) > l.numCtx || i > 0 && parts[i-1].slot.id >= p.slot.id {
			return l.broken(parts, fault.Bug("batch part of %d at %d in a context of %d", len(p.in), len(p.slot.held), l.numCtx))
		}
		for j, in := range p.in {
			batch.Add(in.token, in.embed, len(p.slot.held)+j, j >= len(p.in)-p.outputs, p.slot.id)
		}
		size += len(p.in)
	}
	if err := l.ctx.Decode(batch); err != nil {
		return l.broken(parts, fmt.Errorf("engine: a batch of %d: %w", size, err))
	}
	l.ctx.Synchronize()
	for _, p := range parts {
		for _, in := range p.in {
			in.embed = nil
			p.slot.held = append(p.slot.held, in)
		}
	}
	if l.decoded != nil {
		l.decoded(parts)
	}
	return nil
}

// broken ends the answers of a batch that failed.
func (l *loop) broken(parts []part, err error) error {
	for _, p := range parts {
		l.clear(p.slot)
		p.slot.g.fail(err)
	}
	return err
}
