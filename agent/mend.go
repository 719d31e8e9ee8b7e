package agent

import (
	"slices"
	"strings"

	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

// maxMends bounds the mendings of one statement.
const maxMends = 10

// mender changes a statement that the gate refused, by what the gate said of it and what is known of the database. It
// changes single names, conditions of joins and literals at places of the text, and never runs anything: what it makes
// passes the gate like every statement, or does not.
type mender struct {
	k       *rag.Knowledge
	focus   rag.Focus
	dialect sqlguard.Dialect
}

// refusal gives the statement with one mistake less, and what was done in words. ok is false when the refusal is about
// something else, or when nothing sure can be done.
func (m mender) refusal(sql string, refused *fault.Error) (mended, what string, ok bool) {
	ts, readable := tokens(sql)
	if !readable {
		return "", "", false
	}
	s := &statementText{mender: m, sql: sql, ts: ts, blocks: blocks(ts)}
	at := slices.IndexFunc(ts, func(t token) bool { return t.start == refused.Position-1 })
	msg := refused.Msg
	switch {
	case refused.Code == fault.Invalid && strings.Contains(msg, "must appear in the GROUP BY clause"):
		mended, what, ok = s.group(between(msg, `"`))
	case refused.Code == fault.Invalid && strings.Contains(strings.ToLower(msg), "ambiguous"):
		mended, what, ok = s.ambiguous(between(msg, `"`))
	case refused.Position <= 0 || at < 0:
	case strings.HasPrefix(msg, "there is no column "):
		mended, what, ok = s.column(at, refused.Hint)
	case strings.HasPrefix(msg, "there is no table or view "):
		mended, what, ok = s.table(at, refused.Hint)
	case strings.HasPrefix(msg, "there is no table "):
		mended, what, ok = s.column(at, refused.Hint)
	}
	return mended, what, ok && mended != sql
}

// between gives the first thing that stands between two marks.
func between(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	inner, _, ok := strings.Cut(rest, mark)
	if !ok {
		return ""
	}
	return inner
}

// statementText is a statement that is being mended.
type statementText struct {
	mender
	sql    string
	ts     []token
	blocks []*block
}

func (s *statementText) edited(what string, edits ...edit) (string, string, bool) {
	return apply(s.sql, edits...), what, true
}

// relationOf gives the relation of a name in FROM, when it is one that the asker may read.
func (s *statementText) relationOf(n named) (sqlguard.Relation, bool) {
	if n.table == "" {
		return sqlguard.Relation{}, false
	}
	for _, r := range s.k.Relations() {
		if strings.EqualFold(r.Name, n.table) && (n.schema == "" || strings.EqualFold(r.Schema, n.schema)) {
			return r, true
		}
	}
	return sqlguard.Relation{}, false
}

// columnOf gives the name of a relation's column as it is stored.
func (s *statementText) columnOf(r sqlguard.Relation, column string) (string, bool) {
	t, _ := s.k.Table(r)
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, column) {
			return c.Name, true
		}
	}
	return "", false
}

// owner is a source in reach that has a column.
type owner struct {
	source named
	column string // as it is stored
	score  float64
	depth  int // 0 for the query itself, 1 for the one around it
}

// owners gives the sources in reach of a block that have a column, the likeliest first.
func (s *statementText) owners(b *block, column string) []owner {
	var out []owner
	for depth := 0; b != nil; b, depth = b.parent, depth+1 {
		for _, n := range b.sources {
			r, ok := s.relationOf(n)
			if !ok {
				continue
			}
			if stored, ok := s.columnOf(r, column); ok {
				out = append(out, owner{n, stored, s.focus.ColumnScore[rag.ColumnRef{Relation: r, Column: stored}], depth})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b owner) int {
		if a.depth != b.depth {
			return a.depth - b.depth
		}
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return out
}

// column mends a column that is not where the statement says: it is in another table in reach, or in one that must be
// joined first, or it has another name.
func (s *statementText) column(at int, hint string) (string, string, bool) {
	b := within(s.blocks, at)
	ref, ok := referenceAt(s.ts, at)
	if b == nil || !ok {
		return "", "", false
	}
	if found := s.owners(b, ref.column); len(found) > 0 {
		with := found[0].source.written + "." + s.k.Identifier(found[0].column)
		return s.edited(ref.column+" is a column of "+found[0].source.name, s.everywhere(b, ref, with)...)
	}
	if r, stored, ok := s.elsewhere(ref); ok {
		if join, ok := s.join(b, r); ok {
			edits := append(s.everywhere(b, ref, s.k.Identifier(r.Name)+"."+s.k.Identifier(stored)), edit{s.behindFrom(b), s.behindFrom(b), join})
			slices.SortFunc(edits, func(x, y edit) int { return x.start - y.start })
			return s.edited(ref.column+" is a column of "+r.Name+", which is joined", edits...)
		}
	}
	if n, stored, ok := s.similar(b, ref, hint); ok {
		return s.edited(ref.column+" is called "+stored, s.everywhere(b, ref, n.written+"."+s.k.Identifier(stored))...)
	}
	return "", "", false
}

// everywhere writes a reference anew, with all those of the same block that are written like it.
func (s *statementText) everywhere(b *block, ref reference, with string) (out []edit) {
	for i := b.from + 1; i < b.to; i++ {
		r, ok := referenceAt(s.ts, i)
		if !ok || i > 0 && s.ts[i-1].is(".", "AS") || !strings.EqualFold(r.column, ref.column) || !strings.EqualFold(r.qualifier, ref.qualifier) ||
			r.last+1 < len(s.ts) && s.ts[r.last+1].is("(") || within(s.blocks, i) != b || r.first != ref.first && s.sourceAt(b, i) {
			continue
		}
		out = append(out, edit{s.ts[r.first].start, s.ts[r.last].end, with})
		i = r.last
	}
	return out
}

// sourceAt says whether a token names what stands in FROM, or is an alias there.
func (s *statementText) sourceAt(b *block, i int) bool {
	return b.at["FROM"] > 0 && i > b.at["FROM"] && i < b.end("FROM") && (s.ts[i-1].is("FROM", "JOIN", ",") || s.ts[i-1].kind == word && !s.ts[i-1].is("ON", "AND", "OR", "NOT", "USING"))
}

// elsewhere finds the relation out of reach that has a column: the one that qualifies it, else one of the focus, else the
// only one.
func (s *statementText) elsewhere(ref reference) (sqlguard.Relation, string, bool) {
	if r, ok := s.relationOf(named{table: ref.qualifier}); ok {
		if stored, ok := s.columnOf(r, ref.column); ok {
			return r, stored, true
		}
	}
	for _, r := range s.focus.Tables {
		if stored, ok := s.columnOf(r, ref.column); ok {
			return r, stored, true
		}
	}
	var only sqlguard.Relation
	name, n := "", 0
	for _, r := range s.k.Relations() {
		if stored, ok := s.columnOf(r, ref.column); ok {
			only, name, n = r, stored, n+1
		}
	}
	return only, name, n == 1
}

// similar finds the column that a name most likely means: the nearest that the gate names, else the only one in reach
// whose name has all its words, such as full_name for name.
func (s *statementText) similar(b *block, ref reference, hint string) (named, string, bool) {
	if first, ok := strings.CutPrefix(hint, "did you mean "); ok {
		first, _, _ = strings.Cut(strings.TrimSuffix(first, "?"), ", ")
		if found := s.owners(b, first); len(found) > 0 {
			return found[0].source, found[0].column, true
		}
	}
	parts := strings.Split(strings.ToLower(ref.column), "_")
	var source named
	name, n := "", 0
	for _, x := range b.sources {
		r, ok := s.relationOf(x)
		if !ok || ref.qualifier != "" && !strings.EqualFold(ref.qualifier, x.name) && len(b.sources) > 1 {
			continue
		}
		t, _ := s.k.Table(r)
		for _, c := range t.Columns {
			words := strings.Split(strings.ToLower(c.Name), "_")
			if !slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(words, p) }) {
				source, name, n = x, c.Name, n+1
			}
		}
	}
	return source, name, n == 1
}

// table mends the name of a table to the one that the gate takes for meant.
func (s *statementText) table(at int, hint string) (string, string, bool) {
	first, ok := strings.CutPrefix(hint, "did you mean ")
	ref, named := referenceAt(s.ts, at)
	if !ok || !named {
		return "", "", false
	}
	first, _, _ = strings.Cut(strings.TrimSuffix(first, "?"), ", ")
	for _, r := range s.k.Relations() {
		if strings.EqualFold(r.Name, first) || strings.EqualFold(r.Schema+"."+r.Name, first) {
			edits := []edit{{s.ts[ref.first].start, s.ts[ref.last].end, s.k.Name(r)}}
			for i, t := range s.ts { // and where the wrong name qualifies columns
				if name, ok := t.name(); ok && i != ref.last && strings.EqualFold(name, ref.column) && i+1 < len(s.ts) && s.ts[i+1].is(".") && (i == 0 || !s.ts[i-1].is(".")) {
					edits = append(edits, edit{t.start, t.end, s.k.Identifier(r.Name)})
				}
			}
			slices.SortFunc(edits, func(x, y edit) int { return x.start - y.start })
			return s.edited(ref.column+" is called "+r.Name, edits...)
		}
	}
	return "", "", false
}

// ambiguous gives a column that several tables in reach have the likeliest of them.
func (s *statementText) ambiguous(column string) (string, string, bool) {
	for i := range s.ts {
		ref, ok := referenceAt(s.ts, i)
		if !ok || ref.qualifier != "" || !strings.EqualFold(ref.column, column) || i > 0 && s.ts[i-1].is(".", "AS") || i+1 < len(s.ts) && s.ts[i+1].is("(") {
			continue
		}
		b := within(s.blocks, i)
		if found := s.owners(b, column); len(found) > 1 && found[0].depth == found[1].depth {
			return s.edited(column+" is taken from "+found[0].source.name, edit{s.ts[i].start, s.ts[i].end, found[0].source.written + "." + s.ts[i].text})
		}
	}
	return "", "", false
}

// group adds a column that is not summed up to GROUP BY.
func (s *statementText) group(column string) (string, string, bool) {
	if i := strings.LastIndexByte(column, '.'); i >= 0 {
		column = column[i+1:]
	}
	for _, b := range s.blocks {
		list := b.at["FROM"]
		if list == 0 {
			continue
		}
		for i := b.from + 1; i < list; i++ {
			ref, ok := referenceTo(s.ts, i)
			if !ok || s.ts[i].depth != b.depth || !strings.EqualFold(ref.column, column) || i+1 < len(s.ts) && s.ts[i+1].is(".", "(") || s.ts[ref.first-1].is("AS") {
				continue
			}
			written := s.sql[s.ts[ref.first].start:s.ts[ref.last].end]
			if b.at["GROUP"] > 0 {
				end := s.ts[b.end("GROUP")-1].end
				return s.edited(column+" is grouped by", edit{end, end, ", " + written})
			}
			last := "FROM"
			if b.at["WHERE"] > 0 {
				last = "WHERE"
			}
			end := s.ts[b.end(last)-1].end
			return s.edited(column+" is grouped by", edit{end, end, " GROUP BY " + written})
		}
	}
	return "", "", false
}
