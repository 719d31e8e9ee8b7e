package agent

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A small reader of GBNF, written apart from the writer: it says which texts a grammar derives, and draws some.

type expression [][]part // alternatives of sequences

type part struct {
	text      []rune
	set       []rune // pairs of bounds
	not       bool
	isSet     bool
	name      string
	group     expression
	low, high int // high -1: without end
}

type gbnfReader struct {
	in []rune
	at int
}

func readGBNF(t testing.TB, grammar string) map[string]expression {
	t.Helper()
	rules := map[string]expression{}
	for line := range strings.Lines(grammar) {
		name, body, ok := strings.Cut(strings.TrimRight(line, "\n"), " ::= ")
		if !ok || rules[name] != nil {
			t.Fatalf("not a rule, or one that is there twice: %q", line)
		}
		r := &gbnfReader{in: []rune(body)}
		rules[name] = r.expression()
		if r.at != len(r.in) {
			t.Fatalf("rule %s ends at %q", name, string(r.in[r.at:]))
		}
	}
	return rules
}

func (r *gbnfReader) space() {
	for r.at < len(r.in) && r.in[r.at] == ' ' {
		r.at++
	}
}

func (r *gbnfReader) peek() rune {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

func (r *gbnfReader) expression() expression {
	e := expression{nil}
	for {
		r.space()
		switch c := r.peek(); c {
		case 0, ')':
			return e
		case '|':
			r.at++
			e = append(e, nil)
		default:
			e[len(e)-1] = append(e[len(e)-1], r.part())
		}
	}
}

func (r *gbnfReader) char() rune {
	c := r.in[r.at]
	r.at++
	if c != '\\' {
		return c
	}
	c = r.in[r.at]
	r.at++
	digits := map[rune]int{'x': 2, 'U': 8}[c]
	if digits > 0 {
		n, err := strconv.ParseInt(string(r.in[r.at:r.at+digits]), 16, 32)
		if err != nil {
			panic(err)
		}
		r.at += digits
		return rune(n)
	}
	if c == 'n' {
		return '\n'
	}
	return c
}

func (r *gbnfReader) part() part {
	p := part{low: 1, high: 1}
	switch c := r.peek(); c {
	case '"':
		p.text = []rune{}
		for r.at++; r.peek() != '"'; {
			p.text = append(p.text, r.char())
		}
		r.at++
	case '[':
		p.isSet = true
		if r.at++; r.peek() == '^' {
			p.not = true
			r.at++
		}
		for r.peek() != ']' {
			low := r.char()
			high := low
			if r.peek() == '-' && r.in[r.at+1] != ']' {
				r.at++
				high = r.char()
			}
			p.set = append(p.set, low, high)
		}
		r.at++
	case '(':
		r.at++
		p.group = r.expression()
		r.at++
	default:
		begin := r.at
		for r.at < len(r.in) && (r.peek() >= 'a' && r.peek() <= 'z') {
			r.at++
		}
		if p.name = string(r.in[begin:r.at]); p.name == "" {
			panic(fmt.Sprintf("a part is expected at %q", string(r.in[begin:])))
		}
	}
	switch r.peek() {
	case '?':
		p.low = 0
		r.at++
	case '*':
		p.low, p.high = 0, -1
		r.at++
	case '+':
		p.high = -1
		r.at++
	}
	return p
}

func (p part) has(c rune) bool {
	in := false
	for i := 0; i < len(p.set); i += 2 {
		in = in || p.set[i] <= c && c <= p.set[i+1]
	}
	return in != p.not
}

// recogniser finds where a rule that begins at one place may end.
type recogniser struct {
	rules map[string]expression
	in    []rune
	memo  map[string]map[int][]int
	far   int
}

func newRecogniser(t testing.TB, grammar string) *recogniser {
	t.Helper()
	return &recogniser{rules: readGBNF(t, grammar)}
}

func (r *recogniser) derives(text string) bool {
	r.in, r.memo, r.far = []rune(text), map[string]map[int][]int{}, 0
	return slices.Contains(r.rule("root", 0), len(r.in))
}

// stuck tells how far a text is derived.
func (r *recogniser) stuck() string { return string(r.in[:r.far]) + " ⏵ " + string(r.in[r.far:]) }

func (r *recogniser) rule(name string, at int) []int {
	e, ok := r.rules[name]
	if !ok {
		panic("no rule " + name)
	}
	if r.memo[name] == nil {
		r.memo[name] = map[int][]int{}
	}
	ends, ok := r.memo[name][at]
	if !ok {
		ends = r.expression(e, at)
		r.memo[name][at] = ends
	}
	return ends
}

func (r *recogniser) expression(e expression, at int) []int {
	var out []int
	for _, way := range e {
		ends := []int{at}
		for _, p := range way {
			ends = r.each(ends, func(i int) []int { return r.repeated(p, i) })
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

func (r *recogniser) repeated(p part, at int) []int {
	var out []int
	ends := []int{at}
	for n := 0; len(ends) > 0; n++ {
		if n >= p.low {
			out = append(out, ends...)
		}
		if n == p.high {
			break
		}
		ends = r.each(ends, func(i int) []int { return r.once(p, i) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *recogniser) once(p part, at int) []int {
	switch {
	case p.name != "":
		return r.rule(p.name, at)
	case p.group != nil:
		return r.expression(p.group, at)
	case p.isSet:
		if at < len(r.in) && p.has(r.in[at]) {
			r.far = max(r.far, at+1)
			return []int{at + 1}
		}
	case len(r.in)-at >= len(p.text) && slices.Equal(r.in[at:at+len(p.text)], p.text):
		r.far = max(r.far, at+len(p.text))
		return []int{at + len(p.text)}
	}
	return nil
}

// drawer draws texts of a grammar, of about as many parts as its budget.
type drawer struct {
	rules  map[string]expression
	height map[string]int
	rng    *rand.Rand
	budget int
	out    strings.Builder
}

const endless = 1 << 20

func newDrawer(t testing.TB, grammar string, rng *rand.Rand) *drawer {
	t.Helper()
	d := &drawer{rules: readGBNF(t, grammar), height: map[string]int{}, rng: rng}
	for name := range d.rules {
		d.height[name] = endless
	}
	for changed := true; changed; {
		changed = false
		for name, e := range d.rules {
			if h := 1 + d.flattest(e); h < d.height[name] {
				d.height[name], changed = h, true
			}
		}
	}
	return d
}

func (d *drawer) flattest(e expression) int {
	best := endless
	for _, way := range e {
		best = min(best, d.tall(way))
	}
	return best
}

func (d *drawer) tall(way []part) int {
	most := 0
	for _, p := range way {
		switch {
		case p.low == 0:
		case p.name != "":
			most = max(most, d.height[p.name])
		case p.group != nil:
			most = max(most, d.flattest(p.group))
		}
	}
	return most
}

func (d *drawer) text(budget int) string {
	d.budget = budget
	d.out.Reset()
	d.draw(d.rules["root"])
	return d.out.String()
}

func (d *drawer) draw(e expression) {
	ways := [][]part(e)
	if d.budget--; d.budget < 0 {
		h := d.flattest(e)
		ways = slices.DeleteFunc(slices.Clone(ways), func(w []part) bool { return d.tall(w) > h })
	}
	for _, p := range ways[d.rng.Intn(len(ways))] {
		n := p.low
		if d.budget > 0 && p.high != p.low && d.rng.Intn(2) == 0 {
			n++
		}
		for range n {
			switch {
			case p.name != "":
				d.draw(d.rules[p.name])
			case p.group != nil:
				d.draw(p.group)
			case p.isSet && p.not:
				d.out.WriteRune('x')
			case p.isSet:
				i := 2 * d.rng.Intn(len(p.set)/2)
				d.out.WriteRune(p.set[i] + rune(d.rng.Intn(int(p.set[i+1]-p.set[i])+1)))
			default:
				d.out.WriteString(string(p.text))
			}
		}
	}
}
