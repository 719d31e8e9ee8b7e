package pgtest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestRealDatabaseGoesAway makes a database and a role, and looks for them when their test is over.
func TestRealDatabaseGoesAway(t *testing.T) {
	var name string
	t.Run("while it is there", func(t *testing.T) {
		d := New(t, "CREATE TABLE a(x int); CREATE TABLE b(x int); INSERT INTO a VALUES (7)", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
		name = d.Name
		c := d.Connect(d.Reader("public.a"))
		var x int
		if err := c.QueryRow(t.Context(), "SELECT x FROM a").Scan(&x); err != nil || x != 7 {
			t.Error(x, err)
		}
		for _, denied := range []string{"SELECT x FROM b", "SELECT f()", "INSERT INTO a VALUES (1)", "CREATE TABLE c()", "CREATE TEMP TABLE c()"} {
			if _, err := c.Exec(t.Context(), denied); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %v", denied, err)
			}
		}
	})
	c, err := pgx.Connect(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var left int
	if err := c.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pg_database WHERE datname = $1) + (SELECT count(*) FROM pg_roles WHERE rolname LIKE $1 || '%')", name).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d are left of %s: %v", left, name, err)
	}
}
