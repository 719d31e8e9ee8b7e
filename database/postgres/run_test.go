package postgres

import (
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/sqlguard"
)

// approve passes a statement through the real gate, against the engine's own catalogue, and through Check.
func approve(t *testing.T, e *Engine, database, sql string, profile sqlguard.Profile) (sqlguard.Approved, error) {
	t.Helper()
	cat, err := e.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := sqlguard.New(sqlguard.Postgres, nil).Check(t.Context(), sqlguard.Request{SQL: sql, Database: database, Profile: profile, Catalog: cat,
		May: func(sqlguard.Relation) bool { return true }, Types: e.Types})
	if err != nil {
		return a, err
	}
	return a, e.Check(t.Context(), cat, a)
}

func TestRealAnApprovedStatementRuns(t *testing.T) {
	admin(t, `DROP TABLE IF EXISTS bought CASCADE; CREATE TABLE bought (id int PRIMARY KEY, customer text, total numeric(9,2), near public.vector(2));
		INSERT INTO bought SELECT g, 'c' || g % 3, g * 1.5, ('[' || g || ',1]')::public.vector FROM generate_series(1, 9) g;
		CREATE VIEW bought_by AS SELECT customer, total FROM bought WHERE id > 1;
		DROP TABLE IF EXISTS owned; CREATE TABLE owned (n int); ALTER TABLE owned ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON owned USING (n < 42);
		GRANT SELECT ON bought, bought_by, owned TO `+role())
	e := open(t)
	cases := map[string]struct {
		sql    string
		params []any
		want   string
	}{
		"a sum by group":     {"SELECT customer, sum(total) FROM bought GROUP BY customer ORDER BY 1", nil, `"c0" "c1" "c2"`},
		"a parameter":        {"SELECT total FROM bought WHERE id = $1", []any{int64(4)}, "6.00"},
		"a view":             {"SELECT count(*) FROM bought_by", nil, "8"},
		"the nearest vector": {"SELECT id FROM bought ORDER BY near <-> '[3,1]' LIMIT 2", nil, "3 2"},
		"a sum of integer":   {"SELECT sum(id) FROM bought", nil, "45"},
		"a common table":     {"WITH w AS (SELECT id FROM bought) SELECT max(id) FROM w", nil, "9"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := approve(t, e, "erp", c.sql, sqlguard.ReadOnly)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Run(t.Context(), a, c.params)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			var got []string
			for r.Next() {
				for i := range int(r.RecordBatch().NumRows()) {
					got = append(got, show(r.Schema().Field(0), r.RecordBatch().Column(0), i))
				}
			}
			if strings.Join(got, " ") != c.want || r.Err() != nil {
				t.Errorf("%s, %v", strings.Join(got, " "), r.Err())
			}
		})
	}
	t.Run("a plan", func(t *testing.T) {
		a, err := approve(t, e, "erp", "EXPLAIN SELECT id FROM bought", sqlguard.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		if !r.Next() || !strings.Contains(show(r.Schema().Field(0), r.RecordBatch().Column(0), 0), "Seq Scan on bought") {
			t.Errorf("%v, %v", r.RecordBatch(), r.Err())
		}
	})
	t.Run("the plan of a table under row-level security", func(t *testing.T) {
		a, err := approve(t, e, "erp", "EXPLAIN SELECT n FROM owned", sqlguard.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(t.Context(), a, nil); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%v", err)
		}
	})
	t.Run("a copy has no limit of time", func(t *testing.T) {
		slow := open(t, func(c *Config) { c.StatementTimeout = 20 * time.Millisecond })
		a, err := approve(t, e, "erp", "SELECT count(*) FROM bought a, bought b, bought c, bought d, bought e, bought f, bought g", sqlguard.CopySource)
		if err != nil {
			t.Fatal(err)
		}
		r, err := slow.stream(t.Context(), statement{sql: a.SQL(), timeout: slow.cfg.StatementTimeout})
		if err == nil {
			_, err = all(r)
		}
		if fault.CodeOf(err) != fault.TooLarge {
			t.Fatalf("it is too fast to test anything: %v", err)
		}
		reader, err := slow.Run(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := all(reader); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("an error behind a view", func(t *testing.T) {
		a, err := approve(t, e, "erp", "SELECT customer::int FROM bought_by", sqlguard.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(t.Context(), a, nil)
		if err == nil {
			_, err = all(r)
		}
		if f := fault.Public(err); f.Code != fault.Invalid || strings.Contains(f.Msg, "c2") || !strings.Contains(f.Msg, hiddenText) {
			t.Errorf("%v", err)
		}
	})
	t.Run("another database's, and none", func(t *testing.T) {
		other, err := approve(t, e, "shop", "SELECT 1", sqlguard.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []sqlguard.Approved{other, {}} {
			if r, err := e.Run(t.Context(), a, nil); fault.CodeOf(err) != fault.Refused || r != nil {
				t.Errorf("%v, %v", r, err)
			}
		}
	})
}
