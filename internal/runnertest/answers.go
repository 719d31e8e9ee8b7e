package runnertest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"sluice/fault"
	"sluice/runner"
)

// sequences make any model go on in one way only, so that no tie between two tokens is decided by rounding.
var sequences = []string{
	"one, two, three, four, five, one, two, three, four, five, one, two, three,",
	"A B C D E F G H A B C D E F G H A B C D",
	"Monday, Tuesday, Wednesday, Thursday, Monday, Tuesday, Wednesday,",
	"1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4",
}

// Several is what a request for several answers gave.
type Several struct {
	Texts   []string
	Reasons []string
	Usage   runner.Usage
}

// Answers collects the answers to a request for several, and fails the test when a chunk breaks the contract.
func Answers(t *testing.T, p *runner.Process, req runner.GenerateRequest) Several {
	t.Helper()
	n := max(1, req.N)
	out := Several{Texts: make([]string, n), Reasons: make([]string, n)}
	done := false
	err := p.Generate(t.Context(), req, func(c runner.Chunk) error {
		if done {
			t.Error("a chunk came after the last one")
		}
		if c.Index < 0 || c.Index >= n {
			t.Fatalf("a chunk of answer %d of %d", c.Index, n)
		}
		if out.Reasons[c.Index] != "" {
			t.Errorf("answer %d goes on after its end", c.Index)
		}
		if !utf8.ValidString(c.Text) {
			t.Errorf("chunk %q is no valid UTF-8", c.Text)
		}
		out.Texts[c.Index] += c.Text
		out.Reasons[c.Index] = c.DoneReason
		if done = c.Done; done {
			if c.Usage == nil {
				t.Fatal("the last chunk has no usage")
			}
			out.Usage = *c.Usage
		} else if c.Usage != nil {
			t.Error("a chunk that is not the last one has a usage")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("generate: %v", err)
	}
	for i, reason := range out.Reasons {
		if reason != "stop" && reason != "length" {
			t.Errorf("answer %d ended with %q", i, reason)
		}
	}
	if !done {
		t.Error("there was no last chunk")
	}
	return out
}

func (s *suite) ownText(t *testing.T) {
	alone := make([]string, len(sequences))
	for i, seq := range sequences {
		alone[i], _ = Answer(t, s.p, Request(seq, 6))
	}
	if alone[0] == alone[1] {
		t.Fatalf("different prompts have the same answer %q: this test sees nothing", alone[0])
	}
	var wg sync.WaitGroup
	for round := range 2 * len(sequences) {
		i := round % len(sequences)
		wg.Go(func() {
			text := ""
			err := s.p.Generate(t.Context(), Request(sequences[i], 6), func(c runner.Chunk) error { text += c.Text; return nil })
			if err != nil || text != alone[i] {
				t.Errorf("%q: alone %q, among others %q, %v", sequences[i], alone[i], text, err)
			}
		})
	}
	wg.Wait()
}

func (s *suite) special(t *testing.T) {
	const text = "a cat sits"
	plain, err := s.p.Tokenize(t.Context(), text, false)
	if err != nil {
		t.Fatal(err)
	}
	special, err := s.p.Tokenize(t.Context(), text, true)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+len(plain) <= len(special); at++ {
		if slices.Equal(special[at:at+len(plain)], plain) {
			return
		}
	}
	t.Errorf("plain %v is not within %v", plain, special)
}

func (s *suite) answers(t *testing.T) {
	one, _ := Answer(t, s.p, Request(sequences[0], 6))
	req := Request(sequences[0], 6)
	req.N = 3
	got := Answers(t, s.p, req)
	for i, text := range got.Texts { // greedy: all the same
		if text != one {
			t.Errorf("answer %d is %q, alone it is %q", i, text, one)
		}
	}
	ids, err := s.p.Tokenize(t.Context(), sequences[0], true)
	if err != nil {
		t.Fatal(err)
	}
	if got.Usage.PromptTokens > len(ids)+2 || got.Usage.EvalTokens != 3*6 {
		t.Errorf("usage %+v; want the prompt once and the tokens of all answers", got.Usage)
	}
	req.N, req.NumPredict = 4, 0
	if got := Answers(t, s.p, req); strings.Join(got.Texts, "") != "" || got.Usage.EvalTokens != 0 {
		t.Errorf("no tokens of four answers: %+v", got)
	}
	req.N = -1
	WantCode(t, s.p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }), fault.Invalid)
	req.N, req.NumPredict, req.Stop = 3, 20, []string{one[len(one)/2:]}
	for i, text := range Answers(t, s.p, req).Texts {
		if want, _, _ := strings.Cut(one, req.Stop[0]); text != want {
			t.Errorf("answer %d is %q, want %q: a stop text ends each", i, text, want)
		}
	}
}

func (s *suite) logprobs(t *testing.T) {
	req := Request(sequences[0], 6)
	for _, top := range []int{0, 1, 5, 20} {
		req.Logprobs, req.TopLogprobs = true, top
		var all []runner.Logprob
		text, usage := "", runner.Usage{}
		err := s.p.Generate(t.Context(), req, func(c runner.Chunk) error {
			all = append(all, c.Logprobs...)
			text += c.Text
			if c.Done {
				usage = *c.Usage
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != usage.EvalTokens {
			t.Errorf("%d probabilities of %d tokens", len(all), usage.EvalTokens)
		}
		bytes := ""
		for _, lp := range all {
			bytes += string(lp.Bytes)
			checkLogprob(t, lp, top)
		}
		if bytes != text {
			t.Errorf("the tokens make %q, the text is %q", bytes, text)
		}
	}
	req.TopLogprobs = 21
	WantCode(t, s.p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }), fault.Invalid)
}

// checkLogprob looks at a token that was drawn greedily, so that it is the most likely one.
func checkLogprob(t *testing.T, lp runner.Logprob, top int) {
	t.Helper()
	if lp.Logprob > 0 || math.IsNaN(lp.Logprob) || math.IsInf(lp.Logprob, 0) || lp.Token == "" {
		t.Errorf("token %q has %f", lp.Token, lp.Logprob)
	}
	if len(lp.Top) != top {
		t.Fatalf("%d alternatives, %d were asked for", len(lp.Top), top)
	}
	if !slices.IsSortedFunc(lp.Top, func(a, b runner.Logprob) int { return cmp.Compare(b.Logprob, a.Logprob) }) {
		t.Errorf("the alternatives are not sorted: %+v", lp.Top)
	}
	sum := 0.0
	for _, alt := range lp.Top {
		sum += math.Exp(alt.Logprob)
		if alt.Top != nil {
			t.Error("an alternative has alternatives")
		}
	}
	if sum > 1.0001 {
		t.Errorf("the alternatives have a probability of %f", sum)
	}
	if top > 0 && (string(lp.Top[0].Bytes) != string(lp.Bytes) || math.Abs(lp.Top[0].Logprob-lp.Logprob) > 1e-6) {
		t.Errorf("greedy, yet %q (%f) was drawn and %q (%f) is the likeliest", lp.Token, lp.Logprob, lp.Top[0].Token, lp.Top[0].Logprob)
	}
}

func (s *suite) noLogprobs(t *testing.T) {
	err := s.p.Generate(t.Context(), Request(sequences[0], 3), func(c runner.Chunk) error {
		if c.Logprobs != nil {
			t.Errorf("nobody asked for %+v", c.Logprobs)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func (s *suite) drafts(t *testing.T) {
	for _, seq := range sequences {
		req := Request(seq, 24)
		texts := map[runner.Draft]string{}
		for _, mode := range []runner.Draft{runner.DraftOff, runner.DraftAuto, runner.DraftExpect} {
			req.Draft = mode
			text, last := Answer(t, s.p, req)
			texts[mode] = text
			if u := last.Usage; u.AcceptedTokens > u.DraftTokens || u.AcceptedTokens > u.EvalTokens || mode == runner.DraftOff && u.DraftTokens != 0 {
				t.Errorf("draft %q: usage %+v", mode, *u)
			}
		}
		if off := texts[runner.DraftOff]; texts[runner.DraftAuto] != off || texts[runner.DraftExpect] != off {
			t.Errorf("off %q, auto %q, expect %q", off, texts[runner.DraftAuto], texts[runner.DraftExpect])
		}
	}
	req := Request(sequences[0], 1)
	req.Draft = "always"
	WantCode(t, s.p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }), fault.Invalid)
}

func (s *suite) threads(t *testing.T) {
	want, _ := Answer(t, s.p, Request(sequences[0], 6))
	for _, n := range []int{1, 2, 1} {
		if err := s.p.SetThreads(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		changed := false
		text := ""
		err := s.p.Generate(t.Context(), Request(sequences[0], 6), func(c runner.Chunk) error {
			text += c.Text
			if !changed { // while it computes
				changed = true
				return s.p.SetThreads(t.Context(), 3-n)
			}
			return nil
		})
		if err != nil || text != want {
			t.Errorf("%d threads: %q, %v; want %q", n, text, err, want)
		}
	}
	for _, n := range []int{0, -1} {
		WantCode(t, s.p.SetThreads(t.Context(), n), fault.Invalid)
	}
}

func (s *suite) ping(t *testing.T) {
	if err := s.p.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	pinged := false
	err := s.p.Generate(t.Context(), Request(sequences[0], 8), func(runner.Chunk) error {
		pinged = true
		return s.p.Ping(t.Context())
	})
	if err != nil || !pinged {
		t.Errorf("in mid-stream: %v", err)
	}
}

func (s *suite) refusals(t *testing.T) {
	_, err := s.p.Rerank(t.Context(), runner.RerankRequest{Query: "cats", Documents: []string{"a cat sits"}})
	WantCode(t, err, fault.Invalid)
	image := Request("What is on [img-0]?", 1)
	image.Images = [][]byte{{0x89, 'P', 'N', 'G'}}
	both := Request(sequences[0], 1)
	both.Schema, both.Grammar = "null", `root ::= "a"`
	for name, req := range map[string]runner.GenerateRequest{"an image": image, "a schema and a grammar": both} {
		if err := s.p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }); fault.CodeOf(err) != fault.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
