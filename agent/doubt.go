package agent

import (
	"slices"
	"strings"

	"sluice/rag"
	"sluice/sqlguard"
)

// doubt is something that speaks against a statement, although it may run: it is no answer to this question, or not with
// this data. Doubts decide between candidates, and whether more than one is worth its time.
type doubt struct {
	why    string
	weight float64 // 1 is as much as one vote
	cut    *edit   // what to leave out of the statement, or to write instead, to have it no more; nil when nothing is known
}

// Weights, by how often a statement with such a doubt was wrong (docs/NL2SQL.md).
const (
	sure   = 2.0
	likely = 1.0
	maybe  = 0.5
)

// doubtsOf looks a statement over.
func (k *ask) doubtsOf(sql string) []doubt {
	ts, ok := tokens(sql)
	if !ok {
		return nil
	}
	l := &looked{statementText: &statementText{mender: mender{k: k.known, focus: k.focus, dialect: k.src.Dialect()}, sql: sql, ts: ts, blocks: blocks(ts)}, ask: k}
	l.joins()
	l.tables()
	l.literals()
	l.numbers()
	l.wording()
	return l.found
}

// looked is a statement that is being looked over.
type looked struct {
	*statementText
	ask   *ask
	found []doubt
}

func (l *looked) doubt(weight float64, why string) {
	l.found = append(l.found, doubt{why: why, weight: weight})
}

func (l *looked) doubtAndCut(weight float64, why string, cut *edit) {
	l.found = append(l.found, doubt{why, weight, cut})
}

// place is a column of something in FROM.
type place struct {
	block  *block
	source int
	column string
}

// placeOf gives what a reference means, by its qualifier, else by the only relation that has the column.
func (l *looked) placeOf(i int, ref reference) (place, bool) {
	for b := within(l.blocks, i); b != nil; b = b.parent {
		at, n := -1, 0
		for j, src := range b.sources {
			if ref.qualifier != "" {
				if strings.EqualFold(ref.qualifier, src.name) {
					at, n = j, n+1
				}
				continue
			}
			if r, ok := l.relationOf(src); ok {
				if _, ok := l.columnOf(r, ref.column); ok {
					at, n = j, n+1
				}
			}
		}
		if n == 1 {
			return place{b, at, strings.ToLower(ref.column)}, true
		}
		if n > 1 {
			return place{}, false
		}
	}
	return place{}, false
}

// askedFor is the score in the focus of a table that the question names, next to one that only lies on the way.
const askedFor = 1.0

var comparing = []string{"=", "<", ">", "<=", ">=", "<>", "!="}

// joins looks at how what stands in FROM is tied together.
func (l *looked) joins() {
	type pair struct{ a, b place }
	var pairs []pair
	for i := 1; i+1 < len(l.ts); i++ {
		if !l.ts[i].is(comparing...) {
			continue
		}
		left, okL := referenceTo(l.ts, i-1)
		right, okR := referenceAt(l.ts, i+1)
		if !okL || !okR || right.last+1 < len(l.ts) && l.ts[right.last+1].is("(") {
			continue
		}
		a, okA := l.placeOf(i, left)
		b, okB := l.placeOf(i, right)
		if !okA || !okB {
			continue
		}
		if a.block == b.block && a.source == b.source {
			if a.column == b.column {
				l.doubtAndCut(sure, "it compares "+left.column+" with itself", l.joinAt(i))
			}
			continue
		}
		pairs = append(pairs, pair{a, b})
		if l.ts[i].is("=") {
			l.condition(i, left, right, a, b)
		}
	}
	for _, b := range l.blocks {
		if len(b.sources) < 2 || b.at["FROM"] == 0 {
			continue
		}
		free := false
		for i := b.at["FROM"]; i < b.end("FROM"); i++ {
			free = free || l.ts[i].is("USING", "NATURAL", "LATERAL", "UNNEST")
		}
		if free {
			continue
		}
		of := make([]int, len(b.sources))
		for i := range of {
			of[i] = i
		}
		for _, p := range pairs {
			if p.a.block == b && p.b.block == b {
				from, to := of[p.a.source], of[p.b.source]
				for i := range of {
					if of[i] == from {
						of[i] = to
					}
				}
			}
		}
		if slices.ContainsFunc(of, func(x int) bool { return x != of[0] }) {
			l.doubt(likely, "not all tables in FROM are joined")
		}
		l.idle(b, func(yield func(place, place) bool) {
			for _, p := range pairs {
				if p.a.block == b && p.b.block == b && !yield(p.a, p.b) {
					return
				}
			}
		})
	}
}

// condition doubts an equality of columns that are not known to refer to each other, nor to the same. Where others are
// known to, they can stand in their place.
func (l *looked) condition(i int, left, right reference, a, b place) {
	ra, okA := l.relationOf(a.block.sources[a.source])
	rb, okB := l.relationOf(b.block.sources[b.source])
	if !okA || !okB || a.column == b.column {
		return
	}
	var known []rag.Join
	for _, j := range l.k.Joins() {
		if j.From.Relation == rb && j.To.Relation == ra {
			j.From, j.To = j.To, j.From
		}
		if j.From.Relation != ra || j.To.Relation != rb {
			continue
		}
		if strings.EqualFold(j.From.Column, a.column) && strings.EqualFold(j.To.Column, b.column) ||
			ra == rb && strings.EqualFold(j.From.Column, b.column) && strings.EqualFold(j.To.Column, a.column) {
			return
		}
		known = append(known, j)
	}
	switch {
	case len(known) == 0:
		l.doubtAndCut(likely, ra.Name+"."+a.column+" does not refer to "+rb.Name+"."+b.column, l.joinAt(i))
	case len(known) == 1 && ra != rb:
		with := a.block.sources[a.source].written + "." + l.k.Identifier(known[0].From.Column) + " = " + b.block.sources[b.source].written + "." + l.k.Identifier(known[0].To.Column)
		l.doubtAndCut(sure, ra.Name+" and "+rb.Name+" are joined by other columns than those that refer to each other",
			&edit{l.ts[left.first].start, l.ts[right.last].end, with})
	default:
		l.doubt(likely, ra.Name+" and "+rb.Name+" are joined by other columns than those that refer to each other")
	}
}

// idle doubts a table at the end of a chain of joins of which nothing but the condition is used: it can only repeat or drop rows.
func (l *looked) idle(b *block, pairs func(func(place, place) bool)) {
	ties := make([]int, len(b.sources))
	pairs(func(x, y place) bool {
		ties[x.source]++
		ties[y.source]++
		return true
	})
	used := make([]int, len(b.sources))
	for i := b.from; i < b.to; i++ {
		if l.ts[i].is("*") && l.ts[i].depth == b.depth && i < b.at["FROM"] {
			return
		}
		if i > b.from && l.ts[i-1].is(".", "AS") {
			continue
		}
		if i >= b.at["FROM"] && i < b.end("FROM") && l.sourceName(b, i) {
			continue
		}
		ref, ok := referenceAt(l.ts, i)
		if !ok {
			continue
		}
		if p, ok := l.placeOf(i, ref); ok && p.block == b {
			used[p.source]++
		}
	}
	for i, src := range b.sources {
		if r, ok := l.relationOf(src); ok && ties[i] == 1 && used[i] <= 1 && l.focus.Score[r] < askedFor {
			l.doubtAndCut(likely, "nothing of "+src.table+" is used", l.joinOf(b, i))
		}
	}
}

// sourceName says whether a token in FROM names a table or gives an alias.
func (l *looked) sourceName(b *block, i int) bool {
	return i > 0 && (l.ts[i-1].is("FROM", "JOIN", ",") || i > 1 && l.ts[i-2].is("FROM", "JOIN", ",")) && !(i+1 < len(l.ts) && l.ts[i+1].is("."))
}

// tables compares the tables with those that the question is about.
func (l *looked) tables() {
	if len(l.focus.Tables) == 0 {
		return
	}
	in := map[sqlguard.Relation]bool{}
	for _, b := range l.blocks {
		for _, src := range b.sources {
			r, ok := l.relationOf(src)
			if !ok || in[r] {
				continue
			}
			in[r] = true
			if !slices.Contains(l.focus.Tables, r) {
				l.doubt(maybe, r.Name+" is not what the question is about")
			}
		}
	}
	if !in[l.focus.Tables[0]] {
		l.doubt(maybe, l.focus.Tables[0].Name+" is not used")
	}
}
