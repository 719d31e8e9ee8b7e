package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/harmony"
	"github.com/ollama/ollama/model/renderers"

	"sluice/fault"
)

// Conversation is what a prompt is made of.
type Conversation struct {
	Messages []api.Message
	Tools    []api.Tool
	Think    *api.ThinkValue // nil: the model's own habit, which is to think where it can
}

// Rendered is a prompt as a runner takes it.
type Rendered struct {
	Text   string   // the n-th image stands where it has [img-n], counted from 0
	Images [][]byte // encoded files
}

// The module's renderers write the runner's image markers only when they are told to.
func init() { renderers.RenderImgTags = true }

// Prompt renders a conversation with the model's template, or with the built-in renderer that its manifest names. The
// model's own messages go first, and its system prompt where messages have none. When the last message is an assistant's
// without tool calls, its text is the start of the answer and is left open for the model to go on. What a thinking model
// thought before the last question is left out. The messages are not changed. Invalid when the template cannot render
// them, Unimplemented when the renderer is unknown.
func (m *Model) Prompt(c Conversation) (Rendered, error) {
	all := m.withoutOldThoughts(m.conversation(c.Messages))
	think := m.Thinks(c.Think)
	tools := c.Tools
	if m.Parser() == Harmony {
		tools, all = harmonyNames(tools, all)
	}
	images, err := m.images(all)
	if err != nil {
		return Rendered{}, err
	}
	if m.config.Renderer != "" {
		text, err := m.renderBuiltIn(all, tools, think, len(images))
		return Rendered{Text: text, Images: images}, err
	}
	p, err := m.program()
	if err != nil {
		return Rendered{}, err
	}
	mark(all)
	rest, answer := splitOpen(all)
	text, err := p.render(values{messages: rest, tools: tools, think: think})
	if err != nil {
		return Rendered{}, err
	}
	return Rendered{Text: m.reopen(text, answer), Images: images}, nil
}

// conversation puts the model's messages and, where it is wanted, its system prompt before a request's. It is a copy.
func (m *Model) conversation(messages []api.Message) []api.Message {
	rest := slices.Concat(m.Messages, messages)
	isSystem := func(msg api.Message) bool { return msg.Role == "system" }
	if m.System == "" || slices.ContainsFunc(rest, isSystem) {
		return rest
	}
	return slices.Concat([]api.Message{{Role: "system", Content: m.System}}, rest)
}

// splitOpen takes the opened answer off the end: consecutive turns of one role are one turn, as the templates see it.
func splitOpen(all []api.Message) (rest []api.Message, answer *api.Message) {
	for n := len(all); n > 0 && all[n-1].Role == "assistant" && len(all[n-1].ToolCalls) == 0; n = len(all) {
		last := all[n-1]
		if answer != nil {
			last.Content = joined(last.Content, answer.Content)
			last.Thinking = joined(last.Thinking, answer.Thinking)
		}
		answer, all = &last, all[:n-1]
	}
	return all, answer
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// reopen puts the start of an answer behind a prompt that ends where an answer begins.
func (m *Model) reopen(text string, answer *api.Message) string {
	if answer == nil {
		return text
	}
	if m.Parser() == Harmony {
		switch {
		case answer.Content != "":
			return text + "<|channel|>final<|message|>" + answer.Content
		case answer.Thinking != "":
			return text + "<|channel|>analysis<|message|>" + answer.Thinking
		}
		return text
	}
	begin, end := m.ThinkTags()
	opened := begin != "" && strings.HasSuffix(strings.TrimSpace(text), begin)
	switch {
	case begin == "" || answer.Thinking == "" && !opened:
		return text + answer.Content
	case answer.Thinking != "" && !opened:
		text += begin + "\n"
	}
	text += answer.Thinking
	if answer.Content == "" {
		return text
	}
	return text + "\n" + end + "\n\n" + answer.Content
}

// images collects the images of a conversation in the order of their markers.
func (m *Model) images(all []api.Message) (images [][]byte, err error) {
	for _, msg := range all {
		if len(msg.Images) > 1 && slices.Contains(m.Details().Families, "mllama") {
			return nil, fault.New(fault.Invalid, "models.Prompt", "%q takes one image in a message, and one has %d", m.Name, len(msg.Images))
		}
		for _, image := range msg.Images {
			images = append(images, image)
		}
	}
	return images, nil
}

func marker(n int) string { return fmt.Sprintf("[img-%d]", n) }

// mark puts the markers of a message's images into its text: where it says [img], else in front, as Ollama does.
func mark(all []api.Message) {
	n := 0
	for i := range all {
		front := ""
		for range all[i].Images {
			if strings.Contains(all[i].Content, "[img]") {
				all[i].Content = strings.Replace(all[i].Content, "[img]", marker(n), 1)
			} else {
				front += marker(n)
			}
			n++
		}
		all[i].Content = front + all[i].Content
	}
}

// renderBuiltIn renders with the module's code for a family whose template no template language can hold. Some of these
// renderers do not know images: for them the markers go into the texts.
func (m *Model) renderBuiltIn(all []api.Message, tools []api.Tool, think *api.ThinkValue, images int) (string, error) {
	text, err := callRenderer(m.config.Renderer, all, tools, think)
	if err != nil || images == 0 || strings.Contains(text, marker(images-1)) {
		return text, err
	}
	mark(all)
	for i := range all {
		all[i].Images = nil
	}
	return callRenderer(m.config.Renderer, all, tools, think)
}

func callRenderer(name string, all []api.Message, tools []api.Tool, think *api.ThinkValue) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fmt.Errorf("panic: %v", r), fault.Invalid, "models.Prompt", "the renderer %s cannot render these messages", name)
		}
	}()
	text, err = renderers.RenderWithRenderer(name, all, tools, think)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "unknown renderer"):
		return "", fault.New(fault.Unimplemented, "models.Prompt", "the model's prompts are rendered by %q, which this version does not have: update Sluice", name)
	case err != nil:
		return "", fault.New(fault.Invalid, "models.Prompt", "the renderer %s cannot render these messages: %s", name, err)
	}
	return text, nil
}

// HarmonyNames maps the names of tools to those that the harmony format can write, and back. It depends on the order of
// the tools alone, so a prompt and the reader of its answer make the same one.
func HarmonyNames(tools []api.Tool) *harmony.FunctionNameMap {
	names := harmony.NewFunctionNameMap()
	for _, tool := range tools {
		if tool.Function.Name != "" {
			names.ConvertAndAdd(tool.Function.Name)
		}
	}
	return names
}

// harmonyNames renames tools, and the calls of them in earlier turns.
func harmonyNames(tools []api.Tool, all []api.Message) ([]api.Tool, []api.Message) {
	names, safe := harmony.NewFunctionNameMap(), map[string]string{}
	tools = slices.Clone(tools)
	for i, tool := range tools {
		if name := tool.Function.Name; name != "" {
			safe[name] = names.ConvertAndAdd(name)
			tools[i].Function.Name = safe[name]
		}
	}
	for i, msg := range all {
		if to, ok := safe[msg.ToolName]; ok {
			all[i].ToolName = to
		}
		all[i].ToolCalls = slices.Clone(msg.ToolCalls)
		for j, call := range msg.ToolCalls {
			if to, ok := safe[call.Function.Name]; ok {
				all[i].ToolCalls[j].Function.Name = to
			}
		}
	}
	return tools, all
}
