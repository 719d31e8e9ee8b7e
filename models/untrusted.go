package models

import (
	"slices"
	"strings"
	"text/template/parse"

	"sluice/fault"
)

// maxRequestTemplate is the size of a template that may come with a request.
const maxRequestTemplate = 64 << 10

// requestTemplate parses a template that anybody may have sent. A template is a program: one that counts, calls itself or
// pads could fill the memory with a few bytes, so it may only go through the messages.
func requestTemplate(text string) (*program, error) {
	if len(text) > maxRequestTemplate {
		return nil, fault.New(fault.Invalid, "models.GeneratePrompt", "the template is longer than %d KiB", maxRequestTemplate>>10)
	}
	p, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	for _, part := range p.source.Templates() {
		if part.Tree == nil || part.Root == nil {
			continue
		}
		if what := forbidden(part.Root, false); what != "" {
			return nil, fault.New(fault.Invalid, "models.GeneratePrompt", "template error: %s may not be used in a request's template", what)
		}
	}
	return p, nil
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
// time. It is known before anything is rendered.
func mayGrow(text string, v values) int {
	total, messages := len(v.prompt)+len(v.suffix), max(1, len(v.messages))
	for _, m := range v.messages {
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
