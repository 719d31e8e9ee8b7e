package sqlguard

import "slices"

// Writing is what an approved statement of the profile Write does. The zero Writing is of a statement that reads.
type Writing struct {
	Command string     // INSERT, UPDATE, DELETE, TRUNCATE, CREATE TABLE, CREATE TABLE AS, CREATE INDEX, ALTER TABLE, DROP TABLE, DROP VIEW, DROP INDEX
	Targets []Relation // what it changes; of an index its table, of DROP INDEX nothing
	Rows    bool       // RETURNING gives rows
	Schema  bool       // it changes the catalogue, not rows
}

// Writing says what the statement changes.
func (a Approved) Writing() Writing { return a.writing }

// Parts are what a write on DuckDB reads, as queries of their own: for the source to look at before it runs the whole. They
// are never executed.
func (a Approved) Parts() []Approved { return a.parts }

// StatementCounter is a Parser that takes a text apart into statements, which is all that it does with it. DuckDB's does, and
// no write passes without it.
type StatementCounter interface {
	// Statements gives how many statements the engine finds in a text.
	Statements(sql string) (int, error)
}

// writeWords begin the statements of the profile Write.
var writeWords = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP"}

// Writes tells, by its words alone, whether a statement is one that the profile Write may let through; a query that changes
// rows inside WITH is none. The gate decides on it: a wrong answer here only sends it to the profile that refuses it.
func Writes(sql string) bool {
	toks := scan(sql)
	if len(toks) == 0 {
		return false
	}
	starts := func(t token) bool { return slices.ContainsFunc(writeWords, t.is) }
	if !toks[0].is("WITH") {
		return starts(toks[0])
	}
	depth := 0
	for i, t := range toks {
		switch {
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		case depth > 0 || i == 0 || toks[i-1].text != ")":
		case starts(t):
			return i+1 < len(toks) && !toks[i+1].is("AS")
		case t.is("SELECT") || t.is("VALUES") || t.is("TABLE") || t.is("FROM"):
			return false
		}
	}
	return false
}
