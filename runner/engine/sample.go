package engine

import (
	"math"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// randomSeed lets llama.cpp draw a seed.
const randomSeed = 0xFFFFFFFF

// sampling are Ollama's options, brought to what the samplers expect: other values would divide by zero or leave no candidate.
type sampling struct {
	temp, topP, minP, typicalP  float32
	topK                        int
	lastN                       int // tokens that count for the penalties; 0 when there are none
	repeat, frequency, presence float32
	seed                        uint32
}

func samplingOf(s runner.Sampling, numCtx int) sampling {
	p := sampling{
		temp: positive(s.Temperature), topP: clamp(s.TopP), minP: clamp(s.MinP), typicalP: clamp(s.TypicalP), topK: max(s.TopK, 0),
		lastN: s.RepeatLastN, repeat: s.RepeatPenalty, frequency: s.FrequencyPenalty, presence: s.PresencePenalty, seed: uint32(s.Seed),
	}
	if s.Seed == -1 {
		p.seed = randomSeed
	}
	if p.typicalP == 0 {
		p.typicalP = 1 // 0 would keep the single most typical token, which is not even the most likely
	}
	if p.repeat <= 0 {
		p.repeat = 1
	}
	if p.lastN < 0 || p.lastN > numCtx {
		p.lastN = numCtx // there is nothing older
	}
	if p.repeat == 1 && p.frequency == 0 && p.presence == 0 {
		p.lastN = 0
	}
	return p
}

// positive is what is not above 0 as 0, NaN among it.
func positive(x float32) float32 {
	if x > 0 {
		return x
	}
	return 0
}

// clamp brings a probability to 0..1; NaN to 0.
func clamp(p float32) float32 {
	if p > 0 {
		return min(p, 1)
	}
	return 0
}

// greedy says whether the most likely token is always taken.
func (p sampling) greedy() bool { return p.temp == 0 || p.topK == 1 }

const (
	// shortList is how many of the best candidates a grammar sees before the whole vocabulary. Masking all takes 30 ms, and 2 of
	// 45 tokens needed it (measured on a grammar of 10 tables).
	shortList = 256
	// maxShort is the longest list that is chosen with a heap.
	maxShort = 1024
)

// sampler chooses the tokens of one answer. It must be freed.
type sampler struct {
	sampling
	native  *native
	isEnd   func(id int) bool
	chain   chain // unless greedy
	recent  []int // the last lastN tokens, in a ring
	oldest  int   // in recent
	counts  map[int]int
	grammar *grammar // nil while none binds
	slow    bool     // one look at the grammar took longer than slowGrammar
}

// slowGrammar ends an answer whose grammar takes that long over one token: the ways to read some texts double again and again, and
// everybody else waits. grammar.Check refuses what doubles fast; of what is left the next token takes a few times as long at most.
const slowGrammar = 3 * time.Second

func errSlowGrammar() error {
	return fault.New(fault.Invalid, "engine.Generate", "the schema or grammar can read this answer in too many ways, which takes too long; "+
		"let its alternatives begin with different words")
}

// look is deferred around what looks at the grammar.
func (s *sampler) look(begin time.Time) {
	s.slow = s.slow || s.grammar != nil && time.Since(begin) > slowGrammar
}

func newSampler(n *native, isEnd func(int) bool, p sampling, prompt []input) *sampler {
	s := &sampler{sampling: p, native: n, isEnd: isEnd, counts: map[int]int{}}
	if !p.greedy() {
		s.chain = newChain(p)
	}
	for _, in := range prompt[len(prompt)-min(len(prompt), p.lastN):] {
		if !in.isRow() {
			s.remember(in.token)
		}
	}
	return s
}

func (s *sampler) free() {
	if s.chain.c != nil {
		s.chain.free()
	}
	if s.grammar != nil {
		s.grammar.free()
	}
	s.chain, s.grammar = chain{}, nil
}

// remember counts a token for the penalties, and forgets the oldest.
func (s *sampler) remember(id int) {
	switch {
	case s.lastN == 0:
		return
	case len(s.recent) < s.lastN:
		s.recent = append(s.recent, id)
	default:
		old := s.recent[s.oldest]
		if s.counts[old]--; s.counts[old] == 0 {
			delete(s.counts, old)
		}
		s.recent[s.oldest] = id
		s.oldest = (s.oldest + 1) % s.lastN
	}
	s.counts[id]++
}

// choose picks the next token from the logits, which it leaves as they were. The token is not taken yet: see take.
func (s *sampler) choose(logits []float32) (int, error) {
	if s.slow {
		return 0, errSlowGrammar()
	}
	defer s.look(time.Now())
	defer s.penalize(logits)()
	id := argmax(logits)
	if id < 0 || math.IsInf(float64(logits[id]), 0) {
		return 0, fault.New(fault.Internal, "engine.Generate",
			"the model gave no numbers for the next token; its file may be damaged, or its quantization too coarse")
	}
	if s.greedy() {
		if s.grammar == nil || s.grammar.allows(id) {
			return id, nil
		}
		c, err := s.allowed(logits, shortList)
		if err != nil {
			return 0, err
		}
		return c.top(), nil
	}
	c, err := s.drawFrom(logits)
	if err != nil {
		return 0, err
	}
	if id := s.chain.draw(c); id >= 0 {
		return id, nil
	}
	return 0, fault.Bug("the samplers left no candidate")
}

// drawFrom gives the candidates for the chain, the grammar applied. Where top_k says how many there are at most, the others
// are not looked at.
func (s *sampler) drawFrom(logits []float32) (candidates, error) {
	some := s.topK > 0 && s.topK <= maxShort
	switch {
	case s.grammar != nil && some:
		return s.allowed(logits, max(s.topK, shortList))
	case s.grammar != nil:
		return s.allowed(logits, maxShort)
	case some:
		return s.native.best(logits, s.topK), nil
	}
	return s.native.all(logits), nil
}

// allowed gives those of the best tokens that the grammar allows, or of all when it allows none of them.
func (s *sampler) allowed(logits []float32, best int) (candidates, error) {
	if c := s.grammar.mask(s.native.best(logits, best)); c.n > 0 {
		return c, nil
	}
	if c := s.grammar.mask(s.native.all(logits)); c.n > 0 {
		return c, nil
	}
	return candidates{}, fault.New(fault.Invalid, "engine.Generate",
		"the schema or grammar allows text here that no token of this model can write")
}

// take takes a token into the answer, so that penalties and grammar go on behind it. Under a grammar it must be allowed.
func (s *sampler) take(id int) {
	defer s.look(time.Now())
	s.remember(id)
	if s.grammar != nil && !s.isEnd(id) {
		s.grammar.accept(id)
	}
}

// penalize changes the logits of recent tokens as llama.cpp's penalties sampler does, and gives a function that undoes it.
func (s *sampler) penalize(logits []float32) (undo func()) {
	if len(s.counts) == 0 {
		return func() {}
	}
	was := make(map[int]float32, len(s.counts))
	for id, count := range s.counts {
		l := logits[id]
		was[id] = l
		if l <= 0 {
			l *= s.repeat
		} else {
			l /= s.repeat
		}
		logits[id] = l - float32(count)*s.frequency - s.presence
	}
	return func() {
		for id, l := range was {
			logits[id] = l
		}
	}
}

// logprob is the natural logarithm of a token's probability by the raw logits, with the most likely alternatives.
func (s *sampler) logprob(logits []float32, id, top int, piece func(int) string) runner.Logprob {
	sum := logSumExp(logits, logits[argmax(logits)])
	of := func(id int) runner.Logprob {
		p := piece(id)
		return runner.Logprob{Token: valid(p), Bytes: []byte(p), Logprob: float64(logits[id]) - sum}
	}
	out := of(id)
	if top > 0 {
		best := s.native.best(logits, top)
		for i := range best.n {
			id, _ := best.at(i)
			out.Top = append(out.Top, of(id))
		}
	}
	return out
}
