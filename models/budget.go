package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	texttemplate "text/template"
	"text/template/parse"

	"sluice/fault"
)

// A template is a program, and models come from strangers: sixty {{range}} in each other are 2^60 steps that write nothing,
// and a few {{print}} double a text past any memory. So the loops and templates of a program count their steps, and its
// functions the text that they make or compare; all end with an error. A rendering of a thousand turns needs a hundredth of this.
const (
	maxSteps    = 4_000_000 // nodes of the template that are run
	maxMade     = 32 << 20  // bytes that functions make
	maxTemplate = 1 << 20   // bytes of a template
	maxActions  = 2000      // {{…}} of a template: the time to parse them grows with the square when they lie in each other
)

type overBudget struct{ msg string }

func (e *overBudget) Error() string { return e.msg }

// budget is what one rendering may still use.
type budget struct{ steps, made int }

func newBudget() *budget { return &budget{steps: maxSteps, made: maxMade} }

func (b *budget) step(n int) error {
	if b.steps -= n; b.steps < 0 {
		return &overBudget{"the template takes too many steps"}
	}
	return nil
}

func (b *budget) make(n int) error {
	if b.made -= n; b.made < 0 || n < 0 {
		return &overBudget{"the template makes too much text"}
	}
	return nil
}

// loop lets a range go over a list of what it was given, and pays for it. Numbers and functions are no lists.
func (b *budget) loop(nodes int, list any) (any, error) {
	switch v := reflect.Indirect(reflect.ValueOf(list)); v.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Slice, reflect.Array, reflect.Map:
		if v.Len() > maxSteps/(nodes+1) {
			return nil, b.step(maxSteps + 1)
		}
		return list, b.step((v.Len() + 1) * (nodes + 1))
	default:
		return nil, fmt.Errorf("range can't iterate over %v", list)
	}
}

// funcs replaces the functions that make texts, of the language and of the module, by ones that count.
func (b *budget) funcs() texttemplate.FuncMap {
	text := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			for _, a := range args {
				if err := b.make(sizeOf(a) + 1); err != nil {
					return "", err
				}
			}
			return f(args...), nil
		}
	}
	all := texttemplate.FuncMap{
		"sluiceLoop": b.loop,
		"sluiceStep": func(nodes int) (string, error) { return "", b.step(nodes + 1) },
		"print":      text(fmt.Sprint),
		"println":    text(fmt.Sprintln),
		"html":       text(texttemplate.HTMLEscaper),
		"js":         text(texttemplate.JSEscaper),
		"urlquery":   text(texttemplate.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			if !tameFormat(format) {
				return "", fmt.Errorf("printf: %q pads or repeats its arguments", format)
			}
			return text(func(all ...any) string { return fmt.Sprintf(format, all[1:]...) })(append([]any{format}, args...)...)
		},
		"json": func(v any) (string, error) {
			spaces := false
			switch v.(type) {
			case tools, tool, function, parameters, properties, arguments:
				spaces = true
			}
			s := toJSON(v, spaces)
			return s, b.make(len(s))
		},
	}
	b.compares(all)
	return all
}

func sizeOf(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return len(fmt.Sprint(v))
}

// tameFormat tells whether a format can only write its arguments once, with little around them.
func tameFormat(format string) bool {
	if strings.ContainsAny(format, "*[") {
		return false
	}
	digits := 0
	for _, c := range format {
		if c < '0' || c > '9' {
			digits = 0
			continue
		}
		if digits++; digits > 3 {
			return false
		}
	}
	return true
}

// toJSON writes JSON for a model to read: HTML's signs as they are, and with spaces the way Python does it, in which models
// saw their tools when they were trained.
func toJSON(v any, spaces bool) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	var out strings.Builder
	quoted := false
	for data := strings.TrimRight(buf.String(), "\n"); data != ""; {
		n := 1
		switch c := data[0]; {
		case c == '\\': // only inside strings, and never at the end
			if sign, ok := signs[data[:min(6, len(data))]]; ok { // what writes its own JSON was not told to leave them
				out.WriteString(sign)
				data = data[6:]
				continue
			}
			n = 2
		case c == '"':
			quoted = !quoted
		case spaces && !quoted && (c == ':' || c == ','):
			out.WriteString(data[:1] + " ")
			data = data[1:]
			continue
		}
		out.WriteString(data[:n])
		data = data[n:]
	}
	return out.String()
}

// signs are HTML's, as JSON writes them for a web page.
var signs = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"}

// counted copies a template and puts the counting into the copy; change may first shorten its main part.
func counted(t *texttemplate.Template, change func(*parse.ListNode) *parse.ListNode) (*texttemplate.Template, error) {
	out, err := t.Clone()
	if err != nil {
		return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: %s", err)
	}
	for _, part := range t.Templates() {
		if part.Tree == nil || part.Root == nil {
			continue
		}
		root := part.Root.CopyList()
		if part.Name() == t.Name() {
			root = change(part.Root).CopyList()
		}
		if err := count(root, 0); err != nil {
			return nil, err
		}
		root.Nodes = append([]parse.Node{call("sluiceStep", size(root))}, root.Nodes...)
		tree := part.Tree.Copy()
		tree.Root = root
		if _, err := out.AddParseTree(part.Name(), tree); err != nil {
			return nil, fault.New(fault.Invalid, "models.parseTemplate", "template error: %s", err)
		}
	}
	return out, nil
}

// maxDepth is how deep blocks may lie in each other.
const maxDepth = 200

// count sends the list of each range below l through sluiceLoop.
func count(l *parse.ListNode, depth int) error {
	if l == nil {
		return nil
	}
	if depth > maxDepth {
		return fault.New(fault.Invalid, "models.parseTemplate", "template error: blocks lie more than %d deep in each other", maxDepth)
	}
	branch := func(b *parse.BranchNode) error {
		if err := count(b.List, depth+1); err != nil {
			return err
		}
		return count(b.ElseList, depth+1)
	}
	for _, n := range l.Nodes {
		var err error
		switch n := n.(type) {
		case *parse.IfNode:
			err = branch(&n.BranchNode)
		case *parse.WithNode:
			err = branch(&n.BranchNode)
		case *parse.RangeNode:
			n.Pipe.Cmds = append(n.Pipe.Cmds, call("sluiceLoop", size(n.List)).Pipe.Cmds...)
			err = branch(&n.BranchNode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call is the node {{ name n }}.
func call(name string, n int) *parse.ActionNode {
	number := &parse.NumberNode{NodeType: parse.NodeNumber, IsInt: true, Int64: int64(n), Text: strconv.Itoa(n)}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
		{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(name), number}},
	}}}
}

// size is the number of nodes in a list.
func size(n parse.Node) (total int) {
	list := func(l *parse.ListNode) int {
		if l == nil {
			return 0
		}
		return size(l)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return 0
		}
		for _, c := range n.Nodes {
			total += 1 + size(c)
		}
	case *parse.IfNode:
		return size(n.Pipe) + list(n.List) + list(n.ElseList)
	case *parse.WithNode:
		return size(n.Pipe) + list(n.List) + list(n.ElseList)
	case *parse.RangeNode:
		return size(n.Pipe) + list(n.List) + list(n.ElseList)
	case *parse.ActionNode:
		return size(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return 0
		}
		for _, c := range n.Cmds {
			total += 1 + len(c.Args)
		}
	}
	return total
}
