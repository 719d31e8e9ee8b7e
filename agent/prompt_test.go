package agent

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
)

// chatML renders messages as the ChatML template of the Qwen models does. A last assistant turn is left open.
func chatML(messages []Message) string {
	var b strings.Builder
	for i, m := range messages {
		b.WriteString("<|im_start|>" + m.Role + "\n" + m.Content)
		if i < len(messages)-1 || m.Role != "assistant" {
			b.WriteString("<|im_end|>\n")
		}
	}
	return b.String()
}

func render(t *testing.T, schema, question, evidence string) string {
	t.Helper()
	turns, err := plainPrompt(schema, question, evidence)
	if err != nil {
		t.Fatal(err)
	}
	var messages []Message
	for _, turn := range turns {
		m, err := textOf(turn)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return chatML(messages)
}

func TestPlainPromptIsTheMeasuredOneByteForByte(t *testing.T) {
	file, err := os.ReadFile("../testdata/nl2sql/plain_prompt.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := string(file)
	got := render(t, "{contents of schema.sql}", "{question}", "{evidence; this line only where the question has it}")
	if got != want {
		t.Errorf("with evidence:\n%q\nwant\n%q", got, want)
	}
	start := strings.Index(want, "-- Note:")
	want = want[:start] + want[start+strings.Index(want[start:], "\n")+1:]
	if got := render(t, "{contents of schema.sql}", "{question}", ""); got != want {
		t.Errorf("without evidence:\n%q\nwant\n%q", got, want)
	}
}

func TestPromptTakesItsPartsAsTheyAre(t *testing.T) {
	schema, question := "CREATE TABLE a (b INTEGER); -- {{.question}} <b> & 'c'", "{{.schema}} & {{printf \"x\"}} \"why\"?"
	got := render(t, schema, question, "")
	if !strings.Contains(got, schema) || !strings.Contains(got, "-- Question: "+question+"\n") {
		t.Errorf("a part was changed or taken for a template:\n%s", got)
	}
}

func TestBeforeStop(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"no stop word":                 {"SELECT 1", "SELECT 1"},
		"the fence":                    {"SELECT 1;\n```\nThis query…", "SELECT 1;\n"},
		"the first of several counts":  {"SELECT 1<|im_end|>```", "SELECT 1"},
		"a stop word at the beginning": {"```", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := beforeStop(row.in, plainStop); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestStatement(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"a semicolon goes":           {" SELECT 1 ;\n", "SELECT 1"},
		"several semicolons go":      {"SELECT 1;;", "SELECT 1"},
		"only a comment is nothing":  {"-- CANNOT: no such column\n\n  -- sorry", ""},
		"a comment before SQL stays": {"-- count\nSELECT 1", "-- count\nSELECT 1"},
		"blanks are nothing":         {" \n ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := statement(row.in); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestModelRefusesWhatItCannotDo(t *testing.T) {
	never := completer(func(Completion) (string, error) { t.Error("the model was asked"); return "", nil })
	hello := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hello")}
	for name, row := range map[string]struct {
		messages []llms.MessageContent
		option   llms.CallOption
	}{
		"tools":         {hello, llms.WithTools([]llms.Tool{{Type: "function"}})},
		"JSON mode":     {hello, llms.WithJSONMode()},
		"an image":      {[]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryPart("image/png", nil)}}}, llms.WithTemperature(0)},
		"a tool's turn": {[]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeTool, "x")}, llms.WithTemperature(0)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (&llm{completer: never}).GenerateContent(t.Context(), row.messages, row.option); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

func TestModelHandsOverTheOptions(t *testing.T) {
	var got Completion
	m := &llm{name: "a", completer: completer(func(c Completion) (string, error) { got = c; return "x STOP y", nil })}
	var streamed string
	text, err := m.Call(t.Context(), "hi", llms.WithMaxTokens(7), llms.WithSeed(3), llms.WithTemperature(0.5), llms.WithStopWords([]string{"STOP"}),
		llms.WithMetadata(map[string]any{numCtx: 99}), llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error { streamed += string(chunk); return nil }))
	if err != nil || text != "x " || streamed != "x " || m.calls != 1 {
		t.Errorf("got %q, streamed %q, %d calls, %v", text, streamed, m.calls, err)
	}
	if got.Model != "a" || got.MaxTokens != 7 || got.Seed != 3 || got.Temperature != 0.5 || got.NumCtx != 99 || len(got.Stop) != 1 {
		t.Errorf("the Completer got %+v", got)
	}
}
