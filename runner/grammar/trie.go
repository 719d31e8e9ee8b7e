package grammar

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// literal writes a text as a string of GBNF.
func literal(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7F:
			fmt.Fprintf(&b, `\x%02X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// trie holds words by their beginnings. next is in the order of characters.
type trie struct {
	end  bool
	next []edge
}

type edge struct {
	r  rune
	to *trie
}

func (t *trie) add(word []rune) {
	for _, r := range word {
		i, found := slices.BinarySearchFunc(t.next, r, func(e edge, r rune) int { return int(e.r - r) })
		if !found {
			t.next = slices.Insert(t.next, i, edge{r, &trie{}})
		}
		t = t.next[i].to
	}
	t.end = true
}

// maxTrieDepth is how deep groups nest before the rest is written flat, which keeps llama.cpp's parser off the end of its stack.
const maxTrieDepth = 24

// Names writes the alternative of literal words, sharing their beginnings: of "city", "customer" and "customer_id" it makes
// ("c" ("ity" | "ustomer" ("_id")?)). While a name is sampled llama.cpp keeps one stack for each alternative that is still possible
// and tries every candidate on each, so a flat list of 1,400 columns costs 400 ms a token, and this 2 ms.
//
// The result is an item of a sequence: a string or a group. Words twice count once; a word that is no valid UTF-8 or has a NUL cannot
// be sampled and is left out; without any word the result is "", which is no expression.
func Names(words []string) string {
	t := &trie{}
	for _, w := range words {
		if utf8.ValidString(w) && !strings.ContainsRune(w, 0) {
			t.add([]rune(w))
		}
	}
	switch {
	case len(t.next) == 0 && !t.end:
		return ""
	case len(t.next) == 0:
		return `""`
	}
	return t.write(0)
}

// write gives an expression for what follows at t; t has something that follows.
func (t *trie) write(depth int) string {
	var alternatives []string
	if depth == maxTrieDepth {
		for _, w := range t.rest(nil) {
			alternatives = append(alternatives, literal(w))
		}
	} else {
		for _, e := range t.next {
			text := []rune{e.r}
			to := e.to
			for !to.end && len(to.next) == 1 {
				text = append(text, to.next[0].r)
				to = to.next[0].to
			}
			alternative := literal(string(text))
			if len(to.next) > 0 {
				alternative += " " + to.write(depth+1)
			}
			alternatives = append(alternatives, alternative)
		}
	}
	expr := strings.Join(alternatives, " | ")
	switch {
	case t.end:
		return "(" + expr + ")?"
	case depth == 0 && len(alternatives) == 1 && !strings.Contains(expr, " "):
		return expr
	}
	return "(" + expr + ")"
}

// rest lists what follows at t, except nothing.
func (t *trie) rest(before []rune) []string {
	var out []string
	for _, e := range t.next {
		word := append(slices.Clip(before), e.r)
		if e.to.end {
			out = append(out, string(word))
		}
		out = append(out, e.to.rest(word)...)
	}
	return out
}
