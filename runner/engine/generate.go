package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sluice/runner"
)

// Reasons why an answer ended, in Ollama's words.
const (
	stopped   = "stop"
	cutLength = "length"
)

// maxContexts bounds an answer that would go on for ever through context shifts, as Ollama does: 10 times the context.
const maxContexts = 10

// group is the answers to one request: one, or several to the same prompt.
type group struct {
	out    *outbox
	left   int  // answers that have not ended
	failed bool // all are given up
	usage  runner.Usage
	read   time.Time // when the first had read the prompt
}

// generation is one answer in the making, or an input to embed. After it was handed to the loop it is the loop's.
type generation struct {
	ctx     context.Context //nolint:containedctx // a request on its way through a channel
	group   *group
	out     *outbox // the group's
	index   int     // which of the answers
	model   *loaded
	prompt  []input
	owner   string
	keep    int // the first inputs, which shifting spares
	limit   int // tokens
	shift   bool
	params  sampling
	binding binding
	top     int // alternatives with each log probability; -1: none of either wanted
	draft   runner.Draft
	stops   []string
	// embedded takes the embedding of the last input; such a generation draws nothing. nil for answers.
	embedded func(row []float32)

	// What follows lives as long as it has a slot.
	isReading bool
	began     time.Time
	sampler   *sampler
	answer    *answer
	drafter   *drafter
	alone     bool   // the next batch must have no guesses
	next      int    // drawn, and not in the cache yet
	drawn     int    // tokens, the end token included
	ended     string // the reason, once it did
	logprobs  []logprob
	offset    int // bytes of the pieces so far
}

// logprob is one that no chunk has carried yet, with where its piece begins in the answer.
type logprob struct {
	runner.Logprob
	at int
}

func sortByAge(slots []*slot) {
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.used, b.used) })
}

// lastAlone says whether the last input is computed apart from others: see stepLast.
func (g *generation) lastAlone() bool { return g.embedded != nil && g.model.pooled }

// textAhead is how many tokens come next in the prompt before its end or an image.
func (g *generation) textAhead(s *slot) int {
	ahead := g.prompt[len(s.held):]
	if g.lastAlone() {
		ahead = ahead[:len(ahead)-1]
	}
	for n, in := range ahead {
		if in.isRow() {
			return n
		}
	}
	return len(ahead)
}

// begin starts in a slot. Its request is told of the first cached inputs that they were there.
func (g *generation) begin(l *loop, cached int) {
	g.isReading, g.began = true, time.Now()
	if g.index == 0 {
		g.group.usage.CachedTokens = cached
	}
	if g.embedded == nil {
		g.answer = newAnswer(g.stops)
		g.sampler = newSampler(l.native, g.model.isEnd, g.params, g.prompt)
		g.binding.begin(l.native, g.sampler)
	}
}

// release frees what lives outside of Go's memory. Before begin there is nothing.
func (g *generation) release() {
	if g.sampler != nil {
		g.sampler.free()
		g.binding.free()
	}
}

// promptRead is told when the prompt is in the cache.
func (g *generation) promptRead() {
	g.isReading = false
	now := time.Now()
	if g.index == 0 {
		g.group.usage.PromptDuration = now.Sub(g.began)
	}
	if g.group.read.IsZero() {
		g.group.read = now
	}
	if g.params.greedy() && g.draft != runner.DraftOff {
		g.drafter = newDrafter(g.draft, g.prompt)
	}
	if g.limit == 0 {
		g.end(cutLength)
	}
}

// fail gives up the whole group. Its slots are freed before the next batch.
func (g *generation) fail(err error) {
	g.group.failed = true
	g.out.finish(err)
}

// draw takes one token from the logits behind the last one.
func (g *generation) draw(logits []float32) error {
	if g.ended != "" {
		return nil
	}
	id, err := g.binding.choose(g, logits)
	if err != nil {
		return err
	}
	g.drawn++
	g.group.usage.EvalTokens++ // the end token counts, as it does in Ollama
	if g.model.isEnd(id) {
		g.end(stopped)
		return nil
	}
	g.take(id, logits)
	return nil
}

// take puts a token into the answer.
func (g *generation) take(id int, logits []float32) {
	g.next = id
	if g.drafter != nil {
		g.drafter.add(id)
	}
	piece := g.model.model.TokenToPiece(id)
	if g.top >= 0 {
		g.logprobs = append(g.logprobs, logprob{g.sampler.logprob(logits, id, g.top, g.model.model.TokenToPiece), g.offset})
	}
	g.offset += len(piece)
	text, stop := g.answer.add(piece)
	if stop {
		// Of a stop string no token is told, but for one that began before it.
		g.logprobs = slices.DeleteFunc(g.logprobs, func(l logprob) bool { return l.at >= g.answer.sent })
		g.endWith(text, stopped)
		return
	}
	if text != "" {
		g.out.put(runner.Chunk{Index: g.index, Text: text, Logprobs: g.takeLogprobs()})
	}
	if g.drawn == g.limit {
		g.end(cutLength) // nobody needs what would follow this token
	}
}

func (g *generation) takeLogprobs() []runner.Logprob {
	if len(g.logprobs) == 0 {
		return nil
	}
	out := make([]runner.Logprob, len(g.logprobs))
	for i, l := range g.logprobs {
		out[i] = l.Logprob
	}
	g.logprobs = g.logprobs[:0]
	return out
}

// end ends the answer with what was held back.
func (g *generation) end(reason string) { g.endWith(g.answer.rest(), reason) }

func (g *generation) endWith(text, reason string) {
	g.ended = reason
	g.group.left--
	last := runner.Chunk{Index: g.index, Text: text, Logprobs: g.takeLogprobs(), DoneReason: reason, Stop: g.answer.stop, Done: g.group.left == 0}
	if last.Done {
		g.group.usage.EvalDuration = time.Since(g.group.read)
		last.Usage = &g.group.usage
	}
	g.out.put(last)
	if last.Done {
		g.out.finish(nil)
	}
}

// guess gives tokens that may follow the next one, where checking them in the same batch is likely to pay.
func (g *generation) guess(l *loop, s *slot) []int {
	alone := g.alone
	g.alone = false
	if g.drafter == nil || l.exact || alone {
		return nil
	}
	most := min(maxGuess, l.numCtx-len(s.held)-1, g.limit-g.drawn-1, l.chunk-1)
	return g.drafter.guess(l.costs.length(g.drafter.hits, g.drafter.worth, most))
}

// valid is a token's text, with U+FFFD for bytes that are no character.
func valid(piece string) string { return strings.ToValidUTF8(piece, "\uFFFD") }
