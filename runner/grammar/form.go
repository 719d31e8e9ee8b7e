package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// The types of values. A number's schema allows integers too.
const (
	tNull = 1 << iota
	tBoolean
	tInteger
	tNumber
	tString
	tArray
	tObject
	tAny = 1<<7 - 1
)

var typeNames = map[string]int{
	"null": tNull, "boolean": tBoolean, "integer": tInteger, "number": tNumber | tInteger,
	"string": tString, "array": tArray, "object": tObject,
}

// keywords lists what constrains, and which types it speaks about. A keyword that is not here is an annotation, or none of JSON
// Schema's, and says nothing.
var keywords = map[string]int{
	"type": tAny, "enum": tAny, "const": tAny,
	"properties": tObject, "required": tObject, "additionalProperties": tObject, "minProperties": tObject, "maxProperties": tObject,
	"unevaluatedProperties": tObject, "patternProperties": tObject, "propertyNames": tObject, "dependentRequired": tObject,
	"dependentSchemas": tObject, "dependencies": tObject,
	"items": tArray, "prefixItems": tArray, "additionalItems": tArray, "minItems": tArray, "maxItems": tArray, "uniqueItems": tArray,
	"contains": tArray, "minContains": tArray, "maxContains": tArray, "unevaluatedItems": tArray,
	"pattern": tString, "minLength": tString, "maxLength": tString, "format": tString,
	"minimum": tNumber | tInteger, "maximum": tNumber | tInteger, "exclusiveMinimum": tNumber | tInteger,
	"exclusiveMaximum": tNumber | tInteger, "multipleOf": tNumber | tInteger,
	"not": tAny, "if": tAny, "then": tAny, "else": tAny, "$dynamicRef": tAny, "$recursiveRef": tAny,
}

// refused are the keywords of which no grammar is made.
var refused = []string{"not", "if", "then", "else", "$dynamicRef", "$recursiveRef", "patternProperties", "propertyNames",
	"dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains", "maxContains"}

// saysSomething: whether a schema has a constraint of its own, beside those that it refers to.
func saysSomething(n *node) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return keywords[m.name] != 0 })
}

// form is what schemas that hold together say about a value's type and, when they list them, its values.
type form struct {
	nodes  []*node
	chosen []choice
	types  int
	finite bool
	values []*node // when finite
	path   string

	keys  map[string]bool // of values, made when first needed
	shape *shape          // of an object, likewise
}

// form reads types and values. A nil form is one that no value satisfies.
func (c *compiler) form(j conjunction) (*form, error) {
	f := &form{nodes: j.nodes, chosen: j.chosen, types: tAny}
	if len(j.nodes) > 0 {
		f.path = j.nodes[0].path
	}
	typed, implied := false, 0
	for _, n := range f.nodes {
		if t := n.get("type"); t != nil {
			types, err := readTypes(n, t)
			if err != nil {
				return nil, err
			}
			f.types, typed = f.types&types, true
		}
		for _, m := range n.members {
			if about := keywords[m.name]; about != tAny && m.name != "format" {
				implied |= about
			}
			if m.name == "format" && m.value.kind == 's' && formats[m.value.text] != "" {
				implied |= tString
			}
		}
		if err := f.readValues(n); err != nil {
			return nil, err
		}
	}
	// A schema with properties and no type means an object, whatever the standard lets through.
	if !typed && !f.finite && implied != 0 {
		f.types = implied
	}
	for _, n := range f.nodes {
		for _, keyword := range refused {
			if n.get(keyword) != nil && f.types&keywords[keyword] != 0 {
				return nil, unsupported(n, keyword, "")
			}
		}
	}
	if f.finite {
		if err := c.filter(f); err != nil {
			return nil, err
		}
		if len(f.values) == 0 {
			c.reason = fmt.Sprintf(" (none of the values at %s fits the rest)", f.path)
			return nil, nil
		}
		return f, nil
	}
	if f.types == 0 {
		c.reason = fmt.Sprintf(" (the types at %s exclude each other)", f.path)
		return nil, nil
	}
	return f, nil
}

func readTypes(n, t *node) (int, error) {
	list := []*node{t}
	if t.kind == 'a' {
		list = t.items
	}
	types := 0
	for _, one := range list {
		bits := typeNames[one.text]
		if one.kind != 's' || bits == 0 {
			return 0, refuse(n.path, "unknown type %s; there are array, boolean, integer, null, number, object, string", one.json())
		}
		types |= bits
	}
	if types == 0 {
		return 0, refuse(n.path, "type must be a name or a list of names that is not empty")
	}
	return types, nil
}

// readValues intersects with the enum and const of one schema.
func (f *form) readValues(n *node) error {
	sets := [][]*node{}
	list, err := schemaList(n, "enum")
	if err != nil {
		return err
	}
	if list != nil {
		sets = append(sets, list)
	}
	if v := n.get("const"); v != nil {
		sets = append(sets, []*node{v})
	}
	for _, set := range sets {
		if !f.finite {
			f.finite, f.values = true, set
			continue
		}
		has := map[string]bool{}
		for _, v := range set {
			has[v.json()] = true
		}
		f.values = slices.DeleteFunc(slices.Clone(f.values), func(v *node) bool { return !has[v.json()] })
	}
	return nil
}

func typeOf(v *node) int {
	switch v.kind {
	case 's':
		return tString
	case 'n':
		if r, ok := v.number(); ok && r.IsInt() {
			return tInteger
		}
		return tNumber
	case 'b':
		return tBoolean
	case '0':
		return tNull
	case 'a':
		return tArray
	}
	return tObject
}

// filter keeps the values that the other keywords allow.
func (c *compiler) filter(f *form) error {
	var keep []*node
	for _, v := range f.values {
		t := typeOf(v)
		if f.types&t == 0 {
			continue
		}
		ok := true
		for _, n := range f.nodes {
			for _, m := range n.members {
				if about := keywords[m.name]; about == tAny || about&t == 0 {
					continue
				}
				fits, err := c.fits(n, m, v)
				if err != nil {
					return err
				}
				ok = ok && fits
			}
		}
		if ok {
			keep = append(keep, v)
		}
	}
	f.values = keep
	return nil
}

// fits: whether a listed value keeps to another keyword of its schema.
func (c *compiler) fits(n *node, m member, v *node) (bool, error) {
	if err := c.work(20+len(m.value.items), n.path); err != nil {
		return false, err
	}
	switch m.name {
	case "minLength", "maxLength":
		limit, err := count(n, m.name, 0)
		length := utf8.RuneCountInString(v.text)
		return (m.name == "minLength") == (length >= limit) || length == limit, err
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		r, err := readRange([]*node{n})
		if err != nil {
			return false, err
		}
		x, ok := v.number()
		return ok && r.holds(x), nil
	case "pattern":
		re, err := c.read(m.value, readPattern)
		if err != nil {
			return false, err
		}
		return c.matches(re, v.text, n.path)
	case "format":
		if slices.Contains(sizes, m.value.text) {
			return true, nil
		}
		re, err := c.read(m.value, func(v *node) (*regex, error) { return readFormat(n, v) })
		if err != nil {
			return false, err
		}
		return c.matches(re, v.text, n.path)
	case "required":
		names, err := requiredNames(n)
		return !slices.ContainsFunc(names, func(name string) bool { return v.get(name) == nil }), err
	case "minItems", "maxItems":
		limit, err := count(n, m.name, 0)
		return (m.name == "minItems") == (len(v.items) >= limit) || len(v.items) == limit, err
	}
	return false, unsupported(n, m.name, "beside enum or const")
}

// count reads a keyword that is a number of things.
func count(n *node, keyword string, without int) (int, error) {
	v := n.get(keyword)
	if v == nil {
		return without, nil
	}
	r, ok := v.number()
	if !ok || !r.IsInt() || r.Sign() < 0 || r.Cmp(big.NewRat(maxCount, 1)) > 0 {
		return 0, refuse(n.path, "%s is %s; it must be a whole number from 0 to %d", keyword, v.json(), maxCount)
	}
	return int(r.Num().Int64()), nil
}

// limits intersects a pair of counts over schemas. high < 0 is without bound.
func limits(nodes []*node, low, high string) (least, most int, err error) {
	most = -1
	for _, n := range nodes {
		l, err := count(n, low, 0)
		if err != nil {
			return 0, 0, err
		}
		h, err := count(n, high, -1)
		if err != nil {
			return 0, 0, err
		}
		least = max(least, l)
		if h >= 0 && (most < 0 || h < most) {
			most = h
		}
	}
	if most >= 0 && least > most {
		return 0, 0, refuse(nodes[0].path, "%s is over %s", low, high)
	}
	return least, most, nil
}

// value gives an expression for the values that satisfy all the schemas; it is a single item of a sequence. Without any such
// value, possible is false.
func (c *compiler) value(nodes []*node, hint string) (expr string, possible bool, err error) {
	k := key(nodes)
	if expr, ok := c.memo[k]; ok {
		return expr, expr != "", nil
	}
	ways, err := c.expand(nodes)
	if err != nil {
		return "", false, err
	}
	var forms []*form
	structured := false
	for _, way := range ways {
		f, err := c.form(way)
		if err != nil {
			return "", false, err
		}
		if f != nil {
			forms = append(forms, f)
			structured = structured || !f.finite && f.types&(tObject|tArray) != 0 && len(f.nodes) > 0
		}
	}
	if err := c.exclusive(forms, 0); err != nil {
		return "", false, err
	}
	if len(forms) == 0 {
		c.memo[k] = ""
		return "", false, nil
	}
	name := ""
	if structured { // it may come back to itself
		name = c.name(hint)
		c.memo[k] = name
	}
	body, err := c.union(forms, hint)
	switch {
	case err != nil:
		return "", false, err
	case body == "":
		c.memo[k] = ""
		return "", false, nil
	case name != "":
	case len(body) <= 40 && !strings.Contains(body, " "):
		c.memo[k] = body
		return body, true, nil
	default:
		name = c.name(hint)
		c.memo[k] = name
	}
	expr, err = c.rule(name, body)
	return expr, true, err
}

// union writes the alternatives. All that are plain words become one trie.
func (c *compiler) union(forms []*form, hint string) (string, error) {
	var words, others []string
	for _, f := range forms {
		if f.finite {
			for _, v := range f.values {
				words = append(words, v.json())
			}
			continue
		}
		if f.types == tAny && len(f.nodes) == 0 {
			return c.primitive("value"), nil
		}
		if f.types&tNull != 0 {
			words = append(words, "null")
		}
		if f.types&tBoolean != 0 {
			words = append(words, "true", "false")
		}
		for _, part := range []struct {
			types int
			write func(*form, string) (string, error)
		}{{tObject, c.object}, {tArray, c.array}, {tString, c.text}, {tInteger | tNumber, c.number}} {
			if f.types&part.types == 0 {
				continue
			}
			expr, err := part.write(f, hint)
			if err != nil {
				return "", err
			}
			if expr != "" && !slices.Contains(others, expr) {
				others = append(others, expr)
			}
		}
	}
	if len(words) > 0 {
		others = append([]string{Names(words)}, others...)
	}
	return strings.Join(others, " | "), nil
}
