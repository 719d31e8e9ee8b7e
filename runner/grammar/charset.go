package grammar

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a range of characters, both ends in it.
type span struct{ low, high rune }

// charset is a set of characters as spans.
type charset []span

// The surrogates are no characters: no valid text has one.
var surrogates = span{0xD800, 0xDFFF}

// normal sorts, joins, and takes the surrogates out.
func (s charset) normal() charset {
	var in charset
	for _, x := range s {
		switch {
		case x.high < surrogates.low || x.low > surrogates.high:
			in = append(in, x)
		default:
			if x.low < surrogates.low {
				in = append(in, span{x.low, surrogates.low - 1})
			}
			if x.high > surrogates.high {
				in = append(in, span{surrogates.high + 1, x.high})
			}
		}
	}
	slices.SortFunc(in, func(a, b span) int { return int(a.low - b.low) })
	var out charset
	for _, x := range in {
		if n := len(out); n > 0 && x.low <= out[n-1].high+1 {
			out[n-1].high = max(out[n-1].high, x.high)
		} else {
			out = append(out, x)
		}
	}
	return out
}

func (s charset) complement() charset {
	var out charset
	next := rune(0)
	for _, x := range s.normal() {
		if x.low > next {
			out = append(out, span{next, x.low - 1})
		}
		next = x.high + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, span{next, utf8.MaxRune})
	}
	return out.normal()
}

func (s charset) without(t charset) charset {
	return append(s.complement(), t...).complement()
}

func (s charset) has(r rune) bool {
	return slices.ContainsFunc(s, func(x span) bool { return x.low <= r && r <= x.high })
}

// class writes the set as a character class of GBNF; "" when it is empty.
func (s charset) class() string {
	s = s.normal()
	if len(s) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, x := range s {
		b.WriteString(classChar(x.low))
		if x.high > x.low {
			b.WriteString("-" + classChar(x.high))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// classChar spells letters, digits and printable characters beyond ASCII as they are, and all else by number: llama.cpp knows no escape
// for ^ and -.
func classChar(r rune) string {
	switch {
	case r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == ' ' || r == '_':
		return string(r)
	case r < 0x100:
		return fmt.Sprintf(`\x%02X`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

// shortEscapes are the characters that JSON escapes with a letter.
var shortEscapes = map[rune]rune{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// inString writes the set as characters of a JSON string: those that must be escaped as their escapes. Control characters without a short
// escape are left out unless nothing else is in the set.
func (s charset) inString() string {
	plain := s.without(charset{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}})
	var out []string
	if class := plain.class(); class != "" {
		out = append(out, class)
	}
	var letters strings.Builder
	for r := rune(0); r <= '\\'; r++ {
		if letter, ok := shortEscapes[r]; ok && s.has(r) {
			letters.WriteRune(letter)
		}
	}
	if letters.Len() > 0 {
		out = append(out, `"\\" [`+strings.ReplaceAll(letters.String(), `\`, `\\`)+`]`)
	}
	if len(out) == 0 {
		for r := rune(0); r < ' '; r++ {
			if s.has(r) {
				out = append(out, fmt.Sprintf(`"\\u%04x"`, r))
			}
		}
	}
	if len(out) == 1 && !strings.Contains(out[0], " ") || len(out) == 1 && out[0][0] == '[' {
		return out[0]
	}
	return "(" + strings.Join(out, " | ") + ")"
}
