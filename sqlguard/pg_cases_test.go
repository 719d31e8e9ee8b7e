package sqlguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/gatefuzz"
)

// pgCases are the cases that PostgreSQL's gate decides on.
func pgCases(t testing.TB) []gatefuzz.Case {
	t.Helper()
	return slices.DeleteFunc(gatefuzz.Cases(t, filepath.Join("..", "testdata", "sqlguard")), func(c gatefuzz.Case) bool {
		return c.Dialect != "postgres" && c.Dialect != "both"
	})
}

// pgFixture is the catalogue of testdata/sqlguard/sqlguard_schema.sql, with a table of vectors.
func pgFixture() *Catalog {
	table := func(schema, name, columns string) Table {
		t := Table{Relation: Relation{Schema: schema, Name: name}}
		for _, c := range strings.Split(columns, ", ") {
			col, typ, _ := strings.Cut(c, "=")
			t.Columns = append(t.Columns, Column{Name: col, Type: typ, Nullable: true})
		}
		return t
	}
	orders := "id=integer, customer_id=integer, placed_at=timestamp without time zone, status=text, total=numeric"
	c := &Catalog{Engine: "postgres", DefaultSchema: "public", Search: []string{"public"}, Extensions: map[string]string{"vector": "ext"}, Tables: []Table{
		table("public", "customers", "id=integer, name=text, email=text, region=text, created_at=timestamp with time zone"),
		table("public", "products", "id=integer, sku=text, name=text, category=text, price=numeric, tags=text[], attrs=jsonb"),
		table("public", "orders", orders),
		table("public", "order_items", "id=integer, order_id=integer, product_id=integer, quantity=integer, unit_price=numeric"),
		table("hr", "salaries", "id=integer, employee=text, amount=numeric"),
		table("public", "audit_log", "id=integer, update=timestamp without time zone, delete=boolean, select=text, table=text, user=text, order=integer"),
		table("public", "Order Summary", "Customer Name=text, Total $=numeric, select=integer"),
		table("public", "v_orders", orders),
		table("public", "v_pay", "id=integer, employee=text, amount=numeric"),
		table("public", "visits", "id=bigint, page=text, hits=bigint, seconds=integer"),
		table("public", "items", "id=integer, label=text, embedding=vector(3)"),
	}}
	for i := range c.Tables {
		c.Tables[i].View = strings.HasPrefix(c.Tables[i].Name, "v_")
	}
	return c
}

func pgGranted(grants []string) func(Relation) bool {
	return func(r Relation) bool { return grants == nil || slices.Contains(grants, r.Schema+"."+r.Name) }
}

var profileNames = map[string]Profile{"read_only": ReadOnly, "copy_source": CopySource, "restricted_read": RestrictedRead}

func pgCheck(t testing.TB, sql string, p Profile, grants []string) (Approved, error) {
	return New(Postgres, nil).Check(t.Context(), Request{SQL: sql, Database: "erp", Profile: p, Catalog: pgFixture(), May: pgGranted(grants)})
}

// TestPostgresCases holds the verdict of every case that is PostgreSQL's. What is allowed is written so that it passes
// again and stays the same.
func TestPostgresCases(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join("..", "testdata", "sqlguard", "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := PostgresSchema(string(schema))
	if err != nil {
		t.Fatal(err)
	}
	allowed, denied, lines := 0, 0, 0
	for _, c := range pgCases(t) {
		lines++
		profile, known := profileNames[c.Profile]
		if !known {
			t.Errorf("%s: the profile %s is unknown", c.ID, c.Profile)
		}
		a, err := pgCheck(t, c.SQL, profile, c.Grants)
		b, err2 := New(Postgres, nil).Check(t.Context(), Request{SQL: c.SQL, Database: "erp", Profile: profile, Catalog: read, May: pgGranted(c.Grants)})
		if (err == nil) != (err2 == nil) || a.SQL() != b.SQL() {
			t.Errorf("%s: with the catalogue of the schema file %v, %q; with that of the tests %v, %q", c.ID, err2, b.SQL(), err, a.SQL())
		}
		switch {
		case c.Verdict == "deny" && err == nil:
			t.Errorf("%s: allowed, although: %s\n%s\nas %s", c.ID, c.Why, c.SQL, a.SQL())
		case c.Verdict == "deny":
			denied++
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v is not a refusal", c.ID, err)
			}
		case err != nil:
			t.Errorf("%s: %v, although: %s\n%.300s", c.ID, err, c.Why, c.SQL)
		default:
			allowed++
			pgStable(t, c.ID, a, profile, c.Grants)
		}
	}
	if allowed+denied != lines || lines < 313 {
		t.Errorf("%d allowed and %d denied of %d cases, of which there were 313 once", allowed, denied, lines)
	}
}

// pgStable holds that what was approved is approved again, as it is.
func pgStable(t testing.TB, id string, a Approved, p Profile, grants []string) {
	t.Helper()
	if strings.ReplaceAll(a.SQL(), "::numeric(38, 0)", "") != strings.ReplaceAll(a.Shown(), "::numeric(38, 0)", "") || !a.Valid() {
		t.Errorf("%s: shown as %q, runs as %q", id, a.Shown(), a.SQL())
	}
	again, err := pgCheck(t, a.SQL(), p, grants)
	switch {
	case err != nil:
		t.Errorf("%s: not approved again: %v\n%s", id, err, a.SQL())
	case again.SQL() != a.SQL():
		t.Errorf("%s: changes when it is approved again\n%s\n%s", id, a.SQL(), again.SQL())
	case !slices.Equal(again.Relations(), a.Relations()):
		t.Errorf("%s: reads %v and then %v", id, a.Relations(), again.Relations())
	}
}
