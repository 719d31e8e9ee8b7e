package duckdb_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/internal/gatefuzz"
	"sluice/sqlguard"
)

func gateCases(t testing.TB) []gatefuzz.Case {
	t.Helper()
	return gatefuzz.Cases(t, filepath.Join("..", "..", "testdata", "sqlguard"))
}

// fixtureRows are the rows of the case files' schema, in DuckDB's words.
const fixtureRows = `
INSERT INTO customers (id, name, email, region, created_at) SELECT g,'c'||g,'c'||g||'@x.test',(ARRAY['EU','US','APAC'])[1+g%3], TIMESTAMPTZ '2026-01-01 00:00:00+00' FROM generate_series(1,9) t(g);
INSERT INTO products SELECT g,'SKU-'||g,'p'||g,(ARRAY['A','B'])[1+g%2],g*3.5,ARRAY['new','t'||g],json_object('color','red','sizes',json_array(1,2,g)) FROM generate_series(1,6) t(g);
INSERT INTO orders SELECT g,1+g%9,timestamp '2026-01-01'+g*interval '3 day',(ARRAY['paid','open','void'])[1+g%3],g*10.5 FROM generate_series(1,40) t(g);
INSERT INTO order_items SELECT g,1+g%40,1+g%6,1+g%4,g FROM generate_series(1,80) t(g);
INSERT INTO hr.salaries VALUES (1,'x',1000);
CREATE TABLE salaries AS SELECT * FROM hr.salaries;
`

// fixture makes the case files' database and opens it.
func fixture(t testing.TB) *source {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "testdata", "sqlguard", "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, append(duckdb.TranslateSchema(string(schema)), fixtureRows)...)
}

// TestCases passes every case that is DuckDB's through the gate, of those for both dialects DuckDB's half; each allowed one must run from its deparsed form, with
// the rows of the original text.
func TestCases(t *testing.T) {
	s := fixture(t)
	profiles := map[string]sqlguard.Profile{"read_only": sqlguard.ReadOnly, "copy_source": sqlguard.CopySource, "restricted_read": sqlguard.RestrictedRead}
	allowed, denied, lines := 0, 0, 0
	for _, c := range gateCases(t) {
		profile, known := profiles[c.Profile]
		if !known {
			t.Errorf("%s: the profile %s is unknown", c.ID, c.Profile)
		}
		if c.Dialect != "duckdb" && c.Dialect != "both" {
			continue
		}
		lines++
		a, err := s.Approve(t.Context(), c.SQL, profile, granted(c.Grants))
		switch {
		case c.Verdict == "deny" && err == nil:
			t.Errorf("%s: allowed, although: %s\n%s\nas %s", c.ID, c.Why, c.SQL, a.SQL())
		case c.Verdict == "deny":
			denied++
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v is not a refusal", c.ID, err)
			}
		case err != nil:
			t.Errorf("%s: %v, although: %s\n%s", c.ID, err, c.Why, c.SQL)
		default:
			allowed++
			sameRows(t, s, c.ID, c.SQL, a)
		}
	}
	t.Logf("%d allowed and run, %d denied", allowed, denied)
	if allowed+denied != lines || lines < 141 {
		t.Errorf("%d allowed and %d denied of %d cases, of which there were 141 once", allowed, denied, lines)
	}
}

func granted(grants []string) func(sqlguard.Relation) bool {
	return func(r sqlguard.Relation) bool {
		return grants == nil || slices.Contains(grants, r.Schema+"."+r.Name)
	}
}

// sameRows runs an approved statement, and the original text beside the gate, and compares.
func sameRows(t *testing.T, s *source, id, original string, a sqlguard.Approved) {
	t.Helper()
	var params []any
	if strings.Contains(original, "$1") {
		params = []any{int64(100)}
	}
	r, err := s.RunParams(t.Context(), a, params)
	if err != nil {
		t.Errorf("%s: %v\n%s", id, err, a.SQL())
		return
	}
	defer r.Release()
	got := drain(t, r)
	raw, err := s.engine.Raw(t.Context(), original, params)
	if err != nil {
		t.Errorf("%s: the original does not run: %v", id, err)
		return
	}
	defer raw.Release()
	want := drain(t, raw)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], `"`, "") // a sum that the gate makes a BIGINT is a number, the engine's own a text
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], `"`, "")
	}
	slices.Sort(got) // the trees are equal, so ORDER BY is too; without it, threads decide
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: rows differ\ngot  %s\nwant %s\n%s\n%s", id, got, want, original, a.SQL())
	}
}

// TestRewrittenStatementsKeepTheirRows runs what the gate must change before it can be written as text.
func TestRewrittenStatementsKeepTheirRows(t *testing.T) {
	s := fixture(t)
	for _, sql := range []string{
		"SELECT * FROM customers c CROSS JOIN products p FULL JOIN orders o ON o.id = p.id AND o.customer_id = c.id",
		"SELECT * FROM customers c FULL JOIN (orders o CROSS JOIN products p) ON o.customer_id = c.id AND p.id = 1",
		"SELECT * FROM (customers c CROSS JOIN products p) LEFT JOIN (orders o CROSS JOIN order_items i) ON o.id = p.id AND i.id = c.id",
		"SELECT c.id, x.n FROM customers c CROSS JOIN products p LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders o WHERE o.customer_id = c.id) x ON true",
		"SELECT 7 / 2e0, 1e15 + 0.1e0, 1.5e3::VARCHAR, 1e300 * 1e-300, typeof(2.5e0), typeof(2.5)",
		"SELECT (id > 3) IS TRUE, (id > 3) IS NOT FALSE FROM orders",
		"SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(a, b) JOIN (VALUES (1), (3)) w(a) USING (a)",
		"WITH orders AS (SELECT id FROM orders WHERE id < 3) SELECT * FROM orders JOIN main.orders o USING (id)",
		"SELECT list_transform([1, 2], lambda x : x + 1), list_filter([1, 2, 3], x -> x > 1), [x * 2 FOR x IN [1, 2] IF x > 1]",
		"SELECT id FROM orders WHERE total > ANY (SELECT total FROM orders WHERE id < 5) AND id NOT IN (SELECT id FROM customers)",
	} {
		a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		sameRows(t, s, "rewritten", sql, a)
	}
}
