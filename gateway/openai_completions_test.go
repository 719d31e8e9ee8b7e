package gateway

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

const completionsPath = "/v1/completions"

// prompted makes a completion request: a model, a prompt, and what is added as pairs of key and value.
func prompted(pairs ...any) map[string]any {
	body := with(append([]any{"prompt", "hi"}, pairs...)...)
	delete(body, "messages")
	return body
}

func TestACompletion(t *testing.T) {
	f := withAble(t, nil)
	w := f.do(call{method: "POST", path: completionsPath, body: prompted("max_tokens", 2, "logprobs", 1)})
	wantStatus(t, w, 200)
	v := object(t, w.Body.Bytes())
	choice := dig(v, "choices", 0)
	for what, pair := range map[string][2]any{
		"object": {v["object"], "text_completion"}, "text": {dig(choice, "text"), "one two"}, "finish": {dig(choice, "finish_reason"), "length"},
		"templated": {f.fake.last().Prompt, "user: hi "},
		"usage":     {fmt.Sprint(dig(v, "usage", "prompt_tokens"), dig(v, "usage", "completion_tokens"), dig(v, "usage", "total_tokens")), "2 2 4"},
		"logprobs": {fmt.Sprint(dig(choice, "logprobs")),
			"map[text_offset:[0 3] token_logprobs:[-0.5 -0.5] tokens:[one  two] top_logprobs:[map[alt0:-0.5] map[alt0:-0.5]]]"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if id := v["id"].(string); !strings.HasPrefix(id, "cmpl-") || len(id) < 30 {
		t.Errorf("id %q", id)
	}
	v = object(t, f.do(call{method: "POST", path: completionsPath, body: prompted("logprobs", 0)}).Body.Bytes())
	if dig(v, "choices", 0, "logprobs", "tokens", 0) != "one" {
		t.Errorf("logprobs: 0 is the tokens without alternatives: %v", v)
	}
}

func TestWhatACompletionGivesTheRunner(t *testing.T) {
	f := withAble(t, nil)
	for name, row := range map[string]struct {
		body   map[string]any
		prompt string
	}{
		"a gap is filled":                      {prompted("model", "filler", "suffix", "end"), "<pre>hi<suf>end<mid>"},
		"a gap at the start of a file, too":    {prompted("model", "filler", "prompt", "", "suffix", "end"), "<pre><suf>end<mid>"},
		"raw is the prompt as it stands":       {prompted("raw", true), "hi"},
		"a list of one is a text":              {prompted("prompt", []string{"hi"}), "user: hi "},
		"what the old API had else is ignored": {prompted("user", "u", "logit_bias", map[string]any{"1": 1}), "user: hi "},
	} {
		t.Run(name, func(t *testing.T) {
			wantStatus(t, f.do(call{method: "POST", path: completionsPath, body: row.body}), 200)
			if got := f.fake.last().Prompt; got != row.prompt {
				t.Errorf("%q, want %q", got, row.prompt)
			}
		})
	}
}

func TestSeveralPromptsAndAnswers(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.scripts = [][]string{{"a"}, {"b", "c"}}
	body := prompted("prompt", []string{"x", "y"}, "n", 2, "echo", true)
	v := object(t, f.do(call{method: "POST", path: completionsPath, body: body}).Body.Bytes())
	texts := map[float64]string{}
	for i := range 4 {
		texts[dig(v, "choices", i, "index").(float64)] = dig(v, "choices", i, "text").(string)
	}
	want := map[float64]string{0: "xa", 1: "xbc", 2: "ya", 3: "ybc"}
	if !reflect.DeepEqual(texts, want) || dig(v, "usage", "completion_tokens") != 6.0 || dig(v, "usage", "prompt_tokens") != 4.0 {
		t.Errorf("%v, %v", texts, v["usage"])
	}
	body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
	chunks, done := sseData(t, f.do(call{method: "POST", path: completionsPath, body: body}))
	streamed, ends := map[float64]string{}, 0
	for _, c := range chunks[:len(chunks)-1] {
		streamed[dig(c, "choices", 0, "index").(float64)] += dig(c, "choices", 0, "text").(string)
		if dig(c, "choices", 0, "finish_reason") == "stop" {
			ends++
		}
	}
	if last := chunks[len(chunks)-1]; !done || !reflect.DeepEqual(streamed, want) || ends != 4 || dig(last, "usage", "total_tokens") != 10.0 {
		t.Errorf("%v, %d ends, last %v", streamed, ends, last)
	}
}

func TestTheBestOfSeveralAnswers(t *testing.T) {
	best := 3
	req := openaiCompletionRequest{BestOf: &best}
	answers := textAnswers{req: &req, answers: make([]textAnswer, best)}
	for i, row := range []struct {
		text    string
		logprob float64
	}{{"bad", -2}, {"good", -0.1}, {"impossible", math.Inf(-1)}} {
		probable := []api.Logprob{{TokenLogprob: api.TokenLogprob{Token: row.text, Logprob: row.logprob}}}
		if _, err := answers.take(turn{index: i, content: row.text, logprobs: probable, end: &turnEnd{reason: "stop"}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := answers.best(); len(got) != 1 || got[0].Text != "good" || got[0].Index != 0 || got[0].Logprobs != nil {
		t.Errorf("%+v", got)
	}
	f := newFixture(t, nil)
	v := object(t, f.do(call{method: "POST", path: completionsPath, body: prompted("best_of", 3)}).Body.Bytes())
	if len(v["choices"].([]any)) != 1 || f.fake.last().N != 3 || !f.fake.last().Logprobs || dig(v, "choices", 0, "logprobs") != nil || dig(v, "usage", "completion_tokens") != 9.0 {
		t.Errorf("%v", v)
	}
}

func TestACompletionRefusesWithAReason(t *testing.T) {
	f := withAble(t, nil)
	for name, row := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"token ids":                    {prompted("prompt", []int{1, 2}), 400, "token ids belong to"},
		"lists of token ids":           {prompted("prompt", [][]int{{1}, {2}}), 400, "token ids belong to"},
		"something else":               {prompted("prompt", map[string]any{}), 400, "prompt must be a text"},
		"no prompt":                    {prompted("prompt", nil), 400, "prompt is missing"},
		"an empty prompt":              {prompted("prompt", ""), 400, "prompt[0] is empty"},
		"one of several is empty":      {prompted("prompt", []string{"a", ""}), 400, "prompt[1] is empty"},
		"a gap where no model fills":   {prompted("suffix", "x"), 400, "does not support insert"},
		"too many alternatives":        {prompted("logprobs", 21), 400, "logprobs must be"},
		"probabilities of the prompt":  {prompted("echo", true, "logprobs", 1), 400, "echo and logprobs"},
		"the best of too few":          {prompted("n", 3, "best_of", 2), 400, "best_of must be"},
		"the best of several, at once": {prompted("best_of", 2, "stream", true), 400, "best_of above n cannot be streamed"},
		"a model that is not there":    {prompted("model", "nobody"), 404, "nobody"},
		"a model that only embeds":     {prompted("model", "encoder"), 400, "does not support generate"},
	} {
		t.Run(name, func(t *testing.T) {
			w := f.do(call{method: "POST", path: completionsPath, body: row.body})
			wantStatus(t, w, row.status)
			if e := object(t, w.Body.Bytes())["error"]; !strings.Contains(fmt.Sprint(dig(e, "message")), row.says) || dig(e, "type") != "invalid_request_error" {
				t.Errorf("%v, want %q", e, row.says)
			}
		})
	}
}

func TestACompletionsStreamEndsWithItsError(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.failAt, f.fake.err = 2, fault.New(fault.Busy, "fake", "the model's runner died")
	chunks, done := sseData(t, f.do(call{method: "POST", path: completionsPath, body: prompted("stream", true)}))
	if last := chunks[len(chunks)-1]; done || dig(last, "error", "message") != "the model's runner died" {
		t.Errorf("[DONE] %v, last %v", done, last)
	}
}
