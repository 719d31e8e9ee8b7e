package models

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

func msg(role, content string) api.Message { return api.Message{Role: role, Content: content} }

// TestRealModelsPlainPrompt holds that the prompt with which the peer's figures were measured comes out byte by byte. The file is the
// prompt; its messages are cut out of it.
func TestRealModelsPlainPrompt(t *testing.T) {
	want, err := os.ReadFile("testdata/plain_prompt.txt")
	if err != nil {
		t.Fatal(err)
	}
	between := func(from, to string) string {
		_, rest, ok := strings.Cut(string(want), from)
		if !ok {
			t.Fatalf("the file has no %q", from)
		}
		if to == "" {
			return rest
		}
		text, _, ok := strings.Cut(rest, to)
		if !ok {
			t.Fatalf("the file has no %q", to)
		}
		return text
	}
	messages := []api.Message{
		msg("system", between("<|im_start|>system\n", "<|im_end|>")),
		msg("user", between("<|im_start|>user\n", "<|im_end|>")),
		msg("assistant", between("<|im_start|>assistant\n", "")),
	}
	if messages[2].Content != "```sql\n" {
		t.Fatalf("the opened answer is %q", messages[2].Content)
	}
	m, err := realStore(t).Get("qwen2.5-coder:0.5b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Prompt(Conversation{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != string(want) {
		t.Errorf("got:\n%q\nwant:\n%q", got.Text, want)
	}
	if stops := m.Params["stop"]; !reflect.DeepEqual(stops, []any{"<|im_start|>", "<|im_end|>"}) {
		t.Errorf("the template's stop strings are %v", stops)
	}
}

const chatML = "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"

func TestPrompt(t *testing.T) {
	plain := &Model{Name: "m", Template: chatML}
	system := &Model{Name: "m", Template: chatML, System: "Be brief."}
	examples := &Model{Name: "m", Template: chatML, System: "Be brief.", Messages: []api.Message{msg("user", "hi"), msg("assistant", "ho")}}
	legacy := &Model{Name: "m", Template: "{{ if .System }}S:{{ .System }} {{ end }}U:{{ .Prompt }} A:{{ .Response }}END"}
	bare := &Model{Name: "m"}
	call := msg("assistant", "")
	call.ToolCalls = []api.ToolCall{{Function: api.ToolCallFunction{Name: "f"}}}
	image := msg("user", "look")
	image.Images = []api.ImageData{{1}}

	rows := map[string]struct {
		model    *Model
		messages []api.Message
		want     string
		code     fault.Code
		err      string
	}{
		"a user's message": {model: plain, messages: []api.Message{msg("user", "x")}, want: "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"},
		"the model's system prompt": {
			model: system, messages: []api.Message{msg("user", "x")},
			want: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n",
		},
		"a system message replaces it": {
			model: system, messages: []api.Message{msg("system", "Sing."), msg("user", "x")},
			want: "<|im_start|>system\nSing.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n",
		},
		"the model's messages go first": {
			model: examples, messages: []api.Message{msg("user", "x")},
			want: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nho<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n",
		},
		"an opened answer stays open": {
			model: plain, messages: []api.Message{msg("user", "x"), msg("assistant", "The ")},
			want: "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nThe ",
		},
		"two opened answers are one, as the templates see it": {
			model: plain, messages: []api.Message{msg("user", "x"), msg("assistant", "A"), msg("assistant", "B")},
			want: "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nA\n\nB",
		},
		"two turns of one role are one": {
			model: plain, messages: []api.Message{msg("user", "x"), msg("user", "y")}, want: "<|im_start|>user\nx\n\ny<|im_end|>\n<|im_start|>assistant\n",
		},
		"an answer that calls a tool is closed": {
			model: plain, messages: []api.Message{msg("user", "x"), call},
			want: "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n",
		},
		"a template of the older kind": {
			model: legacy, messages: []api.Message{msg("system", "s"), msg("user", "x"), msg("assistant", "y"), msg("user", "z")},
			want: "S:s U:x A:yENDU:z A:",
		},
		"the older kind, cut inside a condition": { // the module panics here
			model: &Model{Template: "{{ if .Prompt }}U:{{ .Prompt }} A:{{ $.Response }}END{{ else }}-{{ end }}!"}, messages: []api.Message{msg("user", "x"), msg("assistant", "y"), msg("user", "z")},
			want: "U:x A:yEND!U:z A:",
		},
		"the older kind, opened": {model: legacy, messages: []api.Message{msg("user", "x"), msg("assistant", "y")}, want: "U:x A:y"},
		"no template":            {model: bare, messages: []api.Message{msg("user", "x")}, want: "x"},
		"an image":               {model: plain, messages: []api.Message{image}, want: "<|im_start|>user\n[img-0]look<|im_end|>\n<|im_start|>assistant\n"},
		"a damaged template":     {model: &Model{Template: "{{ .X"}, code: fault.Invalid, err: "template error"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(row.messages)
			got, err := row.model.Prompt(Conversation{Messages: row.messages})
			if !reflect.DeepEqual(row.messages, before) {
				t.Error("the caller's messages were changed")
			}
			if row.err != "" {
				wantFault(t, err, row.code, row.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != row.want {
				t.Errorf("got  %q\nwant %q", got.Text, row.want)
			}
		})
	}
}

func TestGeneratePrompt(t *testing.T) {
	m := &Model{Name: "m:latest", Template: chatML, System: "Be brief."}
	fim := &Model{Name: "fim", Template: "{{ if .Suffix }}<P>{{ .Prompt }}<S>{{ .Suffix }}<M>{{ else }}{{ .Prompt }}{{ end }}"}
	rows := map[string]struct {
		model                            *Model
		prompt, system, template, suffix string
		want, err                        string
	}{
		"the template":          {model: m, prompt: "x", want: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"},
		"a system prompt":       {model: m, prompt: "x", system: "Sing.", want: "<|im_start|>system\nSing.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"},
		"a template of its own": {model: m, prompt: "x", template: "[{{ .System }}] {{ .Prompt }} =", want: "[Be brief.] x ="},
		"one that goes through the messages": {
			model: m, prompt: "x", template: "{{ range $i, $m := .Messages }}{{ $i }}{{ $m.Content }}{{ end }}", want: "0Be brief.1x",
		},
		"a suffix":                          {model: fim, prompt: "a", suffix: "b", want: "<P>a<S>b<M>"},
		"a suffix without a place":          {model: m, prompt: "a", suffix: "b", err: `"m:latest" does not support insert`},
		"a malformed template":              {model: m, prompt: "x", template: "{{ .Prompt", err: "template error"},
		"a template that counts":            {model: m, prompt: "x", template: "{{ range 1000000000 }}x{{ end }}", err: "{{range}}"},
		"one that counts in an else":        {model: m, prompt: "x", template: "{{ if .X }}{{ else }}{{ range len .Prompt }}{{ end }}{{ end }}", err: "{{range}}"},
		"one that hides the count":          {model: m, prompt: "x", template: "{{ $Messages := 1000000000 }}{{ range $Messages }}x{{ end }}", err: "{{range}}"},
		"one that calls itself":             {model: m, prompt: "x", template: `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, err: "{{template}}"},
		"one that pads":                     {model: m, prompt: "x", template: `{{ printf "%1000000d" 1 }}`, err: "printf"},
		"one that pads inside another call": {model: m, prompt: "x", template: `{{ len (printf "%1000000d" 1) }}`, err: "printf"},
		"one that doubles a text":           {model: m, prompt: "x", template: "{{$a := \"0123456789abcdef\"}}" + strings.Repeat("{{$a = print $a $a}}", 40), err: "print"},
		"one that doubles escapes":          {model: m, prompt: "x", template: "{{$a := .Prompt}}{{$a = json $a}}", err: "json"},
		"ranges in each other":              {model: m, prompt: "x", system: "y", template: strings.Repeat("{{range $.Messages}}", 60) + strings.Repeat("{{end}}", 60), err: "in another"},
		"a short one on a long prompt":      {model: m, prompt: strings.Repeat("x", 1<<20), template: strings.Repeat("{{.Prompt}}", 1500), err: "could be longer"},
		"a template longer than any":        {model: m, prompt: "x", template: strings.Repeat("x", maxRequestTemplate+1), err: "longer"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got, err := row.model.GeneratePrompt(Generation{Prompt: row.prompt, System: row.system, Template: row.template, Suffix: row.suffix})
			if row.err != "" {
				wantFault(t, err, fault.Invalid, row.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != row.want {
				t.Errorf("got  %q\nwant %q", got.Text, row.want)
			}
		})
	}
	if caps := fim.Capabilities(); !reflect.DeepEqual(caps, []string{"completion", "embedding", "insert"}) {
		t.Errorf("capabilities of a template with a suffix: %v", caps)
	}
	if caps := (&Model{Facts: Facts{Pooling: true}}).Capabilities(); !reflect.DeepEqual(caps, []string{"embedding"}) {
		t.Errorf("capabilities of an encoder: %v", caps)
	}
}
