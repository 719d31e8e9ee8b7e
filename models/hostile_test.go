package models

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// TestHostileTemplates holds that a model's template, which came from a registry, cannot keep the process busy or fill its
// memory. Each would run for hours or take gigabytes.
func TestHostileTemplates(t *testing.T) {
	rows := map[string]struct{ template, err string }{
		"counts":                      {"{{ range 1000000000 }}{{ end }}{{ .Messages }}", "can't iterate"},
		"counts behind a name":        {"{{ $n := 1000000000 }}{{ range $n }}{{ end }}{{ .Messages }}", "can't iterate"},
		"loops in each other":         {strings.Repeat("{{ range $.Messages }}", 60) + strings.Repeat("{{ end }}", 60), "too many steps"},
		"calls itself":                {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}{{ .Messages }}`, "exceeded maximum template depth"},
		"calls itself twice":          {`{{ define "a" }}{{ if lt (len .) 40 }}{{ template "a" (print . "x") }}{{ template "a" (print . "x") }}{{ end }}{{ end }}{{ template "a" "" }}{{ .Messages }}`, "too m"},
		"doubles a text":              {"{{ $a := \"0123456789abcdef\" }}" + strings.Repeat("{{ $a = print $a $a }}", 60) + "{{ .Messages }}", "too much text"},
		"doubles by JSON":             {"{{ $a := \"0123456789abcdef\" }}" + strings.Repeat("{{ $a = json (json $a) }}", 200) + "{{ .Messages }}", "too much text"},
		"prints all many times":       {"{{ $a := print " + strings.Repeat("$ ", 40000) + "}}{{ .Messages }}", "too much text"},
		"pads":                        {`{{ printf "%1000000000d" 1 }}{{ .Messages }}`, "pads"},
		"pads by a number":            {`{{ printf "%*d" 1000000000 1 }}{{ .Messages }}`, "pads"},
		"repeats an argument":         {`{{ printf "` + strings.Repeat("%[1]s", 100) + `" "x" }}{{ .Messages }}`, "repeats"},
		"writes without an end":       {"{{ range $i, $m := .Messages }}{{ range $.Messages }}" + strings.Repeat("x", 1<<16) + "{{ end }}{{ end }}", "longer than 64 MiB"},
		"blocks in each other":        {strings.Repeat("{{ if .Messages }}", 900) + strings.Repeat("{{ end }}", 900), "deep"},
		"very many of them":           {strings.Repeat("{{ if .Messages }}", 50000) + strings.Repeat("{{ end }}", 50000), "more than 2000 actions"},
		"longer than any":             {strings.Repeat("x", maxTemplate+1), "longer than 1024 KiB"},
		"the older kind, counts":      {"{{ range 1000000000 }}{{ end }}{{ .Prompt }}", "can't iterate"},
		"calls a method of a message": {"{{ range .Messages }}{{ .Foo.Bar }}{{ end }}", "can't evaluate field"},
	}
	many := make([]api.Message, 0, 200)
	for i := range 100 {
		many = append(many, msg("user", strings.Repeat("x", i)), msg("assistant", "y"))
	}
	many = append(many, msg("user", "z"))
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			_, err := (&Model{Name: "m", Template: row.template}).Prompt(Conversation{Messages: many})
			wantFault(t, err, fault.Invalid, row.err)
		})
	}
}

// TestTemplatesKeepWhatModelsUse holds that the counting leaves the language as it is.
func TestTemplatesKeepWhatModelsUse(t *testing.T) {
	rows := map[string]struct{ template, want string }{
		"the last message":  {"{{ range $i, $_ := .Messages }}{{ if eq (len (slice $.Messages $i)) 1 }}{{ .Content }}{{ end }}{{ end }}", "z"},
		"break and else":    {"{{ range .Messages }}{{ break }}{{ else }}none{{ end }}{{ range .Nothing }}x{{ else }}none{{ end }}", "none"},
		"with, and, or":     {"{{ with .System }}[{{ . }}]{{ else }}-{{ end }}{{ if and .Messages (or .System true) }}+{{ end }}", "-+"},
		"printf and json":   {`{{ printf "%s|%5d|%q" "a" 3 "b" }}{{ with .Messages }}{{ json (index . 0).Content }}{{ end }}`, `a|    3|"b""x"`},
		"a named template":  {`{{ define "m" }}<{{ .Content }}>{{ end }}{{ range .Messages }}{{ template "m" . }}{{ end }}`, "<x><y><z>"},
		"a map":             {`{{ range .Tools }}{{ range $k, $v := .Function.Parameters.Properties }}{{ $k }}:{{ $v.Type }}:{{ toTypeScriptType $v }} {{ end }}{{ end }}{{ len .Messages }}`, "a:integer:number b:string:string 3"},
		"the tools as JSON": {`{{ .Tools }}|{{ json .Tools }}{{ with .Messages }}{{ end }}`, `[{"type": "function", "function": {"name": "f", "description": "<F>", "parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}}}]|[{"type": "function", "function": {"name": "f", "description": "<F>", "parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}}}]`},
	}
	var tool api.Tool
	if err := json.Unmarshal([]byte(`{"function":{"name":"f","description":"<F>","parameters":{"properties":{"b":{"type":"string"},"a":{"type":"integer"}}}}}`), &tool); err != nil {
		t.Fatal(err)
	}
	c := Conversation{Messages: []api.Message{msg("user", "x"), msg("assistant", "y"), msg("user", "z")}, Tools: []api.Tool{tool}}
	for name, row := range rows {
		got, err := (&Model{Name: "m", Template: row.template}).Prompt(c)
		if err != nil || got.Text != row.want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got.Text, row.want)
		}
	}
}

// FuzzPrompt holds for any template of a model or a request, and any conversation: an error or a prompt of bounded length,
// never a panic, and soon.
func FuzzPrompt(f *testing.F) {
	for _, seed := range []string{
		chatML, "{{ .Prompt }} {{ .Suffix }}", "{{ if .System }}S:{{ .System }} {{ end }}U:{{ .Prompt }} A:{{ .Response }}END",
		"{{ range .Messages }}{{ range .ToolCalls }}{{ .Function.Name }}{{ .Function.Arguments }}{{ end }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ end }}",
		"{{ range .Messages }}{{ range $.Messages }}{{ range $.Messages }}{{ json $ }}{{ end }}{{ end }}{{ end }}",
		"{{ range 9999999999 }}{{ end }}{{ .Messages }}", "{{ with .Response }}{{ else }}{{ .Response }}{{ end }}", `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
	} {
		f.Add(seed, `[{"role":"system","content":"s"},{"role":"user","content":"x","images":["AA=="]},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":[1,{}]}}}]},{"role":"tool","content":"1","tool_name":"f"}]`, byte(0))
	}
	for _, name := range []string{"chatml-tools", "chatml-think", "llama3-tools", "mistral-tools"} {
		f.Add(ownTemplate(f, name).Template, `[{"role":"user","content":"[img] {{.}}"},{"role":"assistant","thinking":"t","content":"a"}]`, byte(3))
	}
	renderers := []string{"", "", "", "qwen3-coder", "qwen3-vl-thinking", "deepseek3.1", "cogito", "olmo3", "olmo3-think", "nemotron-3-nano", "functiongemma", "glm-4.7", "glm-ocr", "lfm2-thinking"}
	talk := toolTalk(f)
	f.Fuzz(func(t *testing.T, template, messages string, how byte) {
		var all []api.Message
		if len(template) > 1<<14 || len(messages) > 1<<14 || json.Unmarshal([]byte(messages), &all) != nil {
			return
		}
		m := &Model{Name: "m", Template: template}
		m.config.Renderer = renderers[int(how)%len(renderers)]
		c := Conversation{Messages: all}
		if how&1 > 0 {
			c.Tools = talk.Tools
		}
		if how&2 > 0 {
			c.Think = &api.ThinkValue{Value: how&4 > 0}
		}
		if how&8 > 0 {
			m.config.ModelFamily = "gptoss"
		}
		m.Capabilities()
		p, err := m.Prompt(c)
		check(t, p, err)
		m.config.Renderer = ""
		p, err = m.GeneratePrompt(Generation{Prompt: "a", Suffix: strings.Repeat("b", int(how&1)), Think: c.Think})
		check(t, p, err)
		p, err = (&Model{Template: chatML}).GeneratePrompt(Generation{Prompt: messages, Template: template})
		check(t, p, err)
	})
}

func check(t *testing.T, p Rendered, err error) {
	t.Helper()
	if len(p.Text) > maxPrompt+1<<20 {
		t.Errorf("a prompt of %d bytes", len(p.Text))
	}
	if err != nil && fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%s: %v", fault.CodeOf(err), err)
	}
}
