package grammar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sets that have an escape of their own.
var (
	digits = charset{{'0', '9'}}
	wordy  = charset{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	blank  = charset{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}}
)

// escape reads \ and what follows.
func (p *patternReader) escape() (charset, error) {
	p.at++
	c := p.peek()
	p.at++
	one := func(r rune) (charset, error) { return charset{{r, r}}, nil }
	switch c {
	case -1:
		return nil, errors.New(`a \ at the end`)
	case 'd':
		return digits, nil
	case 'D':
		return digits.complement(), nil
	case 'w':
		return wordy, nil
	case 'W':
		return wordy.complement(), nil
	case 's':
		return blank, nil
	case 'S':
		return blank.complement(), nil
	case 'n':
		return one('\n')
	case 'r':
		return one('\r')
	case 't':
		return one('\t')
	case 'f':
		return one('\f')
	case 'v':
		return one('\v')
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	}
	if strings.ContainsRune(`.^$[]()|{}*+?/\"'-_,:;=!@#%&<>~`+"` ", c) {
		return one(c)
	}
	return nil, fmt.Errorf(`\%c is not supported`, c)
}

func (p *patternReader) hex(n int) (charset, error) {
	if p.at+n > len(p.in) {
		return nil, fmt.Errorf("%d hexadecimal digits must follow", n)
	}
	v, err := strconv.ParseUint(string(p.in[p.at:p.at+n]), 16, 32)
	r := rune(v)
	if err != nil || r == 0 || r >= surrogates.low && r <= surrogates.high {
		return nil, fmt.Errorf("%q is no character", string(p.in[p.at:p.at+n]))
	}
	p.at += n
	return charset{{r, r}}, nil
}

// class reads [...] and refuses one in which nothing is left.
func (p *patternReader) class() (*regex, error) {
	p.at++
	negated := p.take("^")
	var set charset
	for p.peek() != ']' {
		low, err := p.member()
		if err != nil {
			return nil, err
		}
		if p.peek() != '-' || p.at+1 >= len(p.in) || p.in[p.at+1] == ']' {
			set = append(set, low...)
			continue
		}
		p.at++
		high, err := p.member()
		if err != nil {
			return nil, err
		}
		if len(low) != 1 || len(high) != 1 || low[0].low != low[0].high || high[0].low != high[0].high {
			return nil, errors.New("a range between sets")
		}
		if low[0].low > high[0].low {
			return nil, fmt.Errorf("the range %c-%c is the wrong way round", low[0].low, high[0].low)
		}
		set = append(set, span{low[0].low, high[0].low})
	}
	p.at++
	if len(set) == 0 && !negated {
		return nil, errors.New("an empty class")
	}
	if negated {
		set = set.complement()
	}
	if set = set.normal(); len(set) == 0 {
		return nil, errors.New("a class that leaves out every character")
	}
	return &regex{op: opChar, set: set}, nil
}

func (p *patternReader) member() (charset, error) {
	switch c := p.peek(); c {
	case -1:
		return nil, errors.New("a [ without its ]")
	case '\\':
		if p.at+1 < len(p.in) && p.in[p.at+1] == 'b' {
			p.at += 2
			return charset{{'\b', '\b'}}, nil
		}
		return p.escape()
	default:
		p.at++
		return charset{{c, c}}, nil
	}
}

// read parses a pattern or format once, however many values are held against it.
func (c *compiler) read(v *node, parse func(*node) (*regex, error)) (*regex, error) {
	if re := c.regex[v]; re != nil {
		return re, nil
	}
	re, err := parse(v)
	if err == nil {
		c.regex[v] = re
	}
	return re, err
}

// matches: whether a text matches.
func (c *compiler) matches(re *regex, s, path string) (bool, error) {
	m := &matcher{in: []rune(s), pay: func(units int) error { return c.work(units, path) }}
	ends, err := m.ends(re, map[int]bool{0: true})
	return ends[len(m.in)], err
}

// matcher walks a tree with the set of places where a match so far may end, and pays for each.
type matcher struct {
	in  []rune
	pay func(units int) error
}

func (m *matcher) ends(re *regex, from map[int]bool) (map[int]bool, error) {
	if err := m.pay(5 + 5*len(from)); err != nil {
		return nil, err
	}
	out := map[int]bool{}
	switch re.op {
	case opChar:
		for i := range from {
			if i < len(m.in) && re.set.has(m.in[i]) {
				out[i+1] = true
			}
		}
	case opSeq:
		var err error
		for _, sub := range re.subs {
			if from, err = m.ends(sub, from); err != nil {
				return nil, err
			}
		}
		return from, nil
	case opAlt:
		for _, sub := range re.subs {
			ends, err := m.ends(sub, from)
			if err != nil {
				return nil, err
			}
			maps.Copy(out, ends)
		}
	case opRepeat:
		for n := 0; len(from) > 0 && (re.high < 0 || n <= re.high); n++ {
			before := len(out)
			if n >= re.low {
				maps.Copy(out, from)
				if n > re.low && len(out) == before {
					break // nothing new, so nothing new any more
				}
			}
			var err error
			if from, err = m.ends(re.subs[0], from); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// clone of a sequence with other parts.
func seqOf(subs ...*regex) *regex { return &regex{op: opSeq, subs: slices.Clone(subs)} }
