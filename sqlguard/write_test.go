package sqlguard

import (
	"slices"
	"testing"
)

// TestWhichStatementsWrite: by their words alone.
func TestWhichStatementsWrite(t *testing.T) {
	for sql, want := range map[string]bool{
		"INSERT INTO t VALUES (1)": true, "insert into t select 1": true, "/* SELECT */ DELETE FROM t": true, "-- x\nUPDATE t SET a = 1": true, "TRUNCATE t": true, "DROP TABLE t": true,
		"CREATE TABLE t (a int)": true, "ALTER TABLE t ADD a int": true, "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE": true,
		"WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c": true, "WITH a AS (SELECT 1), b (x) AS MATERIALIZED (SELECT 2) DELETE FROM t": true,
		"WITH RECURSIVE c AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b UPDATE t SET a = 1": false, // then the profile for queries refuses it
		"SELECT 1": false, "": false, "(": false, "SELECT 'INSERT'": false, "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x": false, "WITH insert AS (SELECT 1) SELECT * FROM insert": false,
		"WITH a AS (SELECT 1), delete AS (SELECT 2) SELECT 1": false, "FROM t": false, "VALUES (1)": false, "\"insert\"": false, "EXPLAIN DELETE FROM t": false, "COPY t TO 'x'": false, "BEGIN": false,
		"WITH c AS (SELECT 1) SELECT (1) delete FROM c": false, "WITH c AS (SELECT 1) VALUES (1)": false, "WITH c AS (SELECT 1)": false, "WITH": false,
	} {
		if got := Writes(sql); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}

var writeCatalog = &Catalog{Engine: "shop", DefaultSchema: "public", Search: []string{"public"}, Tables: []Table{
	{Relation: Relation{"public", "item"}, Columns: []Column{{Name: "id", Type: "bigint"}, {Name: "name", Type: "text"}, {Name: "price", Type: "numeric(10,2)"}}},
	{Relation: Relation{"public", "sale"}, Columns: []Column{{Name: "id", Type: "bigint"}, {Name: "item_id", Type: "bigint"}}},
	{Relation: Relation{"public", "secret"}, Columns: []Column{{Name: "k", Type: "text"}}},
	{Relation: Relation{"public", "cheap"}, View: true, Columns: []Column{{Name: "id", Type: "bigint"}}},
}}

func checkWriting(t testing.TB, sql string) (Approved, error) {
	return New(Postgres, nil).Check(t.Context(), Request{SQL: sql, Database: "shop", Profile: Write, Catalog: writeCatalog, May: func(r Relation) bool { return r.Name != "secret" }})
}

// FuzzWrite: what passes is one statement, passes again as it was written, and names nothing that its caller may not read.
func FuzzWrite(f *testing.F) {
	for _, sql := range []string{
		"INSERT INTO item AS i (id, name) VALUES (1, DEFAULT), ($1, 'a') ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE i.id > 1 RETURNING *, upper(i.name) AS u",
		"WITH c AS (SELECT id FROM sale) INSERT INTO item (id) SELECT id FROM c", "INSERT INTO item DEFAULT VALUES",
		"UPDATE ONLY item SET price = price * 2, name = DEFAULT FROM sale s LEFT JOIN cheap USING (id) WHERE item.id = s.item_id RETURNING s.*",
		"DELETE FROM item USING LATERAL (SELECT 1) x WHERE EXISTS (SELECT 1 FROM sale WHERE item_id = item.id)", "TRUNCATE item, sale RESTART IDENTITY",
		`CREATE TABLE IF NOT EXISTS "Note" (id serial PRIMARY KEY, t text NOT NULL DEFAULT 'x' || 'y', n numeric(3, 1)[] CHECK (n IS NULL), r bigint REFERENCES item (id) ON DELETE SET NULL DEFERRABLE, UNIQUE NULLS NOT DISTINCT (t, n), CONSTRAINT c FOREIGN KEY (r) REFERENCES item)`,
		"CREATE TABLE x (a, b) AS SELECT 1, 2 WITH NO DATA", "CREATE UNIQUE INDEX IF NOT EXISTS i ON item USING hash (lower(name) DESC NULLS LAST) WHERE price > 0",
		"ALTER TABLE IF EXISTS item ADD COLUMN IF NOT EXISTS a int GENERATED ALWAYS AS IDENTITY, DROP COLUMN name", "ALTER TABLE item RENAME price TO cost",
		"DROP TABLE IF EXISTS item, nothing", "DROP VIEW cheap", "DROP INDEX public.i", "INSERT INTO item SELECT 1, k FROM secret", "DELETE FROM pg_class", "UPDATE item SET (id, name) = (1, 'a')",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		a, err := checkWriting(t, sql)
		if err != nil {
			return
		}
		again, err := checkWriting(t, a.SQL())
		if err != nil || again.SQL() != a.SQL() || again.Writing().Command != a.Writing().Command {
			t.Errorf("%q became %q and then %q: %v", sql, a.SQL(), again.SQL(), err)
		}
		if !Writes(sql) && !Writes(a.SQL()) {
			t.Errorf("%q is none by its words", sql)
		}
		secret := Relation{"public", "secret"}
		if slices.Contains(a.Relations(), secret) || slices.Contains(a.Writing().Targets, secret) {
			t.Errorf("%q reaches %v", sql, secret)
		}
	})
}

// TestWritesNameTheirTargets: what is only referred to is not one.
func TestWritesNameTheirTargets(t *testing.T) {
	for sql, want := range map[string]Writing{
		"INSERT INTO item (id) SELECT id FROM sale":      {"INSERT", []Relation{{"public", "item"}}, false, false},
		"UPDATE item SET id = 1 RETURNING id":            {"UPDATE", []Relation{{"public", "item"}}, true, false},
		"TRUNCATE item, shop.public.sale":                {"TRUNCATE", []Relation{{"public", "item"}, {"public", "sale"}}, false, false},
		"CREATE TABLE x (a bigint REFERENCES item (id))": {"CREATE TABLE", []Relation{{"public", "x"}}, false, true},
		"CREATE INDEX ON item (id)":                      {"CREATE INDEX", []Relation{{"public", "item"}}, false, true},
		"DROP INDEX x":                                   {"DROP INDEX", nil, false, true},
	} {
		a, err := checkWriting(t, sql)
		got := a.Writing()
		if err != nil || got.Command != want.Command || !slices.Equal(got.Targets, want.Targets) || got.Rows != want.Rows || got.Schema != want.Schema {
			t.Errorf("%s: %+v, %v", sql, got, err)
		}
	}
}
