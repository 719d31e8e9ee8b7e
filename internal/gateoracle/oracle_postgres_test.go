package gateoracle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/internal/gatefuzz"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

const caseFolder = "../../testdata/sqlguard"

// violation is one thing that an admitted statement may not do. The kind stays the same while the text is shortened.
type violation struct{ kind, text string }

// oracle is a server with a role that may read what was granted and nothing else.
type oracle struct {
	db      *pgtest.DB
	super   *pgx.Conn      // sees everything, and runs nothing that was admitted
	own     *pgconn.PgConn // runs originals without the role, for the case files
	reader  *pgconn.PgConn // runs what was admitted
	url     string         // the reader's
	catalog *sqlguard.Catalog
	grants  map[string]bool     // "public.orders"
	base    map[string][]string // of a view, all that it reads
	known   server
	session string // the reader's settings outside a transaction
	inside  string // and inside of one
	state   string // what the database holds
	path    string // the search_path of what the gate wrote
}

// caseSchema is the schema of the case files.
func caseSchema(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(caseFolder, "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return "SET TIME ZONE 'UTC';\n" + string(b)
}

// traps are what a gate must not fall for beside the case files' schema: things of the user's own that are called without a
// call, and relations that a fuzzer may not read.
const traps = `
CREATE EXTENSION vector;
CREATE TABLE public.items(id int primary key, embedding vector(3), half halfvec(3));
INSERT INTO items SELECT g, ('['||g||',1,2]')::vector, ('['||g||',1,2]')::halfvec FROM generate_series(1,5) g;
CREATE TYPE public.mood AS ENUM ('sad', 'happy');
CREATE DOMAIN public.positive AS int CHECK (VALUE > 0);
CREATE TABLE public.tickets(id int primary key, mood mood, score positive, big bigint, small smallint, ratio double precision, at timestamptz, open_for interval, code char(3), data bytea, flags bit(4), span int4range, ids int[], doc json);
INSERT INTO tickets SELECT g, (ARRAY['sad','happy'])[1+g%2]::mood, g, g*10000000000, g, g/3.0, '2026-01-01Z'::timestamptz + g*interval '1 h', g*interval '1 min', 'c'||g, decode('0'||g,'hex'), '0101', int4range(1,g+1), ARRAY[g,2], '{"a":1}' FROM generate_series(1,9) g;
CREATE FUNCTION public.spy(int, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$SELECT string_agg(employee,',') FROM hr.salaries$$;
CREATE OPERATOR public.<~~> (FUNCTION = public.spy, LEFTARG = int, RIGHTARG = int);
CREATE FUNCTION public.spell(public.mood) RETURNS int LANGUAGE sql SECURITY DEFINER AS $$SELECT count(*)::int FROM hr.salaries$$;
CREATE CAST (public.mood AS int) WITH FUNCTION public.spell(public.mood) AS ASSIGNMENT;
CREATE SEQUENCE public.numbers;
CREATE VIEW public.v_late AS SELECT o.id, o.status, c.name FROM v_orders o JOIN customers c ON c.id = o.customer_id;
`

// newOracle makes the server: schema scripts, and the relations that may be read.
func newOracle(t testing.TB, grants []string, scripts ...string) *oracle {
	t.Helper()
	o := &oracle{db: pgtest.New(t, scripts...), grants: map[string]bool{}, path: deparsedPath}
	o.db.Exec("CREATE SCHEMA gate_oracle")
	for _, g := range grants {
		o.grants[g] = true
	}
	o.super = o.db.Connect(o.db.URL)
	o.own = o.db.Connect(o.db.URL).PgConn()
	o.known = readServer(t, o.super)
	o.base = readViews(t, o.super)
	o.catalog = readCatalog(t, o.super)
	o.url = o.db.Reader(grants...)
	o.connect(t)
	o.state = o.held(t)
	return o
}

func (o *oracle) connect(t testing.TB) {
	t.Helper()
	o.reader = pgtest.Connect(t, o.url).PgConn()
	if in := o.catalog.Extensions["vector"]; in != "" {
		o.must(t, "SELECT '[1]'::"+in+".vector") // loads its library, whose settings then show
	}
	o.session, _ = o.settings(t)
	o.begin(t, deparsedPath)
	o.inside, _ = o.settings(t)
	o.rollback(t)
}

func (o *oracle) may(r sqlguard.Relation) bool { return o.grants[o.quoted(r)] }

// quoted is the relation's name as the grants have it.
func (o *oracle) quoted(r sqlguard.Relation) string {
	return o.known.ident(r.Schema) + "." + o.known.ident(r.Name)
}

// check passes a text through the gate.
func (o *oracle) check(ctx context.Context, sql string, profile sqlguard.Profile) (sqlguard.Approved, error) {
	return sqlguard.New(sqlguard.Postgres, nil).Check(ctx, sqlguard.Request{SQL: sql, Database: "test", Profile: profile, Catalog: o.catalog, May: o.may})
}

// admitted judges a statement that passed: text is what the gate wrote, sql what the caller sent.
func (o *oracle) admitted(t testing.TB, sql, text string, profile sqlguard.Profile, explain bool) []violation {
	t.Helper()
	written := text
	if explain { // the engine asks for the plan of what the gate wrote
		text = "EXPLAIN " + text
	}
	out, params := o.run(t, sql, text, explain)
	if params == nil { // it did not parse: there is no tree
		return out
	}
	return append(out, o.readTree(t, written, *params, profile)...)
}

func quote(s string) string {
	for _, c := range s {
		if c != '_' && (c < 'a' || c > 'z') {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
	}
	return s
}

// readCatalog is the catalogue that the gate gets: columns, views, functions of the user's own, extensions.
func readCatalog(t testing.TB, c *pgx.Conn) *sqlguard.Catalog {
	t.Helper()
	out := &sqlguard.Catalog{Engine: query(t, c, "SELECT current_database()::text")[0][0].(string), DefaultSchema: "public", Search: []string{"public"}, Extensions: map[string]string{}}
	rows := query(t, c, `SELECT n.nspname, c.relname, c.relkind IN ('v','m'), a.attname, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), a.atttypmod), NOT a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r','v','m','p','f') AND n.nspname NOT IN ('pg_catalog','information_schema') ORDER BY n.nspname, c.relname, a.attnum`)
	for _, r := range rows {
		rel := sqlguard.Relation{Schema: r[0].(string), Name: r[1].(string)}
		if n := len(out.Tables); n == 0 || out.Tables[n-1].Relation != rel {
			out.Tables = append(out.Tables, sqlguard.Table{Relation: rel, View: r[2].(bool)})
		}
		last := &out.Tables[len(out.Tables)-1]
		last.Columns = append(last.Columns, sqlguard.Column{Name: r[3].(string), Type: r[4].(string), Nullable: r[5].(bool)})
	}
	for _, r := range query(t, c, `SELECT e.extname, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname <> 'plpgsql'`) {
		out.Extensions[r[0].(string)] = r[1].(string)
	}
	for _, r := range query(t, c, `SELECT DISTINCT p.proname::text FROM pg_proc p WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
AND NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = 'pg_proc'::regclass AND x.objid = p.oid AND x.deptype = 'e') ORDER BY 1`) {
		out.Functions = append(out.Functions, r[0].(string))
	}
	return out
}

// readViews tells for each view all that it reads, views in it included.
func readViews(t testing.TB, c *pgx.Conn) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, r := range query(t, c, `WITH RECURSIVE direct AS (SELECT DISTINCT w.ev_class AS v, d.refobjid AS r FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
  AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class WHERE w.ev_class >= 16384),
all_of AS (SELECT * FROM direct UNION SELECT a.v, d.r FROM all_of a JOIN direct d ON d.v = a.r)
SELECT x.vn, x.rn FROM (SELECT (SELECT quote_ident(nspname)||'.'||quote_ident(relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = v) AS vn,
 (SELECT quote_ident(nspname)||'.'||quote_ident(relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = r) AS rn FROM all_of) x`) {
		out[r[0].(string)] = append(out[r[0].(string)], r[1].(string))
	}
	return out
}

func query(t testing.TB, c *pgx.Conn, sql string, args ...any) [][]any {
	t.Helper()
	rows, err := c.Query(context.WithoutCancel(t.Context()), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return out
}

func bad(kind, format string, args ...any) violation {
	return violation{kind, fmt.Sprintf(format, args...)}
}

func kinds(v []violation) string {
	var out []string
	for _, one := range v {
		out = append(out, one.kind)
	}
	return strings.Join(out, ",")
}

func profileOf(t testing.TB, c gatefuzz.Case) sqlguard.Profile {
	t.Helper()
	p, ok := map[string]sqlguard.Profile{"read_only": sqlguard.ReadOnly, "copy_source": sqlguard.CopySource, "restricted_read": sqlguard.RestrictedRead}[c.Profile]
	if !ok {
		t.Fatalf("%s: the profile %s is unknown", c.ID, c.Profile)
	}
	return p
}
