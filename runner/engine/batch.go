package engine

import (
	"time"

	"github.com/ollama/ollama/llama"
)

// part is what a batch has of one slot.
type part struct {
	slot    *slot
	in      []input
	outputs int // of its last inputs, whose logits are wanted
	row     int // of its first input in the batch
	drafted int // of its last inputs, which are guesses
}

// stepTokens computes a batch of tokens: the next one of every answer, with guesses where they pay, and behind them as much
// of the prompts as there is room for.
func (l *loop) stepTokens() bool {
	parts, embed := l.plan()
	if len(parts) == 0 {
		return false
	}
	l.setEmbeddings(embed)
	begin := time.Now()
	if l.decode(l.batch, parts) != nil {
		return true
	}
	if len(parts) == 1 && !parts[0].slot.g.isReading {
		l.costs.learn(len(parts[0].in), time.Since(begin))
	}
	for _, p := range parts {
		l.follow(p)
	}
	return true
}

// plan decides the next batch of tokens, in the order of the slots. embed: a row of it is wanted as an embedding.
func (l *loop) plan() (parts []part, embed bool) {
	of := make([]part, len(l.slots))
	answering := 0
	var readers []*slot
	for _, s := range l.slots {
		switch g := s.g; {
		case g == nil || g.out.full():
		case g.isReading:
			if g.textAhead(s) > 0 {
				readers = append(readers, s)
			}
		default:
			answering++
			of[s.id] = part{slot: s, in: []input{{token: g.next}}, outputs: 1}
		}
	}
	if answering == 1 {
		for i := range of {
			if p := &of[i]; p.slot != nil {
				guesses := p.slot.g.guess(l, p.slot)
				p.in = append(p.in, tokens(guesses)...)
				p.outputs, p.drafted = len(p.in), len(guesses)
			}
		}
	}
	room := l.chunk
	if answering > 0 {
		room = min(l.shared, max(l.chunk-answering, 1))
	}
	sortByAge(readers)
	left := make([]int, len(readers))
	for i, s := range readers {
		left[i] = s.g.textAhead(s)
	}
	for i, n := range share(left, room) {
		if n == 0 {
			continue
		}
		s := readers[i]
		p := part{slot: s, in: s.g.prompt[len(s.held) : len(s.held)+n]}
		if len(s.held)+n == len(s.g.prompt) {
			p.outputs = 1
			embed = embed || s.g.embedded != nil
		}
		of[s.id] = p
	}
	for _, p := range of {
		if p.slot != nil {
			parts = append(parts, p)
		}
	}
	return parts, embed
}

// stepLast computes the last tokens of inputs for a decoder that pools: in a batch that gives embeddings llama.cpp looks for the
// vector of each sequence among all tokens, and finds it only when all are asked for, so that there must be no others.
func (l *loop) stepLast() bool {
	var parts []part
	for _, s := range l.slots {
		if g := s.g; g != nil && g.lastAlone() && len(s.held) == len(g.prompt)-1 {
			parts = append(parts, part{slot: s, in: g.prompt[len(s.held):], outputs: 1})
		}
	}
	if len(parts) == 0 {
		return false
	}
	l.setEmbeddings(true)
	if l.decode(l.batch, parts) == nil {
		for _, p := range parts {
			l.follow(p)
		}
	}
	return true
}

// stepImage computes a batch of image rows of the slot that has waited longest for one.
func (l *loop) stepImage() bool {
	var first *slot
	for _, s := range l.slots {
		if g := s.g; g != nil && g.isReading && g.prompt[len(s.held)].isRow() && (first == nil || s.used < first.used) {
			first = s
		}
	}
	if first == nil {
		return false
	}
	g, at := first.g, len(first.held)
	end := at + 1
	for end < len(g.prompt) && end-at < l.chunk && g.prompt[end].image == g.prompt[at].image && g.prompt[end].row == g.prompt[end-1].row+1 {
		end++
	}
	p := part{slot: first, in: g.prompt[at:end]}
	if end == len(g.prompt) {
		p.outputs = 1
	}
	if l.rows == nil {
		rows, err := llama.NewBatch(l.chunk, 1, len(p.in[0].embed))
		if err != nil {
			g.fail(err)
			return true
		}
		l.rows = rows
	}
	l.setEmbeddings(g.embedded != nil && p.outputs > 0)
	if l.wholeImages {
		l.native.setCausal(false) // its rows look at each other in both directions
		defer l.native.setCausal(true)
	}
	parts := []part{p}
	if l.decode(l.rows, parts) == nil {
		l.follow(parts[0]) // decode has set where it begins
	}
	return true
}

// follow goes on with a slot behind a batch: it draws from the logits that were asked for.
func (l *loop) follow(p part) {
	g := p.slot.g
	switch {
	case p.outputs == 0: // the prompt goes on
		return
	case g.embedded != nil:
		if l.loaded.pooled {
			g.embedded(l.native.pooledRow(p.slot.id, l.pooling == poolingRank))
		} else {
			g.embedded(l.ctx.GetEmbeddingsIth(p.row + len(p.in) - 1))
		}
		l.release(p.slot)
		return
	case g.isReading:
		g.promptRead()
	}
	if !l.drawAll(p) {
		return
	}
	if g.ended == "" && !g.alone && len(p.slot.held) == l.numCtx && !(g.shift && l.shift(p.slot, g.keep)) {
		g.end(cutLength)
	}
	if g.ended != "" {
		l.release(p.slot)
	}
}

// drawAll draws from each row whose logits were asked for, as long as the guesses are right. false: the answer failed.
func (l *loop) drawAll(p part) bool {
	g, s := p.slot.g, p.slot
	first, kept := p.row+len(p.in)-p.outputs, len(p.in)
	for i := range p.outputs {
		logits := l.native.logits(first + i)
		if p.drafted > 0 && nearTie(l.native, logits) {
			// A batch of another size computes in another order. What that could decide is computed once more, alone, so that
			// the text does not depend on guesses.
			kept, g.alone = i, true
			break
		}
		if err := g.draw(logits); err != nil {
			g.fail(err)
			return false
		}
		if p.drafted > 0 {
			kept = i + 1
		}
		// A guess that is what was drawn has its keys and values in the cache already.
		if g.ended != "" || i == p.drafted || p.in[i+1].token != g.next {
			break
		}
		g.group.usage.AcceptedTokens++
	}
	g.group.usage.DraftTokens += p.drafted
	l.cut(s, len(s.held)-(len(p.in)-kept))
	return true
}

// tie is how close two logits must be for the size of a batch to decide between them: 0.07 was seen on a Q4_1 model.
const tie = 0.15

func nearTie(n *native, logits []float32) bool {
	two := n.best(logits, 2)
	_, a := two.at(0)
	_, b := two.at(two.n - 1)
	return two.n == 2 && a-b < tie
}
