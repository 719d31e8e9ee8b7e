package sqlguard

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the longest statement that is looked at: 32 KiB. Deep trees need long texts, so the bound comes before
// any parser.
const MaxBytes = 32 << 10

// checkBytes refuses what no parser should be asked about. NUL ends a C string, so a parser would see another
// statement than the one that we were sent; a control character hides text from a reader; a Unicode space is a space to
// one engine and a letter to another.
func checkBytes(sql string) error {
	if len(sql) > MaxBytes {
		return refuse(noPlace, kindQuery, "send a shorter statement", "the statement is %d bytes long; the limit is %d", len(sql), MaxBytes)
	}
	if at := longRun(sql); at >= 0 {
		return refuse(at, kindSyntax, "write fewer of them; a long line in a text is repeat('-', 300)",
			"the statement has more than %d operator characters (+ - * / = …) in a row", maxRun)
	}
	for i := 0; i < len(sql); {
		r, n := utf8.DecodeRuneInString(sql[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return refuse(i, kindSyntax, "send valid UTF-8", "the statement is not valid UTF-8")
		case r == 0:
			return refuse(i, kindSyntax, "remove it", "the statement has a NUL character")
		case (r < 0x20 && r != '\t' && r != '\n' && r != '\r') || r == 0x7F:
			return refuse(i, kindSyntax, "remove it", "the statement has the control character U+%04X", r)
		}
		i += n
	}
	if at, r := oddSpace(sql); at >= 0 {
		return refuse(at, kindSyntax, "use a plain space", "the statement has the Unicode space U+%04X outside a literal or quoted name", r)
	}
	return nil
}

// operatorBytes are what operators and comments are made of. The scanners of both engines read a run of them again from each of
// its characters: 32,000 plus signs or comments in comments take PostgreSQL's parser 8 seconds, 4,000 take DuckDB's 30,
// where nothing can interrupt them.
const operatorBytes = "+-*/<>=~!@#%^&|`?"

// maxRun is the longest run of operatorBytes, wherever it stands: lines of dashes and stars in comments are shorter.
const maxRun = 200

// longRun finds a run that is longer, or gives -1.
func longRun(sql string) (at int) {
	run := 0
	for i := range len(sql) {
		if strings.IndexByte(operatorBytes, sql[i]) < 0 {
			run = 0
		} else if run++; run > maxRun {
			return i - maxRun
		}
	}
	return -1
}

// oddSpace finds a Unicode space outside literals, quoted identifiers and comments, or gives -1.
func oddSpace(sql string) (at int, r rune) {
	for i := 0; i < len(sql); {
		if end := SkipQuoted(sql, i); end > i {
			i = end
			continue
		}
		r, n := utf8.DecodeRuneInString(sql[i:])
		if r >= utf8.RuneSelf && (unicode.IsSpace(r) || unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Cf)) {
			return i, r
		}
		i += n
	}
	return -1, 0
}

// SkipQuoted gives the end of the literal, quoted name or comment that starts at i, or i when none does. One that does
// not end reaches to the end of the text.
func SkipQuoted(sql string, i int) int {
	rest := sql[i:]
	switch {
	case rest[0] == '\'':
		// An E before the quote makes a backslash escape the next character. E is part of a longer word in 'fooE'.
		esc := i > 0 && (sql[i-1] == 'e' || sql[i-1] == 'E') && (i < 2 || !wordByte(sql[i-2]))
		return i + quotedLen(rest, '\'', esc)
	case rest[0] == '"':
		return i + quotedLen(rest, '"', false)
	case strings.HasPrefix(rest, "--"):
		if n := strings.IndexAny(rest, "\r\n"); n >= 0 {
			return i + n
		}
		return len(sql)
	case strings.HasPrefix(rest, "/*"):
		return i + commentLen(rest)
	case rest[0] == '$':
		tag := dollarTag(rest)
		if tag == "" || (i > 0 && wordByte(sql[i-1])) {
			return i
		}
		if n := strings.Index(rest[len(tag):], tag); n >= 0 {
			return i + 2*len(tag) + n
		}
		return len(sql)
	}
	return i
}

func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func quotedLen(s string, quote byte, backslash bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case backslash && s[i] == '\\':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

func commentLen(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dollarTag gives the opening $tag$ at the start of s, or "".
func dollarTag(s string) string {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '$':
			return s[:i+1]
		case !wordByte(s[i]) || (i == 1 && '0' <= s[i] && s[i] <= '9'):
			return ""
		}
	}
	return ""
}
