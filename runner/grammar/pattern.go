package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a pattern.
const (
	maxPatternBytes   = 4096
	maxPatternDepth   = 32
	maxPatternProduct = 10_000 // of nested repetitions
)

// regex is a regular expression as a tree. Only the part of the language that a grammar can say is read: no looking ahead or behind, no
// references, ^ and $ only at the ends of an alternative. A pattern that is not anchored may have anything before or behind, as JSON
// Schema has it.
type regex struct {
	source string
	op     regexOp
	set    charset  // opChar
	subs   []*regex // opSeq, opAlt; one in opRepeat
	low    int      // opRepeat
	high   int      // opRepeat; -1: without bound
}

type regexOp int

const (
	opChar regexOp = iota
	opSeq
	opAlt
	opRepeat
)

var anything = charset{{0, utf8.MaxRune}}

func repeat(sub *regex, low, high int) *regex {
	return &regex{op: opRepeat, subs: []*regex{sub}, low: low, high: high}
}

// parsePattern reads a whole pattern.
func parsePattern(source string) (*regex, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("it has %d bytes; at most %d", len(source), maxPatternBytes)
	}
	if strings.ContainsRune(source, 0) {
		return nil, errors.New("it has a NUL")
	}
	p := &patternReader{in: []rune(source)}
	re, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	if p.at < len(p.in) {
		return nil, errors.New("a ) without its (")
	}
	if re.product() > maxPatternProduct {
		return nil, fmt.Errorf("its nested repetitions multiply to %d; at most %d", re.product(), maxPatternProduct)
	}
	re.source = source
	return re, nil
}

// product is the largest product of nested repetitions, or of their lengths.
func (re *regex) product() int {
	most := 1
	for _, sub := range re.subs {
		most = max(most, sub.product())
	}
	if re.op == opRepeat {
		most = min(most*max(re.low, re.high, 1), 1<<40)
	}
	return most
}

// lengths gives the fewest and most characters of a match; most is -1 without bound.
func (re *regex) lengths() (low, high int) {
	switch re.op {
	case opChar:
		return 1, 1
	case opSeq:
		for _, sub := range re.subs {
			l, h := sub.lengths()
			low += l
			if h < 0 || high < 0 {
				high = -1
			} else {
				high += h
			}
		}
	case opAlt:
		for i, sub := range re.subs {
			l, h := sub.lengths()
			if i == 0 {
				low, high = l, h
				continue
			}
			low = min(low, l)
			if h < 0 || high < 0 {
				high = -1
			} else {
				high = max(high, h)
			}
		}
	case opRepeat:
		l, h := re.subs[0].lengths()
		low, high = l*re.low, -1
		if h == 0 || re.high == 0 {
			high = 0
		} else if h > 0 && re.high > 0 {
			high = h * re.high
		}
	}
	return low, high
}

type patternReader struct {
	in []rune
	at int
}

func (p *patternReader) peek() rune {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return -1
}

func (p *patternReader) take(s string) bool {
	if strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+len(s))]), s) {
		p.at += len([]rune(s))
		return true
	}
	return false
}

// alternatives reads up to the end or a ")" that is not its own. At depth 0 each has its own anchors.
func (p *patternReader) alternatives(depth int) (*regex, error) {
	if depth > maxPatternDepth {
		return nil, fmt.Errorf("groups are nested over %d deep", maxPatternDepth)
	}
	alt := &regex{op: opAlt}
	for {
		seq := &regex{op: opSeq}
		if depth == 0 && !p.take("^") {
			seq.subs = append(seq.subs, repeat(&regex{op: opChar, set: anything}, 0, -1))
		}
		anchored, err := p.sequence(seq, depth)
		if err != nil {
			return nil, err
		}
		if depth == 0 && !anchored {
			seq.subs = append(seq.subs, repeat(&regex{op: opChar, set: anything}, 0, -1))
		}
		alt.subs = append(alt.subs, seq)
		if !p.take("|") {
			break
		}
	}
	if alt.subs = joined(alt.subs); len(alt.subs) == 1 {
		return alt.subs[0], nil
	}
	return alt, nil
}

// joined makes one class of the alternatives that are a single character: of (\w|[a-z]) two would match an a.
func joined(subs []*regex) []*regex {
	var out []*regex
	class := -1
	for _, sub := range subs {
		one := sub
		if sub.op == opSeq && len(sub.subs) == 1 {
			one = sub.subs[0]
		}
		switch {
		case one.op != opChar:
			out = append(out, sub)
		case class < 0:
			class = len(out)
			out = append(out, &regex{op: opChar, set: one.set})
		default:
			set := slices.Concat(out[class].set, one.set).normal()
			out[class] = &regex{op: opChar, set: set}
		}
	}
	return out
}

// sequence reads one alternative; anchored says that $ ended it.
func (p *patternReader) sequence(seq *regex, depth int) (anchored bool, err error) {
	for p.at < len(p.in) {
		var item *regex
		switch c := p.peek(); c {
		case ')', '|':
			return false, nil
		case '$':
			p.at++
			if next := p.peek(); depth > 0 || next != -1 && next != '|' {
				return false, errors.New("$ in the middle")
			}
			return true, nil
		case '^':
			return false, errors.New("^ in the middle")
		case '(':
			if item, err = p.group(depth); err != nil {
				return false, err
			}
		case '[':
			if item, err = p.class(); err != nil {
				return false, err
			}
		case '*', '+', '?', '{':
			return false, fmt.Errorf("%c with nothing before it", c)
		case ']', '}':
			return false, fmt.Errorf("a bare %c; write \\%c", c, c)
		case '.':
			p.at++
			item = &regex{op: opChar, set: charset{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement()}
		case '\\':
			set, err := p.escape()
			if err != nil {
				return false, err
			}
			item = &regex{op: opChar, set: set}
		default:
			p.at++
			item = &regex{op: opChar, set: charset{{c, c}}}
		}
		if item, err = p.repeated(item); err != nil {
			return false, err
		}
		seq.subs = append(seq.subs, item)
	}
	return false, nil
}

func (p *patternReader) group(depth int) (*regex, error) {
	p.at++
	if p.peek() == '?' && !p.take("?:") {
		if !p.take("?<") || p.peek() == '=' || p.peek() == '!' {
			return nil, errors.New("groups with (? are not supported, except (?: and (?<name>")
		}
		for p.peek() != '>' {
			if p.peek() == -1 {
				return nil, errors.New("a (?< without its >")
			}
			p.at++
		}
		p.at++
	}
	re, err := p.alternatives(depth + 1)
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, errors.New("a ( without its )")
	}
	return re, nil
}

// repeated reads the operators behind an item. A lazy one ("+?") matches the same texts.
func (p *patternReader) repeated(item *regex) (*regex, error) {
	low, high := 1, 1
	switch p.peek() {
	case '*':
		low, high = 0, -1
	case '+':
		high = -1
	case '?':
		low = 0
	case '{':
		var err error
		if low, high, err = p.braces(); err != nil {
			return nil, err
		}
		p.at-- // the one that all cases share
	default:
		return item, nil
	}
	p.at++
	p.take("?")
	switch c := p.peek(); c {
	case '*', '+', '?', '{':
		return nil, fmt.Errorf("%c behind a repetition; put that into a group", c)
	}
	return repeat(item, low, high), nil
}

func (p *patternReader) braces() (low, high int, err error) {
	end := p.at
	for end < len(p.in) && p.in[end] != '}' {
		end++
	}
	if end == len(p.in) {
		return 0, 0, errors.New("a { without its }")
	}
	first, second, ranged := strings.Cut(string(p.in[p.at+1:end]), ",")
	p.at = end + 1
	least, err := strconv.ParseUint(first, 10, 31)
	if err != nil {
		return 0, 0, errors.New("{ } needs a whole number, or two")
	}
	low, high = int(least), int(least)
	if ranged {
		high = -1
		if second != "" {
			most, err := strconv.ParseUint(second, 10, 31)
			if err != nil || most < least {
				return 0, 0, errors.New("{ } needs two whole numbers, the lower first")
			}
			high = int(most)
		}
	}
	if n := max(low, high); n > maxRepetition {
		return 0, 0, fmt.Errorf("a repetition of %d; at most %d", n, maxRepetition)
	}
	return low, high, nil
}
