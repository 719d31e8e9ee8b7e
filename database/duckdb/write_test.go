package duckdb_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// TestWritesReadExternalTables, and never change one. What is written down of a statement has their names, not their files.
func TestWritesReadExternalTables(t *testing.T) {
	_, root, l := makeChangingLake(t)
	path := filepath.Join(t.TempDir(), "w.duckdb")
	if err := database.CreateFile(t.Context(), path, "CREATE TABLE names (region VARCHAR, title VARCHAR, n BIGINT); INSERT INTO names VALUES ('eu', 'Europe', 0), ('us', 'States', 0)"); err != nil {
		t.Fatal(err)
	}
	s, err := database.Open(t.Context(), database.Config{Name: "w", Path: path, Writable: true, Threads: 2, LakeRoots: []string{root}}, l)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, w := range []struct {
		sql string
		n   int64
	}{
		{`INSERT INTO names SELECT "Region", note, id FROM events WHERE day = DATE '2024-01-01' AND "Region" = 'eu'`, 10},
		{`CREATE TABLE kept AS SELECT * FROM main.events WHERE events.day = DATE '2024-01-02'`, 0},
		{`UPDATE names SET n = (SELECT count(*) FROM events e WHERE e."Region" = names.region AND e.day = '2024-01-03') WHERE n = 0 AND title = 'Europe'`, 1},
		{`UPDATE names SET n = x.id FROM (SELECT "Region", max(id) AS id FROM events WHERE day < '2024-01-04' GROUP BY 1) AS x WHERE x."Region" = names.region AND title = 'States'`, 1},
		{`DELETE FROM kept USING names AS c WHERE c.title = kept.note`, 20},
	} {
		a, err := s.Approve(t.Context(), w.sql, sqlguard.Write, everything)
		if err != nil {
			t.Fatalf("%s: %v", w.sql, err)
		}
		n, err := s.Write(t.Context(), a, nil, nil)
		if err != nil || n != w.n {
			t.Errorf("%s: %d rows, %v; want %d", w.sql, n, err, w.n)
		}
		if strings.Contains(a.Shown(), root) || strings.Contains(a.Shown(), "read_parquet") {
			t.Errorf("shown: %s", a.Shown())
		}
	}
	a, err := s.Approve(t.Context(), "SELECT title, n FROM names WHERE title IN ('Europe', 'States') ORDER BY 1", sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if got := strings.Join(drain(t, r), " "); got != `["Europe",10] ["States",209]` {
		t.Errorf("%s", got)
	}
	for _, sql := range []string{"UPDATE events SET note = 'x'", "DELETE FROM events", "INSERT INTO events (id) VALUES (1)", "TRUNCATE main.events", "DROP TABLE events", "DROP TABLE IF EXISTS events",
		"CREATE TABLE events (id BIGINT)", "CREATE TABLE IF NOT EXISTS Events AS SELECT 1 AS id", "ALTER TABLE events ADD COLUMN x INT", "CREATE INDEX i ON events (id)", "CREATE TABLE z (a BIGINT REFERENCES events (id))"} {
		if _, err := s.Approve(t.Context(), sql, sqlguard.Write, everything); fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), "external table") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestNamesOfDuckDB: they are one whatever their case, and may be words of its grammar.
func TestNamesOfDuckDB(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.duckdb")
	if err := database.CreateFile(t.Context(), path, `CREATE TABLE "Pivot" ("Qualify" INTEGER PRIMARY KEY, "lambda" VARCHAR, "a""b" VARCHAR); CREATE SCHEMA "asof"; CREATE TABLE "asof"."Semi" (a INTEGER)`); err != nil {
		t.Fatal(err)
	}
	s, err := database.Open(t.Context(), database.Config{Name: "w", Path: path, Writable: true, Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sql := range []string{
		`INSERT INTO "pivot" ("qualify", "LAMBDA", "a""b") VALUES (1, 'x', 'y')`,
		`UPDATE main."Pivot" AS "anti" SET "Lambda" = "anti"."lambda" || "anti"."a""b" WHERE "QUALIFY" = 1 RETURNING "anti"."a""b"`,
		`INSERT INTO "Asof"."SEMI" AS "positional" SELECT "qualify" FROM "pivot" AS "show"`,
		`CREATE TABLE "asof"."describe" ("summarize" INTEGER CHECK ("summarize" > 0), "json" JSON, CONSTRAINT "unpivot" UNIQUE ("summarize"))`,
		`ALTER TABLE "asof"."describe" RENAME COLUMN "summarize" TO "window"`,
		`DROP TABLE "asof"."describe"`,
	} {
		a, err := s.Approve(t.Context(), sql, sqlguard.Write, everything)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if _, err := s.Write(t.Context(), a, nil, func(array.RecordReader) error { return nil }); err != nil {
			t.Errorf("%s: %s: %v", sql, a.SQL(), err)
		}
	}
	if _, err := s.Approve(t.Context(), `CREATE TABLE "pivot" (a INTEGER); SELECT 1`, sqlguard.Write, everything); fault.CodeOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
}

// TestWritesMeanWhatDuckDBReads: PostgreSQL's grammar reads a write, and some operators bind otherwise in DuckDB's. 10 + 3 // 2
// is 11 there; taken the other way it would be 6.
func TestWritesMeanWhatDuckDBReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.duckdb")
	if err := database.CreateFile(t.Context(), path, `CREATE TABLE t (a INTEGER, b INTEGER, j JSON); INSERT INTO t VALUES (10, 3, '{"x":1}')`); err != nil {
		t.Fatal(err)
	}
	s, err := database.Open(t.Context(), database.Config{Name: "w", Path: path, Writable: true, Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sql := range []string{"UPDATE t SET a = a + b // 2", "UPDATE t SET a = 2 * b ** 2", "DELETE FROM t WHERE a == 10 OR b = 1", "DELETE FROM t WHERE (j->>'x') IS NULL",
		"UPDATE t SET a = (SELECT max(x.a + x.b // 2) FROM t x)", "INSERT INTO t SELECT a, b, j->'x' FROM t", "CREATE TABLE u AS SELECT a + b // 2 AS c FROM t"} {
		if _, err := s.Approve(t.Context(), sql, sqlguard.Write, everything); fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), "binds otherwise") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	a, err := s.Approve(t.Context(), "UPDATE t SET a = a + CAST(floor(b / 2) AS INTEGER) * 2 ^ 1 WHERE json_extract_string(j, '$.x') = '1'", sqlguard.Write, everything)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), a, nil, nil); n != 1 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}
