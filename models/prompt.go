package models

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/template"

	"sluice/fault"
)

// maxRequestTemplate is the size of a template that may come with a request.
const maxRequestTemplate = 64 << 10

// Prompt renders a conversation with the model's template. The model's own messages go first, and its system prompt where
// messages have none. When the last message is an assistant's without tool calls, its text is the start of the answer and
// is left open for the model to go on. The messages are not changed.
func (m *Model) Prompt(messages []api.Message) (string, error) {
	if m.config.Renderer != "" {
		return "", fault.New(fault.Unimplemented, "models.Prompt", "%q renders its prompts with %s, which this version does not have", m.Name, m.config.Renderer)
	}
	tmpl, err := m.parsed()
	if err != nil {
		return "", err
	}
	all := m.conversation(messages)
	open := ""
	for n := len(all); n > 0 && all[n-1].Role == "assistant" && len(all[n-1].ToolCalls) == 0; n = len(all) {
		// consecutive turns of one role are one turn, as the templates see it
		if open != "" {
			open = "\n\n" + open
		}
		open = all[n-1].Content + open
		all = all[:n-1]
	}
	text, err := render(tmpl, template.Values{Messages: all})
	if err != nil {
		return "", err
	}
	return text + open, nil
}

// GeneratePrompt renders /api/generate's prompt, system, template and suffix; the last three may be empty. Invalid when the
// template is malformed or may not come from a request, and when there is a suffix but no place for it in the template.
func (m *Model) GeneratePrompt(prompt, system, tmplText, suffix string) (string, error) {
	tmpl, err := m.parsed()
	if err != nil {
		return "", err
	}
	if tmplText != "" {
		if tmpl, err = requestTemplate(tmplText); err != nil {
			return "", err
		}
	}
	if suffix != "" {
		if !takes(tmpl, "suffix") {
			return "", fault.New(fault.Invalid, "models.GeneratePrompt", "%q does not support insert", m.Name)
		}
		return renderWithin(tmpl, tmplText, template.Values{Prompt: prompt, Suffix: suffix})
	}
	var messages []api.Message
	if system != "" {
		messages = append(messages, api.Message{Role: "system", Content: system})
	}
	messages = append(messages, api.Message{Role: "user", Content: prompt})
	if tmplText == "" {
		return m.Prompt(messages)
	}
	return renderWithin(tmpl, tmplText, template.Values{Messages: m.conversation(messages)})
}

// renderWithin renders a request's template, "" none, unless it could grow beyond what any context holds.
func renderWithin(tmpl *template.Template, text string, values template.Values) (string, error) {
	if text != "" && mayGrow(text, values) > maxPrompt {
		return "", fault.New(fault.Invalid, "models.GeneratePrompt", "the template and the prompt together could be longer than %d MiB", maxPrompt>>20)
	}
	return render(tmpl, values)
}

// conversation puts the model's messages and, where it is wanted, its system prompt before a request's. It is a copy: the
// template package joins messages in place.
func (m *Model) conversation(messages []api.Message) []api.Message {
	rest := slices.Concat(m.Messages, messages)
	isSystem := func(msg api.Message) bool { return msg.Role == "system" }
	if m.System == "" || slices.ContainsFunc(rest, isSystem) {
		return rest
	}
	return slices.Concat([]api.Message{{Role: "system", Content: m.System}}, rest)
}

func (m *Model) parsed() (*template.Template, error) {
	if m.template != nil {
		return m.template, nil
	}
	if m.Template == "" {
		return template.DefaultTemplate, nil
	}
	return parseTemplate(m.Template)
}

func (m *Model) canInsert() bool {
	tmpl, err := m.parsed()
	return err == nil && takes(tmpl, "suffix")
}

// takes tells whether a template uses a variable, given in lower case.
func takes(t *template.Template, variable string) bool {
	vars, err := t.Vars()
	return err == nil && slices.Contains(vars, variable)
}

func parseTemplate(text string) (t *template.Template, err error) {
	// the package walks nodes that it expects to be complete
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Invalid, "models.parseTemplate", "template error: %v", r)
		}
	}()
	if t, err = template.Parse(text); err != nil {
		return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: %s", err)
	}
	return t, nil
}

func render(t *template.Template, v template.Values) (text string, err error) {
	for _, msg := range v.Messages {
		if len(msg.Images) > 0 {
			return "", fault.New(fault.Unimplemented, "models.Prompt", "images are not in this version")
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Invalid, "models.Prompt", "template error: %v", r)
		}
	}()
	var b bytes.Buffer
	if err := t.Execute(&limitedWriter{w: &b, left: maxPrompt}, v); err != nil {
		return "", fault.New(fault.Invalid, "models.Prompt", "template error: %s", err)
	}
	return b.String(), nil
}

// maxPrompt is more text than any context holds.
const maxPrompt = 256 << 20

type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, fmt.Errorf("the prompt is longer than %d MiB", maxPrompt>>20)
	}
	l.left -= len(p)
	return l.w.Write(p)
}

// requestTemplate parses a template that anybody may have sent. A template is a program: one that counts, calls itself or
// pads could fill the memory with a few bytes, so it may only go through the messages.
func requestTemplate(text string) (*template.Template, error) {
	if len(text) > maxRequestTemplate {
		return nil, fault.New(fault.Invalid, "models.GeneratePrompt", "the template is longer than %d KiB", maxRequestTemplate>>10)
	}
	t, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		if part.Tree == nil || part.Root == nil {
			continue
		}
		if what := forbidden(part.Root, false); what != "" {
			return nil, fault.New(fault.Invalid, "models.GeneratePrompt", "template error: %s may not be used in a request's template", what)
		}
	}
	return t, nil
}

// ranged are the lists that a request's template may go through, and callable the functions that it may use: none of them
// makes a longer text out of its arguments, as print, json and html do.
var (
	ranged   = []string{"Messages", "ToolCalls", "Tools", "Images"}
	callable = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "currentDate"}
)

// forbidden names the first thing below n that a request's template may not use, or gives "". Lists do not nest: sixty
// {{range}} in each other over two messages are 2^60 steps that write nothing and cannot be stopped.
func forbidden(n parse.Node, inRange bool) string {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return ""
		}
		return firstForbidden(inRange, n.Nodes...)
	case *parse.TemplateNode:
		return "{{template}}"
	case *parse.RangeNode:
		switch {
		case !overMessages(n.Pipe):
			return "{{range}} over anything but the messages"
		case inRange:
			return "a {{range}} in another"
		}
		return firstForbidden(true, n.Pipe, n.List, n.ElseList)
	case *parse.IfNode:
		return firstForbidden(inRange, n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		return firstForbidden(inRange, n.Pipe, n.List, n.ElseList)
	case *parse.ActionNode:
		return forbidden(n.Pipe, inRange)
	case *parse.PipeNode:
		if n == nil {
			return ""
		}
		for _, c := range n.Cmds {
			if what := firstForbidden(inRange, c.Args...); what != "" {
				return what
			}
		}
	case *parse.ChainNode:
		return forbidden(n.Node, inRange)
	case *parse.IdentifierNode:
		if !slices.Contains(callable, n.Ident) {
			return n.Ident
		}
	}
	return ""
}

func firstForbidden(inRange bool, nodes ...parse.Node) string {
	for _, n := range nodes {
		if what := forbidden(n, inRange); what != "" {
			return what
		}
	}
	return ""
}

// mayGrow is the most that a request's template can write: each action once for each message, with all texts each
// time. The writer's limit alone is too late, as a template without messages is rendered into memory first.
func mayGrow(text string, values template.Values) int {
	total, messages := len(values.Prompt)+len(values.Suffix), max(1, len(values.Messages))
	for _, m := range values.Messages {
		total += len(m.Content) + len(m.Thinking)
	}
	return len(text)*messages + strings.Count(text, "{{")*messages*total
}

func overMessages(p *parse.PipeNode) bool {
	if p == nil || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	var ident []string
	switch a := p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		ident = a.Ident
	case *parse.VariableNode:
		ident = a.Ident
	default:
		return false
	}
	return slices.Contains(ranged, ident[len(ident)-1])
}
