package engine

import (
	"math"
	"strings"
	"time"

	"github.com/ollama/ollama/llama"
	ollamacommon "github.com/ollama/ollama/runner/common"
	"github.com/ollama/ollama/sample"

	"sluice/fault"
	"sluice/runner"
)

// modulePick picks the tokens of one answer of the fallback engine: with the module's sampler, penalties that it lacks, and a
// grammar that it would use without a net.
type modulePick struct {
	m       *module
	sampler sample.Sampler
	options runner.Sampling
	last    []int32 // tokens that count for the penalties, newest last

	grammar *llama.Grammar // nil none
	after   string         // the grammar binds only behind this text; "" from now on
	seen    string         // of the answer, as long as after is awaited
	forced  []int32        // tokens to take whatever the model says
	slow    bool           // one look at the grammar took longer than slowGrammar

	logprobs []logprob // that no chunk has carried yet
	top      int       // alternatives with each; -1: none of either wanted
	offset   int       // bytes of the pieces so far
}

// maxRedraws bounds how often another token is looked for where one would write past the text that a grammar waits for.
const maxRedraws = 64

func (m *module) newPick(req runner.GenerateRequest, index int, gbnf string, prompt []int32) (*modulePick, error) {
	s := req.Sampling
	seed := s.Seed
	if seed != -1 {
		seed += index
	}
	p := &modulePick{
		m: m, options: s, top: -1, after: req.After,
		sampler: sample.NewSampler(s.Temperature, s.TopK, s.TopP, s.MinP, seed, nil),
	}
	if req.Logprobs {
		p.top = req.TopLogprobs
	}
	if p.options.RepeatLastN < 0 {
		p.options.RepeatLastN = m.numCtx
	}
	if p.penalises() {
		p.last = append(p.last, prompt[len(prompt)-min(len(prompt), p.options.RepeatLastN):]...)
	}
	if gbnf == "" {
		p.after = ""
		return p, nil
	}
	ids, pieces := m.vocabulary()
	if p.grammar = llama.NewGrammar(gbnf, ids, pieces, m.tokens.Vocabulary().EOS); p.grammar == nil {
		return nil, fault.New(fault.Invalid, "engine.Generate", "the grammar is no GBNF that llama.cpp can read: see that each rule "+
			"is defined, that there is one named root, and that none begins with itself; the server's log says more")
	}
	return p, nil
}

func (p *modulePick) free() {
	if p.grammar != nil {
		p.grammar.Free()
		p.grammar = nil
	}
}

func (p *modulePick) penalises() bool {
	o := p.options
	return o.RepeatLastN > 0 && (o.RepeatPenalty > 0 && o.RepeatPenalty != 1 || o.PresencePenalty != 0 || o.FrequencyPenalty != 0)
}

// next picks a token. It does not change the logits.
func (p *modulePick) next(logits []float32) (id int32, err error) {
	shaped := p.penalised(logits)
	switch {
	case p.grammar == nil:
		id, err = p.draw(shaped)
	case p.after != "":
		id, err = p.unbound(shaped)
	default:
		id, err = p.bound(shaped)
	}
	if err != nil {
		return 0, err
	}
	if p.penalises() {
		if p.last = append(p.last, id); len(p.last) > p.options.RepeatLastN {
			p.last = p.last[1:]
		}
	}
	return id, nil
}

func (p *modulePick) draw(logits []float32) (int32, error) {
	for _, x := range logits {
		if x64 := float64(x); !math.IsNaN(x64) && !math.IsInf(x64, 0) {
			id, err := p.sampler.Sample(logits)
			if err != nil {
				return 0, fault.Wrap(err, fault.Invalid, "engine.Generate", "the model gave no numbers to choose a token by; another quantization of it may")
			}
			return id, nil
		}
	}
	return 0, fault.New(fault.Invalid, "engine.Generate", "no token can follow: the grammar allows none that the model has")
}

// bound picks a token that the grammar allows. The best one is tried first, since masking tests the whole vocabulary.
func (p *modulePick) bound(logits []float32) (int32, error) {
	if p.slow {
		return 0, errSlowGrammar()
	}
	defer func(begin time.Time) { p.slow = p.slow || time.Since(begin) > slowGrammar }(time.Now())
	id, err := p.draw(logits)
	if err != nil {
		return 0, err
	}
	one := []llama.TokenData{{ID: id, Logit: 0}}
	if p.grammar.Apply(one); math.IsInf(float64(one[0].Logit), -1) {
		all := make([]llama.TokenData, len(logits))
		for i, x := range logits {
			all[i] = llama.TokenData{ID: int32(i), Logit: x}
		}
		p.grammar.Apply(all)
		masked := make([]float32, len(logits))
		for i := range all {
			masked[all[i].ID] = all[i].Logit
		}
		if id, err = p.draw(masked); err != nil {
			return 0, err
		}
	}
	if !p.m.isEnd(id) {
		p.grammar.Accept(id) // one that it does not allow would end the process
	}
	return id, nil
}

// unbound picks a token as long as the grammar does not bind yet. One that would write the awaited text and more is passed over, and
// a model that wants to end before it wrote that text has it written for it: else the answer would be one without grammar.
func (p *modulePick) unbound(logits []float32) (int32, error) {
	for range maxRedraws {
		if len(p.forced) > 0 {
			break
		}
		id, err := p.draw(logits)
		if err != nil || p.m.isEnd(id) {
			break
		}
		piece, err := p.m.tokens.Decode([]int32{id})
		if err != nil {
			return 0, err
		}
		if p.follow(piece) {
			return id, nil
		}
		logits[id] = float32(math.Inf(-1))
	}
	if len(p.forced) == 0 {
		ids, err := p.m.tokens.Encode(p.after, false)
		if err != nil || len(ids) == 0 {
			return 0, fault.New(fault.Invalid, "engine.Generate", "the model cannot write %q, behind which the format binds", p.after)
		}
		p.forced, p.seen = ids, ""
	}
	id := p.forced[0]
	if p.forced = p.forced[1:]; len(p.forced) == 0 {
		p.after = ""
	}
	return id, nil
}

// follow adds a piece to what was seen, unless it goes on behind the awaited text.
func (p *modulePick) follow(piece string) bool {
	seen := p.seen + piece
	at := strings.Index(seen, p.after)
	if at >= 0 && at+len(p.after) < len(seen) {
		return false
	}
	if at >= 0 {
		p.after = ""
	}
	p.seen = seen[max(0, len(seen)-len(p.after)):]
	return true
}

// penalised gives the logits with the penalties for what was said before, in llama.cpp's way. They are a copy where they differ.
func (p *modulePick) penalised(logits []float32) []float32 {
	if !p.penalises() && p.after == "" {
		return logits
	}
	shaped := append([]float32(nil), logits...)
	if !p.penalises() {
		return shaped
	}
	counts := map[int32]int{}
	for _, id := range p.last {
		counts[id]++
	}
	for id, n := range counts {
		if id < 0 || int(id) >= len(shaped) {
			continue
		}
		x := shaped[id]
		if r := p.options.RepeatPenalty; r > 0 {
			if x > 0 {
				x /= r
			} else {
				x *= r
			}
		}
		shaped[id] = x - float32(n)*p.options.FrequencyPenalty - p.options.PresencePenalty
	}
	return shaped
}

// tell notes the log probability of a picked token.
func (p *modulePick) tell(logits []float32, id int32, piece string) {
	at := p.offset
	p.offset += len(piece)
	if p.top < 0 {
		return
	}
	decode := func(id int) string {
		text, _ := p.m.tokens.Decode([]int32{int32(id)})
		return text
	}
	for _, l := range ollamacommon.CalculateLogprobs(logits, int(id), p.top, decode) {
		out := logprob{runner.Logprob{Token: valid(l.Token), Bytes: []byte(l.Token), Logprob: l.Logprob}, at}
		for _, t := range l.TopLogprobs {
			out.Top = append(out.Top, runner.Logprob{Token: valid(t.Token), Bytes: []byte(t.Token), Logprob: t.Logprob})
		}
		p.logprobs = append(p.logprobs, out)
	}
}

// cut forgets the tokens that begin at a byte of the answer or later: those of a stop string.
func (p *modulePick) cut(at int) {
	kept := p.logprobs[:0]
	for _, l := range p.logprobs {
		if l.at < at {
			kept = append(kept, l)
		}
	}
	p.logprobs = kept
}

// told gives the log probabilities that no chunk has carried yet.
func (p *modulePick) told() []runner.Logprob {
	if len(p.logprobs) == 0 {
		return nil
	}
	out := make([]runner.Logprob, len(p.logprobs))
	for i, l := range p.logprobs {
		out[i] = l.Logprob
	}
	p.logprobs = p.logprobs[:0]
	return out
}
