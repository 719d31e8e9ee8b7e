package rag

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// fold makes texts comparable that differ in case or accents only.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// token is one word of a text, with its place in it.
type token struct {
	text       string // as it is written, without a possessive ending
	fold       string
	start, end int // bytes of the text
}

// tokens splits a text into words of letters and digits. An apostrophe inside a word belongs to it ("O'Hara"), but not the
// possessive ending ("author's" is "author").
func tokens(text string) []token {
	var out []token
	start := -1
	add := func(end int) {
		word := text[start:end]
		for _, ending := range []string{"'s", "’s", "'S"} {
			word = strings.TrimSuffix(word, ending)
		}
		if word != "" {
			out = append(out, token{text: word, fold: foldWord(word), start: start, end: start + len(word)})
		}
		start = -1
	}
	for at, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r):
			if start < 0 {
				start = at
			}
		case start >= 0 && (r == '\'' || r == '’') && letterAt(text[at+utf8.RuneLen(r):]):
		case start >= 0:
			add(at)
		}
	}
	if start >= 0 {
		add(len(text))
	}
	return out
}

func letterAt(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func foldWord(w string) string {
	return strings.Map(func(r rune) rune {
		if r == '\'' || r == '’' {
			return -1
		}
		return r
	}, fold(w))
}

// foldPhrase folds a text to its words, with one blank between them: the form in which values and phrases are compared.
func foldPhrase(s string) string {
	words := tokens(s)
	folded := make([]string, len(words))
	for i, w := range words {
		folded[i] = w.fold
	}
	return strings.Join(folded, " ")
}

// stem takes the ending off a folded word, so that "ordered", "orders" and "order" are one.
func stem(word string) string {
	if base, ok := irregular[word]; ok {
		word = base
	}
	return english.Stem(word, true)
}

// stems gives the stems of the words of a text.
func stems(text string) []string {
	words := tokens(text)
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = stem(w.fold)
	}
	return out
}

// splitName splits a name at underscores, blanks, digits and changes of case: order_id, orderId, HTTPServer2.
func splitName(name string) []string {
	var parts []string
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, fold(string(part)))
			part = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case unicode.IsDigit(r):
			if len(part) > 0 && !unicode.IsDigit(part[len(part)-1]) {
				flush()
			}
			part = append(part, r)
			continue
		case !unicode.IsLetter(r):
			flush()
			continue
		case len(part) > 0 && unicode.IsDigit(part[len(part)-1]):
			flush()
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			flush()
		case unicode.IsUpper(r) && i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			flush() // the last capital of HTTPServer begins Server
		}
		part = append(part, r)
	}
	flush()
	return parts
}
