package database

import (
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

func TestOfflineGate(t *testing.T) {
	o, err := OfflineGate(t.Context(), sqlguard.DuckDB, `-- a comment; with a semicolon
		CREATE TABLE public.orders (id int primary key, total numeric, doc jsonb, tags text[]);
		CREATE SCHEMA hr; CREATE TABLE hr.salaries (id int);
		CREATE VIEW public.big AS SELECT * FROM orders WHERE total > 10;
		CREATE FUNCTION public.leak(public.orders) RETURNS text LANGUAGE sql AS $$SELECT ';'$$;
		INSERT INTO orders SELECT g, g FROM generate_series(1, 3) g; GRANT SELECT ON orders TO x;`)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for sql, want := range map[string]bool{
		"SELECT total FROM main.orders": true, "SELECT * FROM big": true, "SELECT * FROM hr.salaries": true, "SELECT totl FROM orders": false, "SELECT * FROM nope": false,
	} {
		if _, err := o.Check(t.Context(), sql, sqlguard.ReadOnly, nil); (err == nil) != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for sql, want := range map[string]bool{"SELECT * FROM orders": true, "SELECT * FROM big": false, "SELECT * FROM hr.salaries": false} {
		if _, err := o.Check(t.Context(), sql, sqlguard.ReadOnly, []string{"orders"}); (err == nil) != want {
			t.Errorf("with a grant on orders, %s: %v", sql, err)
		}
	}
	if _, err := o.Check(t.Context(), "SELECT 1", sqlguard.NoProfile, nil); fault.CodeOf(err) != fault.Refused {
		t.Errorf("no profile: %v", err)
	}
	empty, err := OfflineGate(t.Context(), sqlguard.DuckDB, "")
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if len(empty.Catalog().Tables) != 0 {
		t.Errorf("without a schema there are %v", empty.Catalog().Tables)
	}
}
