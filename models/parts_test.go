package models

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/parser"

	"sluice/fault"
)

// TestCreateOfParts holds what becomes of the files and formats that a model may have besides its weights.
func TestCreateOfParts(t *testing.T) {
	s := newStore(t)
	gguf := addBlob(t, s, tinyGGUF(t, nil))
	lora := addBlob(t, s, tinyGGUF(t, map[string]any{"general.type": "adapter"}))
	other := addBlob(t, s, tinyGGUF(t, map[string]any{"general.type": "adapter", "general.name": "two"}))
	foreign := addBlob(t, s, tinyGGUF(t, map[string]any{"general.type": "adapter", "general.architecture": "gemma"}))
	clip := addBlob(t, s, tinyGGUF(t, map[string]any{"general.architecture": "clip", "clip.vision.block_count": uint32(2), "general.type": nil}))
	second := addBlob(t, s, tinyGGUF(t, map[string]any{"general.name": "another"}))
	blob := func(digest string) string {
		path, err := s.blobPath(digest)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	tinyModel(t, s, "base", "one")
	all := map[string]string{"a-lora.gguf": lora, "m.gguf": gguf, "z-clip.gguf": clip}
	rows := map[string]struct {
		req       CreateRequest
		adapters  []string
		projector string
		caps      []string
		code      fault.Code
		err       string
	}{
		"adapter and projector among the files": {req: CreateRequest{Files: all}, adapters: []string{blob(lora)}, projector: blob(clip), caps: []string{"completion", "embedding", "vision"}},
		"adapters of an installed model":        {req: CreateRequest{From: "base", Adapters: map[string]string{"a": lora, "b": other}}, adapters: []string{blob(lora), blob(other)}},
		"adapters and files":                    {req: CreateRequest{Files: map[string]string{"m.gguf": gguf}, Adapters: map[string]string{"a": lora}}, adapters: []string{blob(lora)}},
		"the type that it has":                  {req: CreateRequest{From: "base", Quantize: "q8_0"}},
		"another type":                          {req: CreateRequest{From: "base", Quantize: "q4_K_M"}, code: fault.Unimplemented, err: "cannot change the type of a model's weights from Q8_0"},
		"an adapter of another family":          {req: CreateRequest{From: "base", Adapters: map[string]string{"a": foreign}}, code: fault.Invalid, err: "the adapter is for gemma models, and the model is llama"},
		"an adapter that is a model":            {req: CreateRequest{From: "base", Adapters: map[string]string{"a": second}}, code: fault.Invalid, err: "several models"},
		"an adapter that is a projector":        {req: CreateRequest{From: "base", Adapters: map[string]string{"a": clip}}, code: fault.Invalid, err: "is not an adapter"},
		"an adapter not uploaded":               {req: CreateRequest{From: "base", Adapters: map[string]string{"a": digestOf([]byte("?"))}}, code: fault.Invalid, err: "was not uploaded"},
		"an adapter's path that climbs":         {req: CreateRequest{From: "base", Adapters: map[string]string{"../a": lora}}, code: fault.Invalid, err: "must be relative"},
		"two projectors":                        {req: CreateRequest{Files: map[string]string{"m.gguf": gguf, "x.gguf": clip, "y.gguf": clip}}, code: fault.Invalid, err: "one projector"},
		"two models":                            {req: CreateRequest{Files: map[string]string{"m.gguf": gguf, "n.gguf": second}}, code: fault.Invalid, err: "several models"},
		"an adapter alone":                      {req: CreateRequest{Files: map[string]string{"a": lora}}, code: fault.Invalid, err: "no model that it is for"},
		"a renderer that nobody knows":          {req: CreateRequest{From: "base", Renderer: "qwen9"}, code: fault.Invalid, err: `no renderer "qwen9"`},
		"a parser that nobody knows":            {req: CreateRequest{From: "base", Parser: "qwen9"}, code: fault.Invalid, err: `no parser "qwen9"`},
		"a safetensors adapter that is none":    {req: CreateRequest{From: "base", Adapters: map[string]string{"a.safetensors": gguf}}, code: fault.Invalid, err: "cannot be converted"},
	}
	n := 0
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			n++
			row.req.Name = fmt.Sprintf("x%d", n) // one that is replaced takes its blobs with it
			err := s.Create(t.Context(), row.req, nil)
			if row.err != "" {
				wantFault(t, err, row.code, row.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Get(strings.ToUpper(row.req.Name))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(m.Adapters(), row.adapters) || m.Projector() != row.projector {
				t.Errorf("adapters %q, projector %q", m.Adapters(), m.Projector())
			}
			if row.caps != nil && !reflect.DeepEqual(m.Capabilities(), row.caps) {
				t.Errorf("capabilities: %v", m.Capabilities())
			}
			for _, path := range append(m.Adapters(), m.Projector()) {
				if path != "" && !strings.Contains(m.Modelfile(), path) {
					t.Errorf("the Modelfile lacks %s:\n%s", path, m.Modelfile())
				}
			}
		})
	}
	m, err := s.Get("base")
	if err != nil || m.Path == "" || m.Adapters() != nil {
		t.Errorf("the base was changed: %+v, %v", m, err)
	}
}

// TestCreateKeepsFormats holds that a model made from another keeps what the request does not replace.
func TestCreateKeepsFormats(t *testing.T) {
	s := newStore(t)
	lora := addBlob(t, s, tinyGGUF(t, map[string]any{"general.type": "adapter"}))
	tinyModel(t, s, "base", "one")
	first := CreateRequest{Name: "first", From: "base", Renderer: "qwen3-coder", Parser: "qwen3-coder", Requires: "0.14.0", Adapters: map[string]string{"a": lora}, Messages: []api.Message{msg("user", "hi")}}
	if err := s.Create(t.Context(), first, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), CreateRequest{Name: "second", From: "FIRST", System: "Sing.", Parser: "qwen3"}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("second")
	if err != nil {
		t.Fatal(err)
	}
	if m.Renderer() != "qwen3-coder" || m.Parser() != "qwen3" || m.Requires() != "0.14.0" || len(m.Adapters()) != 1 || len(m.Messages) != 1 || m.System != "Sing." {
		t.Errorf("renderer %q, parser %q, requires %q, %d adapters, %d messages", m.Renderer(), m.Parser(), m.Requires(), len(m.Adapters()), len(m.Messages))
	}
	f, err := parser.ParseFile(strings.NewReader(m.Modelfile()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, m.Modelfile())
	}
	got := map[string]string{}
	for _, c := range f.Commands {
		got[c.Name] = c.Args
	}
	if got["renderer"] != "qwen3-coder" || got["parser"] != "qwen3" || got["requires"] != "0.14.0" || got["adapter"] != m.Adapters()[0] {
		t.Errorf("the Modelfile says %v", got)
	}
}

// TestDetect holds which way to talk a GGUF file's own template stands for. The texts are the marks of the families.
func TestDetect(t *testing.T) {
	rows := map[string]struct {
		jinja, name, parser string
		caps                []string
	}{
		"ChatML":                         {chatMLJinja, "chatml", "", []string{"completion", "embedding"}},
		"ChatML that knows tools":        {"{% if tools %}<|im_start|>system <tools><tool_call>", "chatml-tools", "", []string{"completion", "embedding", "tools"}},
		"ChatML that thinks":             {"{% if tools %}<|im_start|>system <tools><tool_call> {{ '<think>\\n\\n</think>' }}", "chatml-think", "", []string{"completion", "embedding", "tools", "thinking"}},
		"ChatML that always thinks":      {"{% if tools %}<tool_call></think> {{ '<|im_start|>assistant\\n<think>\\n' }}", "chatml-think", "", []string{"completion", "embedding", "tools", "thinking"}},
		"Qwen 3 Coder":                   {"<|im_start|> <tool_call>\n<function=x>\n<parameter=y>", "qwen3-coder", "qwen3-coder", []string{"completion", "embedding", "tools"}},
		"Llama 3 that knows tools":       {"<|start_header_id|> {% if tools %} ipython", "llama3-tools", "", []string{"completion", "embedding", "tools"}},
		"Mistral that knows tools":       {"[INST] [AVAILABLE_TOOLS] [TOOL_CALLS]", "mistral-tools", "", []string{"completion", "embedding", "tools"}},
		"nothing that anybody has heard": {"{{ messages }} " + strings.Repeat("zz", 300), "", "", []string{"completion", "embedding"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			d := addBlob(t, s, tinyGGUF(t, map[string]any{"tokenizer.chat_template": row.jinja}))
			said := ""
			err := s.Create(t.Context(), CreateRequest{Name: "m", Files: map[string]string{"x.gguf": d}}, func(p api.ProgressResponse) {
				if rest, ok := strings.CutPrefix(p.Status, "using autodetected template "); ok {
					said = rest
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Get("m")
			if err != nil {
				t.Fatal(err)
			}
			if said != row.name || m.Parser() != row.parser || m.Renderer() != row.parser || !reflect.DeepEqual(m.Capabilities(), row.caps) {
				t.Errorf("template %q, parser %q, capabilities %v", said, m.Parser(), m.Capabilities())
			}
			p, err := m.Prompt(Conversation{Messages: []api.Message{msg("user", "x")}})
			if err != nil {
				t.Fatal(err)
			}
			if begun := strings.HasSuffix(p.Text, "<|im_start|>assistant\n<think>\n"); begun != strings.Contains(name, "always") {
				t.Errorf("the prompt ends with a begun thought: %t", begun)
			}
		})
	}
}

func TestFactsOfEncoders(t *testing.T) {
	s := newStore(t)
	for name, row := range map[string]struct {
		pooling uint32
		caps    string
	}{"mean": {1, "embedding"}, "rank": {poolingRank, "rerank"}} {
		d := addBlob(t, s, tinyGGUF(t, map[string]any{"general.architecture": "bert", "bert.pooling_type": row.pooling, "bert.block_count": uint32(1)}))
		if err := s.Create(t.Context(), CreateRequest{Name: name, Files: map[string]string{"x.gguf": d}}, nil); err != nil {
			t.Fatal(err)
		}
		m, err := s.Get(name)
		if err != nil || !m.Facts.Pooling || !reflect.DeepEqual(m.Capabilities(), []string{row.caps}) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
