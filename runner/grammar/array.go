package grammar

// tuple is what the schemas that hold for an array say together.
type tuple struct {
	prefix [][]*node // of the first items
	rest   []*node   // of those behind; none: any value
	least  int
	most   int // -1: without bound
}

// readArray merges the schemas of an array. Items of a prefix must all be there, and nothing behind them unless a schema says what
// or asks for more: the useful reading of a tuple, and llama.cpp's.
func (c *compiler) readArray(f *form) (*tuple, error) {
	t := &tuple{}
	var err error
	if t.least, t.most, err = limits(f.nodes, "minItems", "maxItems"); err != nil {
		return nil, err
	}
	type list struct {
		prefix []*node
		rest   *node
	}
	var lists []list
	length, opened, unevaluated := 0, false, false
	for _, n := range f.nodes {
		l := list{rest: n.get("items")}
		if p := n.get("prefixItems"); p != nil {
			if p.kind != 'a' {
				return nil, refuse(p.path, "prefixItems must be a list")
			}
			l.prefix = p.items
		} else if l.rest != nil && l.rest.kind == 'a' { // before draft 2020-12
			l.prefix, l.rest = l.rest.items, n.get("additionalItems")
		}
		if u := n.get("uniqueItems"); u != nil && u.kind == 'b' && u.yes && (t.most < 0 || t.most > 1) {
			return nil, unsupported(n, "uniqueItems", "")
		}
		if u := n.get("unevaluatedItems"); u != nil {
			if u.kind != 'b' {
				return nil, unsupported(n, "unevaluatedItems", "as a schema; use items")
			}
			unevaluated = unevaluated || !u.yes
		}
		length = max(length, len(l.prefix))
		opened = opened || l.rest != nil
		lists = append(lists, l)
	}
	for i := range length {
		var nodes []*node
		for _, l := range lists {
			if i < len(l.prefix) {
				nodes = append(nodes, l.prefix[i])
			} else if l.rest != nil {
				nodes = append(nodes, l.rest)
			}
		}
		t.prefix = append(t.prefix, nodes)
	}
	for _, l := range lists {
		if l.rest != nil {
			t.rest = append(t.rest, l.rest)
		}
	}
	if !opened && (unevaluated || length > 0 && t.least <= length) && (t.most < 0 || t.most > length) {
		t.most = length
	}
	if t.most >= 0 && len(t.prefix) > t.most {
		t.prefix = t.prefix[:t.most]
	}
	if t.most >= 0 && t.least > t.most {
		c.reason = " (" + f.path + " asks for more items than it allows)"
		return nil, nil
	}
	return t, nil
}

// array writes an array. "" when there is none.
func (c *compiler) array(f *form, hint string) (string, error) {
	t, err := c.readArray(f)
	if t == nil || err != nil {
		return "", err
	}
	space := c.primitive("space")
	body := ""
	for _, nodes := range t.prefix {
		expr, possible, err := c.item(nodes, hint)
		if err != nil || !possible {
			return "", err
		}
		if body != "" {
			body += ` "," ` + space + " "
		}
		body += expr
	}
	have := len(t.prefix)
	if t.most == have {
		if have == 0 {
			return `"[" ` + space + ` "]"`, nil
		}
		return `"[" ` + space + " " + body + " " + space + ` "]"`, nil
	}
	rest, possible, err := c.item(t.rest, hint)
	if err != nil {
		return "", err
	}
	if !possible {
		switch {
		case t.least > have:
			return "", nil
		case have == 0:
			return `"[" ` + space + ` "]"`, nil
		}
		return `"[" ` + space + " " + body + " " + space + ` "]"`, nil
	}
	next, err := c.rule(c.name(hint+"-next"), `"," `+space+" "+rest)
	if err != nil {
		return "", err
	}
	optional := have == 0 && t.least == 0
	if have == 0 {
		body, have = rest, 1
	}
	high := -1
	if t.most >= 0 {
		high = t.most - have
	}
	more, err := c.repetition(next, max(t.least-have, 0), high)
	if err != nil {
		return "", err
	}
	if optional {
		return `"[" ` + space + " (" + body + " " + more + " " + space + `)? "]"`, nil
	}
	return `"[" ` + space + " " + body + " " + more + " " + space + ` "]"`, nil
}

func (c *compiler) item(nodes []*node, hint string) (string, bool, error) {
	if len(nodes) == 0 {
		return c.primitive("value"), true, nil
	}
	return c.value(nodes, hint+"-item")
}
