package engine

import (
	"context"
	"fmt"

	"github.com/ollama/ollama/llama"
)

// sequence is the only one in the context. It is written as a name so that the places that assume it are easy to find.
const sequence = 0

// loop owns the context of the model and all that belongs to it.
type loop struct {
	*loaded
	ctx      *llama.Context
	batch    *llama.Batch
	chunk    int // tokens of a batch when a prompt is read
	canShift bool
	sampler  sampler

	held []int // the tokens whose keys and values are in the cache, by position
	row  int   // in the last batch, of the token whose logits and embedding were asked for

	decoded func() // told after each decode call; nil but in tests
}

// run does one job after the other, for the life of the process.
func (l *loop) run(jobs <-chan *job) {
	for j := range jobs {
		j.done <- j.run(j.ctx, l)
	}
}

// read brings the cache to hold exactly these tokens, with logits for the last one, and says how many were there already.
// When ctx ends it stops between batches, and what was read stays for the next request.
func (l *loop) read(ctx context.Context, tokens []int) (cached int, err error) {
	// The last token is always evaluated again: its logits are not kept.
	cached = l.keep(min(common(l.held, tokens), len(tokens)-1))
	for at := cached; at < len(tokens); {
		if ctx.Err() != nil {
			return cached, context.Cause(ctx)
		}
		next := min(at+l.chunk, len(tokens))
		if err := l.decode(tokens[at:next]); err != nil {
			return cached, err
		}
		at = next
	}
	return cached, nil
}

// common is the length of the longest common prefix.
func common(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// keep cuts the sequence to its first n tokens and gives n, or 0 where a model (a recurrent one) cannot go back.
func (l *loop) keep(n int) int {
	if n == len(l.held) {
		return n
	}
	if n > 0 && l.ctx.KvCacheSeqRm(sequence, n, -1) {
		l.held = l.held[:n]
		return n
	}
	l.clear()
	return 0
}

// clear empties the sequence. Clearing the whole cache would also fill it with zeros, which takes a while for a long context.
func (l *loop) clear() {
	if !l.ctx.KvCacheSeqRm(sequence, 0, -1) {
		l.ctx.KvCacheClear()
	}
	l.held = l.held[:0]
}

// decode appends tokens to the sequence: at least one, at most l.chunk, and no more than the context has room for. Each of
// these would abort the process or be refused with a bare number.
func (l *loop) decode(tokens []int) error {
	if len(tokens) == 0 || len(tokens) > l.chunk || len(l.held)+len(tokens) > l.numCtx {
		return fmt.Errorf("engine: decode of %d tokens at %d in a context of %d", len(tokens), len(l.held), l.numCtx)
	}
	l.batch.Clear()
	for i, id := range tokens {
		l.batch.Add(id, nil, len(l.held)+i, i == len(tokens)-1, sequence)
	}
	if err := l.ctx.Decode(l.batch); err != nil {
		l.clear() // what the cache holds now is not known
		return fmt.Errorf("engine: %w", err)
	}
	l.ctx.Synchronize()
	l.held = append(l.held, tokens...)
	l.row = len(tokens) - 1
	if l.decoded != nil {
		l.decoded()
	}
	return nil
}

// shift makes room in a full context: it drops the older half of what follows the first keep tokens, and moves the rest
// down. It says false when the model's positions cannot be moved.
func (l *loop) shift(keep int) bool {
	if !l.canShift {
		return false
	}
	drop := max((len(l.held)-keep)/2, 1)
	if !l.ctx.KvCacheSeqRm(sequence, keep, keep+drop) {
		return false
	}
	l.ctx.KvCacheSeqAdd(sequence, keep+drop, len(l.held), -drop)
	l.held = append(l.held[:keep], l.held[keep+drop:]...)
	return true
}
