package reply

import (
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/thinking"

	"sluice/models"
)

func on(v any) *api.ThinkValue { return &api.ThinkValue{Value: v} }

// TestThinking holds what of an answer is thinking, however it is cut.
func TestThinking(t *testing.T) {
	opened := thinkTemplate + "<think>\n"
	const call = `<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>`
	const paris = `[{"get_weather":{"city":"Paris"}}]`
	rows := map[string]struct {
		template, parser string
		think            *api.ThinkValue
		answer           string
		open             *api.Message
		want             outcome
		after            string
	}{
		"a thought and an answer":             {answer: "<think>\nI muse.\n</think>\n\nYes.", want: outcome{thinking: "I muse.\n", content: "Yes."}, after: "</think>"},
		"white space before it":               {answer: " \n<think>I muse.</think>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}, after: "</think>"},
		"no thought":                          {answer: " Yes <think> no", want: outcome{content: " Yes <think> no"}, after: "</think>"},
		"an empty thought":                    {answer: "<think>\n\n</think>\n\nYes.", want: outcome{content: "Yes."}, after: "</think>"},
		"a thought that never ends":           {answer: "<think>I muse. </th", want: outcome{thinking: "I muse. </th"}, after: "</think>"},
		"only the tag":                        {answer: "<think>", after: "</think>"},
		"half the tag":                        {answer: "<thi", want: outcome{content: "<thi"}, after: "</think>"},
		"only white space":                    {answer: " \n", want: outcome{content: " \n"}, after: "</think>"},
		"two thoughts: the second is answer":  {answer: "<think>a</think>b<think>c</think>", want: outcome{thinking: "a", content: "b<think>c</think>"}, after: "</think>"},
		"told not to, and it does":            {think: on(false), answer: "<think>I muse.</think>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}},
		"told not to":                         {think: on(false), answer: "Yes.", want: outcome{content: "Yes."}},
		"the prompt began it":                 {template: opened, answer: "I muse.\n</think>\nYes.", want: outcome{thinking: "I muse.\n", content: "Yes."}, after: "</think>"},
		"the prompt began it, and the model":  {template: opened, answer: "<think>\nI muse.</think>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}, after: "</think>"},
		"the prompt began it, nothing more":   {template: opened, answer: "I muse.", want: outcome{thinking: "I muse."}, after: "</think>"},
		"told not to, the prompt began it":    {template: opened, think: on(false), answer: "I muse.</think>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}, after: "</think>"},
		"a call behind a thought":             {answer: "<think>I muse.</think>\n" + call, want: outcome{thinking: "I muse.", calls: paris}, after: "</think>"},
		"a call that a thought weighs":        {answer: "<think>I could " + call + " or not.</think>No.", want: outcome{thinking: "I could " + call + " or not.", content: "No."}, after: "</think>"},
		"a call in a thought that never ends": {answer: "<think>I must.\n" + call, want: outcome{thinking: "I must.\n", calls: paris}, after: "</think>"},
		"a thought that mentions a tag":       {answer: "<think>Use <tool_call>? [1]", want: outcome{thinking: "Use <tool_call>? [1]"}, after: "</think>"},
		"a level is plain true":               {think: on("high"), answer: "<think>I muse.</think>Yes.", want: outcome{thinking: "I muse.", content: "Yes."}, after: "</think>"},
		"a template without thinking":         {template: plainTemplate, answer: "<think>a</think>b", want: outcome{content: "<think>a</think>b"}},
		"a parser that trims":                 {template: plainTemplate, parser: "qwen3-thinking", answer: "<think>\nI muse.\n \n</think>\n\nYes.", want: outcome{thinking: "I muse.", content: "Yes."}, after: "</think>"},
		"a parser's other tags":               {template: plainTemplate, parser: "ministral", answer: "[THINK]I muse.[/THINK]Yes.", want: outcome{thinking: "I muse.", content: "Yes."}},
		"a parser that parses nothing":        {template: plainTemplate, parser: "passthrough", answer: call, want: outcome{content: call}},
		"an answer that was begun":            {open: &api.Message{Role: "assistant", Content: "Well, "}, answer: "yes.", want: outcome{content: "yes."}},
		"a thought that was begun": {
			open: &api.Message{Role: "assistant", Thinking: "I mu"}, answer: "se.</think>Yes.", want: outcome{thinking: "se.", content: "Yes."}, after: "</think>",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if row.template == "" {
				row.template = thinkTemplate
			}
			m := modelOf(t, "llama", row.template, row.parser)
			c := models.Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}, Tools: weather(t), Think: row.think}
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
			if after := New(m, c, prompt).After(); after != row.after && !(row.parser == "ministral" && after == "[/THINK]") {
				t.Errorf("the answer begins behind %q, want %q", after, row.after)
			}
			forced := Open(m, c, prompt)
			if r := New(m, c, forced); r.after != "" && r.thought.state != stateOpened {
				t.Errorf("a format would wait for a thought that may never come: %q", forced.Text)
			}
		})
	}
}

// TestThinkingAsOllama compares with the module's parser, whose white space clients know.
func TestThinkingAsOllama(t *testing.T) {
	m := modelOf(t, "llama", thinkTemplate, "")
	c := models.Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}}
	for _, answer := range []string{
		"<think>a</think>b", "\n<think>\n\na\n\n</think>\n\nb\n", "<think>a</think> <think>b", "b", "  b <think>", "<think>a</thin</think></think>b",
	} {
		p := thinking.Parser{OpeningTag: "<think>", ClosingTag: "</think>"}
		var want outcome
		for _, piece := range strings.SplitAfter(answer, "") {
			a, b := p.AddContent(piece)
			want.thinking += a
			want.content += b
		}
		if got := read(t, m, c, answer); got != want {
			t.Errorf("%q: got %+q, Ollama %+q", answer, got, want)
		}
	}
}
