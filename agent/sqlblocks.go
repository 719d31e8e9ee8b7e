package agent

import "strings"

// block is one SELECT of a statement, by its tokens.
type block struct {
	parent   *block // the SELECT around it
	from, to int    // tokens: SELECT, and the one behind the last
	depth    int
	sources  []named
	at       map[string]int // where its clauses begin: tokens, by keyword
}

// named is one thing in FROM.
type named struct {
	schema, table string // "" for a subquery or function
	name          string // what qualifies its columns: the alias, else the table's name
	written       string // name as it is written
	aliased       bool
}

// clauses are the keywords that end what stands before them in a SELECT.
var clauses = []string{"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH"}

// notAlias are keywords that may stand where an alias could.
var notAlias = append([]string{"ON", "USING", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL", "ASOF", "SEMI", "ANTI", "POSITIONAL",
	"UNION", "EXCEPT", "INTERSECT", "TABLESAMPLE", "USING"}, clauses...)

// blocks finds the SELECTs of a statement, outer ones before inner ones.
func blocks(ts []token) []*block {
	var all, open []*block
	closeAll := func(depth, at int) {
		for len(open) > 0 && open[len(open)-1].depth >= depth {
			open[len(open)-1].to = at
			open = open[:len(open)-1]
		}
	}
	for i, t := range ts {
		switch {
		case t.is(")"):
			closeAll(t.depth+1, i)
		case t.is("UNION", "EXCEPT", "INTERSECT"):
			closeAll(t.depth, i)
		case t.is("SELECT"):
			closeAll(t.depth, i)
			b := &block{from: i, depth: t.depth, at: map[string]int{}}
			if len(open) > 0 {
				b.parent = open[len(open)-1]
			}
			all, open = append(all, b), append(open, b)
		}
	}
	closeAll(0, len(ts))
	for _, b := range all {
		b.read(ts)
	}
	return all
}

// within gives the innermost block that holds a token, or nil.
func within(all []*block, i int) *block {
	var best *block
	for _, b := range all {
		if b.from <= i && i < b.to && (best == nil || b.from > best.from) {
			best = b
		}
	}
	return best
}

// read finds the clauses and what stands in FROM.
func (b *block) read(ts []token) {
	expect := false
	for i := b.from + 1; i < b.to; i++ {
		t := ts[i]
		if t.depth != b.depth {
			continue
		}
		if t.is(clauses...) {
			if name := strings.ToUpper(t.text); b.at[name] == 0 && !(i > b.from+1 && t.is("FROM") && ts[i-1].is("DISTINCT")) { // IS DISTINCT FROM
				b.at[name] = i
				expect = name == "FROM"
			}
			continue
		}
		if b.at["FROM"] == 0 || b.end("FROM") < i {
			continue
		}
		switch {
		case t.is("JOIN", ","):
			expect = true
		case expect && t.is("LATERAL"):
		case expect:
			i = b.source(ts, i) - 1
			expect = false
		}
	}

}

// source reads one thing in FROM and gives the token behind it.
func (b *block) source(ts []token, i int) int {
	var s named
	if ts[i].is("(") {
		i = b.behind(ts, i)
	} else {
		for {
			part, ok := ts[i].name()
			if !ok {
				return i + 1
			}
			s.schema, s.table, s.name, s.written = s.table, part, part, ts[i].text
			i++
			if i+1 >= b.to || !ts[i].is(".") {
				break
			}
			i++
		}
		if i < b.to && ts[i].is("(") { // a function
			s.schema, s.table = "", ""
			i = b.behind(ts, i)
		}
	}
	if i < b.to && ts[i].is("AS") {
		i++
	}
	if i < b.to && ts[i].depth == b.depth && !ts[i].is(notAlias...) {
		if alias, ok := ts[i].name(); ok {
			s.name, s.written, s.aliased = alias, ts[i].text, true
			i++
		}
	}
	b.sources = append(b.sources, s)
	return i
}

// behind gives the token behind the parentheses that open at i.
func (b *block) behind(ts []token, i int) int {
	depth := ts[i].depth
	for i++; i < b.to; i++ {
		if ts[i].is(")") && ts[i].depth == depth {
			return i + 1
		}
	}
	return b.to
}

// end gives the token at which a clause ends: the next clause, or the block's end.
func (b *block) end(clause string) int {
	end := b.to
	for _, at := range b.at {
		if at > b.at[clause] {
			end = min(end, at)
		}
	}
	return end
}

// reference is a column as it stands in a statement, by its tokens.
type reference struct {
	first, last int // tokens, last is the column's name
	qualifier   string
	column      string
}

// referenceAt reads the column reference that begins at a token.
func referenceAt(ts []token, i int) (reference, bool) {
	column, ok := ts[i].name()
	if !ok {
		return reference{}, false
	}
	r := reference{first: i, last: i, column: column}
	for r.last+2 < len(ts) && ts[r.last+1].is(".") {
		next, ok := ts[r.last+2].name()
		if !ok {
			break
		}
		r.qualifier, r.column, r.last = r.column, next, r.last+2
	}
	return r, true
}

// referenceTo reads the column reference that ends at a token.
func referenceTo(ts []token, i int) (reference, bool) {
	column, ok := ts[i].name()
	if !ok {
		return reference{}, false
	}
	r := reference{first: i, last: i, column: column}
	for r.first >= 2 && ts[r.first-1].is(".") {
		before, ok := ts[r.first-2].name()
		if !ok {
			break
		}
		if r.qualifier == "" {
			r.qualifier = before
		}
		r.first -= 2
	}
	return r, true
}
