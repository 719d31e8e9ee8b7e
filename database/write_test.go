package database

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/fault"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

// shelf is a small database that both kinds can hold.
const shelf = `CREATE TABLE item (id bigint PRIMARY KEY, name text NOT NULL, price numeric(10,2));
CREATE TABLE sale (id bigint PRIMARY KEY, item_id bigint REFERENCES item (id), n integer);
CREATE TABLE secret (k text);
CREATE VIEW cheap AS SELECT id, name FROM item WHERE price < 5;
INSERT INTO item VALUES (1, 'pen', 1.50), (2, 'ink', 12.00);
INSERT INTO sale VALUES (1, 1, 10), (2, 1, 20);
INSERT INTO secret VALUES ('xyzzy');`

func writableDuck(t *testing.T, ext Externals, roots ...string) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.duckdb") // the catalogue's name is then that of its schema
	if err := CreateFile(t.Context(), path, shelf); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Name: "shop", Path: path, Writable: true, Threads: 2, LakeRoots: roots}, ext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// writablePostgres gives a source whose role owns nothing, and may write to the tables and make some.
func writablePostgres(t *testing.T) (*Source, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t, shelf)
	u := db.Reader("public.item", "public.sale", "public.secret", "public.cheap")
	role := strings.Split(strings.TrimPrefix(u, "postgres://"), ":")[0]
	db.Exec("ALTER TABLE item OWNER TO " + role + "; ALTER TABLE sale OWNER TO " + role + "; ALTER VIEW cheap OWNER TO " + role + "; GRANT CREATE ON SCHEMA public TO " + role)
	s, err := Open(t.Context(), Config{Name: "shop", Kind: KindPostgres, URL: u, Schemas: []string{"public"}, Writable: true}, nil)
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

func notSecret(r sqlguard.Relation) bool { return r.Name != "secret" }

// write runs a statement of somebody who may do anything but with the table secret. The rows of RETURNING are JSON.
func write(ctx context.Context, s *Source, sql string, params ...any) (rows string, n int64, err error) {
	a, err := s.Approve(ctx, sql, sqlguard.Write, notSecret)
	if err != nil {
		return "", 0, err
	}
	n, err = s.Write(ctx, a, params, func(r array.RecordReader) error {
		got, err := Collect(r, 1, 1<<20)
		if err == nil {
			var text []byte
			text, err = encode(got.Rows)
			rows = string(text)
		}
		return err
	})
	return rows, n, err
}

// look reads with a query.
func look(t *testing.T, s *Source, sql string) string {
	t.Helper()
	r, err := s.Run(t.Context(), approve(t, s, sql))
	if err != nil {
		t.Fatal(sql, err)
	}
	defer r.Release()
	got, err := Collect(r, 100, 1<<20)
	if err != nil {
		t.Fatal(sql, err)
	}
	text, err := encode(got.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writes are statements in their order, each with what it gives and what a query sees after it.
var writes = []struct {
	sql    string
	params []any
	rows   string
	n      int64
	look   string
	want   string
}{
	{sql: "INSERT INTO item VALUES (3, 'cap', 3)", n: 1, look: "SELECT name FROM item WHERE id = 3", want: `[["cap"]]`},
	{sql: "INSERT INTO item (id, name) VALUES ($1, $2), (5, 'five')", params: []any{int64(4), "four"}, n: 2, look: "SELECT name, price FROM item WHERE id > 3 ORDER BY id", want: `[["four",null],["five",null]]`},
	{sql: "INSERT INTO item (id, name) VALUES (4, 'vier'), (6, 'six') ON CONFLICT (id) DO UPDATE SET name = excluded.name || upper(item.name) RETURNING id, upper(name) AS u",
		rows: `[[4,"VIERFOUR"]]`, n: 2, look: "SELECT name FROM item WHERE id IN (4, 6) ORDER BY id", want: `[["vierFOUR"],["six"]]`},
	{sql: "INSERT INTO item (id, name) VALUES (4, 'x') ON CONFLICT DO NOTHING", n: 0, look: "SELECT count(*) FROM item", want: `[[6]]`},
	{sql: "INSERT INTO sale (id, item_id, n) SELECT id + 10, id, 1 FROM cheap WHERE id > 1", n: 1, look: "SELECT count(*) FROM sale", want: `[[3]]`},
	{sql: "WITH c AS (SELECT max(id) AS m FROM sale) INSERT INTO sale (id, n) SELECT m + 1, 2 FROM c", n: 1, look: "SELECT count(*) FROM sale", want: `[[4]]`},
	{sql: "UPDATE item SET price = price * 2, name = 'pens' WHERE id = 1", n: 1, look: "SELECT price, name FROM item WHERE id = 1", want: `[["3.00","pens"]]`},
	{sql: "UPDATE sale AS s SET n = i.id + s.n FROM item i JOIN item o ON o.id = i.id WHERE s.item_id = i.id AND s.n > $1 RETURNING s.id, s.n", params: []any{int64(15)},
		rows: `[[2,21]]`, n: 1, look: "SELECT n FROM sale WHERE id = 2", want: `[[21]]`},
	{sql: "UPDATE item SET price = (SELECT sum(n) FROM sale) WHERE name LIKE $1", params: []any{"fi%"}, n: 1, look: "SELECT price FROM item WHERE id = 5", want: `[["34.00"]]`},
	{sql: "DELETE FROM sale USING item i WHERE i.id = sale.item_id AND i.name = 'cap' RETURNING sale.*", rows: `[[13,3,1]]`, n: 1, look: "SELECT count(*) FROM sale", want: `[[3]]`},
	{sql: `CREATE TABLE note (id bigint PRIMARY KEY, "qualify" text NOT NULL DEFAULT 'x', made timestamptz DEFAULT now(), item_id bigint REFERENCES item (id), up bigint REFERENCES note (id),
		CONSTRAINT long CHECK (length("qualify") < 5), UNIQUE ("qualify", item_id))`, look: "SELECT count(*) FROM note", want: `[[0]]`},
	{sql: `INSERT INTO note (id, item_id) VALUES (1, 1) RETURNING "qualify", made IS NOT NULL AS then`, rows: `[["x",true]]`, n: 1, look: "SELECT count(*) FROM note", want: `[[1]]`},
	{sql: "CREATE TABLE IF NOT EXISTS note (id bigint)", look: "SELECT count(*) FROM note", want: `[[1]]`},
	{sql: "CREATE TABLE total AS SELECT item_id, sum(n) AS n FROM sale WHERE item_id IS NOT NULL GROUP BY item_id", look: "SELECT * FROM total", want: `[[1,31]]`},
	{sql: "CREATE UNIQUE INDEX by_item ON total (item_id, (n + 1))", look: "SELECT count(*) FROM total", want: `[[1]]`},
	{sql: "DROP INDEX by_item", look: "SELECT count(*) FROM total", want: `[[1]]`},
	{sql: "ALTER TABLE total ADD COLUMN seen text DEFAULT 'no'", look: "SELECT seen FROM total", want: `[["no"]]`},
	{sql: "ALTER TABLE total RENAME COLUMN seen TO known", look: "SELECT known FROM total", want: `[["no"]]`},
	{sql: "ALTER TABLE total DROP COLUMN known", look: "SELECT * FROM total", want: `[[1,31]]`},
	{sql: "TRUNCATE total", look: "SELECT count(*) FROM total", want: `[[0]]`},
	{sql: "DROP TABLE total", look: "SELECT 1", want: `[[1]]`},
	{sql: "DROP TABLE IF EXISTS total", look: "SELECT 1", want: `[[1]]`},
	{sql: "DROP VIEW cheap", look: "SELECT 1", want: `[[1]]`},
}

func tryWrites(t *testing.T, s *Source) {
	for _, w := range writes {
		rows, n, err := write(t.Context(), s, w.sql, w.params...)
		if err != nil {
			t.Fatalf("%s: %v", w.sql, described(err))
		}
		if strings.HasPrefix(w.sql, "TRUNCATE") {
			n = 0 // DuckDB tells how many rows there were, PostgreSQL does not
		}
		if rows != w.rows || n != w.n {
			t.Errorf("%s: %s, %d rows; want %s, %d", w.sql, rows, n, w.rows, w.n)
		}
		if got := look(t, s, w.look); got != w.want {
			t.Errorf("%s: then %s, want %s", w.sql, got, w.want)
		}
	}
	for _, gone := range []string{"SELECT * FROM total", "SELECT * FROM cheap"} {
		if _, err := s.Approve(t.Context(), gone, sqlguard.ReadOnly, everything); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", gone, err)
		}
	}
}

func described(err error) string {
	if err == nil {
		return "no error"
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Sprintf("%s %q %q (%v)", f.Code, f.Msg, f.Hint, f.Err)
	}
	return err.Error()
}

func TestWritesOnDuckDB(t *testing.T)       { tryWrites(t, writableDuck(t, nil)) }
func TestRealWritesOnPostgres(t *testing.T) { s, _ := writablePostgres(t); tryWrites(t, s) }

// failures are statements of which nothing stays.
var failures = map[string]struct {
	sql  string
	code fault.Code
	msg  string
}{
	"a key that is there":             {"INSERT INTO item VALUES (9, 'x', 1), (1, 'y', 1)", fault.Invalid, "constraint"},
	"NULL where there may be none":    {"INSERT INTO item VALUES (9, NULL, 1)", fault.Invalid, "constraint"},
	"a row that others refer to":      {"DELETE FROM item", fault.Invalid, "constraint"},
	"a reference to nothing":          {"INSERT INTO sale VALUES (9, 99, 1)", fault.Invalid, "constraint"},
	"a value that does not fit":       {"INSERT INTO item VALUES (9, 'x', 'y')", fault.Invalid, ""},
	"a row in the middle":             {"INSERT INTO item SELECT id + 100, name, CASE WHEN id = 2 THEN name::numeric ELSE 1 END FROM item", fault.Invalid, ""},
	"too few columns":                 {"INSERT INTO item (id, name) SELECT 9", fault.Invalid, ""},
	"a table that is there":           {"CREATE TABLE item (id bigint)", fault.Invalid, "already exists"},
	"an index that is not there":      {"DROP INDEX nothing", fault.Invalid, "does not exist"},
	"a parameter too many":            {"DELETE FROM sale WHERE id = $1 AND n = $2", fault.Invalid, "parameters"},
	"an error in RETURNING":           {"UPDATE sale SET n = 5 RETURNING CASE WHEN id = 2 THEN 'x'::text::integer END", fault.Invalid, ""},
	"a table that is not there":       {"UPDATE sales SET n = 1", fault.Refused, "there is no table"},
	"a table that is not granted":     {"INSERT INTO secret VALUES ('a')", fault.Refused, "there is no table"},
	"rows of one that is not granted": {"INSERT INTO item SELECT 9, k, 1 FROM secret", fault.Refused, "there is no table"},
	"the same in a CTE":               {"WITH c AS (SELECT k FROM secret) INSERT INTO item SELECT 9, k, 1 FROM c", fault.Refused, "there is no table"},
	"the same in RETURNING":           {"DELETE FROM sale RETURNING (SELECT max(k) FROM secret)", fault.Refused, "there is no table"},
	"a write within a query":          {"WITH x AS (DELETE FROM sale RETURNING *) INSERT INTO sale SELECT * FROM x", fault.Refused, ""},
	"a write within USING":            {"DELETE FROM item USING (DELETE FROM sale RETURNING *) x", fault.Refused, ""},
	"two statements":                  {"DELETE FROM sale; DELETE FROM item", fault.Refused, "2 statements"},
	"a comment between them":          {"DELETE FROM sale /* ; */ ; -- x\n DELETE FROM item", fault.Refused, "2 statements"},
	"the engine's own tables":         {"INSERT INTO pg_class VALUES (1)", fault.Refused, "there is no table"},
	"with their schema":               {"DELETE FROM pg_catalog.pg_class", fault.Refused, "there is no table"},
	"the standard's":                  {"DELETE FROM information_schema.tables", fault.Refused, "there is no table"},
	"another database":                {"DELETE FROM other.main.item", fault.Refused, "there is no table"},
	"a system's catalogue":            {"CREATE TABLE system.main.x (a integer)", fault.Refused, "nothing can be made"},
	"the temporary one":               {"CREATE TABLE temp.x (a integer)", fault.Refused, "nothing can be made"},
	"a temporary table":               {"CREATE TEMP TABLE x (a integer)", fault.Refused, "temporary"},
	"a view":                          {"UPDATE cheap SET name = 'x'", fault.Refused, "view"},
	"a new view":                      {"CREATE VIEW v AS SELECT * FROM item", fault.Refused, "CREATE VIEW"},
	"a function that reads a file":    {"UPDATE item SET name = read_text('/etc/passwd')", fault.Refused, "function"},
	"one of the server":               {"UPDATE item SET name = pg_read_file('/etc/passwd')", fault.Refused, "function"},
	"one in DEFAULT":                  {"CREATE TABLE x (a text DEFAULT getenv('HOME'))", fault.Refused, "function"},
	"a sequence in DEFAULT":           {"CREATE TABLE x (a bigint DEFAULT nextval('s'))", fault.Refused, "function"},
	"one in CHECK":                    {"CREATE TABLE x (a text CHECK (pg_sleep(1) IS NULL))", fault.Refused, "function"},
	"one in an index":                 {"CREATE INDEX x ON item ((pg_sleep(id)))", fault.Refused, "function"},
	"one in an index's WHERE":         {"CREATE INDEX x ON item (id) WHERE pg_sleep(1) IS NULL", fault.Refused, "function"},
	"one in ON CONFLICT":              {"INSERT INTO item VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET name = pg_read_file('x')", fault.Refused, "function"},
	"one in ADD COLUMN":               {"ALTER TABLE item ADD COLUMN x text DEFAULT getenv('HOME')", fault.Refused, "function"},
	"a query in CHECK":                {"CREATE TABLE x (a text CHECK (a IN (SELECT k FROM secret)))", fault.Refused, "queries"},
	"a query in DEFAULT":              {"CREATE TABLE x (a text DEFAULT (SELECT max(k) FROM secret))", fault.Refused, "queries"},
	"a reference to a secret table":   {"CREATE TABLE x (a text REFERENCES secret (k))", fault.Refused, "there is no table"},
	"a file as a table":               {`CREATE TABLE x AS SELECT * FROM "/etc/passwd"`, fault.Refused, ""},
	"a file's name for a table":       {`CREATE TABLE "x.parquet" (a integer)`, fault.Refused, "name"},
	"a call in column notation":       {"UPDATE item SET price = o.pg_sleep FROM sale o", fault.Refused, ""},
	"CASCADE":                         {"DROP TABLE item CASCADE", fault.Refused, "CASCADE"},
	"CASCADE of a TRUNCATE":           {"TRUNCATE item CASCADE", fault.Refused, "CASCADE"},
	"COPY":                            {"COPY item TO '/tmp/x'", fault.Refused, ""},
	"COPY to a program":               {"COPY item TO PROGRAM 'sh'", fault.Refused, ""},
	"PRAGMA":                          {"PRAGMA enable_profiling", fault.Refused, ""},
	"ATTACH":                          {"ATTACH '/tmp/x.db' AS x", fault.Refused, ""},
	"INSTALL":                         {"INSTALL httpfs", fault.Refused, ""},
	"a setting":                       {"SET threads = 1", fault.Refused, ""},
	"BEGIN":                           {"BEGIN", fault.Refused, "transaction of its own"},
	"COMMIT":                          {"COMMIT", fault.Refused, "transaction of its own"},
	"a function":                      {"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", fault.Refused, "CREATE FUNCTION"},
	"a macro":                         {"CREATE MACRO f() AS 1", fault.Refused, ""},
	"an extension":                    {"CREATE EXTENSION vector", fault.Refused, ""},
	"a role":                          {"CREATE ROLE x SUPERUSER", fault.Refused, ""},
	"a right":                         {"GRANT ALL ON item TO public", fault.Refused, ""},
	"a trigger":                       {"CREATE TRIGGER x BEFORE INSERT ON item EXECUTE FUNCTION f()", fault.Refused, ""},
	"a rule":                          {"CREATE RULE x AS ON INSERT TO item DO INSTEAD NOTHING", fault.Refused, ""},
	"a secret":                        {"CREATE SECRET x (TYPE s3)", fault.Refused, ""},
	"a schema":                        {"DROP SCHEMA public", fault.Refused, ""},
	"a table like a secret one":       {"CREATE TABLE x (LIKE secret)", fault.Refused, ""},
	"a child of one":                  {"CREATE TABLE x (a integer) INHERITS (item)", fault.Refused, ""},
	"an owner":                        {"ALTER TABLE item OWNER TO postgres", fault.Refused, ""},
	"a new name for a table":          {"ALTER TABLE item RENAME TO items", fault.Refused, ""},
	"row-level security":              {"ALTER TABLE item DISABLE ROW LEVEL SECURITY", fault.Refused, ""},
	"a trigger switched off":          {"ALTER TABLE item DISABLE TRIGGER ALL", fault.Refused, ""},
	"INSERT OR REPLACE":               {"INSERT OR REPLACE INTO item VALUES (1, 'x', 1)", fault.Refused, "syntax"},
	"BY NAME":                         {"INSERT INTO item BY NAME SELECT 9 AS id, 'x' AS name", fault.Refused, "syntax"},
	"FROM first":                      {"INSERT INTO item FROM item", fault.Refused, "syntax"},
	"a query":                         {"SELECT 1", fault.Refused, ""},
	"SELECT INTO":                     {"SELECT * INTO x FROM item", fault.Refused, ""},
	"EXPLAIN ANALYZE":                 {"EXPLAIN ANALYZE DELETE FROM sale", fault.Refused, ""},
	"PREPARE":                         {"PREPARE p AS DELETE FROM sale", fault.Refused, ""},
	"DO":                              {"DO $$ BEGIN DELETE FROM sale; END $$", fault.Refused, ""},
	"a million characters":            {"UPDATE item SET name = repeat('x', 1000000)", fault.Refused, "repeat"},
	"rows locked":                     {"INSERT INTO item SELECT * FROM item FOR UPDATE", fault.Refused, ""},
	"a zero byte":                     {"DELETE FROM sale\x00; DELETE FROM item", fault.Refused, ""},
	"a space that is none":            {"DELETE\u00a0FROM sale", fault.Refused, ""},
	"nothing":                         {" ", fault.Refused, ""},
	"too much":                        {"DELETE FROM sale WHERE id IN (" + strings.Repeat("1,", 17000) + "1)", fault.Refused, ""},
	"too deep":                        {"DELETE FROM sale WHERE id = " + strings.Repeat("(", 300) + "1" + strings.Repeat("+1)", 300), fault.Refused, ""},
}

func tryFailures(t *testing.T, s *Source) {
	state := func() string {
		return look(t, s, "SELECT * FROM item ORDER BY id") + look(t, s, "SELECT * FROM sale ORDER BY id") + look(t, s, "SELECT * FROM secret")
	}
	tables := func() string {
		cat, err := s.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(cat.Tables)
	}
	rows, all := state(), tables()
	for name, f := range failures {
		_, _, err := write(t.Context(), s, f.sql)
		if fault.CodeOf(err) != f.code || err == nil || !strings.Contains(err.Error(), f.msg) {
			t.Errorf("%s: %v, want %s %s", name, err, f.code, f.msg)
			continue
		}
		if strings.Contains(described(err), "xyzzy") {
			t.Errorf("%s: %v", name, described(err))
		}
		// The same may not run as anything else either.
		for _, p := range []sqlguard.Profile{sqlguard.ReadOnly, sqlguard.RestrictedRead, sqlguard.CopySource} {
			if _, err := s.Approve(t.Context(), f.sql, p, notSecret); err == nil && name != "a query" {
				t.Errorf("%s passes the profile %d", name, p)
			}
		}
	}
	if got := state(); got != rows {
		t.Errorf("rows: %s, then %s", rows, got)
	}
	if got := tables(); got != all {
		t.Errorf("tables: %s, then %s", all, got)
	}
}

func TestWhatMayNotBeWrittenOnDuckDB(t *testing.T) { tryFailures(t, writableDuck(t, nil)) }
func TestRealWhatMayNotBeWrittenOnPostgres(t *testing.T) {
	s, _ := writablePostgres(t)
	tryFailures(t, s)
}

// tryCancels: what its caller gives up leaves nothing, however far it came.
func tryCancels(t *testing.T, s *Source, series string) {
	before := look(t, s, "SELECT count(*) FROM sale")
	a, err := s.Approve(t.Context(), "INSERT INTO sale SELECT g + 1000, 1, 1 FROM "+series+" AS t(g) RETURNING id", sqlguard.Write, notSecret)
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} { // the client leaves when its first rows are made, or the last ones
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err = s.Write(ctx, a, nil, func(r array.RecordReader) error {
			if !r.Next() {
				return errors.New("no rows")
			}
			for all && r.Next() {
			}
			cancel()
			return nil
		})
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("cancelled, all rows read %t: %v", all, err)
		}
	}
	mine := errors.New("the rows were too many")
	if _, err := s.Write(t.Context(), a, nil, func(array.RecordReader) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("whose rows nobody took: %v", err)
	}
	long, err := s.Approve(t.Context(), "INSERT INTO sale SELECT g, 1, 1 FROM "+series+" AS t(g), "+series+" AS u(h), "+series+" AS v(i) WHERE g + h + i < 0", sqlguard.Write, notSecret)
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithTimeout(t.Context(), 300_000_000)
	defer leave()
	if _, err := s.Write(gone, long, nil, nil); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("left in the middle: %v", err)
	}
	if after := look(t, s, "SELECT count(*) FROM sale"); after != before {
		t.Errorf("%s rows, then %s", before, after)
	}
	if _, n, err := write(t.Context(), s, "DELETE FROM sale WHERE id = 2"); err != nil || n != 1 {
		t.Errorf("the next one: %d, %v", n, err)
	}
}

func TestACancelledWriteOnDuckDB(t *testing.T) { tryCancels(t, writableDuck(t, nil), "range(20000)") }
func TestRealACancelledWriteOnPostgres(t *testing.T) {
	s, db := writablePostgres(t)
	tryCancels(t, s, "generate_series(1, 20000)")
	within(t, func() bool { // nothing of it goes on at the server
		var n int
		err := db.Connect(db.URL).QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()").Scan(&n)
		return err == nil && n == 0
	})
}

// TestWhatIsNotWritable: neither kind writes unless the settings say so, whatever the file or the role could do.
func TestWhatIsNotWritable(t *testing.T) {
	s := open(t, shelf)
	if _, _, err := write(t.Context(), s, "DELETE FROM sale"); s.Writable() || fault.CodeOf(err) != fault.Refused || !strings.Contains(described(err), "writable: true") {
		t.Errorf("%v", err)
	}
	if _, err := s.Approve(t.Context(), "DELETE FROM sale", sqlguard.Write, notSecret); fault.CodeOf(err) != fault.Refused {
		t.Errorf("approved: %v", err)
	}
	w := writableDuck(t, nil)
	a, err := w.Approve(t.Context(), "DELETE FROM sale", sqlguard.Write, notSecret)
	if err != nil {
		t.Fatal(err)
	}
	take := func(array.RecordReader) error { return nil }
	for name, run := range map[string]func() error{
		"a write that is run":     func() error { _, err := w.Run(t.Context(), a); return err },
		"a query that is written": func() error { _, err := w.Write(t.Context(), approve(t, w, "SELECT 1"), nil, take); return err },
		"of another database":     func() error { _, err := s.Write(t.Context(), a, nil, take); return err },
		"the zero Approved":       func() error { _, err := w.Write(t.Context(), sqlguard.Approved{}, nil, take); return err },
	} {
		if err := run(); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := look(t, w, "SELECT count(*) FROM sale"); got != "[[2]]" {
		t.Errorf("%s rows", got)
	}
}

func TestRealWhatIsNotWritableOnPostgres(t *testing.T) {
	_, db := writablePostgres(t)
	s, err := Open(t.Context(), Config{Name: "shop", Kind: KindPostgres, URL: db.URL, Schemas: []string{"public"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := write(t.Context(), s, "DELETE FROM sale"); fault.CodeOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
}

// tryTogether: many writers change one row, with others reading; each either counts or is a Conflict that says so.
func tryTogether(t *testing.T, s *Source) {
	const writers, times = 4, 15
	var done, conflicts int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range times {
				_, _, err := write(t.Context(), s, "UPDATE sale SET n = n + 1 WHERE id = 1")
				mu.Lock()
				switch {
				case err == nil:
					done++
				case fault.CodeOf(err) == fault.Conflict && strings.Contains(described(err), "again"):
					conflicts++
				default:
					t.Errorf("%v", described(err))
				}
				mu.Unlock()
			}
		})
		all.Go(func() {
			for range times {
				if _, _, err := write(t.Context(), s, "SELECT 1"); fault.CodeOf(err) != fault.Refused {
					t.Errorf("%v", err)
				}
				look(t, s, "SELECT sum(n) FROM sale")
			}
		})
	}
	all.Wait()
	if got, want := look(t, s, "SELECT n FROM sale WHERE id = 1"), fmt.Sprintf("[[%d]]", 10+done); got != want || done+conflicts != writers*times || done == 0 {
		t.Errorf("%s, want %s; %d done, %d conflicts", got, want, done, conflicts)
	}
}

func TestWritersMeetOnDuckDB(t *testing.T)       { tryTogether(t, writableDuck(t, nil)) }
func TestRealWritersMeetOnPostgres(t *testing.T) { s, _ := writablePostgres(t); tryTogether(t, s) }

// TestTheCatalogueIsNewAfterAWrite: a statement that passed before is decided on anew, and only then.
func TestTheCatalogueIsNewAfterAWrite(t *testing.T) {
	s := writableDuck(t, nil)
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	approve(t, s, "SELECT * FROM sale")
	if _, _, err := write(t.Context(), s, "DELETE FROM sale WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Catalog(t.Context()); again != cat {
		t.Error("rows changed, and the catalogue with them")
	}
	if _, _, err := write(t.Context(), s, "ALTER TABLE sale ADD COLUMN x integer"); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Catalog(t.Context()); again == cat {
		t.Error("the catalogue is an old one")
	}
	if got := look(t, s, "SELECT * FROM sale"); got != "[[2,1,20,null]]" {
		t.Errorf("%s", got)
	}
}

// TestAWriteIsThereAfterAReopen closes the file and opens it READ_ONLY.
func TestAWriteIsThereAfterAReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.duckdb")
	if err := CreateFile(t.Context(), path, shelf); err != nil {
		t.Fatal(err)
	}
	for i, writable := range []bool{true, false} {
		s, err := Open(t.Context(), Config{Name: "shop", Path: path, Writable: writable, Threads: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, _, err := write(t.Context(), s, "INSERT INTO item SELECT g + 10, 'x', 1 FROM generate_series(1, 300000) AS t(g)"); err != nil {
				t.Error(described(err)) // more than the write-ahead log holds before a checkpoint
			}
		}
		if got := look(t, s, "SELECT count(*) FROM item"); got != "[[300002]]" {
			t.Errorf("%s rows", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadersAndWritersDoNotWait: a query that is being read sees what was when it began, and holds up no write, however
// much that writes.
func TestReadersAndWritersDoNotWait(t *testing.T) {
	s := writableDuck(t, nil)
	r, err := s.Run(t.Context(), approve(t, s, "SELECT s.id FROM sale s, range(1000000) t(g)"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	for i := range 4 {
		if _, n, err := write(t.Context(), s, fmt.Sprintf("INSERT INTO sale SELECT g + 10 + %d, 1, 1 FROM range(200000) AS t(g)", i*200000)); err != nil || n != 200000 {
			t.Fatalf("%d, %v", n, described(err))
		}
	}
	n := r.RecordBatch().NumRows()
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	if err := r.Err(); err != nil || n != 2000000 {
		t.Errorf("the reader: %d rows, %v", n, err)
	}
	if got := look(t, s, "SELECT count(*) FROM sale"); got != "[[800002]]" {
		t.Errorf("%s rows", got)
	}
}
