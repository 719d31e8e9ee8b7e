package grammar

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// choice says which alternative of a oneOf was taken.
type choice struct {
	of    *node
	taken int
}

// conjunction is a list of schemas that must all hold, in which every $ref is followed and every anyOf and oneOf decided. Only
// those that say something themselves are in it.
type conjunction struct {
	nodes  []*node
	chosen []choice
}

// chain is how a schema was reached without anything of a value being written between.
type chain struct {
	n  *node
	up *chain
}

func (l *chain) has(n *node) bool {
	for ; l != nil; l = l.up {
		if l.n == n {
			return true
		}
	}
	return false
}

// key identifies a set of schemas.
func key(nodes []*node) string {
	ids := make([]int, len(nodes))
	for i, n := range nodes {
		ids[i] = n.id
	}
	slices.Sort(ids)
	var b strings.Builder
	for _, id := range slices.Compact(ids) {
		b.WriteString(strconv.Itoa(id) + ",")
	}
	return b.String()
}

// expand gives the ways in which schemas can hold together. None means that nothing satisfies them.
func (c *compiler) expand(start []*node) ([]conjunction, error) {
	e := &expansion{c: c, steps: 20 * maxForms}
	pending := make([]*chain, len(start))
	for i, n := range start {
		pending[i] = &chain{n: n}
	}
	err := e.walk(pending, nil, nil, nil)
	return e.out, err
}

type expansion struct {
	c     *compiler
	out   []conjunction
	steps int
}

func (e *expansion) walk(pending []*chain, seen, own []*node, chosen []choice) error {
	for len(pending) > 0 {
		if e.steps--; e.steps < 0 {
			return refuse(pending[0].n.path, "too many schemas hold for one value, or too many alternatives")
		}
		at := pending[0]
		n := at.n
		if err := e.c.spend(n); err != nil {
			return err
		}
		pending = pending[1:]
		if at.up.has(n) {
			return refuse(n.path, "cyclic $ref: it leads back to itself without an object or a list between")
		}
		if slices.Contains(seen, n) {
			continue
		}
		seen = append(slices.Clip(seen), n)
		if n.kind == 'b' {
			if !n.yes {
				e.c.reason = " (" + n.path + " is false)"
				return nil
			}
			continue
		}
		if n.kind != 'o' {
			return refuse(n.path, "it must be a schema, which is an object, true or false")
		}
		if saysSomething(n) {
			own = append(slices.Clip(own), n)
		}
		next, err := e.conditions(n)
		if err != nil {
			return err
		}
		for _, m := range next {
			pending = append(slices.Clip(pending), &chain{m, at})
		}
		for _, keyword := range []string{"anyOf", "oneOf"} {
			list, err := schemaList(n, keyword)
			if err != nil {
				return err
			}
			if list == nil {
				continue
			}
			if keyword == "anyOf" && n.get("oneOf") != nil {
				return unsupported(n, "oneOf", "beside anyOf; put one of them into an allOf")
			}
			for i, alternative := range list {
				taken := chosen
				if keyword == "oneOf" {
					taken = append(slices.Clip(chosen), choice{n, i})
				}
				if err := e.walk(append(slices.Clip(pending), &chain{alternative, at}), seen, own, taken); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if e.out = append(e.out, conjunction{own, chosen}); len(e.out) > maxForms {
		return refuse(e.c.root.path, "a value has over %d alternatives", maxForms)
	}
	return nil
}

// conditions are the schemas that must hold beside this one: what it refers to, and its allOf.
func (e *expansion) conditions(n *node) ([]*node, error) {
	var out []*node
	if ref := n.get("$ref"); ref != nil {
		target, err := e.c.target(n, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, target)
	}
	list, err := schemaList(n, "allOf")
	return append(out, list...), err
}

// target follows one reference.
func (c *compiler) target(n, ref *node) (*node, error) {
	if ref.kind != 's' {
		return nil, refuse(n.path, "$ref must be a string")
	}
	pointer, ok := strings.CutPrefix(ref.text, "#")
	if ok {
		plain, err := url.PathUnescape(pointer)
		ok = err == nil
		pointer = plain
	}
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, refuse(n.path, "$ref %q is remote or not supported; it must begin with #/, so put the schema under $defs", ref.text)
	}
	target := c.root.resolve(pointer)
	if target == nil {
		return nil, refuse(n.path, "$ref %q points to nothing", ref.text)
	}
	if target.kind != 'o' && target.kind != 'b' {
		return nil, refuse(n.path, "$ref %q points to no schema", ref.text)
	}
	for at := target; at.parent != nil; at = at.parent {
		if id := at.get("$id"); id != nil && id.kind == 's' {
			return nil, unsupported(at, "$id", "inside of a schema it changes what $ref means")
		}
	}
	return target, nil
}

func schemaList(n *node, keyword string) ([]*node, error) {
	v := n.get(keyword)
	if v == nil {
		return nil, nil
	}
	if v.kind != 'a' || len(v.items) == 0 {
		return nil, refuse(v.path, "%s must be a list that is not empty", keyword)
	}
	return v.items, nil
}
