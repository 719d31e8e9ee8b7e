package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
	"sluice/runner/engine"
)

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestTheTextDoesNotDependOnCompany: greedy text is the same alone, beside others, from a copied prefix and with guesses. The
// model is sure of its words here; where it is not, a batch of another size may decide otherwise.
func TestTheTextDoesNotDependOnCompany(t *testing.T) {
	e, _ := loadLocal(t, model, nil)
	req := runnertest.Request("Count: one, two, three, four, five, six, seven, eight, nine, ten. Count: one, two, three, four,", 14)
	req.Draft = runner.DraftOff
	want := e.must(req).texts[0]
	if !strings.Contains(want, "five, six, seven") {
		t.Fatalf("it does not know how to count: %q", want)
	}
	if got := e.must(req); got.texts[0] != want || got.usage.CachedTokens == 0 {
		t.Errorf("from its own cache %q, want %q", got.texts[0], want)
	}
	req.Draft = runner.DraftExpect
	if got := e.must(req); got.texts[0] != want || got.usage.AcceptedTokens == 0 {
		t.Errorf("with guesses %q, usage %+v; want %q", got.texts[0], got.usage, want)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			req := req
			if i%2 == 1 {
				req = runnertest.Request(fmt.Sprintf("Here is story %d. Once upon a time", i), 20)
			}
			if got := e.must(req); i%2 == 0 && got.texts[0] != want {
				t.Errorf("beside others %q, want %q", got.texts[0], want)
			}
		})
	}
	wg.Wait()
	stop := e.running(req.Prompt) // takes the slot that holds it
	defer stop()
	if got := e.must(req); got.texts[0] != want || got.usage.CachedTokens < got.usage.PromptTokens-1 {
		t.Errorf("from a copied prefix %q, usage %+v; want %q", got.texts[0], got.usage, want)
	}
}

func TestGuessesAreNoTokensOfTheAnswer(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	for seed := range 8 {
		req := runnertest.Request(strings.Repeat(fmt.Sprintf("a b c d %d ", seed), 10), 60)
		req.Draft = runner.DraftOff
		plain := e.must(req)
		req.Draft, req.Logprobs = runner.DraftExpect, true
		a := e.must(req)
		if a.texts[0] != plain.texts[0] {
			t.Errorf("with guesses %q, without %q", a.texts[0], plain.texts[0])
		}
		drafted := e.sum(func(p engine.BatchPart) int {
			return p.Drafted
		})
		if u := a.usage; u.EvalTokens != plain.usage.EvalTokens || u.AcceptedTokens > u.DraftTokens || drafted < u.DraftTokens {
			t.Errorf("usage %+v, without guesses %+v", u, plain.usage)
		}
		if len(a.logprobs[0]) != a.usage.EvalTokens && a.reasons[0] == "length" {
			t.Errorf("%d log probabilities of %d tokens", len(a.logprobs[0]), a.usage.EvalTokens)
		}
	}
	req := runnertest.Request("a b c a b c a b c a b c", 20)
	req.Draft, req.Sampling.Temperature, req.Sampling.TopK = runner.DraftExpect, 1, 0
	if u := e.must(req).usage; u.DraftTokens != 0 {
		t.Errorf("at a temperature there are guesses: %+v", u)
	}
}

func TestLogprobsAreThoseOfTheTokensSent(t *testing.T) {
	e, _ := loadLocal(t, model, nil)
	req := runnertest.Request(counting, 8)
	req.Logprobs, req.TopLogprobs = true, 20
	a := e.must(req)
	text := ""
	for _, lp := range a.logprobs[0] {
		text += string(lp.Bytes)
		total := 0.0
		for _, top := range lp.Top {
			total += math.Exp(top.Logprob)
		}
		if lp.Logprob > 0 || lp.Top[0].Logprob != lp.Logprob || len(lp.Top) != 20 || total > 1.0001 || total < 0.3 {
			t.Errorf("%+v: its 20 best have %f in all", lp, total)
		}
	}
	if text != a.texts[0] || len(a.logprobs[0]) != 8 {
		t.Errorf("%d log probabilities spell %q, the text is %q", len(a.logprobs[0]), text, a.texts[0])
	}
	req.Stop = []string{a.texts[0][len(a.texts[0])/2:][:4]}
	a, text = e.must(req), ""
	for _, lp := range a.logprobs[0] {
		text += string(lp.Bytes)
	}
	// The last token may begin before the stop string and end in it.
	before := len(text) - len(a.logprobs[0][len(a.logprobs[0])-1].Bytes)
	if !strings.HasPrefix(text, a.texts[0]) || before >= len(a.texts[0]) || a.reasons[0] != "stop" {
		t.Errorf("log probabilities spell %q, the text is %q, the stop %q", text, a.texts[0], req.Stop[0])
	}
	req.TopLogprobs = 21
	_, err := e.ask(t.Context(), req)
	runnertest.WantCode(t, err, fault.Invalid)
}

// TestNoTokenOutsideTheGrammar: a model of random weights, as hot as can be, keeps to it all the same.
func TestNoTokenOutsideTheGrammar(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	schema := `{"type":"object","properties":{"colour":{"enum":["red","green","blue"]},"n":{"type":"integer"}},"required":["colour"],"additionalProperties":false}`
	for seed := range 12 {
		for _, heat := range []float32{0, 0.8, 50} {
			req := runnertest.Request("Colour?", 300)
			req.Schema, req.N = schema, 2
			req.Sampling = runner.Sampling{Temperature: heat, TopK: 40 * (seed % 2), TopP: 1, TypicalP: 1, Seed: seed, RepeatPenalty: 1.3, RepeatLastN: 16}
			a := e.must(req)
			for i, text := range a.texts {
				if a.reasons[i] == "length" {
					continue // an endless number
				}
				var got struct {
					Colour string
					N      *float64
				}
				if err := json.Unmarshal([]byte(text), &got); err != nil || !strings.Contains("red green blue", got.Colour) || got.Colour == "" {
					t.Errorf("seed %d, heat %v: %q, %v", seed, heat, text, err)
				}
			}
		}
	}
	req := runnertest.Request("Colour?", 2)
	req.Schema = schema
	if a := e.must(req); a.reasons[0] != "length" {
		t.Errorf("cut short it is done for %s: %q", a.reasons[0], a.texts[0])
	}
	req.Grammar = `root ::= "x"`
	_, err := e.ask(t.Context(), req)
	runnertest.WantCode(t, err, fault.Invalid)
	for _, gbnf := range []string{`root ::= (`, `start ::= "x"`, `root ::= root "x"`, `root ::= other`, "%llguidance {}"} {
		req := runnertest.Request("Colour?", 2)
		req.Grammar = gbnf
		_, err := e.ask(t.Context(), req)
		runnertest.WantCode(t, err, fault.Invalid)
	}
	req = runnertest.Request("Colour?", 20)
	req.Grammar = `root ::= "ab" | "cd"`
	if a := e.must(req); a.texts[0] != "ab" && a.texts[0] != "cd" || a.reasons[0] != "stop" {
		t.Errorf("%q, done %s", a.texts[0], a.reasons[0])
	}
}

func TestAGrammarBindsBehindItsText(t *testing.T) {
	e, _ := tiny(t, "llama", nil)
	for seed := range 12 {
		req := endless(fmt.Sprint("think ", seed))
		req.NumPredict, req.Shift, req.Sampling.Seed = 400, false, seed
		req.Grammar, req.After = `root ::= "yes" | "no"`, "e"
		a := e.must(req)
		at := strings.Index(a.texts[0], "e")
		if a.reasons[0] == "length" && at < 0 {
			continue
		}
		if rest := a.texts[0][at+1:]; at < 0 || rest != "yes" && rest != "no" {
			t.Errorf("seed %d: %q, done %s", seed, a.texts[0], a.reasons[0])
		}
	}
	// It ends without the text: the text is written for it.
	req := runnertest.Request("think", 300)
	req.Grammar, req.After, req.Stop = `root ::= "yes" | "no"`, "</think>", nil
	req.Sampling = runner.Sampling{Temperature: 30, TopP: 1, TypicalP: 1, Seed: 5}
	ends := 0
	for seed := range 10 {
		req.Sampling.Seed = seed
		a := e.must(req)
		if a.reasons[0] == "stop" {
			ends++
			if !strings.HasSuffix(a.texts[0], "</think>yes") && !strings.HasSuffix(a.texts[0], "</think>no") {
				t.Errorf("seed %d: %q", seed, a.texts[0])
			}
		}
	}
	if ends == 0 {
		t.Error("no answer ended; the test shows nothing")
	}
}
