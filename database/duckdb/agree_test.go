package duckdb_test

import (
	"slices"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// TestSecondOpinionOfViews: a statement that reads a view may reach what that view reads and nothing else.
func TestSecondOpinionOfViews(t *testing.T) {
	s := open(t, `CREATE SCHEMA hr; CREATE TABLE hr.pay (a INTEGER); CREATE TABLE secret (a INTEGER); CREATE VIEW poor AS SELECT * FROM hr.pay p WHERE a < 10;
		CREATE VIEW poorest AS WITH x AS (SELECT * FROM poor) SELECT x.a FROM x JOIN hr.pay y ON x.a = y.a; CREATE VIEW hr.other AS SELECT * FROM secret`)
	for _, sql := range []string{"SELECT * FROM poor", "SELECT * FROM poorest, hr.other", "WITH secret AS (SELECT * FROM poor) SELECT * FROM secret", "SELECT * FROM poor p JOIN hr.pay q USING (a)"} {
		if _, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	behind, err := s.engine.Behind(t.Context(), cat, approve(t, s, "SELECT * FROM poorest"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(behind, "pay") || slices.Contains(behind, "secret") {
		t.Errorf("behind the view are %q", behind)
	}
}

// TestSecondOpinion: what the engine would read and the gate did not see stops a statement, also where a JOIN names its
// columns with USING or NATURAL.
func TestSecondOpinion(t *testing.T) {
	s := open(t, "CREATE TABLE a (id INTEGER, n INTEGER); CREATE TABLE b (id INTEGER, m INTEGER)")
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SELECT id FROM a JOIN b USING (id)", "SELECT * FROM a NATURAL JOIN b", "WITH x AS (SELECT * FROM b) SELECT a.n FROM a, x WHERE a.id = $1",
		"SELECT sum(n) FROM a, range(3), unnest([1]) u(i), generate_series(1, 2) g(j) WHERE id IN (SELECT id FROM b)"} {
		a := approve(t, s, sql)
		if err := s.engine.Check(t.Context(), cat, a); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		// The same text, seen by a gate that lost a table on the way.
		blind := *cat
		blind.Engine = "another"
		if err := s.engine.Check(t.Context(), &blind, a); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: tables of another catalogue gave %v", sql, err)
		}
	}
}
