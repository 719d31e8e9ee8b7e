package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// gbnf is a grammar being written, in llama.cpp's form.
type gbnf struct {
	names []string
	rules map[string]string
}

func (g *gbnf) rule(name, body string) {
	if g.rules == nil {
		g.rules = map[string]string{}
	}
	if _, ok := g.rules[name]; !ok {
		g.names = append(g.names, name)
	}
	g.rules[name] = body
}

// String gives the rules in the order of their first definition.
func (g *gbnf) String() string {
	var b strings.Builder
	for _, n := range g.names {
		b.WriteString(n + " ::= " + g.rules[n] + "\n")
	}
	return b.String()
}

// literal writes a text as a string of GBNF.
func literal(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7F:
			fmt.Fprintf(&b, `\x%02X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// maxTrieDepth is how deep groups nest before the rest is written flat: llama.cpp's parser nests as deep.
const maxTrieDepth = 20

// oneOf writes the alternative of words so that words with one beginning share it: an engine tries each alternative that is
// still possible for each token, and a list of a thousand columns would cost it a second. Words that no model could write
// are left out; of no word it makes a rule that nothing fits.
func oneOf(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return w == "" || !utf8.ValidString(w) || strings.ContainsAny(w, "\x00\n\r")
	})
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) == 0 {
		return `[^\x00-\U0010FFFF]`
	}
	return trie(words, 0)
}

// trie writes sorted different words, of which only the first may be empty.
func trie(words []string, depth int) string {
	optional := words[0] == ""
	if optional {
		words = words[1:]
	}
	var ways []string
	for len(words) > 0 {
		n := 1
		first, size := utf8.DecodeRuneInString(words[0])
		for n < len(words) {
			if r, _ := utf8.DecodeRuneInString(words[n]); r != first {
				break
			}
			n++
		}
		group := words[:n]
		words = words[n:]
		if n == 1 {
			ways = append(ways, literal(group[0]))
			continue
		}
		if depth >= maxTrieDepth {
			for _, w := range group {
				ways = append(ways, literal(w))
			}
			continue
		}
		for { // as far as all go together
			if len(group[0]) == size {
				break
			}
			_, more := utf8.DecodeRuneInString(group[0][size:])
			if !strings.HasPrefix(group[n-1], group[0][:size+more]) {
				break
			}
			size += more
		}
		rest := make([]string, n)
		for i, w := range group {
			rest[i] = w[size:]
		}
		ways = append(ways, literal(group[0][:size])+" "+trie(rest, depth+1))
	}
	out := "(" + strings.Join(ways, " | ") + ")"
	if optional {
		out += "?"
	}
	return out
}
