package grammar

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// expr is the alternatives of a rule or a group.
type expr struct{ ways [][]*item }

// item is one part of a sequence. high is -1 without bound.
type item struct {
	at        int // byte position
	op        itemOp
	text      []rune  // opText
	set       charset // opSet
	spans     int     // opSet: as written
	name      string  // opRef
	group     *expr   // opGroup
	low, high int
	deep      int // how deep it is in groups
}

type itemOp int

const (
	opText itemOp = iota
	opSet
	opRef
	opGroup
)

type definition struct {
	name string
	at   int
	body *expr
}

// mistakeError is what is wrong with a grammar, and where.
type mistakeError struct {
	at   int // byte position
	what string
	hint string
}

func (e *mistakeError) Error() string { return e.what }

// parse reads GBNF as llama.cpp's parser does (llama-grammar.cpp, parse_rule and below), newlines included: they end a rule, except
// behind ::= and | and inside a group.
func parse(text string, deepest int) (rules []*definition, err error) {
	p := &parser{in: text, deepest: deepest}
	defer func() {
		if r := recover(); r != nil {
			m, ok := r.(*mistakeError)
			if !ok {
				panic(r)
			}
			err = m
		}
	}()
	p.space(true)
	for p.at < len(p.in) {
		rules = append(rules, p.rule())
	}
	return rules, nil
}

type parser struct {
	in      string
	at      int
	deepest int
}

func (p *parser) fail(at int, what, hint string) {
	panic(&mistakeError{at, what, hint})
}

func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) space(newlines bool) {
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == ' ' || c == '\t' || newlines && (c == '\r' || c == '\n'):
			p.at++
		case c == '#':
			for p.at < len(p.in) && p.in[p.at] != '\r' && p.in[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (p *parser) word(ok func(byte) bool) string {
	start := p.at
	for p.at < len(p.in) && ok(p.in[p.at]) {
		p.at++
	}
	return p.in[start:p.at]
}

func (p *parser) rule() *definition {
	d := &definition{at: p.at}
	d.name = p.word(inName)
	if d.name == "" {
		p.fail(p.at, "a rule's name is expected, not "+p.shown(), "a name has letters, digits and -; a rule goes on in the next line only inside of ( ) or behind |")
	}
	p.space(false)
	if !strings.HasPrefix(p.in[p.at:], "::=") {
		p.fail(p.at, "::= is expected behind the rule's name, not "+p.shown(), "a name has letters, digits and -, and no _")
	}
	p.at += len("::=")
	p.space(true)
	d.body = p.alternatives(0)
	switch c := p.peek(); {
	case p.at == len(p.in):
	case c == '\r' || c == '\n':
		p.space(true)
	case c == ')':
		p.fail(p.at, "a ) without its (", "")
	default:
		p.fail(p.at, p.shown()+" is not expected here", "")
	}
	return d
}

// shown is the character at the place, for messages.
func (p *parser) shown() string {
	if p.at >= len(p.in) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(p.in[p.at:])
	return strconv.QuoteRune(r)
}

func (p *parser) alternatives(depth int) *expr {
	e := &expr{ways: [][]*item{p.sequence(depth)}}
	for p.peek() == '|' {
		p.at++
		p.space(true)
		e.ways = append(e.ways, p.sequence(depth))
	}
	return e
}

func (p *parser) sequence(depth int) []*item {
	var out []*item
	for p.at < len(p.in) {
		it := &item{at: p.at, low: 1, high: 1, deep: depth}
		switch c := p.peek(); {
		case c == '"':
			p.text(it)
		case c == '[':
			p.class(it)
		case c == '.':
			p.at++
			it.op, it.set, it.spans = opSet, charset{{1, utf8.MaxRune}}, 1
		case c == '<' || c == '!':
			p.fail(p.at, "tokens by name or number are not supported", "write the text between quotes: whether a token exists depends on the model")
		case inName(c):
			it.op, it.name = opRef, p.word(inName)
		case c == '(':
			if depth+1 > p.deepest {
				p.fail(p.at, "groups are nested over "+strconv.Itoa(p.deepest)+" deep", "make rules of the inner ones")
			}
			p.at++
			p.space(true)
			it.op, it.group = opGroup, p.alternatives(depth+1)
			if p.peek() != ')' {
				p.fail(it.at, "a ( without its )", "")
			}
			p.at++
		case c == '*' || c == '+' || c == '?' || c == '{':
			if len(out) == 0 {
				p.fail(p.at, string(c)+" has nothing before it that it could repeat", "")
			}
			out[len(out)-1] = p.repetition(out[len(out)-1], depth)
			continue
		default:
			return out
		}
		p.space(depth > 0)
		out = append(out, it)
	}
	return out
}

func (p *parser) repetition(of *item, depth int) *item {
	start := p.at
	if of.op == opText && len(of.text) == 0 {
		p.fail(start, "an empty string cannot be repeated", "leave it out")
	}
	if of.low != 1 || of.high != 1 { // a second operator repeats what the first one made
		of = &item{at: of.at, op: opGroup, group: &expr{ways: [][]*item{{of}}}, deep: depth}
	}
	c := p.in[p.at]
	p.at++
	p.space(depth > 0)
	switch c {
	case '*':
		of.low, of.high = 0, -1
	case '+':
		of.low, of.high = 1, -1
	case '?':
		of.low, of.high = 0, 1
	default:
		of.low = p.count()
		of.high = of.low
		if p.peek() == ',' {
			p.at++
			p.space(depth > 0)
			of.high = -1
			if isDigit(p.peek()) {
				of.high = p.count()
			}
		}
		if p.peek() != '}' {
			p.fail(p.at, "} is expected, not "+p.shown(), "write {2}, {2,} or {2,5}")
		}
		p.at++
		p.space(depth > 0)
		if of.high == 0 || of.high > 0 && of.high < of.low {
			p.fail(start, "a repetition of nothing, or with its bounds the wrong way round", "write {2}, {2,} or {2,5}")
		}
	}
	return of
}

func (p *parser) count() int {
	start := p.at
	digits := p.word(isDigit)
	n, err := strconv.Atoi(digits)
	switch {
	case digits == "":
		p.fail(p.at, "a number is expected, not "+p.shown(), "write {2}, {2,} or {2,5}")
	case err != nil || n > maxRepetition:
		p.fail(start, "a repetition of "+digits+"; at most "+strconv.Itoa(maxRepetition), "")
	}
	p.space(false)
	return n
}

func (p *parser) text(it *item) {
	p.at++
	for p.peek() != '"' {
		if p.at == len(p.in) {
			p.fail(it.at, `a string without its closing "`, "")
		}
		start := p.at
		r := p.char()
		if r == 0 || r >= surrogates.low && r <= surrogates.high {
			p.fail(start, "no token has this character", "leave it out")
		}
		it.text = append(it.text, r)
	}
	p.at++
}

func (p *parser) class(it *item) {
	it.op = opSet
	p.at++
	negated := p.peek() == '^'
	if negated {
		p.at++
	}
	for p.peek() != ']' {
		if p.at == len(p.in) {
			p.fail(it.at, "a [ without its ]", "")
		}
		start := p.at
		low := p.char()
		high := low
		it.spans++
		if p.peek() == '-' && p.at+1 < len(p.in) && p.in[p.at+1] != ']' {
			p.at++
			high = p.char()
			it.spans++
			if high < low {
				p.fail(start, "a range the wrong way round", "")
			}
		}
		it.set = append(it.set, span{low, high})
	}
	p.at++
	if it.spans == 0 {
		p.fail(it.at, "an empty class of characters", "write . for any character")
	}
	if negated {
		it.set = it.set.complement()
	}
	it.set = it.set.without(charset{{0, 0}})
	if len(it.set) == 0 {
		p.fail(it.at, "no token can match this class", "")
	}
}

// char reads a character or an escape.
func (p *parser) char() rune {
	start := p.at
	if p.in[p.at] != '\\' {
		r, n := utf8.DecodeRuneInString(p.in[p.at:])
		p.at += n
		return r
	}
	p.at++
	c := p.peek()
	p.at++
	switch c {
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'n':
		return '\n'
	case '\\', '"', '[', ']':
		return rune(c)
	}
	size, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if !ok {
		p.fail(start, `\ with an unknown letter behind it`, `there are \n \r \t \\ \" \[ \] \xNN \uNNNN \UNNNNNNNN`)
	}
	digits := p.in[p.at:min(p.at+size, len(p.in))]
	v, err := strconv.ParseUint(digits, 16, 32)
	if len(digits) < size || err != nil {
		p.fail(start, strconv.Itoa(size)+" hexadecimal digits must follow", "")
	}
	if v > utf8.MaxRune {
		p.fail(start, "no character has this number", "")
	}
	p.at += size
	return rune(v)
}
