package models

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/template"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// toolTalk is a conversation with tools, calls and results.
func toolTalk(t testing.TB) Conversation {
	t.Helper()
	data, err := os.ReadFile("testdata/qwen_tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Messages []api.Message
		Tools    []api.Tool
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return Conversation{Messages: c.Messages, Tools: c.Tools}
}

// TestToolsAsTheModelsOwnTemplate holds that a conversation with tools comes out byte by byte as the Jinja template in the
// model's file renders it (testdata/qwen_tools_prompt.txt was written by Jinja 3.1.6 with Python's json.dumps).
func TestToolsAsTheModelsOwnTemplate(t *testing.T) {
	want, err := os.ReadFile("testdata/qwen_tools_prompt.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, err := realStore(t).Get("qwen2.5-coder:0.5b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Prompt(toolTalk(t))
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.Text, want)
	}
}

// ownTemplate is one of ours as a model.
func ownTemplate(t testing.TB, name string) *Model {
	t.Helper()
	found, err := own(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Name: "m:latest", Template: found.text}
}

func TestOwnTemplates(t *testing.T) {
	const fn = `{"type": "function", "function": {"name": "f", "description": "F", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}`
	var tool api.Tool
	if err := json.Unmarshal([]byte(fn), &tool); err != nil {
		t.Fatal(err)
	}
	called := msg("assistant", "")
	args := api.NewToolCallFunctionArguments()
	args.Set("a", 1)
	called.ToolCalls = []api.ToolCall{{Function: api.ToolCallFunction{Name: "f", Arguments: args}}}
	thought := msg("assistant", "b")
	thought.Thinking = "hm"
	talk := []api.Message{msg("system", "s"), msg("user", "x"), called, msg("tool", "1")}
	const tools = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n" + fn +
		"\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n"
	rows := map[string]struct {
		template string
		c        Conversation
		want     string
	}{
		"ChatML with thinking and tools": {"chatml-think", Conversation{Messages: talk, Tools: []api.Tool{tool}},
			"<|im_start|>system\ns\n\n" + tools + "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call><|im_end|>\n" +
				"<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n<|im_start|>assistant\n"},
		"ChatML, told not to think": {"chatml-think", Conversation{Messages: []api.Message{msg("user", "x")}, Think: &api.ThinkValue{Value: false}},
			"<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		"ChatML, a thought of the same turn stays": {"chatml-think", Conversation{Messages: []api.Message{msg("user", "x"), thought, msg("tool", "1")}},
			"<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nb<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n<|im_start|>assistant\n"},
		"ChatML, a thought before the question goes": {"chatml-think", Conversation{Messages: []api.Message{msg("user", "x"), thought, msg("user", "y"), msg("assistant", "<think>\na</think>\n\nb"), msg("user", "z")}},
			"<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\ny<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nz<|im_end|>\n<|im_start|>assistant\n"},
		"ChatML, an opened answer ends the thought": {"chatml-think", Conversation{Messages: []api.Message{msg("user", "x"), thought}},
			"<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nb"},
		"Llama 3": {"llama3-tools", Conversation{Messages: talk, Tools: []api.Tool{tool}},
			"<|start_header_id|>system<|end_header_id|>\n\ns<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nGiven the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\n" +
				"Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}. Do not use variables.\n\n" + fn + "\n\nx<|eot_id|>" +
				"<|start_header_id|>assistant<|end_header_id|>\n\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
		"Mistral": {"mistral-tools", Conversation{Messages: talk, Tools: []api.Tool{tool}},
			"[AVAILABLE_TOOLS] [" + fn + "][/AVAILABLE_TOOLS][INST] s\n\nx[/INST][TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}]</s>[TOOL_RESULTS] {\"content\": \"1\"}[/TOOL_RESULTS]"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got, err := ownTemplate(t, row.template).Prompt(row.c)
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got.Text, row.want)
			}
		})
	}
}

// talks are conversations without tools, in which our templates must say what the module's say.
func talks() map[string][]api.Message {
	return map[string][]api.Message{
		"a question":        {msg("user", "x")},
		"with a system":     {msg("system", "s"), msg("user", "x")},
		"several turns":     {msg("system", "s"), msg("user", "x"), msg("assistant", "y"), msg("user", "z")},
		"turns of one role": {msg("user", "x"), msg("user", "y"), msg("assistant", "a"), msg("assistant", "b"), msg("user", "z")},
		"systems between":   {msg("user", "x"), msg("system", "s"), msg("assistant", "y"), msg("system", "t"), msg("user", "z")},
		"only a system":     {msg("system", "s")},
		"an answer first":   {msg("assistant", "a"), msg("user", "x")},
		"signs of HTML":     {msg("user", "a < b && c > d \"{{.}}\"")},
	}
}

// TestTemplatesAsTheModule renders every template of the module's index with our code and with the module's own. Without
// tools, our templates are to say what the index's say.
func TestTemplatesAsTheModule(t *testing.T) {
	index := indexTemplates(t)
	ours := map[string]string{"chatml": "chatml-tools", "llama3-instruct": "llama3-tools"}
	for name, text := range index {
		theirs, err := template.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all := []*Model{{Name: "m", Template: text}}
		if our := ours[name]; our != "" {
			all = append(all, ownTemplate(t, our))
			delete(ours, name)
		}
		for talk, messages := range talks() {
			var want bytes.Buffer
			if err := theirs.Execute(&want, template.Values{Messages: slices.Clone(messages)}); err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				got, err := m.Prompt(Conversation{Messages: messages})
				if err != nil || got.Text != want.String() {
					t.Errorf("%s, %s: %v\ngot  %q\nwant %q", name, talk, err, got.Text, want.String())
				}
			}
		}
	}
	if len(index) < 18 || len(ours) > 0 {
		t.Errorf("%d templates; not compared: %v", len(index), ours)
	}
}

// indexTemplates are the templates of the module's index by name. testdata/index.json is the Jinja template of each.
func indexTemplates(t testing.TB) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/index.json")
	if err != nil {
		t.Fatal(err)
	}
	var jinja map[string]string
	if err := json.Unmarshal(data, &jinja); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, text := range jinja {
		found, err := template.Named(text)
		if err != nil || found.Name != name {
			t.Fatalf("%s: %v", name, err)
		}
		program, err := io.ReadAll(found.Reader())
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(program)
	}
	return out
}

func TestPromptImages(t *testing.T) {
	look := func(text string, images ...byte) api.Message {
		m := msg("user", text)
		for _, i := range images {
			m.Images = append(m.Images, api.ImageData{i})
		}
		return m
	}
	rows := map[string]struct {
		renderer string
		families []string
		messages []api.Message
		want     string
		images   string
		code     fault.Code
		err      string
	}{
		"in front, counted over all messages": {
			messages: []api.Message{look("a", 1, 2), msg("assistant", "b"), look("c", 3)}, images: "\x01\x02\x03",
			want: "<|im_start|>user\n[img-0][img-1]a<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\n[img-2]c<|im_end|>\n<|im_start|>assistant\n",
		},
		"where the text says":          {messages: []api.Message{look("a [img] b [img] c", 1, 2, 3)}, images: "\x01\x02\x03", want: "<|im_start|>user\n[img-2]a [img-0] b [img-1] c<|im_end|>\n<|im_start|>assistant\n"},
		"a renderer with images":       {renderer: "qwen3-vl-instruct", messages: []api.Message{look("a", 1), look("b", 2)}, images: "\x01\x02", want: "<|im_start|>user\n[img-0]a<|im_end|>\n<|im_start|>user\n[img-1]b<|im_end|>\n<|im_start|>assistant\n"},
		"a renderer without":           {renderer: "qwen3-coder", messages: []api.Message{look("a", 1)}, images: "\x01", want: "<|im_start|>user\n[img-0]a<|im_end|>\n<|im_start|>assistant\n"},
		"a family that takes only one": {families: []string{"mllama"}, messages: []api.Message{look("a", 1, 2)}, code: fault.Invalid, err: "takes one image in a message, and one has 2"},
		"a renderer of the future":     {renderer: "qwen9", messages: []api.Message{look("a")}, code: fault.Unimplemented, err: `rendered by "qwen9", which this version does not have`},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			m := &Model{Name: "m", Template: chatML, config: model.ConfigV2{Renderer: row.renderer, ModelFamilies: row.families}}
			got, err := m.Prompt(Conversation{Messages: row.messages})
			if row.err != "" {
				wantFault(t, err, row.code, row.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != row.want || string(bytes.Join(got.Images, nil)) != row.images {
				t.Errorf("got  %q with %q\nwant %q with %q", got.Text, got.Images, row.want, row.images)
			}
			for _, m := range row.messages {
				if strings.Contains(m.Content, "img-") {
					t.Error("the caller's message was changed")
				}
			}
		})
	}
	m := &Model{Name: "m", Template: chatML}
	got, err := m.GeneratePrompt(Generation{Prompt: "a", Images: [][]byte{{9}}})
	if err != nil || got.Text != "<|im_start|>user\n[img-0]a<|im_end|>\n<|im_start|>assistant\n" || string(got.Images[0]) != "\x09" {
		t.Errorf("generate: %+v, %v", got, err)
	}
}

// TestHarmonyNames holds that tools and the calls of them get names that the format can write, and that the caller's stay.
func TestHarmonyNames(t *testing.T) {
	m := &Model{Name: "m", config: model.ConfigV2{ModelFamily: "gptoss"}, Template: "{{ range .Tools }}{{ .Function.Name }} {{ end }}{{ range .Messages }}{{ range .ToolCalls }}<{{ .Function.Name }}>{{ end }}{{ .ToolName }}{{ end }}|"}
	tool := api.Tool{Function: api.ToolFunction{Name: "get weather-1"}}
	call := msg("assistant", "")
	call.ToolCalls = []api.ToolCall{{Function: api.ToolCallFunction{Name: "get weather-1"}}}
	result := msg("tool", "1")
	result.ToolName = "get weather-1"
	got, err := m.Prompt(Conversation{Messages: []api.Message{msg("user", "x"), call, result}, Tools: []api.Tool{tool}})
	if err != nil || got.Text != "get_weather_1 <get_weather_1>get_weather_1|" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if call.ToolCalls[0].Function.Name != "get weather-1" || tool.Function.Name != "get weather-1" {
		t.Error("the caller's names were changed")
	}
	got, err = m.Prompt(Conversation{Messages: []api.Message{msg("user", "x"), msg("assistant", "So")}})
	if err != nil || got.Text != "|<|channel|>final<|message|>So" {
		t.Errorf("an opened answer: %q, %v", got.Text, err)
	}
}

func TestCapabilities(t *testing.T) {
	rows := map[string]struct {
		model *Model
		want  []string
	}{
		"a plain template":                 {&Model{Template: chatML}, []string{"completion", "embedding"}},
		"tools in the template":            {&Model{Template: "{{ .Tools }}{{ .Messages }}"}, []string{"completion", "embedding", "tools"}},
		"tools and thinking by the parser": {&Model{Template: chatML, config: model.ConfigV2{Parser: "qwen3-thinking"}}, []string{"completion", "embedding", "tools", "thinking"}},
		"a parser of the future":           {&Model{Template: chatML, config: model.ConfigV2{Parser: "qwen9"}}, []string{"completion", "embedding"}},
		"gpt-oss without a parser":         {&Model{Template: chatML, Facts: Facts{Family: "gptoss"}}, []string{"completion", "embedding", "tools", "thinking"}},
		"thinking in the template":         {&Model{Template: "{{ range .Messages }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ end }}"}, []string{"completion", "embedding", "thinking"}},
		"a projector":                      {&Model{Template: chatML, projector: "x"}, []string{"completion", "embedding", "vision"}},
		"eyes of its own":                  {&Model{Template: chatML, Facts: Facts{Vision: true}}, []string{"completion", "embedding", "vision"}},
		"a place for a suffix":             {&Model{Template: "{{ .Prompt }}{{ .Suffix }}"}, []string{"completion", "embedding", "insert"}},
		"an encoder":                       {&Model{Facts: Facts{Pooling: true}}, []string{"embedding"}},
		"an encoder that scores":           {&Model{Facts: Facts{Pooling: true, Reranks: true}}, []string{"rerank"}},
		"a damaged template":               {&Model{Template: "{{ .X"}, []string{"completion", "embedding"}},
	}
	for name, row := range rows {
		if got := row.model.Capabilities(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
