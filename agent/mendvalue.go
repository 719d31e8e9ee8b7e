package agent

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sluice/rag"
)

// values puts the stored spelling in place of a literal that a column is compared with, where that is sure: the column's
// values are all known and the literal is none of them, and either one of them differs in case or endings alone, or the
// column's comment says what the literal's word is stored as.
func (m mender) values(sql string) (mended, what string, ok bool) {
	ts, readable := tokens(sql)
	if !readable {
		return "", "", false
	}
	s := &statementText{mender: m, sql: sql, ts: ts, blocks: blocks(ts)}
	var edits []edit
	var said []string
	for i, t := range ts {
		if t.kind != text {
			continue
		}
		column, ok := s.compared(i)
		if !ok {
			continue
		}
		with, ok := m.stored(column, t.value())
		if !ok {
			continue
		}
		edits = append(edits, edit{t.start, t.end, with})
		said = append(said, t.text+" is stored as "+with)
	}
	if len(edits) == 0 {
		return "", "", false
	}
	return apply(sql, edits...), strings.Join(said, ", "), true
}

// compared gives the column that a literal is compared with: column = 'x', column <> 'x', column IN ('x', …).
func (s *statementText) compared(i int) (rag.ColumnRef, bool) {
	at := i - 1
	if at >= 1 && s.ts[at].is("(", ",") { // back to IN (
		for at >= 1 && (s.ts[at].kind == text || s.ts[at].is(",")) {
			at--
		}
		if at < 1 || !s.ts[at].is("(") || !s.ts[at-1].is("IN") {
			return rag.ColumnRef{}, false
		}
		if at -= 2; at >= 0 && s.ts[at].is("NOT") {
			at--
		}
	} else if at >= 1 && s.ts[at].is("=", "<>", "!=") {
		at--
	} else {
		return rag.ColumnRef{}, false
	}
	if at < 0 {
		return rag.ColumnRef{}, false
	}
	ref, ok := referenceTo(s.ts, at)
	if !ok {
		return rag.ColumnRef{}, false
	}
	return s.meant(within(s.blocks, i), ref)
}

// meant gives the column of a relation that a reference means in a block; none when several could be meant.
func (s *statementText) meant(b *block, ref reference) (rag.ColumnRef, bool) {
	for ; b != nil; b = b.parent {
		var found []rag.ColumnRef
		for _, n := range b.sources {
			if ref.qualifier != "" && !strings.EqualFold(ref.qualifier, n.name) {
				continue
			}
			if r, ok := s.relationOf(n); ok {
				if stored, ok := s.columnOf(r, ref.column); ok {
					found = append(found, rag.ColumnRef{Relation: r, Column: stored})
				}
			}
		}
		if len(found) > 0 {
			return found[0], len(found) == 1
		}
	}
	return rag.ColumnRef{}, false
}

// stored gives the literal that stands for a value of a column.
func (m mender) stored(column rag.ColumnRef, value string) (string, bool) {
	f, ok := m.k.Facts(column)
	if !ok || slices.Contains(f.Values, value) || strings.TrimSpace(value) == "" {
		return "", false
	}
	numeric := numericType(f.Type)
	for _, c := range codes(f.Comment) {
		if !sameText(c.meaning, value) {
			continue
		}
		switch {
		case numeric && isNumber(c.code):
			return c.code, true
		case !numeric && f.Complete && slices.Contains(f.Values, c.code):
			return quote(c.code), true
		}
	}
	if !f.Complete || f.Distinct == 0 || numeric {
		return "", false
	}
	near, ok := m.k.Nearest(column, value)
	if ok && (near.Match == rag.Exact || near.Match == rag.Plural) {
		return quote(near.Value), true
	}
	return "", false
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

var numericTypes = []string{"INT", "DECIMAL", "NUMERIC", "DOUBLE", "FLOAT", "REAL", "SERIAL"}

func numericType(t string) bool {
	t = strings.ToUpper(t)
	return slices.ContainsFunc(numericTypes, func(n string) bool { return strings.Contains(t, n) }) && !strings.HasPrefix(t, "INTERVAL")
}

func isNumber(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// code is a value of a column and what its comment says that it stands for.
type code struct{ code, meaning string }

// coded finds "CANC = cancelled" and "CANC: cancelled" in a comment.
var coded = regexp.MustCompile(`([\p{L}\p{N}_+-]{1,24})\s*(?:=|:|->|→)\s*([^,;.()=:]+)`)

func codes(comment string) []code {
	var out []code
	for _, m := range coded.FindAllStringSubmatch(comment, -1) {
		out = append(out, code{m[1], strings.TrimSpace(m[2])})
	}
	return out
}

// sameText compares two texts by their letters and digits, without case.
func sameText(a, b string) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	return plain(a) == plain(b) && plain(a) != ""
}
