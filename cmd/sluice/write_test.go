package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGateOfWrites: the profile write lets changes through, and no other one does.
func TestGateOfWrites(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.sql")
	if err := os.WriteFile(schema, []byte("CREATE TABLE public.orders (id int, total numeric); CREATE TABLE public.secret (k text);"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := `{"id":"a","dialect":"both","profile":"write","grants":["orders"],"sql":"update orders set total = total + 1 where id = 1"}
{"id":"b","dialect":"both","profile":"write","grants":["orders"],"sql":"INSERT INTO orders SELECT 1, length(k) FROM secret"}
{"id":"c","dialect":"both","profile":"read_only","grants":["orders"],"sql":"DELETE FROM orders"}
{"id":"d","dialect":"both","profile":"write","grants":["orders"],"sql":"SELECT 1"}
{"id":"e","dialect":"duckdb","profile":"write","sql":"INSERT OR REPLACE INTO orders VALUES (1, 2)"}
`
	got, err := gate(t, lines, "--schema", schema)
	if err != nil || len(got) != 5 {
		t.Fatal(got, err)
	}
	if v := got[0]; v.Verdict != "allow" || v.SQL != "UPDATE public.orders SET total = total + 1 WHERE id = 1" || v.DuckDBSQL != `UPDATE "memory"."main"."orders" SET "total" = ((total + 1)) WHERE ((id = 1))` {
		t.Errorf("%+v", v)
	}
	for _, v := range got[1:] {
		if v.Verdict != "deny" || v.Why == "" || v.SQL != "" || v.DuckDBSQL != "" {
			t.Errorf("%+v", v)
		}
	}
}

func TestPrintWritten(t *testing.T) {
	var out bytes.Buffer
	for _, command := range []string{"INSERT", "TRUNCATE", "CREATE TABLE"} {
		if err := printWritten(&out, command, 3); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "INSERT: 3 row(s)\nTRUNCATE: 3 row(s)\nCREATE TABLE: done\n"; got != want {
		t.Errorf("%q", strings.TrimSpace(got))
	}
}
