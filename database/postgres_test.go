package database

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

// reader opens a database of the test's own as a role that reads some of its tables.
func reader(t *testing.T, ext Externals, script string, relations ...string) (*Source, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t, script)
	s, err := Open(t.Context(), Config{Name: "erp", Kind: KindPostgres, URL: db.Reader(relations...), Schemas: []string{"public"}, LakeRoots: []string{t.TempDir()}}, ext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, db
}

// TestRealPostgres: a question's way through the front, as with DuckDB.
func TestRealPostgres(t *testing.T) {
	s, _ := reader(t, nil, "CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(18,2), note text); INSERT INTO orders VALUES (1, 10.50, 'a'), (2, 5, NULL)", "public.orders")
	if s.Dialect() != sqlguard.Postgres || s.Name() != "erp" {
		t.Errorf("%s %s", s.Name(), s.Dialect())
	}
	a := approve(t, s, "SELECT o.id, o.total, o.note, count(*) OVER () AS n FROM orders o WHERE o.total > $1 ORDER BY o.id")
	r, err := s.RunParams(t.Context(), a, []any{int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Collect(r, math.MaxInt, math.MaxInt)
	r.Release()
	text, jsonErr := encode(got.Rows)
	if want := `[[1,"10.50","a",2],[2,"5.00",null,2]]`; err != nil || jsonErr != nil || string(text) != want {
		t.Errorf("%s, %v %v, want %s", text, err, jsonErr, want)
	}
	var types []string
	for _, c := range got.Columns {
		types = append(types, c.Name+" "+c.Type)
	}
	if want := "id BIGINT, total DECIMAL(18,2), note TEXT, n BIGINT"; strings.Join(types, ", ") != want {
		t.Errorf("%s, want %s", types, want)
	}
	if again := approve(t, s, "SELECT o.id, o.total, o.note, count(*) OVER () AS n FROM orders o WHERE o.total > $1 ORDER BY o.id"); again.SQL() != a.SQL() || len(s.seen.entries) != 1 {
		t.Errorf("%d statements are remembered", len(s.seen.entries))
	}
	for sql, hint := range map[string]string{"SELECT totl FROM orders": "total", "SELECT * FROM ordrs": "orders", "DELETE FROM orders": "", "SELECT pg_sleep(1)": ""} {
		_, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Refused || !strings.Contains(f.Hint, hint) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	duck := open(t, "CREATE TABLE orders (id INTEGER)")
	for name, run := range map[string]func() error{
		"the zero Approved":       func() error { _, err := s.Run(t.Context(), sqlguard.Approved{}); return err },
		"one of another database": func() error { _, err := s.Run(t.Context(), approve(t, duck, "SELECT 1")); return err },
		"and the other way":       func() error { _, err := duck.Run(t.Context(), a); return err },
	} {
		if err := run(); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// kept is an engine whose catalogue is believed for ever, unless somebody asks for a fresh one.
type kept struct {
	engine
	catalog *sqlguard.Catalog
	asked   int
}

func (k *kept) Catalog(ctx context.Context) (_ *sqlguard.Catalog, err error) {
	if k.catalog == nil {
		k.catalog, err = k.engine.Catalog(ctx)
	}
	return k.catalog, err
}

func (k *kept) Fresh(ctx context.Context, old *sqlguard.Catalog) (*sqlguard.Catalog, error) {
	k.asked++
	return k.engine.(freshener).Fresh(ctx, old)
}

// TestRealPostgresSeesWhatWasMadeAMomentAgo: the kept catalogue is looked at again before a name is refused, and only then.
func TestRealPostgresSeesWhatWasMadeAMomentAgo(t *testing.T) {
	s, db := reader(t, nil, "CREATE TABLE orders (id bigint)", "public.orders")
	db.Exec("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
	k := &kept{engine: s.engine}
	s.engine = k
	approve(t, s, "SELECT id FROM orders")
	if k.asked != 0 {
		t.Errorf("a statement that passes asked %d times", k.asked)
	}
	for _, name := range []string{"a", "b", "c"} {
		db.Exec("CREATE TABLE " + name + " (x integer)")
		within(t, func() bool {
			_, err := s.Approve(t.Context(), "SELECT x FROM "+name, sqlguard.ReadOnly, everything)
			return err == nil
		})
	}
}

// TestRealPostgresHasNoExternalTables: its server cannot read our files.
func TestRealPostgresHasNoExternalTables(t *testing.T) {
	s, _ := reader(t, files{}, "CREATE TABLE orders (id bigint)", "public.orders")
	cat, err := s.Catalog(t.Context())
	if err != nil || len(cat.Tables) != 1 || cat.Tables[0].Name != "orders" {
		t.Errorf("%+v, %v", cat, err)
	}
}

// TestPostgresThatIsAway opens, and says at each use that it cannot be reached.
func TestPostgresThatIsAway(t *testing.T) {
	s, err := Open(t.Context(), Config{Name: "erp", Kind: KindPostgres, URL: "postgres://reader:hunter2@127.0.0.1:1/erp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = s.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything)
		if f := fault.Public(err); f.Code != fault.Busy || !strings.Contains(f.Msg, "cannot be reached") || f.RetryAfter == 0 || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("after Close: %v", err)
	}
	for name, c := range map[string]Config{"no url": {Name: "x", Kind: KindPostgres}, "no such kind": {Name: "x", Kind: "mysql", Path: "x"}, "no PostgreSQL's": {Name: "x", Kind: KindPostgres, URL: "mysql://u:hunter2@h/d"}} {
		if _, err := Open(t.Context(), c, nil); fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
