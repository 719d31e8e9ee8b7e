package reply

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// fragments are what answers are made of, whole and broken.
var fragments = []string{
	`{"name": "get_weather", "arguments": {"city": "Paris"}}`, `{"name": "say_hello"}`, `{"name": "nobody", "arguments": {}}`,
	`{"name": "get_weather", "arguments": {"city": "Par`, `[{"name": "say_hello", "arguments": {}}]`, `{"title": "x"}`, `{"id": 1, "function": `,
	"<tool_call>", "</tool_call>", "\n<tool_call>\n", "[TOOL_CALLS]", "[TOOL_CALLS] ", "[/TOOL_CALLS]", "get_weather[ARGS]", "[ARGS]", "functools", "Action:", "Action: ```json\n",
	"<|tool_call|>", "<|python_tag|>", "<|eom_id|>", "<function=get_weather>", "<function=nobody>", "<parameter=city>a</parameter>", "</function>", "<toolcall>",
	toolCallsBegin, toolCallBegin, "function" + toolSep, "say_hello" + toolSep, toolCallEnd, toolCallsEnd, "get_weather\n<arg_key>city</arg_key><arg_value>x</arg_value>",
	"<|tool_call_start|>[say_hello()]", "<|tool_call_end|>", "<function_calls>say_hello()", "</function_calls>", "<start_function_call>call:say_hello{}", "<end_function_call>",
	"```", "```json\n", "\n```\n", "\n```", "```python\n", "`", "``", "\n", " ", "  \n\n", "\t", ",", ";", ".", ":", "\": ", "{", "}", "[", "]", "\"", "\\", "<", "<t", "</", "f", "A",
	"Sure, ", "I call it:\n", "and then.", "é", "😊", "<think>", "</think>", "</thi", "<|channel|>final<|message|>", "<|channel|>analysis<|message|>", "<|start|>assistant",
	"<|channel|>commentary to=functions.say_hello<|message|>", "<|end|>", "<|call|>", "to=",
}

// TestFragments makes answers of fragments by chance and cuts them by chance. The seed is fixed, so a failure comes again.
func TestFragments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ask := []api.Message{{Role: "user", Content: "x"}}
	c := models.Conversation{Messages: ask, Tools: weather(t)}
	all := []*models.Model{
		modelOf(t, "llama", plainTemplate, ""), modelOf(t, "llama", plainTemplate, ""), modelOf(t, "llama", thinkTemplate, ""),
		modelOf(t, "llama", thinkTemplate, "qwen3-thinking"), modelOf(t, "gptoss", plainTemplate, ""),
	}
	called := 0
	for range 10_000 {
		var b strings.Builder
		for range 1 + rng.IntN(9) {
			b.WriteString(fragments[rng.IntN(len(fragments))])
		}
		answer, m := b.String(), all[rng.IntN(len(all))]
		whole := read(t, m, c, answer)
		var pieces []string
		for rest := answer; rest != ""; {
			n := min(len(rest), 1+rng.IntN(12))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := read(t, m, c, append(pieces, "")...); got != whole {
			t.Fatalf("in pieces %q\ngot   %+q\nwhole %+q", pieces, got, whole)
		}
		if whole.calls != "" {
			called++
		} else if m == all[0] && whole.content != answer {
			t.Fatalf("without a call something is lost of %q: %q", answer, whole.content)
		}
		if !within(whole.content, answer) || !within(whole.thinking, answer) {
			t.Fatalf("of %q: %+q", answer, whole)
		}
	}
	if called < 500 {
		t.Errorf("only %d answers had calls", called)
	}
}
