package models

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	texttemplate "text/template"
	"text/template/parse"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/template"

	"sluice/fault"
)

// maxPrompt is more text than any context holds.
const maxPrompt = 64 << 20

// program is a template, ready to run. The module's own Execute is not used: it prints a tool's function as a Go struct,
// renders into memory without a limit, and cannot be stopped.
type program struct {
	source *template.Template
	vars   []string

	thinkBegin, thinkEnd string // both or none

	run    *texttemplate.Template // source with its loops counted
	answer *texttemplate.Template // run up to the place of the answer; nil for a template that goes through messages
}

// parseTemplate reads a template. Invalid when it is malformed.
func parseTemplate(text string) (p *program, err error) {
	// the module walks nodes that it expects to be complete
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Invalid, "models.parseTemplate", "template error: %v", r)
		}
	}()
	if len(text) > maxTemplate || strings.Count(text, "{{") > maxActions {
		return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: it is longer than %d KiB or has more than %d actions", maxTemplate>>10, maxActions)
	}
	source, err := template.Parse(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: %s", err)
	}
	return newProgram(source)
}

func newProgram(source *template.Template) (*program, error) {
	vars, err := source.Vars()
	if err != nil {
		return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: %s", err)
	}
	p := &program{source: source, vars: vars}
	p.inferTags()
	if p.run, err = counted(source.Template, func(root *parse.ListNode) *parse.ListNode { return root }); err != nil {
		return nil, err
	}
	if !p.takes("messages") {
		p.answer, err = counted(source.Template, untilAnswer)
	}
	return p, err
}

// takes tells whether the template uses a variable, given in lower case.
func (p *program) takes(variable string) bool { return slices.Contains(p.vars, variable) }

// program gives the model's template.
func (m *Model) program() (*program, error) {
	switch {
	case m.prog != nil:
		return m.prog, nil
	case m.Template == "":
		return newProgram(template.DefaultTemplate)
	}
	return parseTemplate(m.Template)
}

// values are what a template is rendered with: messages, or with insert a prompt and a suffix.
type values struct {
	messages       []api.Message
	tools          []api.Tool
	think          *api.ThinkValue
	insert         bool
	prompt, suffix string
}

// render runs the template. It writes maxPrompt at most, and its loops and functions end early.
func (p *program) render(v values) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Invalid, "models.Prompt", "template error: %v", r)
		}
	}()
	w := &limitedWriter{}
	b := newBudget()
	switch {
	case v.insert:
		err = b.execute(p.run, w, v.with("Prompt", v.prompt, "Suffix", v.suffix))
	case p.answer == nil:
		system, messages := collate(v.messages)
		err = b.execute(p.run, w, v.with("System", system, "Messages", messages, "Tools", toolsOf(v.tools)))
	default:
		err = p.turns(w, b, v)
	}
	if err != nil {
		return "", fault.New(fault.Invalid, "models.Prompt", "template error: %s", reason(err))
	}
	return w.String(), nil
}

// turns renders a template of the older kind, which knows one turn: it is run once for each, and the last time only up to
// the place of the answer.
func (p *program) turns(w io.Writer, b *budget, v values) error {
	var system, prompt, response string
	turn := func(t *texttemplate.Template) error {
		err := b.execute(t, w, v.with("System", system, "Prompt", prompt, "Response", response))
		system, prompt, response = "", "", ""
		return err
	}
	_, messages := collate(v.messages)
	for _, m := range messages {
		var err error
		switch m.Role {
		case "system":
			if prompt != "" || response != "" {
				err = turn(p.run)
			}
			system = m.Content
		case "user":
			if response != "" {
				err = turn(p.run)
			}
			prompt = m.Content
		case "assistant":
			response = m.Content
		}
		if err != nil {
			return err
		}
	}
	return turn(p.answer)
}

// with gives the variables that every template has, and more of them as pairs.
func (v values) with(pairs ...any) map[string]any {
	out := map[string]any{"Response": "", "Think": false, "ThinkLevel": "", "IsThinkSet": v.think != nil}
	if v.think != nil {
		out["Think"], out["ThinkLevel"] = v.think.Bool(), v.think.String()
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// collate joins consecutive turns of one role, but not results of tools, and gives all system texts besides.
func collate(all []api.Message) (system string, out []*message) {
	var systems []string
	for _, m := range all {
		if m.Role == "system" {
			systems = append(systems, m.Content)
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role && m.Role != "tool" {
			last := out[n-1]
			last.Content += "\n\n" + m.Content
			last.Thinking = joined(last.Thinking, m.Thinking)
			last.ToolCalls = append(last.ToolCalls, callsOf(m.ToolCalls)...) // the module forgets these
			continue
		}
		out = append(out, messageOf(m))
	}
	return strings.Join(systems, "\n\n"), out
}

// untilAnswer cuts everything behind the first {{ .Response }} off.
func untilAnswer(root *parse.ListNode) *parse.ListNode {
	root = root.CopyList()
	cut := false
	var walk func(l *parse.ListNode)
	walk = func(l *parse.ListNode) {
		if l == nil {
			return
		}
		for i, n := range l.Nodes {
			switch n := n.(type) {
			case *parse.ActionNode:
				vars, _ := template.Identifiers(n)
				cut = slices.Contains(vars, "Response")
			case *parse.IfNode:
				walk(n.List)
				cutOr(&cut, n.ElseList, walk)
			case *parse.WithNode:
				walk(n.List)
				cutOr(&cut, n.ElseList, walk)
			case *parse.RangeNode:
				walk(n.List)
				cutOr(&cut, n.ElseList, walk)
			}
			if cut {
				l.Nodes = l.Nodes[:i+1]
				return
			}
		}
	}
	walk(root)
	return root
}

// cutOr empties a branch that comes behind the cut, or walks it.
func cutOr(cut *bool, l *parse.ListNode, walk func(*parse.ListNode)) {
	if l == nil {
		return
	}
	if *cut {
		l.Nodes = nil
		return
	}
	walk(l)
}

// reason takes the place in the template off an error of our own functions, and keeps the rest.
func reason(err error) error {
	var over *overBudget
	if errors.As(err, &over) {
		return over
	}
	return err
}

type limitedWriter struct{ bytes.Buffer }

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrompt {
		return 0, &overBudget{fmt.Sprintf("the prompt is longer than %d MiB", maxPrompt>>20)}
	}
	return l.Buffer.Write(p)
}

func (b *budget) execute(t *texttemplate.Template, w io.Writer, data map[string]any) error {
	t, err := t.Clone()
	if err != nil {
		return err
	}
	return t.Funcs(maps.Clone(b.funcs())).Execute(w, data)
}
