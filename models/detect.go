package models

import (
	"embed"
	"io"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/template"

	"sluice/fault"
)

// templates are those that the module's index lacks: a file may say in its Jinja template how its model calls tools and
// thinks, and the index then has a template without either, or none.
//
//go:embed templates/*.gotmpl
var templates embed.FS

// detected is the way to talk to a model.
type detected struct {
	name, text       string
	stop             []string
	renderer, parser string // instead of a text
}

// detectTemplate adds what fits a GGUF file's Jinja template, and its stop strings.
func (b *builder) detectTemplate(jinja string) error {
	found, err := detect(jinja)
	if err != nil || found.name == "" {
		return err
	}
	b.progress(api.ProgressResponse{Status: "using autodetected template " + found.name})
	b.config.Renderer, b.config.Parser = found.renderer, found.parser
	if found.text != "" {
		if err := b.add(mediaTemplate, []byte(found.text)); err != nil {
			return err
		}
	}
	if found.stop == nil {
		return nil
	}
	return b.addJSON(mediaParams, map[string]any{"stop": found.stop})
}

// detect chooses by the marks of the families with tools first: each is a text that the template writes. Without a name
// nothing was found.
func detect(jinja string) (detected, error) {
	if jinja == "" || len(jinja) > maxRequestTemplate { // the search compares every pair of characters
		return detected{}, nil
	}
	has := func(marks ...string) bool {
		for _, m := range marks {
			if !strings.Contains(jinja, m) {
				return false
			}
		}
		return true
	}
	chatML := []string{"<|im_start|>", "<|im_end|>"}
	switch {
	case has("<|im_start|>", "<tool_call>", "<function=", "<parameter="):
		return detected{name: "qwen3-coder", renderer: "qwen3-coder", parser: "qwen3-coder", stop: chatML}, nil
	case has("<|im_start|>", "<tool_call>", "</think>"):
		return thinkingChatML(jinja, chatML)
	case has("<|im_start|>", "<tool_call>", "tools"):
		return own("chatml-tools", chatML)
	case has("<|start_header_id|>", "tools", "ipython"):
		return own("llama3-tools", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})
	case has("[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[INST]"):
		return own("mistral-tools", []string{"[INST]", "[/INST]"})
	}
	return inIndex(jinja)
}

func own(name string, stop []string) (detected, error) {
	text, err := templates.ReadFile("templates/" + name + ".gotmpl")
	return detected{name: name, text: string(text), stop: stop}, err
}

// thinkingChatML is ChatML with thinking. Some models cannot leave it: their templates begin every answer with <think>.
func thinkingChatML(jinja string, stop []string) (detected, error) {
	found, err := own("chatml-think", stop)
	for _, begun := range []string{`<|im_start|>assistant\n<think>`, "<|im_start|>assistant\n<think>"} {
		if strings.Contains(jinja, begun) {
			head, _, _ := strings.Cut(found.text, "{{ if and .IsThinkSet (not .Think) }}")
			found.text = head + "<think>\n"
		}
	}
	return found, err
}

// inIndex asks the module.
func inIndex(jinja string) (detected, error) {
	found, err := template.Named(jinja)
	if err != nil {
		// The index has few of the templates that are around. What writes <|im_start|> is ChatML, whatever else it does.
		if !strings.Contains(jinja, "<|im_start|>") {
			return detected{}, nil
		}
		const chatML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}" +
			"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
		if found, err = template.Named(chatML); err != nil || found.Name != "chatml" {
			return detected{}, fault.Bug("the template index has no ChatML: %v", err)
		}
	}
	text, err := io.ReadAll(found.Reader())
	out := detected{name: found.Name, text: string(text)}
	if found.Parameters != nil {
		out.stop = found.Parameters.Stop
	}
	return out, err
}
