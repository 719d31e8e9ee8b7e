package grammar

import (
	"slices"
	"strings"
)

// exclusive refuses a oneOf of which one value could satisfy two alternatives: the standard calls such a value wrong, and a grammar
// cannot say "only one". Alternatives that are provably apart are those of other types or values, numbers in other ranges, and objects
// that differ in the constant of a required property (a discriminator) or that each require what the other lacks.
func (c *compiler) exclusive(forms []*form, depth int) error {
	for i, a := range forms {
		for _, b := range forms[i+1:] {
			for _, x := range a.chosen {
				at := slices.IndexFunc(b.chosen, func(y choice) bool { return x.of == y.of && x.taken != y.taken })
				if at < 0 {
					continue
				}
				if err := c.spend(x.of); err != nil {
					return err
				}
				apart, err := c.apart(a, b, depth)
				if err != nil {
					return err
				}
				if !apart {
					return unsupported(x.of, "oneOf", "here, because a value could satisfy two of its alternatives; write anyOf")
				}
			}
		}
	}
	return nil
}

// maxDiscriminatorDepth bounds how deep a difference is looked for.
const maxDiscriminatorDepth = 3

// apart: whether nothing that is written for one satisfies the other. false may also mean "not known".
func (c *compiler) apart(a, b *form, depth int) (bool, error) {
	if depth > maxDiscriminatorDepth {
		return false, nil
	}
	if a.finite && b.finite {
		return c.valuesApart(a, b)
	}
	both := written(a) & written(b)
	if both&(tNumber|tInteger) != 0 && !a.finite && !b.finite {
		ra, err := readRange(a.nodes)
		if err != nil {
			return false, err
		}
		rb, err := readRange(b.nodes)
		if err != nil {
			return false, err
		}
		if ra.before(rb) || rb.before(ra) {
			both &^= tNumber | tInteger
		}
	}
	if both&tObject != 0 && !a.finite && !b.finite {
		apart, err := c.objectsApart(a, b, depth)
		if err != nil {
			return false, err
		}
		if apart {
			both &^= tObject
		}
	}
	return both == 0, nil
}

// written gives the types of a form's values.
func written(f *form) int {
	types := f.types
	if f.finite {
		types = 0
		for _, v := range f.values {
			types |= typeOf(v)
		}
	}
	if types&(tNumber|tInteger) != 0 {
		types |= tNumber | tInteger // 1 is a value of both
	}
	return types
}

// valuesApart: whether no value is in both lists.
func (c *compiler) valuesApart(a, b *form) (bool, error) {
	few, many := a.keySet(), b.keySet()
	if len(few) > len(many) {
		few, many = many, few
	}
	if err := c.work(3+3*len(few), a.path); err != nil {
		return false, err
	}
	if few[anyNumber] && hasNumber(many) || many[anyNumber] && hasNumber(few) {
		return false, nil
	}
	for k := range few {
		if many[k] {
			return false, nil
		}
	}
	return true, nil
}

// anyNumber is the key of a number that is not read exactly: it may be any.
const anyNumber = "number"

func hasNumber(keys map[string]bool) bool {
	for k := range keys {
		if k == anyNumber || strings.HasPrefix(k, "n ") {
			return true
		}
	}
	return false
}

// keySet gives the keys of a form's values: equal values have one key. Objects that differ only in order are equal; taking all
// objects, and all lists, for equal is the safe side.
func (f *form) keySet() map[string]bool {
	if f.keys == nil {
		f.keys = make(map[string]bool, len(f.values))
		for _, v := range f.values {
			k := v.json()
			switch v.kind {
			case 'o', 'a':
				k = string(v.kind)
			case 'n':
				k = anyNumber
				if x, ok := v.number(); ok {
					k = "n " + x.RatString()
				}
			}
			f.keys[k] = true
		}
	}
	return f.keys
}

func (c *compiler) objectsApart(a, b *form, depth int) (bool, error) {
	x, err := c.readObject(a)
	if err != nil {
		return false, err
	}
	y, err := c.readObject(b)
	if err != nil {
		return false, err
	}
	if x == nil || y == nil {
		return true, nil // one of them cannot be satisfied at all
	}
	if err := c.work(len(x.props)+len(y.props), a.path); err != nil {
		return false, err
	}
	if x.needsWhat(y) && y.needsWhat(x) {
		return true, nil
	}
	for _, p := range x.props {
		q := y.prop(p.name)
		if !p.required || q == nil || !q.required || len(p.nodes) == 0 || len(q.nodes) == 0 {
			continue
		}
		ones, err := c.forms(p.nodes)
		if err != nil {
			return false, err
		}
		others, err := c.forms(q.nodes)
		if err != nil {
			return false, err
		}
		differ := true
		for _, f := range ones {
			for _, g := range others {
				apart, err := c.apart(f, g, depth+1)
				if err != nil {
					return false, err
				}
				differ = differ && apart
			}
		}
		if differ {
			return true, nil
		}
	}
	return false, nil
}

func (c *compiler) forms(nodes []*node) ([]*form, error) {
	ways, err := c.expand(nodes)
	if err != nil {
		return nil, err
	}
	var out []*form
	for _, way := range ways {
		f, err := c.form(way)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out = append(out, f)
		}
	}
	return out, nil
}
