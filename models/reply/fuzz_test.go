package reply

import (
	"strings"
	"testing"
	"unicode"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// FuzzReader holds for any answer, cut anywhere: no panic, the same result as in one piece, and nothing lost. Without a call
// the text is all there; with calls, what is left of it is in its order, and each call names what the answer named.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
		"<think>I muse</think> ```json\n[{\"name\": \"say_hello\"}]\n```",
		"[TOOL_CALLS]get_weather[CALL_ID]x[ARGS]{\"city\": \"\\u00e9\"}, {\"name\":",
		"<tool_call><function=get_weather><parameter=city>a</parameter></function></tool_call>",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.say_hello<|message|>{}<|call|>",
		"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>say_hello\n```json\n{}\n```<｜tool▁call▁end｜>",
		"{\"id\":1 {\"id\":1 {\"arguments\":{\"arguments\":", "x: {\"name\":\"say_hello\"}; {\"name\":\"say_hello\"}",
	} {
		for mode := range byte(4) {
			f.Add(seed, uint16(7), mode)
		}
	}
	ask := []api.Message{{Role: "user", Content: "x"}}
	modes := []struct {
		m *models.Model
		c models.Conversation
	}{
		{modelOf(f, "llama", plainTemplate, ""), models.Conversation{Messages: ask, Tools: weather(f)}},
		{modelOf(f, "llama", thinkTemplate, ""), models.Conversation{Messages: ask, Tools: weather(f)}},
		{modelOf(f, "gptoss", plainTemplate, ""), models.Conversation{Messages: ask, Tools: weather(f)}},
		{modelOf(f, "llama", thinkTemplate, "qwen3-thinking"), models.Conversation{Messages: ask}},
	}
	f.Fuzz(func(t *testing.T, answer string, cut uint16, mode byte) {
		if len(answer) > 1<<13 { // longer ones only take longer
			return
		}
		in := modes[int(mode)%len(modes)]
		whole := read(t, in.m, in.c, answer)
		pieces, n := []string{}, int(cut)
		for rest := answer; rest != ""; n = (n*7 + 3) % 1009 {
			size := min(len(rest), n%23+1)
			pieces, rest = append(pieces, rest[:size]), rest[size:]
		}
		if got := read(t, in.m, in.c, append(pieces, "")...); got != whole {
			t.Fatalf("in pieces %q\ngot   %+q\nwhole %+q", pieces, got, whole)
		}
		if mode%4 == 2 {
			return // harmony's headers are not text
		}
		if whole.calls == "" {
			if got, want := dense(whole.thinking+whole.content), dense(withoutTags(answer, whole.thinking != "")); got != want && got != dense(answer) && got != dense(withoutTags(answer, true)) {
				t.Fatalf("of   %q\nleft %q\nwant %q", answer, got, want)
			}
			return
		}
		if !within(whole.content, answer) || !within(whole.thinking, answer) {
			t.Fatalf("%q has text that the answer %q has not: %+q", whole.content+whole.thinking, answer, whole)
		}
	})
}

// dense leaves white space out.
func dense(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func withoutTags(s string, thought bool) string {
	if !thought {
		return s
	}
	return strings.Replace(strings.Replace(s, "<think>", "", 1), "</think>", "", 1)
}

// within tells whether the bytes of part come in this order in whole.
func within(part, whole string) bool {
	i := 0
	for j := 0; i < len(part) && j < len(whole); j++ {
		if part[i] == whole[j] {
			i++
		}
	}
	return i == len(part)
}
