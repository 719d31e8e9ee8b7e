package reply

import (
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

func TestHarmony(t *testing.T) {
	const template = "{{ range .Messages }}<|start|>{{ .Role }}<|message|>{{ .Content }}<|end|>{{ end }}<|start|>assistant"
	const paris = `[{"get_weather":{"city":"Paris"}}]`
	rows := map[string]struct {
		answer string
		open   *api.Message
		want   outcome
		after  string
	}{
		"thinking and an answer": {
			answer: "<|channel|>analysis<|message|>I muse.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>", want: outcome{thinking: "I muse.", content: "Yes."},
		},
		"the last end is the model's own": {
			answer: "<|channel|>analysis<|message|>I muse.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", want: outcome{thinking: "I muse.", content: "Yes."},
		},
		"a call": {
			answer: "<|channel|>analysis<|message|>I must.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Paris\"}", want: outcome{thinking: "I must.", calls: paris},
		},
		"a call with its recipient first": {
			answer: " to=functions.get_weather<|channel|>commentary json<|message|>{\"city\": \"Paris\"}<|call|>", want: outcome{calls: paris},
		},
		"a call in the analysis": {answer: "<|channel|>analysis to=functions.get_weather code<|message|>{\"city\": \"Paris\"}", want: outcome{calls: paris}},
		"two calls": {
			answer: "<|channel|>commentary to=functions.get_weather<|message|>{\"city\": \"Paris\"}<|call|><|start|>assistant<|channel|>commentary to=functions.say_hello<|message|>{}<|call|>",
			want:   outcome{calls: `[{"get_weather":{"city":"Paris"}},{"say_hello":{}}]`},
		},
		"a tool whose name harmony cannot write": {answer: "<|channel|>commentary to=functions.my_tool_1_x <|constrain|>json<|message|>{\"a\": 1}", want: outcome{calls: `[{"my tool-1.x":{"a":1}}]`}},
		"words before a call":                    {answer: "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.say_hello<|channel|>commentary<|message|>{}", want: outcome{content: "I look.", calls: `[{"say_hello":{}}]`}},
		"an unknown tool":                        {answer: "<|channel|>commentary to=browser.search<|message|>{\"query\": \"x\"}<|call|>", want: outcome{content: `{"query": "x"}`}},
		"a call that was cut":                    {answer: "<|channel|>commentary to=functions.get_weather<|message|>{\"city\": \"Par", want: outcome{content: `{"city": "Par`}},
		"no header at all":                       {answer: "Yes, of course.", want: outcome{content: "Yes, of course."}},
		"no header, but a word of one":           {answer: "final answer: 3", want: outcome{content: "final answer: 3"}},
		"a header that was cut":                  {answer: "<|channel|>fin", want: outcome{content: "<|channel|>fin"}},
		"nothing":                                {},
		"an end that was left out":               {answer: "<|channel|>analysis<|message|>I muse.<|start|>assistant<|channel|>final<|message|>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}},
		"signs that begin an end":                {answer: "<|channel|>final<|message|>a < b <| c <|en", want: outcome{content: "a < b <| c <|en"}},
		"an answer that was begun":               {open: &api.Message{Role: "assistant", Content: "Well, "}, answer: "yes.<|return|>", want: outcome{content: "yes."}, after: "none"},
		"a thought that was begun": {
			open: &api.Message{Role: "assistant", Thinking: "I mu"}, answer: "se.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", want: outcome{thinking: "se.", content: "Yes."},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			m := modelOf(t, "gptoss", template, "")
			c := models.Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}, Tools: weather(t)}
			if row.open != nil {
				c.Messages = append(c.Messages, *row.open)
			}
			for _, pieces := range append(splits(row.answer), []string{row.answer}) {
				if got := read(t, m, c, pieces...); got != row.want {
					t.Fatalf("in pieces %q\ngot  %+q\nwant %+q", pieces, got, row.want)
				}
			}
			prompt, err := m.Prompt(c)
			if err != nil {
				t.Fatal(err)
			}
			want := harmonyFinal
			if row.after == "none" {
				want = ""
			}
			if after := New(m, c, prompt).After(); after != want {
				t.Errorf("the answer begins behind %q, want %q", after, want)
			}
		})
	}
}
