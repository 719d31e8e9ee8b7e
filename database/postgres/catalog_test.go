package postgres

import (
	"fmt"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// describe writes a catalogue, a line for each thing.
func describe(c *sqlguard.Catalog) string {
	var b strings.Builder
	for _, t := range c.Tables {
		kind := "table"
		if t.View {
			kind = "view"
		}
		fmt.Fprintf(&b, "%s %s.%s (%s)", kind, t.Schema, t.Name, t.Comment)
		for _, col := range t.Columns {
			null := " NOT NULL"
			if col.Nullable {
				null = ""
			}
			fmt.Fprintf(&b, "\n  %s %s%s (%s)", col.Name, col.Type, null, col.Comment)
		}
		if len(t.PrimaryKey) > 0 {
			fmt.Fprintf(&b, "\n  key %s", strings.Join(t.PrimaryKey, " "))
		}
		for _, f := range t.Foreign {
			fmt.Fprintf(&b, "\n  %s -> %s.%s %s", strings.Join(f.Columns, " "), f.References.Schema, f.References.Name, strings.Join(f.Referenced, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestRealTheCatalogueIsWhatTheRoleMayRead(t *testing.T) {
	r := role()
	admin(t, `DROP SCHEMA IF EXISTS crm, hidden, closed CASCADE; CREATE SCHEMA crm; CREATE SCHEMA hidden; CREATE SCHEMA closed;
		CREATE TABLE crm.customer (id int, region text COLLATE "C" NOT NULL, "Full Name" varchar(40), PRIMARY KEY (region, id));
		COMMENT ON TABLE crm.customer IS 'who buys'; COMMENT ON COLUMN crm.customer."Full Name" IS 'as on the invoice';
		CREATE DOMAIN crm.euro AS numeric(12,2) NOT NULL; CREATE DOMAIN crm.price AS crm.euro CHECK (VALUE >= 0);
		CREATE TYPE crm.state AS ENUM ('open');
		CREATE TABLE crm.orders (at timestamptz NOT NULL, total crm.price, customer int, region text, secret text, tags text[], state crm.state,
			v public.vector(3), FOREIGN KEY (region, customer) REFERENCES crm.customer (region, id)) PARTITION BY RANGE (at);
		CREATE TABLE crm.orders_2024 PARTITION OF crm.orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		ALTER TABLE crm.orders DROP COLUMN tags;
		CREATE TABLE hidden.log (at date) PARTITION BY RANGE (at);
		CREATE TABLE crm.log_2024 PARTITION OF hidden.log FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		CREATE VIEW crm.rich AS SELECT id, region FROM crm.customer; CREATE MATERIALIZED VIEW crm.cached AS SELECT 1::bigint AS n;
		CREATE TABLE crm.salary (id int PRIMARY KEY, pay money);
		CREATE TABLE crm.payslip (salary int REFERENCES crm.salary, customer int, region text, FOREIGN KEY (region, customer) REFERENCES crm.customer);
		CREATE TABLE crm.partly (id int PRIMARY KEY, shown text, not_shown text);
		CREATE TABLE closed.t (n int); CREATE SEQUENCE crm.counter; CREATE INDEX ON crm.salary (pay);
		CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;
		CREATE FOREIGN TABLE crm.far (line text) SERVER files OPTIONS (filename '/nowhere/secret-path.csv');
		CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA crm;
		GRANT USAGE ON SCHEMA crm, hidden TO `+r+`;
		GRANT SELECT ON crm.customer, crm.orders, crm.orders_2024, crm.log_2024, crm.rich, crm.cached, crm.payslip, crm.far, closed.t TO `+r+`;
		GRANT SELECT (shown) ON crm.partly TO `+r+`; GRANT INSERT ON crm.salary TO `+r)
	e := open(t, func(c *Config) { c.Schemas = []string{"crm", "hidden", "closed", "nowhere"} })
	cat, err := e.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `table crm.cached ()
  n bigint ()
table crm.customer (who buys)
  id integer NOT NULL ()
  region text NOT NULL ()
  Full Name character varying(40) (as on the invoice)
  key region id
view crm.far ()
  line text ()
table crm.log_2024 ()
  at date ()
table crm.orders ()
  at timestamp with time zone NOT NULL ()
  total numeric(12,2) NOT NULL ()
  customer integer ()
  region text ()
  secret text ()
  state crm.state ()
  v public.vector(3) ()
  region customer -> crm.customer region id
table crm.partly ()
  shown text ()
table crm.payslip ()
  salary integer ()
  customer integer ()
  region text ()
  region customer -> crm.customer region id
view crm.rich ()
  id integer ()
  region text ()
`
	if got := describe(cat); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if cat.Engine != role() || cat.DefaultSchema != "crm" || strings.Join(cat.Search, " ") != "crm hidden closed nowhere" ||
		len(cat.Extensions) != 1 || cat.Extensions["vector"] != "public" || cat.Functions != nil {
		t.Errorf("%+v", *cat)
	}
	// A key of hidden columns and a table without a grant are nowhere in it.
	if s := fmt.Sprint(*cat); strings.Contains(s, "salary ") && strings.Contains(s, "pay money") || strings.Contains(s, "not_shown") {
		t.Error("it has what the role may not read")
	}
}

func TestRealTheCatalogueIsTheSameUntilSomethingChanges(t *testing.T) {
	admin(t, "DROP SCHEMA IF EXISTS moving CASCADE; CREATE SCHEMA moving; CREATE TABLE moving.t (n int); GRANT USAGE ON SCHEMA moving TO "+role()+"; GRANT SELECT ON moving.t TO "+role())
	e := open(t, func(c *Config) { c.Schemas = []string{"moving"} })
	fresh := func() *sqlguard.Catalog {
		t.Helper()
		e.forget()
		cat, err := e.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return cat
	}
	last := fresh()
	r := role()
	changes := []struct {
		what, sql string
		same      bool
	}{
		{"nothing", "SELECT 1", true},
		{"rows", "INSERT INTO moving.t SELECT generate_series(1, 1000)", true},
		{"statistics", "ANALYZE moving.t", true},
		{"another schema", "CREATE TABLE public.elsewhere (n int)", true},
		{"a table without a grant", "CREATE TABLE moving.u (n int)", true},
		{"its grant", "GRANT SELECT ON moving.u TO " + r, false},
		{"a column", "ALTER TABLE moving.t ADD m text", false},
		{"its name", "ALTER TABLE moving.t RENAME m TO o", false},
		{"its type", "ALTER TABLE moving.t ALTER o TYPE varchar(7)", false},
		{"a comment on it", "COMMENT ON COLUMN moving.t.o IS 'x'", false},
		{"a comment on the table", "COMMENT ON TABLE moving.t IS 'x'", false},
		{"a key", "ALTER TABLE moving.t ADD PRIMARY KEY (n)", false},
		{"a reference", "ALTER TABLE moving.u ADD FOREIGN KEY (n) REFERENCES moving.t", false},
		{"a view", "CREATE VIEW moving.v AS SELECT 1 AS n; GRANT SELECT ON moving.v TO " + r, false},
		{"its columns' grants", "REVOKE SELECT ON moving.v FROM " + r + "; GRANT SELECT (n) ON moving.v TO " + r, true},
		{"a grant through another role", "DROP ROLE IF EXISTS " + r + "_group; CREATE ROLE " + r + "_group; CREATE TABLE moving.w (n int); GRANT SELECT ON moving.w TO " + r + "_group; GRANT " + r + "_group TO " + r, false},
		{"the end of it", "REVOKE " + r + "_group FROM " + r, false},
		{"a dropped table", "DROP TABLE moving.u", false},
		{"the schema's grant", "REVOKE USAGE ON SCHEMA moving FROM " + r, false},
	}
	defer admin(t, "DROP OWNED BY "+r+"_group; DROP ROLE "+r+"_group")
	for _, c := range changes {
		admin(t, c.sql)
		now := fresh()
		if (now == last) != c.same {
			t.Errorf("%s: the same is %v\n%s", c.what, now == last, describe(now))
		}
		last = now
	}
	// Without forget an answer is believed for a while, and Fresh asks sooner.
	admin(t, "GRANT USAGE ON SCHEMA moving TO "+r)
	if now, err := e.Catalog(t.Context()); err != nil || now != last {
		t.Errorf("it was asked again at once: %v", err)
	}
	eventually(t, "Fresh sees it", func() bool { now, err := e.Fresh(t.Context(), last); return err == nil && now != last })
}

func TestRealManyAskForTheCatalogueAtOnce(t *testing.T) {
	e := open(t)
	got := make(chan *sqlguard.Catalog)
	for range 20 {
		go func() {
			cat, err := e.Catalog(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- cat
		}()
	}
	first := <-got
	for range 19 {
		if <-got != first {
			t.Error("not all have the same")
		}
	}
}

func TestRealAMistakeIsToldInTheServersWords(t *testing.T) {
	admin(t, "DROP TABLE IF EXISTS checked CASCADE; CREATE TABLE checked (id int, name text, born date); GRANT SELECT ON checked TO "+role())
	e := open(t)
	cat, err := e.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := allowedNames(cat, []sqlguard.Relation{{Schema: "public", Name: "checked"}})
	cases := map[string]struct{ sql, says, hint string }{
		"types that do not fit":      {"SELECT id = name FROM public.checked", "operator does not exist: integer = text", "type casts"},
		"an ambiguous column":        {"SELECT id FROM public.checked a, public.checked b", `column reference "id" is ambiguous`, ""},
		"a column that is not there": {"SELECT a.nme FROM public.checked a", "column a.nme does not exist", `"a.name"`},
		"no such function":           {"SELECT pg_catalog.upper(id) FROM public.checked", "function pg_catalog.upper(integer) does not exist", "type casts"},
		"a constant of the wrong":    {"SELECT * FROM public.checked WHERE id = 'abc'", `invalid input syntax for type integer: "abc"`, ""},
		"a missing GROUP BY":         {"SELECT id, count(*) FROM public.checked", "GROUP BY", ""},
		"a parameter without a type": {"SELECT $1 IS NULL", "could not determine data type of parameter $1", "$1::date"},
		"two statements":             {"SELECT 1; SELECT 2", "cannot insert multiple commands", ""},
		"a table that went away":     {"SELECT * FROM public.gone", `relation "public.gone" does not exist`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fault.Public(e.check(t.Context(), c.sql, false, names))
			if f.Code != fault.Invalid || f.Kind != "query" || !strings.Contains(f.Msg, "the statement is wrong: ") || !strings.Contains(f.Msg, c.says) {
				t.Errorf("%v", f)
			}
			if !strings.Contains(f.Hint, c.hint) || (c.hint == "") != (f.Hint == "") {
				t.Errorf("the hint is %q", f.Hint)
			}
			f = fault.Public(e.check(t.Context(), c.sql, true, names))
			if f.Code != fault.Invalid || strings.Contains(f.Msg, c.says) || !strings.Contains(f.Msg, "is not shown") {
				t.Errorf("when it reads a view: %v", f)
			}
		})
	}
	for _, sql := range []string{"SELECT $1::int + id FROM public.checked", "SELECT FROM public.checked", "EXPLAIN SELECT 1"} {
		if err := e.check(t.Context(), sql, false, names); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if onlyNames(`Perhaps you meant to reference the column "x.secret".`, "SELECT x.scret", names) {
		t.Error("a hint shows a column that the statement does not read")
	}
}

func TestRealWhatHidesRowsIsGuarded(t *testing.T) {
	admin(t, `CREATE TABLE IF NOT EXISTS own (n int); DROP TABLE IF EXISTS tenants CASCADE; CREATE TABLE tenants (n int); ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON tenants USING (n < 3); CREATE OR REPLACE VIEW shown AS SELECT n FROM own;
		CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;
		DROP FOREIGN TABLE IF EXISTS away; CREATE FOREIGN TABLE away (line text) SERVER files OPTIONS (filename '/nowhere/secret-path.csv');
		GRANT SELECT ON own, tenants, shown, away TO `+role())
	e := open(t)
	for name, want := range map[string]bool{"own": false, "shown": true, "tenants": true, "away": true, "not_there": true} {
		got, err := e.guarded(t.Context(), []sqlguard.Relation{{Schema: "public", Name: "own"}, {Schema: "public", Name: name}})
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	err := run(t, e, "SELECT * FROM public.away")
	if f := fault.Public(err); err == nil || strings.Contains(f.Msg, "secret-path") {
		t.Errorf("a foreign table's failure: %v", f)
	}
}

// The plan of a foreign table shows where its rows are, and so does that of a table above it.
func TestRealATableAboveAForeignOneIsGuarded(t *testing.T) {
	admin(t, `DROP SCHEMA IF EXISTS above CASCADE; CREATE SCHEMA above; CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;
		CREATE TABLE above.events (at int, what text) PARTITION BY RANGE (at);
		CREATE TABLE above.old PARTITION OF above.events FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (at);
		CREATE TABLE above.plain (at int) PARTITION BY RANGE (at); CREATE TABLE above.plain_1 PARTITION OF above.plain FOR VALUES FROM (0) TO (100);
		GRANT USAGE ON SCHEMA above TO `+role()+`; GRANT SELECT ON ALL TABLES IN SCHEMA above TO `+role())
	t.Cleanup(func() { admin(t, "DROP SCHEMA above CASCADE") })
	e := open(t, func(c *Config) { c.Schemas = []string{"above"} })
	guarded := func(name string) bool {
		got, err := e.guarded(t.Context(), []sqlguard.Relation{{Schema: "above", Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if guarded("events") || guarded("plain") {
		t.Error("guarded without a foreign table")
	}
	admin(t, `CREATE FOREIGN TABLE above.file PARTITION OF above.old FOR VALUES FROM (0) TO (10) SERVER files OPTIONS (filename '/nowhere/secret-path.csv')`)
	e.forget()
	if !guarded("events") || guarded("plain") {
		t.Error("a foreign table two levels below is not seen, or one of another table is")
	}
	err := run(t, e, "SELECT * FROM above.events")
	if f := fault.Public(err); f.Code != fault.Busy || strings.Contains(f.Msg+f.Hint, "secret-path") {
		t.Errorf("a file that is not there: %v", err)
	}
}
