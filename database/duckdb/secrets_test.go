package duckdb_test

import (
	"errors"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// TestSecretsShowInNoRefusal: what the caller may not read is named in no message and no hint, however near the caller's
// own words come, and gets the answer that a missing table gets.
func TestSecretsShowInNoRefusal(t *testing.T) {
	s := open(t, `CREATE TABLE orders (id INTEGER, total INTEGER); CREATE SCHEMA hr; CREATE TABLE hr.zebrapay (zebraname VARCHAR, zebrasum INTEGER);
		CREATE TABLE zebralist (zebraname VARCHAR); INSERT INTO zebralist VALUES ('zebravalue'); CREATE VIEW zebraview AS SELECT * FROM zebralist`)
	may := func(r sqlguard.Relation) bool { return r.Name == "orders" }
	for _, sql := range []string{
		"SELECT * FROM zebralis", "SELECT * FROM hr.zebrapa", "SELECT * FROM zebralist", "SELECT * FROM hr.zebrapay", "SELECT * FROM zebravie", "SELECT * FROM main.zebraview",
		"SELECT zebranam FROM orders", "SELECT o.zebrasum FROM orders o", "SELECT zebralist.zebraname FROM orders", "SELECT zebralist FROM orders", "SELECT zebrasum(id) FROM orders",
		"SELECT * FROM orders JOIN zebralist USING (zebraname)", "SELECT id FROM orders WHERE id = (SELECT max(zebrasum) FROM hr.zebrapay)", "SELECT x.zebranam FROM (SELECT total * 2 FROM orders) x",
		"SELECT zebranam FROM (SELECT total * 2 FROM orders)", "WITH zebralis AS (SELECT 1) SELECT * FROM zebralist", "EXPLAIN SELECT * FROM zebralist", "SUMMARIZE zebralist", "DESCRIBE hr.zebrapay",
		"SELECT CAST(NULL AS zebralist)", "SELECT * FROM range(3) r(i) WHERE r.zebraname = 1", "SELECT id FROM orders ORDER BY zebranam", "SELECT count(*) FROM orders GROUP BY zebrasu",
	} {
		_, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, may)
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Errorf("%s: allowed, or %v", sql, err)
			continue
		}
		for word := range strings.FieldsFuncSeq(strings.ToLower(f.Msg+" "+f.Hint+" "+err.Error()), func(r rune) bool { return !('a' <= r && r <= 'z') }) {
			if strings.HasPrefix(word, "zebra") && !strings.Contains(strings.ToLower(sql)+" ", word) {
				t.Errorf("%s: the refusal names %s: %s; %s", sql, word, f.Msg, f.Hint)
			}
		}
	}
	for _, pair := range [][2]string{{"SELECT * FROM zebralist", "SELECT * FROM zebranone"}, {"SELECT * FROM hr.zebrapay", "SELECT * FROM hr.zebranot"}} {
		_, there := s.Approve(t.Context(), pair[0], sqlguard.ReadOnly, may)
		_, missing := s.Approve(t.Context(), pair[1], sqlguard.ReadOnly, may)
		a, b := fault.Public(there), fault.Public(missing)
		if strings.ReplaceAll(a.Msg, "list", "") != strings.ReplaceAll(b.Msg, "none", "") && strings.ReplaceAll(a.Msg, "pay", "") != strings.ReplaceAll(b.Msg, "not", "") || a.Hint != b.Hint || a.Code != b.Code {
			t.Errorf("%s: %+v\n%s: %+v", pair[0], a, pair[1], b)
		}
	}
	// The nearest of what may be read is named.
	_, err := s.Approve(t.Context(), "SELECT totl FROM orders", sqlguard.ReadOnly, may)
	var f *fault.Error
	if !errors.As(err, &f) || !strings.Contains(f.Hint, "total") || f.Position != 8 {
		t.Errorf("%+v", f)
	}
	_, err = s.Approve(t.Context(), "SELECT * FROM ordr", sqlguard.ReadOnly, may)
	if !errors.As(err, &f) || !strings.Contains(f.Hint, "orders") || f.Position != 15 {
		t.Errorf("%+v", f)
	}
}
