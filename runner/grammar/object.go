package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// property is one that an object may have; its value satisfies all nodes (none: any value).
type property struct {
	name     string
	nodes    []*node
	required bool
}

// shape is what the schemas that hold for an object say together.
type shape struct {
	props     []property
	open      bool // other properties may follow
	others    []*node
	forbidden map[string]bool
	index     map[string]int // of props
}

func (s *shape) prop(name string) *property {
	if i, ok := s.index[name]; ok {
		return &s.props[i]
	}
	return nil
}

// needsWhat: whether s requires a property that no object of the other shape has.
func (s *shape) needsWhat(other *shape) bool {
	return slices.ContainsFunc(s.props, func(p property) bool {
		return p.required && other.prop(p.name) == nil && (!other.open || other.forbidden[p.name])
	})
}

func requiredNames(n *node) ([]string, error) {
	v := n.get("required")
	if v == nil || v.kind == 'b' { // draft 3 had true there
		return nil, nil
	}
	if v.kind != 'a' {
		return nil, refuse(v.path, "required must be a list of names")
	}
	names := make([]string, len(v.items))
	for i, item := range v.items {
		if item.kind != 's' {
			return nil, refuse(v.path, "required must be a list of names")
		}
		names[i] = item.text
	}
	return names, nil
}

// readObject merges the schemas of an object. nil: none can satisfy them.
//
// A property that one schema does not list must satisfy that schema's additionalProperties. Objects are closed unless a schema
// opens them, as in llama.cpp's converter: a small model would else invent properties.
func (c *compiler) readObject(f *form) (*shape, error) {
	if f.shape != nil {
		return f.shape, nil
	}
	s := &shape{forbidden: map[string]bool{}, index: map[string]int{}}
	var names []string
	known := map[string]bool{}
	required := map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	listed, said, closed := false, false, false
	for _, n := range f.nodes {
		if p := n.get("properties"); p != nil {
			if p.kind != 'o' {
				return nil, refuse(p.path, "properties must be an object")
			}
			listed = listed || len(p.members) > 0
			for _, m := range p.members {
				add(m.name)
			}
		}
		if more := n.get("additionalProperties"); more != nil {
			said = true
			closed = closed || more.kind == 'b' && !more.yes
			if more.kind != 'b' {
				s.others = append(s.others, more)
			}
		}
		if more := n.get("unevaluatedProperties"); more != nil {
			if more.kind != 'b' {
				return nil, unsupported(n, "unevaluatedProperties", "as a schema; use additionalProperties")
			}
			closed = closed || !more.yes
		}
	}
	for _, n := range f.nodes {
		must, err := requiredNames(n)
		if err != nil {
			return nil, err
		}
		for _, name := range must {
			add(name)
			required[name] = true
		}
	}
	s.open = !closed && (said || !listed)
	if err := c.work(20*len(names)*len(f.nodes), f.path); err != nil {
		return nil, err
	}
	for _, name := range names {
		p := property{name: name, required: required[name]}
		allowed := true
		for _, n := range f.nodes {
			if list := n.get("properties"); list != nil && list.get(name) != nil {
				p.nodes = append(p.nodes, list.get(name))
			} else if more := n.get("additionalProperties"); more != nil {
				allowed = allowed && (more.kind != 'b' || more.yes)
				p.nodes = append(p.nodes, more)
			}
		}
		if !allowed {
			if p.required {
				c.reason = fmt.Sprintf(" (property %q at %s is required, but additionalProperties forbids it)", name, f.path)
				return nil, nil
			}
			s.forbidden[name] = true
			continue
		}
		s.index[name] = len(s.props)
		s.props = append(s.props, p)
	}
	f.shape = s
	return s, nil
}

// object writes an object: its properties in order, each optional one left out or not, then other ones. "" when there is none.
func (c *compiler) object(f *form, hint string) (string, error) {
	s, err := c.readObject(f)
	if s == nil || err != nil {
		return "", err
	}
	var kvs []string
	var required []bool
	must := 0
	for _, p := range s.props {
		expr, possible, err := c.property(p)
		if err != nil {
			return "", err
		}
		if !possible {
			if p.required {
				return "", nil
			}
			s.forbidden[p.name] = true
			continue
		}
		if p.required {
			must++
		}
		kvs, required = append(kvs, literal(quote(p.name)+":")+" "+c.primitive("space")+" "+expr), append(required, p.required)
	}
	other := ""
	if s.open {
		if other, err = c.others(s, hint); err != nil {
			return "", err
		}
	}
	least, most, err := limits(f.nodes, "minProperties", "maxProperties")
	if err != nil {
		return "", err
	}
	if err := s.counts(f, &other, must, len(kvs), least, most); err != nil {
		return "", err
	}
	if len(kvs) == 0 && other != "" {
		return c.pairs(other, least, most, hint)
	}
	return c.chain(kvs, required, other, hint)
}

// counts refuses limits on the number of properties that the rest does not keep anyway.
func (s *shape) counts(f *form, other *string, must, all, least, most int) error {
	if all == 0 && *other != "" {
		if least > 1 {
			return unsupported(f.nodes[0], "minProperties", "over 1: the answer could have a name twice")
		}
		return nil
	}
	if most >= 0 && most <= all && most == must {
		*other = ""
	}
	if least > must {
		return unsupported(f.nodes[0], "minProperties", "over the number of required properties")
	}
	if most >= 0 && (*other != "" || most < all) {
		return unsupported(f.nodes[0], "maxProperties", "beside optional properties")
	}
	return nil
}

func (c *compiler) property(p property) (string, bool, error) {
	if len(p.nodes) == 0 {
		return c.primitive("value"), true, nil
	}
	return c.value(p.nodes, p.name)
}

// others is a rule for one further property, whose name is none of the known ones.
func (c *compiler) others(s *shape, hint string) (string, error) {
	value, possible := c.primitive("value"), true
	var err error
	if len(s.others) > 0 {
		value, possible, err = c.value(s.others, hint+"-other")
	}
	if err != nil || !possible {
		return "", err
	}
	var names []string
	for _, p := range s.props {
		names = append(names, p.name)
	}
	for name := range s.forbidden {
		names = append(names, name)
	}
	slices.Sort(names)
	key := c.primitive("string")
	if len(names) > 0 {
		if key, err = c.otherName(slices.Compact(names), hint); err != nil {
			return "", err
		}
	}
	return c.rule(c.name(hint+"-pair"), key+` ":" `+c.primitive("space")+" "+value)
}

// pairs writes an object without known properties.
func (c *compiler) pairs(pair string, least, most int, hint string) (string, error) {
	space := c.primitive("space")
	if most == 0 {
		return `"{" ` + space + ` "}"`, nil
	}
	next, err := c.rule(c.name(hint+"-next"), `"," `+space+" "+pair)
	if err != nil {
		return "", err
	}
	more, err := c.repetition(next, max(least-1, 0), max(most-1, -1))
	if err != nil {
		return "", err
	}
	if least == 0 {
		return `"{" ` + space + " (" + pair + " " + more + " " + space + `)? "}"`, nil
	}
	return `"{" ` + space + " " + pair + " " + more + " " + space + ` "}"`, nil
}

// chain writes the properties as two chains of rules, so that the text grows with their number and not with its square: "rest-i" is
// what may follow from the i-th on after something was written, "first-i" while nothing was.
func (c *compiler) chain(kvs []string, required []bool, other, hint string) (string, error) {
	space := c.primitive("space")
	if len(kvs) == 0 {
		return `"{" ` + space + ` "}"`, nil
	}
	lead := slices.Index(required, true) // up to it nothing may be there yet
	if lead < 0 {
		lead = len(kvs) - 1
	}
	rest := "" // of the property behind
	if other != "" {
		rest = `("," ` + space + " " + other + ")*"
	}
	first := ""
	var behind []string // items not in rest yet, the last first
	if other != "" && !required[lead] {
		var err error
		if first, err = c.rule(c.name(hint+"-first"), other+" "+rest); err != nil {
			return "", err
		}
	}
	for i := len(kvs) - 1; i >= 0; i-- {
		if i <= lead {
			begin := strings.TrimSpace(kvs[i] + " " + rest)
			if required[i] {
				first = begin
			} else if first != "" {
				first = begin + " | " + first
			} else {
				first = begin
			}
			if i > 0 {
				var err error
				if first, err = c.rule(c.name(hint+"-first"), first); err != nil {
					return "", err
				}
			}
		}
		item := `"," ` + space + " " + kvs[i]
		if !required[i] {
			item = "(" + item + ")?"
		}
		if behind = append(behind, item); i > lead+1 {
			continue // joined below, once: the text would be copied for each property
		}
		slices.Reverse(behind)
		rest = strings.TrimSpace(strings.Join(behind, " ") + " " + rest)
		behind = nil
		if i > 0 {
			var err error
			if rest, err = c.rule(c.name(hint+"-rest"), rest); err != nil {
				return "", err
			}
		}
	}
	if slices.Contains(required, true) {
		return `"{" ` + space + " (" + first + ") " + space + ` "}"`, nil
	}
	return `"{" ` + space + " ((" + first + ") " + space + `)? "}"`, nil
}

// otherName is a rule for a name that is none of the given ones: a walk down their trie that leaves it at some point. It has no escapes,
// so a name cannot come back in another spelling.
func (c *compiler) otherName(names []string, hint string) (string, error) {
	plain, err := c.rule(c.name("plain"), `[^"\\\x7F\x00-\x1F]`)
	if err != nil {
		return "", err
	}
	root := &trie{}
	for _, name := range names {
		if !strings.ContainsFunc(name, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' || r == 0x7F }) {
			root.add([]rune(name))
		}
	}
	body, err := c.leave(root, plain, hint)
	if err != nil {
		return "", err
	}
	if !root.end {
		body = "(" + body + ")?"
	} else {
		body = "(" + body + ")"
	}
	return c.rule(c.name(hint+"-name"), `"\"" `+body+` "\""`)
}

// leave writes what may follow at a place of the trie, at least one character.
func (c *compiler) leave(t *trie, plain, hint string) (string, error) {
	if len(t.next) == 0 {
		return plain + "+", nil
	}
	var out []string
	taken := charset{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}
	for _, e := range t.next {
		taken = append(taken, span{e.r, e.r})
		body, err := c.leave(e.to, plain, hint)
		if err != nil {
			return "", err
		}
		// Behind a known name something must follow; before its end anything may.
		if e.to.end {
			body = "(" + body + ")"
		} else {
			body = "(" + body + ")?"
		}
		if strings.Count(body, "(") > 20 {
			if body, err = c.rule(c.name(hint+"-leave"), body); err != nil {
				return "", err
			}
		}
		out = append(out, literal(string(e.r))+" "+body)
	}
	return strings.Join(append(out, taken.complement().class()+" "+plain+"*"), " | "), nil
}
