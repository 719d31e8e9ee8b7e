package agent

import (
	"strings"
	"unicode/utf8"
)

// kind is what a token of SQL is.
type kind int

const (
	word   kind = iota // a name or keyword without quotes
	quoted             // a name in double quotes
	text               // a literal in single quotes
	number
	sign // one character, or one of the signs of several
)

// token is a piece of a statement. It is for finding places in a text that the gate has looked at or will look at: what a
// statement means, and whether it may run, is the gate's to say.
type token struct {
	kind       kind
	text       string // as it is written
	start, end int    // bytes of the statement
	depth      int    // of parentheses around it
}

// is says whether a token is that keyword or sign.
func (t token) is(words ...string) bool {
	for _, w := range words {
		if (t.kind == word || t.kind == sign) && strings.EqualFold(t.text, w) {
			return true
		}
	}
	return false
}

// name gives the name that a token writes, and whether it is one.
func (t token) name() (string, bool) {
	switch t.kind {
	case word:
		return t.text, true
	case quoted:
		return strings.ReplaceAll(t.text[1:len(t.text)-1], `""`, `"`), true
	}
	return "", false
}

// value gives the text of a literal.
func (t token) value() string { return strings.ReplaceAll(t.text[1:len(t.text)-1], "''", "'") }

// signs of several characters.
var signs = []string{"::", "<=", ">=", "<>", "!=", "||", "==", "~~"}

// tokens splits a statement. ok is false for what it does not know for sure, such as dollar quotes and unbalanced
// parentheses: then nothing may be changed in the text.
func tokens(sql string) (out []token, ok bool) {
	depth := 0
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"):
			if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
				i += n + 1
			} else {
				i = len(sql)
			}
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			n := strings.Index(sql[i+2:], "*/")
			if n < 0 || strings.Contains(sql[i+2:i+2+n], "/*") {
				return nil, false
			}
			i += n + 4
			continue
		}
		t := token{start: i, depth: depth}
		switch {
		case c == '\'' || c == '"':
			n := closed(sql[i:], c)
			if n < 0 || n == 2 && c == '"' {
				return nil, false
			}
			if last := len(out) - 1; c == '\'' && last >= 0 && out[last].end == i && (out[last].kind == word || out[last].text == "&") {
				return nil, false // E'…', U&'…' and the like have rules of their own
			}
			t.kind, i = map[byte]kind{'\'': text, '"': quoted}[c], i+n
		case letter(c):
			for i < len(sql) && (letter(sql[i]) || digit(sql[i])) {
				i++
			}
			t.kind = word
		case digit(c):
			for i < len(sql) && (letter(sql[i]) || digit(sql[i]) || sql[i] == '.') {
				i++
			}
			t.kind = number
		case c == '$' || c == '\\' || c == 0:
			return nil, false
		default:
			i += width(sql[i:])
			t.kind = sign
		}
		t.end, t.text = i, sql[t.start:i]
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			if depth--; depth < 0 {
				return nil, false
			}
			t.depth = depth
		}
		out = append(out, t)
	}
	return out, depth == 0
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}
func digit(c byte) bool { return c >= '0' && c <= '9' }

// closed gives the length of what begins with a quote, doubled quotes included; -1 when it has no end.
func closed(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return -1
}

func width(s string) int {
	for _, m := range signs {
		if strings.HasPrefix(s, m) {
			return len(m)
		}
	}
	return 1
}

// edit is one change of a text.
type edit struct {
	start, end int
	with       string
}

// apply makes changes that do not overlap, given in the order of their places.
func apply(sql string, edits ...edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(sql[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.WriteString(sql[at:])
	return b.String()
}
