package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

func TestModelsElsewhereCanBeAskedAbout(t *testing.T) {
	cases := map[string]struct {
		name string
		told Told
		want string // name, then what it can
	}{
		"nothing told":              {"m", Told{}, "m:latest "},
		"a chat model":              {"Qwen/Qwen3-8B", Told{Capabilities: []string{"completion", "tools"}}, "Qwen/Qwen3-8B:latest completion,tools"},
		"one with its template":     {"qwen3:8b", Told{Capabilities: []string{"completion"}, Template: "{{ range .Messages }}<{{ .Content }}>{{ end }}"}, "qwen3:8b completion"},
		"one with a bad template":   {"qwen3:8b", Told{Capabilities: []string{"completion"}, Template: "{{ range"}, "qwen3:8b completion"},
		"one with a huge template":  {"qwen3:8b", Told{Capabilities: []string{"completion"}, Template: strings.Repeat("{{ .Prompt }}", 1e5)}, "qwen3:8b completion"},
		"a template that has tools": {"qwen3:8b", Told{Capabilities: []string{"completion"}, Template: "{{ .Tools }}{{ .Suffix }}"}, "qwen3:8b completion"}, // what it says goes
		"an encoder":                {"all-minilm", Told{Capabilities: []string{"embedding"}}, "all-minilm:latest embedding"},
		"a reranker":                {"bge", Told{Capabilities: []string{"rerank"}}, "bge:latest rerank"},
		"one that nobody knows":     {"x", Told{Capabilities: []string{"telepathy"}}, "x:latest telepathy"},
		"gpt-oss":                   {"gpt-oss:20b", Told{Capabilities: []string{"completion", "thinking"}, Details: api.ModelDetails{Family: "gptoss"}}, "gpt-oss:20b completion,thinking"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := Remote(c.name, c.told)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Name + " " + strings.Join(m.Capabilities(), ","); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if !m.Elsewhere() || m.Path != "" || m.Projector() != "" || len(m.Adapters()) != 0 {
				t.Errorf("%+v", m)
			}
			opts, _, err := m.Options(map[string]any{"temperature": 0.5})
			if err != nil || opts.Temperature != 0.5 || opts.TopK != DefaultOptions().TopK {
				t.Errorf("%+v %v", opts, err)
			}
			// none of these may panic, whatever they say
			_, _ = m.Prompt(Conversation{Messages: []api.Message{{Role: "user", Content: "x", Images: []api.ImageData{[]byte("i")}}, {Role: "assistant", Content: "y"}}, Tools: []api.Tool{{}}, Think: &api.ThinkValue{Value: true}})
			_, _ = m.GeneratePrompt(Generation{Prompt: "x", Suffix: "y", System: "s"})
			_ = m.Modelfile() + m.Parameters() + m.Parser() + m.Renderer() + m.Requires()
			_, _ = m.ThinkTags()
			_ = m.Thinks(nil)
			if d := m.Details(); d.Format != "remote" || d.Family != c.told.Details.Family {
				t.Errorf("details %+v", d)
			}
		})
	}
	m, err := Remote("a", Told{Capabilities: []string{"completion"}, Template: "{{ range .Messages }}<{{ .Content }}>{{ end }}"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := m.Prompt(Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}}); err != nil || p.Text != "<x>" {
		t.Errorf("the prompt of the template that was told: %q %v", p.Text, err)
	}
	caps := m.Capabilities()
	caps[0] = "changed"
	if !slices.Equal(m.Capabilities(), []string{"completion"}) {
		t.Error("a caller changes what a model can")
	}
	installed := &Model{Name: "a:latest"}
	if installed.Elsewhere() {
		t.Error("an installed model is elsewhere")
	}
	for _, name := range []string{"", "a b", "../x", "a/b/c/d/e", "-x"} {
		if _, err := Remote(name, Told{}); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}
