package models

import (
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/model/parsers"
	"github.com/ollama/ollama/thinking"
	"github.com/ollama/ollama/types/model"
)

// Harmony is the name of the format in which gpt-oss models think, call tools and answer.
const Harmony = "harmony"

// Parser names the format of the model's answers, as its manifest does: "qwen3-coder", "harmony". "" when the template says
// it all. It may name a format that this version does not know.
func (m *Model) Parser() string {
	if m.config.Parser == "" && slices.Contains([]string{"gptoss", "gpt-oss"}, m.family()) {
		return Harmony // these models had no parser in their manifests at first
	}
	return m.config.Parser
}

// Renderer names the built-in renderer of the model's prompts, or is "".
func (m *Model) Renderer() string { return m.config.Renderer }

// Requires is the least version of Ollama that the manifest asks for, or "".
func (m *Model) Requires() string { return m.config.Requires }

func (m *Model) family() string {
	if m.config.ModelFamily != "" {
		return m.config.ModelFamily
	}
	return m.Facts.Family
}

// ThinkTags are the texts between which the model thinks, such as <think> and </think>; both are "" when it does not, or not
// between tags.
func (m *Model) ThinkTags() (begin, end string) {
	name := m.Parser()
	switch p := parsers.ParserForName(name); {
	case name == Harmony:
		return "", ""
	case name == "ministral":
		return "[THINK]", "[/THINK]"
	case p != nil && p.HasThinkingSupport():
		return "<think>", "</think>"
	}
	p, err := m.program()
	if err != nil {
		return "", ""
	}
	return p.thinkBegin, p.thinkEnd
}

// canThink tells whether thinking can be switched on.
func (m *Model) canThink() bool {
	name := m.Parser()
	if p := parsers.ParserForName(name); name == Harmony || p != nil && p.HasThinkingSupport() {
		return true
	}
	p, err := m.program()
	return err == nil && p.thinkBegin != ""
}

// Thinks is what a request's think means for this model: as Ollama, a model that can think does so unless told otherwise.
// A level ("low", "medium", "high") is plain true for a model without levels.
func (m *Model) Thinks(asked *api.ThinkValue) *api.ThinkValue {
	switch {
	case asked == nil && m.canThink():
		return &api.ThinkValue{Value: true}
	case asked != nil && asked.IsString() && m.Parser() != Harmony:
		return &api.ThinkValue{Value: asked.Bool()}
	}
	return asked
}

// withoutOldThoughts takes the thoughts out of the texts of answers before the last question: clients that know no
// "thinking" send them back as content, and they would only fill the context. The list is changed.
func (m *Model) withoutOldThoughts(all []api.Message) []api.Message {
	begin, end := m.ThinkTags()
	if begin == "" && (m.family() == "qwen3" || model.ParseName(m.Name).Model == "deepseek-r1") {
		begin, end = "<think>", "</think>"
	}
	last := -1
	for i, msg := range all {
		if msg.Role == "user" {
			last = i
		}
	}
	if begin == "" {
		return all
	}
	for i := range max(last, 0) {
		if all[i].Role == "assistant" {
			if _, rest, ok := cutThought(all[i].Content, begin, end); ok {
				all[i].Content = rest
			}
		}
	}
	return all
}

// cutThought splits a text that begins with a finished thought.
func cutThought(text, begin, end string) (thought, rest string, ok bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), begin)
	if !ok {
		return "", text, false
	}
	thought, rest, ok = strings.Cut(inner, end)
	if !ok {
		return "", text, false
	}
	return thought, strings.TrimSpace(rest), true
}

// inferTags finds the tags in a template. The module's search expects complete nodes.
func (p *program) inferTags() {
	defer func() {
		if recover() != nil {
			p.thinkBegin, p.thinkEnd = "", ""
		}
	}()
	begin, end := thinking.InferTags(p.source.Template)
	if begin != "" && end != "" {
		p.thinkBegin, p.thinkEnd = begin, end
	}
}
