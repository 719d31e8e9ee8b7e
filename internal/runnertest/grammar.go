package runnertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sluice/fault"
	"sluice/runner"
)

// ExerciseGrammar runs what an engine must do with grammars and schemas. The fake has none.
func ExerciseGrammar(t *testing.T, load Load) {
	s := begin(t, load)
	t.Run("a grammar is never left", s.grammar)
	t.Run("a schema is never violated", s.schema)
	t.Run("it binds only behind a text", s.after)
	t.Run("what cannot be compiled is refused", s.badGrammars)
	t.Run("each of several callers gets what its own grammar says", s.ownGrammar)
	t.Run("so does each of several answers", s.answersOfGrammar)
}

// free is a request that draws from all tokens, so that only the grammar can hold an answer.
func free(prompt string, tokens, seed int) runner.GenerateRequest {
	req := Request(prompt, tokens)
	req.Sampling.Temperature, req.Sampling.TopK, req.Sampling.Seed = 1.5, 0, seed
	return req
}

func (s *suite) grammar(t *testing.T) {
	for seed := range 8 {
		req := free("Is the sky blue? Answer:", 20, seed)
		if seed%2 == 0 {
			req = Request("Is the sky blue? Answer:", 20)
		}
		req.Grammar = `root ::= "yes" | "no"`
		text, last := Answer(t, s.p, req)
		if text != "yes" && text != "no" || last.DoneReason != "stop" {
			t.Errorf("seed %d: %q, %s", seed, text, last.DoneReason)
		}
	}
	req := Request("Is the sky blue? Answer:", 20)
	req.Grammar = "root ::= \"日\" \"本\" [0-9]"
	if text, _ := Answer(t, s.p, req); !strings.HasPrefix(text, "日本") || len(text) != len("日本")+1 {
		t.Errorf("characters of several bytes: %q", text)
	}
}

func (s *suite) schema(t *testing.T) {
	const schema = `{"type":"object","properties":{"colour":{"enum":["red","green"]},"size":{"type":"integer","minimum":1,"maximum":9}},"required":["colour","size"],"additionalProperties":false}`
	for seed := range 6 {
		req := free("Describe the thing as JSON:", 120, seed)
		req.Schema = schema
		text, last := Answer(t, s.p, req)
		if last.DoneReason == "length" {
			continue // spaces may go on for as long as they like
		}
		var got struct {
			Colour string
			Size   int
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil || got.Colour != "red" && got.Colour != "green" || got.Size < 1 || got.Size > 9 {
			t.Errorf("seed %d: %q: %v", seed, text, err)
		}
	}
	req := Request("Some JSON:", 60)
	req.Schema = "null" // any JSON
	text, last := Answer(t, s.p, req)
	if last.DoneReason == "stop" && !json.Valid([]byte(text)) {
		t.Errorf("any JSON is %q", text)
	}
}

func (s *suite) after(t *testing.T) {
	req := Request("one, two, three, four, five, one, two, three, four, five, one,", 40)
	head, _ := Answer(t, s.p, Request(req.Prompt, 4))
	req.Grammar, req.After = `root ::= "yes" | "no"`, strings.TrimSpace(head[len(head)/2:])
	text, last := Answer(t, s.p, req)
	before, behind, found := strings.Cut(text, req.After)
	if !found || behind != "yes" && behind != "no" || last.DoneReason != "stop" || before == "" {
		t.Errorf("%q: want free text up to %q, then yes or no", text, req.After)
	}
}

func (s *suite) badGrammars(t *testing.T) {
	for name, req := range map[string]runner.GenerateRequest{
		"a syntax error":            {Grammar: `root ::= "yes`},
		"no root":                   {Grammar: `answer ::= "yes"`},
		"an undefined rule":         {Grammar: `root ::= nothing`},
		"left recursion":            {Grammar: `root ::= root "a" | "b"`},
		"a repetition without end":  {Grammar: `root ::= ("" | "a")*`},
		"too many repetitions":      {Grammar: `root ::= "a"{0,100000}`},
		"another language":          {Grammar: "%llguidance {}\nstart: \"a\""},
		"deep nesting":              {Grammar: "root ::= " + strings.Repeat("(", 5000) + `"a"` + strings.Repeat(")", 5000)},
		"far too long":              {Grammar: `root ::= "` + strings.Repeat("a", 4<<20) + `"`},
		"no token is possible":      {Grammar: `root ::= [^\x00-\U0010FFFF]`},
		"a schema that is no JSON":  {Schema: `{"type":`},
		"a schema of no known type": {Schema: `{"type":"colour"}`},
		"a cyclic reference":        {Schema: `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`},
		"a remote reference":        {Schema: `{"$ref":"http://example.com/a.json"}`},
		"a schema of great depth":   {Schema: strings.Repeat(`{"type":"array","items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)},
	} {
		full := Request("Answer:", 5)
		full.Grammar, full.Schema = req.Grammar, req.Schema
		if err := s.p.Generate(t.Context(), full, func(runner.Chunk) error { return nil }); err == nil || fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if s.p.Err() != nil {
			t.Fatalf("%s: the child died: %v", name, s.p.Err())
		}
	}
}

func (s *suite) ownGrammar(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			want := fmt.Sprintf("client-%02d says so", i)
			req := free("Who says so?", 40, i)
			req.Grammar = fmt.Sprintf(`root ::= %q`, want)
			text := ""
			err := s.p.Generate(t.Context(), req, func(c runner.Chunk) error { text += c.Text; return nil })
			if err != nil || text != want {
				t.Errorf("%q, %v; want %q", text, err, want)
			}
		})
	}
	wg.Wait()
}

func (s *suite) answersOfGrammar(t *testing.T) {
	req := free("Name a colour:", 20, 3)
	req.N, req.Grammar = 4, `root ::= "red" | "green" | "blue" | "yellow"`
	got := Answers(t, s.p, req)
	for i, text := range got.Texts {
		if text != "red" && text != "green" && text != "blue" && text != "yellow" {
			t.Errorf("answer %d is %q", i, text)
		}
	}
}
