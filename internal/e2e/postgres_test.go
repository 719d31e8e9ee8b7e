package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/pgtest"
)

// erp has a value of every kind in measures, a row of nothing but NULL, and data that some may not read: pay is in a schema
// that the settings do not name, margins in one that they do.
const erp = `
CREATE TABLE measures (id bigint PRIMARY KEY, big bigint, price numeric(18,2), free numeric, sent timestamptz, local timestamp, day date,
  key uuid, doc jsonb, tags text[], counts int[], ok boolean, f double precision, raw bytea);
INSERT INTO measures VALUES (1, 9007199254740993, -1234567.89, 0.000000000000000001, '2026-03-01 12:00:00.123456+02', '2026-03-01 12:00:00', '2026-02-28',
  '01234567-89ab-cdef-0123-456789abcdef', '{"b": [1, null], "a": "ü"}', '{"a,b",NULL,""}', '{1,NULL,3}', true, 0.1, '\x00ff');
INSERT INTO measures (id) VALUES (2);
CREATE TABLE customers (customer_id int PRIMARY KEY, name text NOT NULL, country text);
INSERT INTO customers SELECT i, 'customer ' || i, CASE WHEN i % 3 = 0 THEN 'Norway' ELSE 'Chile' END FROM generate_series(1, 47) i;
CREATE SCHEMA sales;
CREATE TABLE sales.orders (order_id int PRIMARY KEY, customer_id int REFERENCES customers, total numeric(10,2), ordered_at timestamptz);
INSERT INTO sales.orders SELECT i, 1 + i % 47, i * 1.25, '2026-01-01Z'::timestamptz + i * interval '1 hour' FROM generate_series(1, 500) i;
CREATE TABLE sales.margins (order_id int, margin numeric(5,2)); INSERT INTO sales.margins VALUES (1, 66.60);
CREATE SCHEMA hr; CREATE TABLE hr.pay (name text, salary int); INSERT INTO hr.pay VALUES ('ann', 424242);`

// erpServer is a server with a DuckDB database, shop, and two on PostgreSQL: erp, through a proxy, as a role that the printed
// script made, and gone, whose server is not there.
type erpServer struct {
	*server
	db    *pgtest.DB
	proxy *proxy
	role  string
}

func startERP(t *testing.T) *erpServer {
	t.Helper()
	// The role goes after the database, so what is to be done last is noted first.
	role := "sluice_e2e_" + fmt.Sprint(os.Getpid())
	t.Cleanup(func() { psql(t, pgtest.URL(t), "DROP ROLE IF EXISTS "+role) })
	s := &erpServer{db: pgtest.New(t, erp), role: role}
	s.proxy = startProxy(t, s.db.URL)
	home, bin := t.TempDir(), os.Getenv("SLUICE_TEST_BIN")
	settings := fmt.Sprintf(`listen: 127.0.0.1:0
home: %[1]s
databases:
  shop: {kind: duckdb, path: shop.duckdb}
  erp: {kind: postgres, url: "${ERP_URL}", schemas: [public, sales]}
  gone: {kind: postgres, url: "postgres://nobody:s3cret-of-gone@127.0.0.1:1/gone"}
lake: {connections: {local: {url: 'file://%[1]s/lake', write_allowlist: [exports/]}}}
agent: {timeout: 5m} # machines are shared
`, home)
	const shop = "CREATE TABLE customers (customer_id INTEGER, name VARCHAR); INSERT INTO customers VALUES (1, 'of the shop');"
	for name, text := range map[string]string{"sluice.yaml": settings, "shop.sql": shop} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := "ERP_URL=" + s.proxy.url(t, role, "s3cret-of-erp")
	sluice := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sluice"), args...)
		cmd.Env = append(environment(), url)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("sluice %v: %v: %s", args, err, errs.String())
		}
		return string(out)
	}
	sluice("load", filepath.Join(home, "shop.duckdb"), filepath.Join(home, "shop.sql"))
	script := sluice("doctor", "--print-role-sql", "--config", filepath.Join(home, "sluice.yaml"), "--database", "erp", "--role", role)
	if said := psql(t, s.db.URL, script, "-v", "password=s3cret-of-erp"); said != "" {
		t.Errorf("the role's script says %s", said)
	}
	var err error
	if s.server, err = launch(home, url, "OLLAMA_MODELS="+filepath.Join(sharedHome, "models")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server did not stop cleanly: %v", err)
		}
		if log := s.logText(); strings.Contains(log, "s3cret") || strings.Contains(log, "panic") {
			t.Errorf("the log has a password, or tells of a bug:\n%s", log)
		}
	})
	return s
}

// psql runs a script as somebody would by hand, and gives what it printed.
func psql(t *testing.T, url, script string, args ...string) string {
	t.Helper()
	bin, err := need("SLUICE_TEST_PGBIN")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, "psql"), append([]string{"-X", "-q", "-At", url}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// answer is what a statement was answered with.
type answer struct {
	status      int
	retry, kind string // Retry-After, Content-Type
	body        string
}

// post sends a statement. accept is the form of the answer; "" is JSON.
func (s *server) post(ctx context.Context, key, database, sql, accept string) (answer, error) {
	body, err := json.Marshal(object{"database": database, "sql": sql})
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/query/execute", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), resp.Header.Get("Content-Type"), string(text)}, err
}

// execute is post for a test that goes no further without an answer.
func (s *server) execute(t *testing.T, key, database, sql, accept string) (status int, body string) {
	t.Helper()
	a, err := s.post(t.Context(), key, database, sql, accept)
	if err != nil || !strings.HasPrefix(a.kind, accept) {
		t.Fatalf("%s: %v, as %s", sql, err, a.kind)
	}
	return a.status, a.body
}

// rows gives the rows of a query that must be answered, as compact JSON.
func (s *server) rows(t *testing.T, key, database, sql string) string {
	t.Helper()
	status, text := s.execute(t, key, database, sql, "")
	var got struct {
		Data struct{ Rows json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
		t.Fatalf("%s: %d %s", sql, status, text)
	}
	return string(got.Data.Rows)
}

// python runs a script of the test's with an independent Python, and gives what it printed.
func python(t *testing.T, script, in string, args ...string) string {
	t.Helper()
	program, err := need("SLUICE_TEST_PYTHON")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-c", script}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("python: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// toPlain makes of a row of pyarrow or DuckDB what psql says of it.
const toPlain = `
import datetime, decimal, json, uuid
def plain(v):
    if isinstance(v, bytes): return str(uuid.UUID(bytes=v)) if len(v) == 16 else "\\x" + v.hex()
    if isinstance(v, datetime.datetime) and v.tzinfo: return v.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(v, (datetime.date, uuid.UUID)): return str(v)
    if isinstance(v, decimal.Decimal): return format(v, "f")
    return v
def show(rows): print(json.dumps([[plain(v) for v in r] for r in rows], ensure_ascii=False, separators=(",", ":")))
`

const plainRows = `[[1,9007199254740993,"-1234567.89","0.000000000000000001","2026-03-01T10:00:00.123456+00:00","2026-03-01 12:00:00","2026-02-28","01234567-89ab-cdef-0123-456789abcdef",` +
	`"{\"a\": \"ü\", \"b\": [1, null]}",["a,b",null,""],[1,null,3],true,0.1,"\\x00ff"],[2,null,null,null,null,null,null,null,null,null,null,null,null,null]]`

// A column has one type and one value, however it is asked for.
func TestRealPostgresEveryForm(t *testing.T) {
	s := startERP(t)
	const sql = "SELECT * FROM measures ORDER BY id"
	types := "BIGINT BIGINT DECIMAL(18,2) DECIMAL(38,18) TIMESTAMPTZ TIMESTAMP DATE UUID JSON TEXT[] INTEGER[] BOOLEAN DOUBLE BLOB"
	values := `1,"9007199254740993","-1234567.89","0.000000000000000001","2026-03-01T10:00:00.123456Z","2026-03-01T12:00:00Z","2026-02-28","01234567-89ab-cdef-0123-456789abcdef",` +
		`{"a":"ü","b":[1,null]},["a,b",null,""],[1,null,3],true,0.1,"AP8="`
	nulls := "2" + strings.Repeat(",null", 13)

	var r struct {
		Columns []struct{ Name, Type string }
		Rows    json.RawMessage
	}
	s.data(t, adminKey, "POST", "/v1/query/execute", object{"database": "erp", "sql": sql}, &r)
	var got []string
	for _, c := range r.Columns {
		got = append(got, c.Type)
	}
	if strings.Join(got, " ") != types {
		t.Errorf("types %s, want %s", got, types)
	}
	if want := "[[" + values + "],[" + nulls + "]]"; string(r.Rows) != want {
		t.Errorf("JSON %s\nwant %s", r.Rows, want)
	}

	_, text := s.execute(t, adminKey, "erp", sql, "application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var first map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || first["price"] != "-1234567.89" || fmt.Sprint(first["tags"]) != "[a,b <nil> ]" || first["big"] != "9007199254740993" {
		t.Errorf("NDJSON %v: %s", err, text)
	}

	_, text = s.execute(t, adminKey, "erp", sql, "text/csv")
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(table) != 3 || table[1][3] != "0.000000000000000001" || table[1][4] != "2026-03-01T10:00:00.123456Z" || table[1][8] != `{"a":"ü","b":[1,null]}` || table[2][2] != "" {
		t.Errorf("CSV %v: %q", err, table)
	}

	_, text = s.execute(t, adminKey, "erp", sql, "application/vnd.apache.arrow.stream")
	said := python(t, toPlain+`
import pyarrow.ipc, sys
t = pyarrow.ipc.open_stream(sys.stdin.buffer).read_all()
print(" ".join(str(f.type).replace(" ", "") for f in t.schema))
show(zip(*[[v for v in c.to_pylist()] for c in t.columns]))`, text)
	types, rows, _ := strings.Cut(said, "\n")
	if rows != plainRows || !strings.HasPrefix(types, "int64 int64 decimal128(18,2) decimal128(38,18) timestamp[us,tz=UTC] timestamp[us] date32[day] ") {
		t.Errorf("Arrow %s\nwant  %s\n%s", rows, plainRows, types)
	}

	// Copied, the values are read back from the files by others, and by a question to another database.
	copied := "COPY (SELECT * FROM measures ORDER BY id) TO LAKE 'exports/measures' WITH (CONNECTION = 'local')"
	s.data(t, adminKey, "POST", "/v1/lake/copy", object{"database": "erp", "sql": copied}, &struct{}{})
	files, err := filepath.Glob(filepath.Join(s.home, "lake", "exports", "measures", "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for reader, script := range map[string]string{
		"pyarrow": "import pyarrow.parquet as pq\nt = pq.read_table(sys.argv[1])\nshow(zip(*[c.to_pylist() for c in t.columns]))",
		"duckdb":  "import duckdb\nshow(duckdb.sql(f\"SELECT * REPLACE (replace((sent AT TIME ZONE 'UTC')::VARCHAR, ' ', 'T') || '+00:00' AS sent) FROM '{sys.argv[1]}' ORDER BY id\").fetchall())",
	} {
		if rows := python(t, toPlain+"import sys\n"+script, "", files[0]); rows != plainRows {
			t.Errorf("%s reads  %s\nbut put in %s", reader, rows, plainRows)
		}
	}
	if status, text := s.execute(t, adminKey, "shop", "CREATE EXTERNAL TABLE measures STORED AS PARQUET LOCATION 'exports/measures' WITH (CONNECTION = 'local')", ""); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if back := s.rows(t, adminKey, "shop", "SELECT big, price, free, sent, day, tags, ok FROM measures ORDER BY id"); back !=
		`[["9007199254740993","-1234567.89","0.000000000000000001","2026-03-01T10:00:00.123456Z","2026-02-28",["a,b",null,""],true],[null,null,null,null,null,null,null]]` {
		t.Errorf("through an external table: %s", back)
	}
	// A quotient has more digits than a column of the lake can have: rounded for a reader, an error in a copy.
	if got := s.rows(t, adminKey, "erp", "SELECT 1::numeric / 30"); got != `[["0.033333333333333333"]]` {
		t.Errorf("a quotient: %s", got)
	}
	status, said := s.call(t, adminKey, "POST", "/v1/lake/copy", object{"database": "erp", "sql": "COPY (SELECT 1::numeric / 30 AS q) TO LAKE 'exports/q' WITH (CONNECTION = 'local')"})
	if status != 400 || !strings.Contains(said, `"q"`) && !strings.Contains(said, "column q") || !strings.Contains(said, "numeric(38,6)") {
		t.Errorf("a copy that would round: %d %s", status, said)
	}
}

// What one may not read looks as if it were not there, whether the role may not, the settings do not name it, or the key is
// not for it.
func TestRealPostgresRights(t *testing.T) {
	s := startERP(t)
	key := func(body object) string {
		var k struct{ Key string }
		s.data(t, adminKey, "POST", "/v1/keys", body, &k)
		return k.Key
	}
	restricted := key(object{"name": "dash", "role": "restricted"})
	narrow := key(object{"name": "orders only", "role": "read_write", "tables": []string{"erp.sales.orders"}})
	for sentence, row := range map[string]struct {
		key, sql string
		status   int
		says     string
	}{
		"an admin reads all of the two schemas":          {adminKey, "SELECT margin FROM margins", 200, "66.60"},
		"a schema of the settings, by its name":          {adminKey, "SELECT count(*) FROM sales.orders", 200, "[[500]]"},
		"a schema that the settings do not name":         {adminKey, "SELECT salary FROM hr.pay", 422, "hr.pay"},
		"the server's catalogue":                         {adminKey, "SELECT rolname FROM pg_roles", 422, "pg_roles"},
		"a write":                                        {adminKey, "DELETE FROM customers", 422, "only read"},
		"a write in WITH":                                {adminKey, "WITH x AS (DELETE FROM customers RETURNING 1) SELECT * FROM x", 422, "WITH"},
		"two statements":                                 {adminKey, "SELECT 1; DROP TABLE customers", 422, "2 statements"},
		"a file of the server":                           {adminKey, "SELECT pg_read_file('/etc/passwd')", 422, "pg_read_file"},
		"an external table":                              {adminKey, "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 'exports/x' WITH (CONNECTION = 'local')", 400, "kind duckdb"},
		"a restricted key counts":                        {restricted, "SELECT country, count(*) FROM customers GROUP BY country ORDER BY 1", 200, `["Chile",32],["Norway",15]`},
		"and knows the day":                              {restricted, "SELECT CURRENT_DATE > DATE '2026-01-01'", 200, "true"},
		"but not the time":                               {restricted, "SELECT now()", 422, "restricted"},
		"and sees no plan":                               {restricted, "EXPLAIN SELECT * FROM customers", 422, "EXPLAIN"},
		"others see it":                                  {adminKey, "EXPLAIN SELECT * FROM customers", 200, "Seq Scan"},
		"a key for a table reads it":                     {narrow, "SELECT sum(total) FROM orders", 200, "156562.50"},
		"and copies nothing":                             {narrow, "COPY (SELECT order_id FROM orders) TO LAKE 'exports/o' WITH (CONNECTION = 'local')", 403, "denied"},
		"the DuckDB database beside it is what it was":   {adminKey, "SELECT name FROM shop.customers", 422, "shop"},
		"a wish that no model wrote is not told of more": {narrow, "SELECT * FROM information_schema.tables", 422, "information_schema"},
	} {
		t.Run(sentence, func(t *testing.T) {
			status, text := s.execute(t, row.key, "erp", row.sql, "")
			if status != row.status || !strings.Contains(text, row.says) || strings.Contains(text, "424242") {
				t.Errorf("%s: %d, want %d and %q: %s", row.sql, status, row.status, row.says, text)
			}
		})
	}
	if got := s.rows(t, adminKey, "shop", "SELECT name FROM customers"); got != `[["of the shop"]]` {
		t.Errorf("shop: %s", got)
	}
	if n := psql(t, s.db.URL, "SELECT count(*) FROM customers"); n != "47" {
		t.Errorf("%s customers are left of 47", n)
	}

	// One answer for a table that the key is not for, one that the role may not read and one that is not there.
	id := regexp.MustCompile(`"request_id":"[^"]*"`)
	var answers []string
	for _, name := range []string{"sales.margins", "hr.pay", "sales.martians", "public.customers"} {
		for _, sql := range []string{"SELECT * FROM %s", "SELECT salary FROM %s x WHERE x.margin > 0", "SELECT (SELECT count(*) FROM %s) FROM sales.orders"} {
			status, text := s.execute(t, narrow, "erp", fmt.Sprintf(sql, name), "")
			answers = append(answers, fmt.Sprint(status)+id.ReplaceAllString(strings.ReplaceAll(text, name, "NAME"), ""))
		}
	}
	for i, a := range answers {
		if a != answers[i%3] || !strings.HasPrefix(a, "422") {
			t.Errorf("a hidden table has an answer of its own:\n%s\n%s", a, answers[i%3])
		}
	}
	var tables []struct{ Name, Schema string }
	s.data(t, narrow, "GET", "/v1/schema/tables?database=erp", nil, &tables)
	if len(tables) != 1 || tables[0].Name != "orders" {
		t.Errorf("a key for one table sees %+v", tables)
	}
	s.data(t, adminKey, "GET", "/v1/schema/tables?database=erp", nil, &tables)
	if len(tables) != 4 || slices.ContainsFunc(tables, func(x struct{ Name, Schema string }) bool { return x.Name == "pay" }) {
		t.Errorf("an admin sees %+v", tables)
	}
}
