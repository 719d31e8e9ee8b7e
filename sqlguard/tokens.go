package sqlguard

import (
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// A token of PostgreSQL's scanner, which also takes DuckDB's brackets, braces and lambdas apart. Comments are left out.
type token struct {
	text  string // as written
	start int    // byte place in the statement
	end   int
}

// scan gives the tokens of a text, or none when the scanner cannot read it: such a text goes to the gate as it is.
// Scan is not recursive, so it is safe on any input; NUL would end its C string early.
func scan(sql string) []token {
	if len(sql) > MaxBytes || strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return nil
	}
	res, err := pg_query.Scan(sql)
	if err != nil {
		return nil
	}
	var out []token
	for _, t := range res.Tokens {
		start, end := int(t.Start), int(t.End)
		if t.Token == pg_query.Token_SQL_COMMENT || t.Token == pg_query.Token_C_COMMENT {
			continue
		}
		if start < 0 || end > len(sql) || start >= end {
			return nil
		}
		out = append(out, token{sql[start:end], start, end})
	}
	return out
}

// is tells whether the token is this keyword, unquoted and in any case.
func (t token) is(word string) bool { return strings.EqualFold(t.text, word) && t.word() }

// word tells whether the token is an unquoted name or keyword.
func (t token) word() bool {
	if t.text == "" || !wordByte(t.text[0]) || '0' <= t.text[0] && t.text[0] <= '9' {
		return false
	}
	for i := range len(t.text) {
		if !wordByte(t.text[i]) && t.text[i] != '$' {
			return false
		}
	}
	return true
}

// name gives an identifier's name: a word as it is written, or a quoted one without its quotes.
func (t token) name() (string, bool) {
	if t.word() {
		return t.text, true
	}
	return t.unquote('"')
}

// literal gives the value of a plain '…' string. Escape strings, dollar quotes and strings joined over lines are none.
func (t token) literal() (string, bool) { return t.unquote('\'') }

func (t token) unquote(q byte) (string, bool) {
	s := t.text
	if len(s) < 2 || s[0] != q || s[len(s)-1] != q {
		return "", false
	}
	inner, quote := s[1:len(s)-1], string(q)
	plain := strings.ReplaceAll(inner, quote+quote, "")
	if strings.Contains(plain, quote) || (q == '"' && inner == "") {
		return "", false
	}
	return strings.ReplaceAll(inner, quote+quote, quote), true
}

// stripExplain blanks a leading EXPLAIN, so that every place in the rest stays what it was. EXPLAIN with options,
// ANALYZE among them, stays, and the parser refuses it.
func stripExplain(sql string) (string, bool) {
	toks := scan(sql)
	if len(toks) < 2 || !toks[0].is("EXPLAIN") || toks[1].is("ANALYZE") || toks[1].is("ANALYSE") || toks[1].is("VERBOSE") || toks[1].is("EXPLAIN") {
		return sql, false
	}
	if toks[1].text == "(" && len(toks) > 2 && !toks[2].is("SELECT") && !toks[2].is("WITH") && !toks[2].is("VALUES") && !toks[2].is("FROM") && toks[2].text != "(" {
		return sql, false
	}
	return sql[:toks[0].start] + strings.Repeat(" ", toks[0].end-toks[0].start) + sql[toks[0].end:], true
}

// firstWord gives the first token in upper case, "" when there is none.
func firstWord(sql string) string {
	if toks := scan(sql); len(toks) > 0 {
		return strings.ToUpper(toks[0].text)
	}
	return ""
}
