package rag

import (
	"slices"
	"strings"

	"sluice/sqlguard"
)

// Knowledge is what one asker may be told about one database. It holds nothing of a relation that he may not read, and it
// never changes: it may be used by any goroutine and kept for as long as the ask lasts.
type Knowledge struct {
	dialect  sqlguard.Dialect
	schema   string // that a name without one means
	tables   []sqlguard.Table
	facts    []*tableFacts // of each table, nil while it was not looked at
	at       map[sqlguard.Relation]int
	joins    []Join
	refers   map[ColumnRef]bool
	words    *lexicon
	complete bool
	hidden   bool // no value may be shown
}

func newKnowledge(k Knowledge) *Knowledge {
	k.at, k.refers = map[sqlguard.Relation]int{}, map[ColumnRef]bool{}
	for i, t := range k.tables {
		k.at[t.Relation] = i
	}
	for _, j := range k.joins {
		k.refers[j.From] = true
	}
	return &k
}

// ColumnRef names a column of a relation.
type ColumnRef struct {
	Relation sqlguard.Relation
	Column   string
}

// Facts is what is known of one column.
type Facts struct {
	sqlguard.Column
	Key      bool     // the whole primary key, or different in every row
	Profiled bool     // whether the table was looked at; if not, all below is empty
	Distinct int64    // how many different values, without NULL; a lower bound when Sampled
	Sampled  bool     // only the first rows of the table were looked at
	Values   []string // of text columns: distinct values, the most frequent first
	Complete bool     // Values is every value that the column has
	Min, Max string   // of dates and timestamps
}

// Join says that a column refers to a column of another table.
type Join struct {
	From, To  ColumnRef
	Declared  bool    // by a foreign key; else it was inferred from names and values
	Contained float64 // the share of From's values that To has; 1 when declared
}

// Link says that words of the question are a value that is stored.
type Link struct {
	Column     ColumnRef
	Value      string  // as it is stored
	Phrase     string  // as it is written in the question
	Match      Match   // how the two agree
	Similarity float64 // 1 but for Near
}

// Match is how a phrase agrees with a value.
type Match int

// The matches, the better ones first.
const (
	Exact  Match = iota // the same but for case, accents and punctuation
	Plural              // the same but for the endings of words
	Part                // the phrase is a part of the value, in whole words
	Near                // spelled a little differently
	Code                // the phrase is a country, and the value its ISO code
)

// Phrase is a quoted or capitalised phrase of the question that was found in no value, name or comment.
type Phrase struct {
	Text     string
	Quoted   bool
	Searched []ColumnRef // the text columns that were searched
	Complete bool        // whether every value of each of them was seen; if not, it may be there after all
}

// Focus is what a question is about.
type Focus struct {
	Tables      []sqlguard.Relation // the chosen ones, the best first, with those on the way between them
	Joins       []Join              // between the chosen tables
	Links       []Link
	Missing     []Phrase
	Unknown     []string                      // words of the question that are in no name, comment or value, as they are written
	Score       map[sqlguard.Relation]float64 // of every table that scored
	ColumnScore map[ColumnRef]float64         // of every column that scored
}

// Relations lists what the asker may read, sorted.
func (k *Knowledge) Relations() []sqlguard.Relation {
	out := make([]sqlguard.Relation, len(k.tables))
	for i, t := range k.tables {
		out[i] = t.Relation
	}
	return out
}

// Table gives a relation as the catalogue has it, without references to what the asker may not read.
func (k *Knowledge) Table(r sqlguard.Relation) (sqlguard.Table, bool) {
	i, ok := k.at[r]
	if !ok {
		return sqlguard.Table{}, false
	}
	return k.tables[i], true
}

// Facts gives what is known of a column. Names are compared as the source compares them.
func (k *Knowledge) Facts(c ColumnRef) (Facts, bool) {
	i, column, ok := k.find(c)
	if !ok {
		return Facts{}, false
	}
	t := k.tables[i]
	out := Facts{Column: t.Columns[column], Key: len(t.PrimaryKey) == 1 && t.PrimaryKey[0] == t.Columns[column].Name}
	if k.facts[i] == nil {
		return out, true
	}
	f := k.facts[i].columns[column]
	out.Key = out.Key || f.unique
	out.Profiled, out.Distinct, out.Sampled = true, f.distinct, f.sampled
	out.Values, out.Complete = slices.Clone(f.values), f.complete
	out.Min, out.Max = f.min, f.max
	return out, true
}

// find gives the places of a column. DuckDB compares names without case, PostgreSQL with it.
func (k *Knowledge) find(c ColumnRef) (table, column int, ok bool) {
	same := func(a, b string) bool { return a == b || k.dialect == sqlguard.DuckDB && strings.EqualFold(a, b) }
	for i, t := range k.tables {
		if !same(t.Schema, c.Relation.Schema) || !same(t.Name, c.Relation.Name) {
			continue
		}
		for j, x := range t.Columns {
			if same(x.Name, c.Column) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// Joins lists the joins between the relations, declared and inferred, in a stable order.
func (k *Knowledge) Joins() []Join { return slices.Clone(k.joins) }

// Complete says whether every relation was looked at; if not, the rest is being done for the next ask.
func (k *Knowledge) Complete() bool { return k.complete }

// Name writes a relation as the model is to write it: with its schema only where it needs one.
func (k *Knowledge) Name(r sqlguard.Relation) string {
	if r.Schema == k.schema {
		return k.Identifier(r.Name)
	}
	return k.Identifier(r.Schema) + "." + k.Identifier(r.Name)
}

// Identifier writes a name as SQL of the source's dialect: PostgreSQL folds what is not quoted.
func (k *Knowledge) Identifier(name string) string {
	if k.dialect == sqlguard.Postgres && name != strings.ToLower(name) {
		return quoted(name)
	}
	return Identifier(name)
}
