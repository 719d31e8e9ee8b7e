package database

import (
	"slices"
	"testing"

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
	c, err := connect(s.in.db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	behind := behindViews(c, cat, approve(t, s, "SELECT * FROM poorest"))
	var last []string
	for _, name := range behind {
		parts := splitName(name)
		last = append(last, parts[len(parts)-1])
	}
	if !slices.Contains(last, "pay") || slices.Contains(last, "secret") {
		t.Errorf("behind the view are %q", behind)
	}
}
