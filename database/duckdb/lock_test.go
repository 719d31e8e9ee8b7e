package duckdb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/database"
	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/sqlguard"
)

// escapes are statements that leave the database, change it or read what is not a table of it.
func escapes(dir string) []string {
	file := filepath.Join(dir, "secret.csv")
	q := duckdb.QuoteText(file)
	return []string{
		"SELECT * FROM " + duckdb.QuoteName(file), "SELECT * FROM " + q, "SELECT * FROM read_csv(" + q + ")", "SELECT * FROM read_text(" + q + ")",
		"SELECT * FROM read_blob(" + q + ")", "SELECT * FROM read_json_auto(" + q + ")", "SELECT * FROM read_parquet(" + q + ")",
		"SELECT * FROM parquet_metadata(" + q + ")", "SELECT * FROM sniff_csv(" + q + ")", "SELECT * FROM glob(" + duckdb.QuoteText(dir+"/*") + ")",
		"SELECT * FROM read_duckdb(" + q + ")", "COPY (SELECT 1) TO " + duckdb.QuoteText(filepath.Join(dir, "out.csv")), "COPY t FROM " + q,
		"EXPORT DATABASE " + duckdb.QuoteText(filepath.Join(dir, "out")), "ATTACH " + duckdb.QuoteText(filepath.Join(dir, "other.duckdb")) + " AS other",
		"LOAD httpfs", "INSTALL httpfs", "INSTALL spatial FROM community", "LOAD " + duckdb.QuoteText(filepath.Join(dir, "x.duckdb_extension")),
		"SET enable_external_access = true", "SET memory_limit = '100GB'", "SET threads = 64", "RESET memory_limit", "SET TimeZone = 'Asia/Tokyo'",
		"SET allowed_directories = ['/']", "SET autoload_known_extensions = true", "SET temp_directory = " + duckdb.QuoteText(dir),
		"SET profiling_output = " + duckdb.QuoteText(filepath.Join(dir, "profile.json")), "CREATE PERSISTENT SECRET s (TYPE s3)", "SET lock_configuration = false",
		"SELECT * FROM 's3://bucket/x.parquet'", "SELECT * FROM read_csv('https://example.com/x.csv')",
		"INSERT INTO t VALUES (2)", "UPDATE t SET a = 2", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE u (a INT)", "ALTER TABLE t ADD COLUMN b INT",
		"CREATE MACRO m(x) AS x", "CREATE SCHEMA s", "CREATE SEQUENCE q", "CREATE VIEW v AS SELECT 1", "TRUNCATE t",
		"MERGE INTO t USING (SELECT 2 AS a) u ON t.a = u.a WHEN NOT MATCHED THEN INSERT VALUES (2)", "COMMENT ON TABLE t IS 'x'",
	}
}

// gateOnly are statements that a locked-down engine runs: only the gate stands before them.
var gateOnly = []string{
	"SELECT * FROM query('SELECT 1')", "SELECT * FROM query_table('t')", "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
	"SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_tables()", "SELECT * FROM pragma_storage_info('t')", "SELECT * FROM sqlite_master",
	"SELECT * FROM information_schema.tables", "SELECT * FROM pg_catalog.pg_tables", "SELECT * FROM pg_tables", "SELECT current_setting('threads')",
	"SELECT json_serialize_plan('SELECT * FROM t')", "SELECT write_log('x')", "SELECT * FROM enable_logging()", "SELECT * FROM checkpoint()",
	"SELECT current_database()", "SELECT current_schemas(true)", "SELECT current_query()", "SELECT txid_current()", "SELECT setseed(0.5)",
	"SELECT * FROM duckdb_columns", "SHOW TABLES", "SHOW ALL TABLES", "SHOW DATABASES", "PRAGMA database_list", "CALL pragma_version()", "EXPLAIN ANALYZE SELECT 1",
	"SET VARIABLE x = 1", "BEGIN", "COMMIT", "ROLLBACK", "ATTACH ':memory:' AS m", "PREPARE p AS SELECT 1", "CREATE TEMP TABLE u (a INT)",
	"SELECT getvariable('x')", "SELECT * FROM range(3), read_text('x')", "SELECT (SELECT content FROM read_text('x'))",
	"SELECT 1 ORDER BY (SELECT count(*) FROM duckdb_tables())", "SELECT 1 LIMIT (SELECT count(*) FROM duckdb_tables())",
	"SELECT sum(1) FILTER (WHERE current_setting('threads') = '1')", "SELECT sum(1) OVER (ORDER BY current_setting('threads'))",
	"SELECT CASE WHEN true THEN current_setting('threads') END", "SELECT [current_setting('threads')]", "SELECT {'a': current_setting('threads')}",
	"SELECT list_transform([1], x -> current_setting('threads'))", "SELECT * REPLACE (current_setting('threads') AS a) FROM t", "VALUES (current_setting('threads'))",
	"SELECT COLUMNS(c -> current_setting('threads') = c) FROM t", "SELECT 1 FROM t GROUP BY current_setting('threads')", "SELECT 1 FROM t JOIN t u ON current_setting('threads') = '1'",
	"SELECT 1 FROM t QUALIFY row_number() OVER (ORDER BY current_setting('threads')) = 1", "WITH x AS (SELECT current_setting('threads')) SELECT 1",
	"SELECT \"CURRENT_SETTING\"('threads')", "SELECT main.current_setting('threads')", "SELECT system.main.current_setting('threads')", "SELECT 'threads'.current_setting()",
	"SELECT user", "SELECT current_user", "SELECT session_user", "SELECT current_schema", "SELECT current_catalog", "SELECT CURRENT_ROLE",
	"SELECT * FROM t AT (VERSION => 1)", "SELECT NULL::t", "SELECT NULL::main.t", "SELECT 1 FROM range(3) AS r(i) WHERE i IN (SELECT a FROM nope)",
	"PIVOT t ON a USING count(*)", "FROM t SELECT read_text('x')", "SELECT unnest(read_text('x'))", "SELECT 1; SELECT 2", "SELECT pg_sleep(1)", "SELECT sleep_ms(1)",
	"PRAGMA enable_profiling", "CHECKPOINT", "VACUUM t",
}

func TestEscapesAreRefusedByEveryLayer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.csv"), []byte("a,b\n1,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
	for _, sql := range append(escapes(dir), gateOnly...) {
		for _, p := range []sqlguard.Profile{sqlguard.ReadOnly, sqlguard.CopySource} {
			a, err := s.Approve(t.Context(), sql, p, everything)
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("the gate says %v to %s: %s", err, sql, a.SQL())
			}
		}
	}
	// The engine must hold alone too, without gate and read-only transaction.
	for _, sql := range escapes(dir) {
		if err := s.engine.Exec(sql); err == nil {
			t.Errorf("the engine runs %s", sql)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files where one was: %v", len(left), err)
	}
}

// TestReadOnlyTransactionHoldsAlone writes on a writable source past the gate.
func TestReadOnlyTransactionHoldsAlone(t *testing.T) {
	s := openAs(t, database.Config{Name: "w", Path: filepath.Join(t.TempDir(), "w.duckdb"), Writable: true, Threads: 1}, nil, "CREATE TABLE t (a INTEGER)")
	for _, sql := range []string{"INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE u (a INTEGER)"} {
		r, err := s.engine.Raw(t.Context(), sql, nil)
		if err == nil {
			t.Errorf("%s runs", sql)
			r.Release()
		}
	}
	if _, err := s.Approve(t.Context(), "SELECT * FROM u", sqlguard.ReadOnly, everything); err == nil {
		t.Error("u was made")
	}
}

func TestRunRefusesWhatWasNotApprovedForIt(t *testing.T) {
	s := open(t, "CREATE TABLE t (a INTEGER)")
	other, _ := makeLake(t)
	foreign, err := other.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]sqlguard.Approved{"the zero Approved": {}, "another database's": foreign} {
		if _, err := s.Run(t.Context(), a); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretTableLooksMissing compares the refusal of a table without a grant with that of one that does not exist.
func TestSecretTableLooksMissing(t *testing.T) {
	s := open(t, "CREATE TABLE salaries (a INTEGER); CREATE TABLE orders (a INTEGER, amount INTEGER)")
	may := func(r sqlguard.Relation) bool { return r.Name == "orders" }
	say := func(sql string) fault.Error {
		_, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, may)
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Fatalf("%s: %v", sql, err)
		}
		return *f
	}
	secret, missing := say("SELECT * FROM salaries"), say("SELECT * FROM salariez")
	secret.Msg = strings.ReplaceAll(secret.Msg, "salaries", "salariez")
	if secret != missing {
		t.Errorf("%+v and %+v differ", secret, missing)
	}
	if f := say("SELECT * FROM order"); !strings.Contains(f.Msg, "order") && f.Kind != "syntax" {
		t.Errorf("%+v", f)
	}
	if f := say("SELECT * FROM orderz"); f.Hint != "did you mean orders?" || f.Position != 15 {
		t.Errorf("%+v", f)
	}
	if f := say("SELECT amunt FROM orders"); f.Hint != "did you mean amount?" || f.Position != 8 {
		t.Errorf("%+v", f)
	}
	if f := say("SELECT salary FROM salarie"); strings.Contains(f.Hint, "salaries") {
		t.Errorf("the hint names a secret table: %+v", f)
	}
}

// TestRedefinedBuiltinStopsEverything: a macro of the source would run in place of the function that was checked.
func TestRedefinedBuiltinStopsEverything(t *testing.T) {
	s := open(t, "CREATE TABLE secret (a INTEGER); CREATE MACRO lower(x) AS (SELECT max(a) FROM secret)")
	if _, err := s.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything); fault.CodeOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	s = open(t, "CREATE TABLE secret (a INTEGER); CREATE MACRO peek() AS (SELECT max(a) FROM secret)")
	if _, err := s.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything); err != nil {
		t.Error(err)
	}
	if _, err := s.Approve(t.Context(), "SELECT peek()", sqlguard.ReadOnly, everything); fault.CodeOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
}

// TestViewHidesItsValues: an error behind a view must not show what the view leaves out.
func TestViewHidesItsValues(t *testing.T) {
	s := open(t, `CREATE TABLE people (name VARCHAR, pay VARCHAR); INSERT INTO people VALUES ('a', '1'), ('b', 'hidden-17');
		CREATE VIEW poor AS SELECT * FROM people WHERE name = 'a'; CREATE VIEW everybody AS SELECT * FROM people`)
	for table, shown := range map[string]bool{"people": true, "poor": false, "everybody": false} {
		a, err := s.Approve(t.Context(), "SELECT sum(CAST(pay AS INTEGER)) FROM "+table, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context(), a)
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Release()
		}
		var f *fault.Error
		if errors.As(err, &f) && strings.Contains(f.Msg, "hidden-17") != shown {
			t.Errorf("%s: %s", table, f.Msg)
		}
		if err == nil && table != "poor" {
			t.Errorf("the cast of %s does not fail", table)
		}
	}
}

func TestCatalog(t *testing.T) {
	s := open(t, `CREATE SCHEMA hr; CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, paid DECIMAL(18,2));
		CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id)); CREATE VIEW rich AS SELECT name, paid FROM customers WHERE paid > 100;
		COMMENT ON TABLE customers IS 'who buys'; COMMENT ON COLUMN customers.paid IS 'in EUR'; CREATE TABLE hr.staff (id INTEGER)`)
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range cat.Tables {
		names = append(names, table.Schema+"."+table.Name)
	}
	if want := []string{"hr.staff", "main.customers", "main.orders", "main.rich"}; !slices.Equal(names, want) {
		t.Errorf("tables %v, want %v", names, want)
	}
	customers, orders, rich := cat.Tables[1], cat.Tables[2], cat.Tables[3]
	if customers.Comment != "who buys" || customers.Columns[2] != (sqlguard.Column{Name: "paid", Type: "DECIMAL(18,2)", Nullable: true, Comment: "in EUR"}) ||
		customers.Columns[1].Nullable || !slices.Equal(customers.PrimaryKey, []string{"id"}) {
		t.Errorf("%+v", customers)
	}
	if len(orders.Foreign) != 1 || orders.Foreign[0].References.Name != "customers" || orders.Foreign[0].Columns[0] != "customer_id" || orders.Foreign[0].Referenced[0] != "id" {
		t.Errorf("%+v", orders)
	}
	if !rich.View || len(rich.Columns) != 2 || rich.Columns[1].Type != "DECIMAL(18,2)" {
		t.Errorf("%+v", rich)
	}
	if cat.DefaultSchema != "main" || cat.Engine != "source" {
		t.Errorf("%q %q", cat.DefaultSchema, cat.Engine)
	}
}

func TestCreateFileRefusesAnExistingOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.duckdb")
	// Without a checkpoint at the end there is a log beside the file.
	if err := duckdb.CreateFile(t.Context(), path, "CREATE TABLE t (a INTEGER); PRAGMA disable_checkpoint_on_shutdown", "nonsense"); err == nil {
		t.Error("a broken script passes")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("a broken script leaves files: %v, %v", left, err)
	}
	if err := duckdb.CreateFile(t.Context(), path, "CREATE TABLE t (a INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := duckdb.CreateFile(t.Context(), path, "DROP TABLE t"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("an existing file: %v", err)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.duckdb")
	if err := duckdb.CreateFile(t.Context(), path, "CREATE TABLE t (a INTEGER)"); err != nil {
		t.Fatal(err)
	}
	cfg := database.Config{Name: "a", Path: path}
	a, err := database.Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := database.Open(t.Context(), database.Config{Name: "b", Path: path}, nil)
	if err != nil {
		t.Fatal("the same file in the same way:", err)
	}
	if _, err := database.Open(t.Context(), database.Config{Name: "c", Path: path, Writable: true}, nil); fault.CodeOf(err) != fault.Conflict {
		t.Error("the same file in another way:", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error("closed twice:", err)
	}
	if _, err := b.Approve(context.Background(), "SELECT * FROM t", sqlguard.ReadOnly, everything); err != nil {
		t.Error("the other source of the file:", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]database.Config{"no name": {Path: path}, "no path": {Name: "x"}, "no file": {Name: "x", Path: path + "x"}, "PostgreSQL": {Name: "x", Kind: "postgres", Path: path}} {
		if _, err := database.Open(t.Context(), c, nil); err == nil {
			t.Errorf("%s opens", name)
		}
	}
}

// TestNamesOfFiles opens files whose names become odd names of catalogues.
func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{"main", "memory", "shop-1", "select", "a.b", "with space"} {
		s := openAs(t, database.Config{Name: name, Path: filepath.Join(t.TempDir(), name+".duckdb"), Threads: 1}, nil,
			"CREATE SCHEMA hr; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (7); CREATE TABLE hr.t AS SELECT 8 AS a")
		for sql, want := range map[string]string{"SELECT a FROM t": "[7]", "SELECT a FROM main.t": "[7]", "SELECT a FROM hr.t": "[8]"} {
			if got := run(t, s, sql); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s gives %v", name, sql, got)
			}
		}
	}
}
