package rag

import (
	"cmp"
	"slices"
	"strings"

	"sluice/sqlguard"
)

// The share of a column's values that must be in the other column, for the one to refer to the other. Not all must: rows
// are lost and dumps are cut. Where the name says in full what it refers to, half is enough.
const (
	minContained      = 0.9
	minContainedNamed = 0.5
	named             = 0.95
)

// candidate is a join that names and types suggest; the data decide.
type candidate struct {
	Join
	related float64 // how well the names agree, 0 to 1
	version string
	among   int64 // how many values the other column has
	of, in  int64 // how many values were compared, and how many of them the other column has
}

// candidateJoins gives the pairs of columns that may be a reference: of one class of type, the second a key, with names
// that are related. Columns that are declared to refer to something are left alone.
func candidateJoins(l *lexicon, tables []sqlguard.Table, facts []*tableFacts) []candidate {
	keys := keysOf(l, tables, facts)
	var out []candidate
	for i, t := range tables {
		if facts[i] == nil {
			continue
		}
		for c, column := range t.Columns {
			f := facts[i].columns[c]
			if !refers(f.class) || f.distinct == 0 || declares(t, column.Name) {
				continue
			}
			for _, at := range keys.near(l.tables[i].columns[c]) {
				other := tables[at.table]
				key, g := other.Columns[at.column], facts[at.table].columns[at.column]
				if f.class != g.class || at.table == i && (at.column == c || f.unique) {
					continue // a table does not refer to itself by a key of its own
				}
				if !f.sampled && !g.sampled && float64(g.distinct) < minContainedNamed*float64(f.distinct) {
					continue // few values cannot have many in them
				}
				r := related(l.tables[i], c, l.tables[at.table], at.column, f.class)
				if at.table == i && !(r == onlyMentioned && allOf(l.tables[i].columns[at.column].words, l.tables[i].columns[c].comment)) {
					continue // names of one table are related for many reasons: only "agent_id of the lead" counts
				}
				if r == 0 {
					continue
				}
				found := candidate{
					Join:    Join{From: ColumnRef{t.Relation, column.Name}, To: ColumnRef{other.Relation, key.Name}},
					related: r, version: column.Type + " " + key.Type, among: g.distinct,
				}
				if f.complete && g.complete { // no statement is needed
					found.of, found.in = int64(len(f.values)), inBoth(f.values, g.values)
				}
				out = append(out, found)
			}
		}
	}
	return out
}

// place is a column by its place.
type place struct{ table, column int }

// keyIndex finds key columns by words that a related column has in its name or comment, so that not every column is held
// against every key.
type keyIndex map[string][]place

func keysOf(l *lexicon, tables []sqlguard.Table, facts []*tableFacts) keyIndex {
	x := keyIndex{}
	for i, t := range tables {
		if facts[i] == nil {
			continue
		}
		for c, column := range t.Columns {
			if !isKey(t, facts[i].columns[c], column.Name) {
				continue
			}
			words := slices.Concat(l.tables[i].name, without(l.tables[i].columns[c].words, l.tables[i].name))
			var under []string
			for _, w := range words {
				if !vague[w] || contains(l.tables[i].name, w) {
					under = append(under, w)
				}
			}
			if len(words) > 0 {
				under = append(under, beginning(words[0]))
			}
			slices.Sort(under)
			for _, w := range slices.Compact(under) {
				x[w] = append(x[w], place{i, c})
			}
		}
	}
	return x
}

// beginning is what stands for all words that begin alike: an abbreviation begins as the word does.
func beginning(w string) string { return "^" + w[:min(2, len(w))] }

func (x keyIndex) near(c columnWords) []place {
	var out []place
	for _, w := range slices.Concat(c.words, c.comment) {
		out = append(out, x[w]...)
	}
	if len(c.words) > 0 {
		out = append(out, x[beginning(c.words[0])]...)
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.column, b.column)) })
	return slices.Compact(out)
}

// inBoth counts the values that the others have too.
func inBoth(values, others []string) int64 {
	has := make(map[string]bool, len(others))
	for _, v := range others {
		has[v] = true
	}
	n := int64(0)
	for _, v := range values {
		if has[v] {
			n++
		}
	}
	return n
}

// refers says whether columns of a class refer to others: dates and amounts do not.
func refers(c class) bool { return c == wholeClass || c == textClass || c == uuidClass }

func declares(t sqlguard.Table, column string) bool {
	return slices.ContainsFunc(t.Foreign, func(f sqlguard.ForeignKey) bool { return len(f.Columns) == 1 && f.Columns[0] == column })
}

// isKey says whether a column alone tells the rows of its table apart.
func isKey(t sqlguard.Table, f columnFacts, column string) bool {
	return len(t.PrimaryKey) == 1 && t.PrimaryKey[0] == column || f.unique
}

// related says how well the name of a column agrees with that of a key of another table, from 0 to 1. order.customer_id
// and customer.id agree whole, and so do sbTxCustId and sbCustId, after what the columns of each table share. Two columns
// called "name" or "id" do not: the name says nothing of what it names.
func related(from tableWords, c int, to tableWords, d int, class class) float64 {
	a, b := from.columns[c].words, to.columns[d].words
	whole := slices.Concat(to.name, without(b, to.name)) // the key's name, with its table's before it
	specific := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return !vague[w] })
	}
	foreign := !slices.Equal(from.columns[c].own, a) // it names its own table, as a key of its own does
	score := 0.0
	switch {
	case len(a) == 0 || len(b) == 0 || anyOf(a, quantities):
		return 0
	case sameWords(a, whole):
		score = 1
	case slices.Equal(a, b) && specific(b):
		score = 0.9
	case len(b) > 0 && len(a) > len(b) && slices.Equal(a[len(a)-len(b):], b) && specific(b):
		score = 0.7 // citedpaperid and paperid
	case len(a) > len(whole) && slices.Equal(a[len(a)-len(whole):], whole):
		score = 0.7 // manager_employee_id and employee.id
	case slices.Equal(a, to.name):
		score = 0.8 // semester and semester.semester_id
	case len(a) > len(to.name) && len(to.name) > 0 && slices.Equal(a[len(a)-len(to.name):], to.name) && (class != wholeClass || anyOf(identifying, from.columns[c].comment)):
		score = 0.6 // from_airport and airport.airport_code; a number may be a number of airports
	case len(a) > 1 && abbreviates(a, whole):
		score = 0.6
	case allOf(to.name, from.columns[c].comment) && anyOf(identifying, from.columns[c].comment):
		return onlyMentioned // "ID of the author"
	}
	if score == 0 {
		return 0
	}
	if anyOf(b, to.name) || anyOf(a, to.name) {
		score += 0.05 // of several tables with such a key, the one that it is named for
	}
	if foreign {
		score -= 0.1
	}
	return min(1, score)
}

// onlyMentioned is how well two columns agree when a comment alone says so.
const onlyMentioned = 0.4

// identifying are stems of words that comments on references use.
var identifying = []string{stem("id"), stem("identifier"), stem("key"), stem("references"), stem("referencing")}

func allOf(words, others []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !contains(others, w) })
}

// quantities are stems of names that count or measure: they refer to nothing.
var quantities = []string{"num", "count", "total", "sum", "avg", stem("average"), "min", "max", "qty", stem("quantity"), "amount", stem("price"), "percent", "pct", "rank"}

// vague are stems of names that say nothing of what they name.
var vague = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields("id name number num no code key type title date time year status description value text email phone") {
		out[stem(w)] = true
	}
	return out
}()

func sameWords(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	x, y := slices.Clone(a), slices.Clone(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// abbreviates says whether each word is the beginning of one of the other's, in order, and the last are equal: custid and
// customer_id.
func abbreviates(short, long []string) bool {
	if len(short) != len(long) || short[len(short)-1] != long[len(long)-1] {
		return false
	}
	for i := range short {
		if len(short[i]) < 2 || !strings.HasPrefix(long[i], short[i]) {
			return false
		}
	}
	return true
}

func anyOf(words, others []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return contains(others, w) })
}

// joins gives the declared references of one column and, for each column without one, the best of its candidates that the
// data bear out. A reference in both directions is told once, from the column whose table is not named by it.
func joins(tables []sqlguard.Table, candidates []candidate) []Join {
	var out []Join
	for _, t := range tables {
		for _, f := range t.Foreign {
			if len(f.Columns) == 1 && len(f.Referenced) == 1 {
				out = append(out, Join{From: ColumnRef{t.Relation, f.Columns[0]}, To: ColumnRef{f.References, f.Referenced[0]}, Declared: true, Contained: 1})
			}
		}
	}
	var good []candidate
	for _, c := range candidates {
		need := minContained
		if c.related >= named {
			need = minContainedNamed
		}
		if c.of == 0 || float64(c.in) < need*float64(c.of) {
			continue
		}
		c.Contained = float64(c.in) / float64(c.of)
		good = append(good, c)
	}
	slices.SortFunc(good, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.related, a.related), cmp.Compare(b.Contained, a.Contained), cmp.Compare(b.among, a.among), compareColumns(a.To, b.To), compareColumns(a.From, b.From))
	})
	taken := map[ColumnRef]bool{}
	back := map[[2]ColumnRef]bool{}
	for _, c := range good {
		if taken[c.From] || back[[2]ColumnRef{c.To, c.From}] {
			continue
		}
		taken[c.From] = true
		back[[2]ColumnRef{c.From, c.To}] = true
		out = append(out, c.Join)
	}
	slices.SortFunc(out, func(a, b Join) int { return cmp.Or(compareColumns(a.From, b.From), compareColumns(a.To, b.To)) })
	return out
}

func compareColumns(a, b ColumnRef) int {
	return cmp.Or(compareRelations(a.Relation, b.Relation), strings.Compare(a.Column, b.Column))
}
