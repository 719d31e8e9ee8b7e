package grammar

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// recogniser says which texts a grammar derives. It is the textbook's: the set of places where a rule that begins at one may end.
type recogniser struct {
	rules map[string]*expr
	in    []rune
	memo  map[string]map[int][]int
}

func newRecogniser(t testing.TB, gbnf string) *recogniser {
	t.Helper()
	defs, err := parse(gbnf, 1000)
	if err != nil {
		t.Fatalf("%v\n%s", err, gbnf)
	}
	r := &recogniser{rules: map[string]*expr{}}
	for _, d := range defs {
		r.rules[d.name] = d.body
	}
	return r
}

func (r *recogniser) derives(text string) bool {
	r.in, r.memo = []rune(text), map[string]map[int][]int{}
	return slices.Contains(r.rule("root", 0), len(r.in))
}

func (r *recogniser) rule(name string, at int) []int {
	if r.memo[name] == nil {
		r.memo[name] = map[int][]int{}
	}
	if ends, ok := r.memo[name][at]; ok {
		return ends
	}
	ends := r.expr(r.rules[name], at)
	r.memo[name][at] = ends
	return ends
}

func (r *recogniser) expr(e *expr, at int) []int {
	var out []int
	for _, way := range e.ways {
		ends := []int{at}
		for _, it := range way {
			ends = r.each(ends, func(i int) []int { return r.item(it, i) })
		}
		out = append(out, ends...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *recogniser) each(from []int, step func(int) []int) []int {
	var out []int
	for _, i := range from {
		out = append(out, step(i)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *recogniser) item(it *item, at int) []int {
	var out []int
	ends := []int{at}
	for n := 0; len(ends) > 0 && (it.high < 0 || n <= it.high); n++ {
		if n >= it.low {
			out = append(out, ends...)
		}
		if n == it.high {
			break
		}
		ends = r.each(ends, func(i int) []int { return r.once(it, i) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *recogniser) once(it *item, at int) []int {
	switch it.op {
	case opText:
		if len(r.in)-at >= len(it.text) && slices.Equal(r.in[at:at+len(it.text)], it.text) {
			return []int{at + len(it.text)}
		}
	case opSet:
		if at < len(r.in) && it.set.has(r.in[at]) {
			return []int{at + 1}
		}
	case opRef:
		return r.rule(it.name, at)
	case opGroup:
		return r.expr(it.group, at)
	}
	return nil
}

// deriver draws texts of a grammar.
type deriver struct {
	rules  map[string]*expr
	height map[string]int
	rng    *rand.Rand
	budget int
	out    strings.Builder
}

const endless = 1 << 20

func newDeriver(t testing.TB, gbnf string, rng *rand.Rand) *deriver {
	t.Helper()
	d := &deriver{rules: newRecogniser(t, gbnf).rules, height: map[string]int{}, rng: rng}
	for name := range d.rules {
		d.height[name] = endless
	}
	for changed := true; changed; { // how deep the flattest derivation of each rule is
		changed = false
		for name, e := range d.rules {
			if h := 1 + d.flattest(e); h < d.height[name] {
				d.height[name], changed = h, true
			}
		}
	}
	return d
}

func (d *deriver) flattest(e *expr) int {
	best := endless
	for _, way := range e.ways {
		best = min(best, d.tall(way))
	}
	return best
}

func (d *deriver) tall(way []*item) int {
	most := 0
	for _, it := range way {
		if it.low == 0 {
			continue
		}
		if it.op == opRef {
			most = max(most, d.height[it.name])
		} else if it.op == opGroup {
			most = max(most, d.flattest(it.group))
		}
	}
	return most
}

func (d *deriver) text(budget int) string {
	d.budget = budget
	d.out.Reset()
	d.expr(d.rules["root"])
	return d.out.String()
}

func (d *deriver) expr(e *expr) {
	ways := e.ways
	if d.budget--; d.budget < 0 {
		h := d.flattest(e)
		ways = slices.DeleteFunc(slices.Clone(ways), func(w []*item) bool { return d.tall(w) > h })
	}
	for _, it := range ways[d.rng.Intn(len(ways))] {
		n := it.low
		if d.budget > 0 && it.high != it.low {
			more := 3
			if it.high >= 0 {
				more = min(more, it.high-it.low)
			}
			n += d.rng.Intn(more + 1)
			if it.high > 0 && it.high < 100 && d.rng.Intn(10) == 0 {
				n = it.high
			}
		}
		for range n {
			switch it.op {
			case opText:
				d.out.WriteString(string(it.text))
			case opSet:
				s := it.set[d.rng.Intn(len(it.set))]
				r := s.low + rune(d.rng.Intn(int(s.high-s.low)+1))
				if d.rng.Intn(2) == 0 && s.low < 0x80 {
					r = s.low + rune(d.rng.Intn(int(min(s.high, 0x7E)-s.low)+1))
				}
				d.out.WriteRune(r)
			case opRef:
				d.expr(d.rules[it.name])
			case opGroup:
				d.expr(it.group)
			}
		}
	}
}

// valid is a plain validator of JSON Schema for what the tests use, written without any part of the compiler.
func valid(root, schema any, v any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	is := func(name any) bool {
		switch name {
		case "null":
			return v == nil
		case "integer":
			n, ok := v.(json.Number)
			if !ok {
				return false
			}
			r, ok := new(big.Rat).SetString(n.String())
			return ok && r.IsInt()
		}
		return name == map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Map: "object", reflect.Slice: "array"}[reflect.ValueOf(v).Kind()] ||
			name == "string" && isString(v) || name == "number" && isNumber(v)
	}
	for key, arg := range s {
		ok := true
		switch key {
		case "type":
			names, list := arg.([]any)
			if !list {
				names = []any{arg}
			}
			ok = slices.ContainsFunc(names, is)
		case "enum":
			ok = slices.ContainsFunc(arg.([]any), func(x any) bool { return equal(x, v) })
		case "const":
			ok = equal(arg, v)
		case "$ref":
			at := root
			for _, name := range strings.Split(arg.(string), "/")[1:] {
				at = at.(map[string]any)[name]
			}
			ok = valid(root, at, v)
		case "anyOf", "oneOf", "allOf":
			n := 0
			for _, sub := range arg.([]any) {
				if valid(root, sub, v) {
					n++
				}
			}
			ok = key == "anyOf" && n > 0 || key == "oneOf" && n == 1 || key == "allOf" && n == len(arg.([]any))
		}
		if !ok {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return validObject(root, s, v)
	case []any:
		return validArray(root, s, v)
	case string:
		return validString(s, v)
	case json.Number:
		return validNumber(s, v)
	}
	return true
}

func isString(v any) bool { _, ok := v.(string); return ok && !isNumber(v) }
func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

func equal(a, b any) bool {
	x, ok := a.(json.Number)
	y, ok2 := b.(json.Number)
	if ok && ok2 {
		p, _ := new(big.Rat).SetString(x.String())
		q, _ := new(big.Rat).SetString(y.String())
		return p.Cmp(q) == 0
	}
	return reflect.DeepEqual(a, b)
}

func validObject(root any, s, v map[string]any) bool {
	props, _ := s["properties"].(map[string]any)
	for name, value := range v {
		if sub, ok := props[name]; ok {
			if !valid(root, sub, value) {
				return false
			}
		} else if more, ok := s["additionalProperties"]; ok && !valid(root, more, value) {
			return false
		}
	}
	names, _ := s["required"].([]any)
	for _, name := range names {
		if _, ok := v[name.(string)]; !ok {
			return false
		}
	}
	return within(s, "minProperties", "maxProperties", len(v))
}

func validArray(root any, s map[string]any, v []any) bool {
	prefix, _ := s["prefixItems"].([]any)
	for i, value := range v {
		if i < len(prefix) {
			if !valid(root, prefix[i], value) {
				return false
			}
		} else if items, ok := s["items"]; ok && !valid(root, items, value) {
			return false
		}
	}
	return within(s, "minItems", "maxItems", len(v))
}

func within(s map[string]any, low, high string, n int) bool {
	if l, ok := s[low]; ok && float64(n) < float(l) {
		return false
	}
	h, ok := s[high]
	return !ok || float64(n) <= float(h)
}

func float(v any) float64 {
	f, err := v.(json.Number).Float64()
	if err != nil {
		return math.NaN()
	}
	return f
}

func validString(s map[string]any, v string) bool {
	if p, ok := s["pattern"]; ok && !regexp.MustCompile(p.(string)).MatchString(v) {
		return false
	}
	switch s["format"] {
	case "date":
		if _, err := time.Parse("2006-01-02", v); err != nil {
			return false
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339Nano, v); err != nil {
			return false
		}
	case "uuid":
		if !regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(v) {
			return false
		}
	}
	return within(s, "minLength", "maxLength", utf8.RuneCountInString(v))
}

func validNumber(s map[string]any, v json.Number) bool {
	x, ok := new(big.Rat).SetString(v.String())
	for key, bad := range map[string]func(int) bool{
		"minimum": func(c int) bool { return c < 0 }, "exclusiveMinimum": func(c int) bool { return c <= 0 },
		"maximum": func(c int) bool { return c > 0 }, "exclusiveMaximum": func(c int) bool { return c >= 0 },
	} {
		if limit, said := s[key]; said {
			y, _ := new(big.Rat).SetString(limit.(json.Number).String())
			ok = ok && !bad(x.Cmp(y))
		}
	}
	if step, said := s["multipleOf"]; said {
		y, _ := new(big.Rat).SetString(step.(json.Number).String())
		ok = ok && new(big.Rat).Quo(x, y).IsInt()
	}
	return ok
}

// parseJSON reads a text strictly; a name that is there twice is an error.
func parseJSON(text string) (any, error) {
	if _, err := decode(text); err != nil && strings.Contains(err.Error(), "twice") {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("something behind it")
	}
	return v, nil
}
