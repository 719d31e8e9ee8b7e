package engine

import (
	"math"
	"strings"
)

// binding keeps an answer to a grammar: from its first token on, or from behind a text such as "</think>".
//
// A model that wants to end before it wrote that text has it written for it: else the answer would be one without grammar.
type binding struct {
	gbnf  string // "" none
	after string

	waiting *grammar // until the text is there
	seen    string   // the end of the answer, as long as the text may reach back
	forced  []int    // tokens to take whatever the model says
}

// begin makes the grammar. The text has been parsed before.
func (b *binding) begin(n *native, s *sampler) {
	if b.gbnf == "" {
		return
	}
	g, ok := newGrammar(n.vocab, b.gbnf)
	switch {
	case !ok:
	case b.after == "":
		s.grammar = &g
	default:
		b.waiting = &g
	}
}

func (b *binding) free() {
	if b.waiting != nil {
		b.waiting.free()
		b.waiting = nil
	}
}

// choose picks the next token and takes it for the sampler.
func (b *binding) choose(g *generation, logits []float32) (int, error) {
	if b.waiting == nil {
		id, err := g.sampler.choose(logits)
		if err == nil {
			g.sampler.take(id)
		}
		return id, err
	}
	var out []int // tokens that write the text and, behind it, what the grammar does not allow
	var were []float32
	defer func() {
		for i, id := range out {
			logits[id] = were[i]
		}
	}()
	for {
		if len(b.forced) == 0 && len(out) < maxExcluded {
			id, err := g.sampler.choose(logits)
			if err != nil {
				return 0, err
			}
			if !g.model.isEnd(id) {
				if b.follow(g, id) {
					return id, nil
				}
				out, were = append(out, id), append(were, logits[id])
				logits[id] = float32(math.Inf(-1))
				continue
			}
		}
		if len(b.forced) == 0 {
			ids, err := g.model.tokenize(b.after, false)
			if err != nil {
				return 0, err
			}
			b.forced = ids
		}
		id := b.forced[0]
		if b.forced = b.forced[1:]; len(b.forced) == 0 {
			b.seen = b.after // whatever the tokenizer put around it
			g.sampler.take(id)
			b.bind(g.sampler)
			return id, nil
		}
		g.sampler.take(id)
		return id, nil
	}
}

// maxExcluded is how many tokens are tried that would write the text and more.
const maxExcluded = 8

// follow takes a token if it does not end the text, or ends it with what the grammar allows behind it.
func (b *binding) follow(g *generation, id int) bool {
	text := b.seen + g.model.model.TokenToPiece(id)
	at := strings.Index(text, b.after)
	if at < 0 {
		b.seen = text[max(0, len(text)-len(b.after)+1):]
		g.sampler.take(id)
		return true
	}
	if more := text[at+len(b.after):]; more != "" {
		ids, err := g.model.tokenize(more, false)
		for _, id := range ids {
			if err != nil || !b.waiting.allows(id) || g.model.isEnd(id) {
				b.waiting.reset()
				return false
			}
			b.waiting.accept(id)
		}
	}
	g.sampler.take(id)
	b.bind(g.sampler)
	return true
}

func (b *binding) bind(s *sampler) {
	s.grammar, b.waiting = b.waiting, nil
}
