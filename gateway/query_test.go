package gateway

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/access"
	"sluice/database"
	"sluice/lakecopy"
)

const shopSQL = `
CREATE TABLE payroll_secret (k VARCHAR PRIMARY KEY, zzpay INTEGER);
INSERT INTO payroll_secret VALUES ('xyzzy', 987654321);
CREATE TABLE item (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, price DECIMAL(10,2), added DATE, note VARCHAR);
CREATE TABLE sale (id BIGINT PRIMARY KEY, item_id BIGINT REFERENCES item(id), sold TIMESTAMP, region VARCHAR, paid VARCHAR REFERENCES payroll_secret(k));
COMMENT ON TABLE item IS 'What is sold';
INSERT INTO item VALUES (1, 'pen', 1.50, DATE '2026-01-31', NULL), (2, 'ink, "blue"', 12.00, NULL, ''), (9007199254740993, 'big', 0.01, DATE '2026-02-01', E'two\nlines');
INSERT INTO sale SELECT i, 1 + i % 2, TIMESTAMP '2026-03-01 10:00:00' + INTERVAL (i) SECOND, 'r' || (i % 4), NULL FROM range(5000) t(i);
`

// withShop gives the fixture a real DuckDB file and a real lake in a folder.
func withShop(t testing.TB) *fixture {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.duckdb")
	if err := database.CreateFile(ctx, path, shopSQL); err != nil {
		t.Fatal(err)
	}
	people := newPeople(t)
	root := filepath.Join(dir, "lake")
	lake, err := lakecopy.New(ctx, lakecopy.Config{Journal: people.store, Rights: people, FreshFor: time.Hour, Now: people.now, Connections: []lakecopy.Connection{
		{Name: "local", URL: "file://" + root, WriteAllowlist: []string{"exports/"}, Managed: []string{"tables/"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lake.Close() })
	shop, err := database.Open(ctx, database.Config{Name: "shop", Kind: "duckdb", Path: path, LakeRoots: []string{root}, Threads: 2}, lake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Close() })
	return newFixture(t, func(c *Config) {
		c.Accounts, c.Learning = people, people.store
		c.Sources, c.Lake, c.MaxRows = map[string]*database.Source{"shop": shop}, lake, 1000
	})
}

func (f *fixture) sql(bearer, sql string) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: "POST", path: "/v1/query/execute", bearer: bearer, body: map[string]any{"database": "shop", "sql": sql}})
}

// data is what a reply's envelope holds.
func data[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	wantStatus(t, w, 200)
	body := object(t, w.Body.Bytes())
	if body["meta"].(map[string]any)["request_id"] != w.Header().Get("X-Request-Id") {
		t.Errorf("meta: %v", body["meta"])
	}
	v, ok := body["data"].(T)
	if !ok {
		t.Fatalf("data is %T: %.200s", body["data"], w.Body)
	}
	return v
}

// failure is the error of a reply's envelope.
func failure(t *testing.T, w *httptest.ResponseRecorder, status int, code string) map[string]any {
	t.Helper()
	wantStatus(t, w, status)
	e := object(t, w.Body.Bytes())["error"].(map[string]any)
	if e["code"] != code || e["message"] == "" || e["request_id"] == "" {
		t.Errorf("error %v, want code %s", e, code)
	}
	return e
}

func TestAQueryAsJSON(t *testing.T) {
	f := withShop(t)
	res := data[map[string]any](t, f.sql(readOnlyKey, "SELECT id, name, price, added, note FROM item ORDER BY id"))
	want := `map[columns:[map[name:id type:BIGINT] map[name:name type:TEXT] map[name:price type:DECIMAL(10,2)] map[name:added type:DATE] map[name:note type:TEXT]] row_count:3 ` +
		"rows:[[1 pen 1.50 2026-01-31 <nil>] [2 ink, \"blue\" 12.00 <nil> ] [9007199254740993 big 0.01 2026-02-01 two\nlines]] truncated:false]"
	if got := fmt.Sprint(res); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, ok := res["rows"].([]any)[2].([]any)[0].(string); !ok {
		t.Error("an integer beyond 2^53 is not a string")
	}
	for max, count := range map[any]int{nil: 1000, 7: 7, 0: 0, 5000: 1000} {
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, body: map[string]any{"database": "shop", "sql": "SELECT id FROM sale", "max_rows": max}})
		res := data[map[string]any](t, w)
		if len(res["rows"].([]any)) != count || res["row_count"] != float64(count) || res["truncated"] != true {
			t.Errorf("max_rows %v: %v rows, truncated %v", max, res["row_count"], res["truncated"])
		}
	}
	res = data[map[string]any](t, f.sql(readOnlyKey, "SELECT id FROM sale LIMIT 1000"))
	if res["truncated"] != false || res["row_count"] != 1000.0 {
		t.Errorf("exactly as many rows as the cap: %v, truncated %v", res["row_count"], res["truncated"])
	}
	res = data[map[string]any](t, f.sql(readOnlyKey, "SELECT id FROM item WHERE false"))
	if fmt.Sprint(res["rows"]) != "[]" || len(res["columns"].([]any)) != 1 {
		t.Errorf("no rows: %v", res)
	}
	res = data[map[string]any](t, f.sql(readOnlyKey, "EXPLAIN SELECT id FROM item"))
	if len(res["rows"].([]any)) == 0 {
		t.Errorf("no plan: %v", res)
	}
}

func TestTheLogHoldsNoStatement(t *testing.T) {
	f := withShop(t)
	for _, sql := range []string{"SELEC 'body-secret'", "SELECT body_secret FROM item", "SELECT 'body-secret'::INT", "SELECT 'body-secret'", copySQL("body-secret'")} {
		f.sql(adminKey, sql)
	}
	f.do(call{method: "POST", path: "/api/chat", body: `{"model":"tiny","keep_alive":"body-secret"}`})
	if log := f.log.String(); strings.Contains(log, "body-secret") || strings.Contains(log, "body_secret") || strings.Contains(log, adminKey) {
		t.Errorf("log: %s", log)
	}
}

func TestParameters(t *testing.T) {
	f := withShop(t)
	for name, row := range map[string]struct{ sql, params, want string }{
		"a number":          {"SELECT name FROM item WHERE id = $1", `[1]`, "[[pen]]"},
		"a large number":    {"SELECT name FROM item WHERE id = $1", `[9007199254740993]`, "[[big]]"},
		"a text":            {"SELECT id FROM item WHERE name = $1", `["pen"]`, "[[1]]"},
		"a quote stays one": {"SELECT count(*) FROM item WHERE name = $1", `["' OR 1=1 --"]`, "[[0]]"},
		"two and a float":   {"SELECT $2 + 0, $1", `[true, 1.5]`, "[[1.5 true]]"},
		"null":              {"SELECT $1 IS NULL", `[null]`, "[[true]]"},
	} {
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, body: fmt.Sprintf(`{"database":"shop","sql":"%s","params":%s}`, row.sql, row.params)})
		if got := data[map[string]any](t, w)["rows"]; fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v, want %s", name, got, row.want)
		}
	}
}

func TestAStatementHasAnEnd(t *testing.T) {
	f := withShop(t)
	f.cfg.StatementTimeout = 200 * time.Millisecond
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	endless := "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range + c.range = 1"
	for _, accept := range []string{"application/json", "text/csv"} {
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, header: map[string]string{"Accept": accept}, body: map[string]any{"database": "shop", "sql": endless}})
		failure(t, w, 413, "too_large")
	}
	data[map[string]any](t, f.sql(readOnlyKey, "SELECT 1"))

	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	f.cfg.StatementTimeout = 0
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/query/execute", strings.NewReader(`{"database":"shop","sql":"`+endless+`"}`))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+readOnlyKey)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r) // returns because the caller left
	failure(t, w, 499, "canceled")
}

func TestWhatAQueryMayNot(t *testing.T) {
	f := withShop(t)
	before := data[map[string]any](t, f.sql(adminKey, "SELECT count(*) FROM item"))["rows"]
	for name, row := range map[string]struct {
		bearer, sql string
		status      int
		code        string
	}{
		"a write":                       {adminKey, "DELETE FROM item", 422, "refused"},
		"a write in a CTE":              {adminKey, "WITH x AS (DELETE FROM item RETURNING *) SELECT * FROM x", 422, "refused"},
		"two statements":                {readOnlyKey, "SELECT 1; SELECT 2", 422, "refused"},
		"a file":                        {adminKey, "SELECT * FROM read_csv('/etc/passwd')", 422, "refused"},
		"a setting":                     {adminKey, "SET memory_limit='1GB'", 422, "refused"},
		"COPY to a file":                {adminKey, "COPY item TO '/tmp/x.csv'", 422, "refused"},
		"no sql":                        {readOnlyKey, "", 400, "invalid"},
		"a table that is not there":     {readOnlyKey, "SELECT * FROM no_such", 422, "refused"},
		"COPY by a reader":              {readOnlyKey, copySQL("a"), 403, "denied"},
		"COPY by an agent":              {agentKey, copySQL("a"), 403, "denied"},
		"EXPLAIN COPY by an agent":      {agentKey, "EXPLAIN " + copySQL("a"), 403, "denied"},
		"an external table by a reader": {readOnlyKey, createSQL, 403, "denied"},
		"an external table by an agent": {agentKey, createSQL, 403, "denied"},
		"dropping one by an agent":      {agentKey, "DROP EXTERNAL TABLE ext", 403, "denied"},
		"COPY outside the allowlist":    {adminKey, strings.Replace(copySQL("a"), "exports/a", "other/a", 1), 403, "denied"},
		"COPY without a connection":     {adminKey, "COPY (SELECT 1 AS a) TO LAKE 'exports/x'", 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) { failure(t, f.sql(row.bearer, row.sql), row.status, row.code) })
	}
	if after := data[map[string]any](t, f.sql(adminKey, "SELECT count(*) FROM item"))["rows"]; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("rows of item: %v, then %v", before, after)
	}
	for name, row := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"a mistyped key":    {`{"database":"shop","sql":"SELECT 1","max_row":1}`, 400, "invalid"},
		"negative max_rows": {`{"database":"shop","sql":"SELECT 1","max_rows":-1}`, 400, "invalid"},
		"no database":       {`{"sql":"SELECT 1"}`, 400, "invalid"},
		"params to a COPY":  {`{"database":"shop","sql":"` + copySQL("a") + `","params":[1]}`, 400, "invalid"},
		"params is a text":  {`{"database":"shop","sql":"SELECT 1","params":"1"}`, 400, "invalid"},
		"a param is a list": {`{"database":"shop","sql":"SELECT $1","params":[[1]]}`, 400, "invalid"},
		"a param too many":  {`{"database":"shop","sql":"SELECT $1","params":[1,2]}`, 400, "invalid"},
		"a param too few":   {`{"database":"shop","sql":"SELECT $1","params":[]}`, 400, "invalid"},
		"a huge param":      {`{"database":"shop","sql":"SELECT $1","params":[1e999]}`, 400, "invalid"},
		"no params":         {`{"database":"shop","sql":"SELECT 1","params":[]}`, 200, ""},
	} {
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, body: row.body})
		if row.status == 200 {
			wantStatus(t, w, 200)
			continue
		}
		t.Run(name, func(t *testing.T) { failure(t, w, row.status, row.code) })
	}
}

// TestWhatOneMayNotReadDoesNotExist compares the answers for a thing that is missing with those for one that is hidden.
func TestWhatOneMayNotReadDoesNotExist(t *testing.T) {
	f := withShop(t)
	data[map[string]any](t, f.sql(narrowKey, "SELECT id FROM item"))
	hidden := failure(t, f.sql(narrowKey, "SELECT * FROM payroll_secret"), 422, "refused")
	missing := failure(t, f.sql(narrowKey, "SELECT * FROM payroll_sekret"), 422, "refused")
	if strings.ReplaceAll(fmt.Sprint(hidden["message"], hidden["hint"]), "payroll_secret", "payroll_sekret") != fmt.Sprint(missing["message"], missing["hint"]) {
		t.Errorf("hidden %v, missing %v", hidden, missing)
	}
	const blindKey = "slc_blind"
	f.people.put(t, blindKey, access.Key{ID: "k-blind", Role: access.ReadOnly, Databases: []string{"other"}})
	for _, c := range []call{
		{method: "POST", path: "/v1/query/execute", body: map[string]any{"database": "DB", "sql": "SELECT 1"}},
		{method: "POST", path: "/v1/lake/copy", body: map[string]any{"database": "DB", "sql": copySQL("a")}},
		{method: "GET", path: "/v1/schema/tables?database=DB"},
		{method: "GET", path: "/v1/lake/external-tables?database=DB"},
	} {
		var answers [2]string
		for i, db := range []string{"shop", "shup"} {
			named := c
			named.bearer, named.path = blindKey, strings.Replace(c.path, "DB", db, 1)
			if body, ok := c.body.(map[string]any); ok {
				named.body = map[string]any{"database": db, "sql": body["sql"]}
			}
			answers[i] = strings.ReplaceAll(fmt.Sprint(failure(t, f.do(named), 404, "not_found")["message"]), db, "DB")
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: hidden %q, missing %q", c.path, answers[0], answers[1])
		}
	}
	if list := data[[]any](t, f.do(call{method: "GET", path: "/v1/databases", bearer: blindKey})); len(list) != 0 {
		t.Errorf("databases: %v", list)
	}
}

func TestDatabasesAndSchema(t *testing.T) {
	f := withShop(t)
	if list := data[[]any](t, f.do(call{method: "GET", path: "/v1/databases", bearer: readOnlyKey})); fmt.Sprint(list) != "[map[kind:duckdb name:shop]]" {
		t.Errorf("databases: %v", list)
	}
	tables := map[string]map[string]any{}
	for _, e := range data[[]any](t, f.do(call{method: "GET", path: "/v1/schema/tables?database=shop", bearer: readOnlyKey})) {
		tables[e.(map[string]any)["name"].(string)] = e.(map[string]any)
	}
	item := tables["item"]
	if len(tables) != 3 || item["comment"] != "What is sold" || item["schema"] != "main" || fmt.Sprint(item["columns"].([]any)[0]) != "map[comment: key:primary name:id nullable:false type:BIGINT]" {
		t.Errorf("item: %v", item)
	}
	if fmt.Sprint(tables["sale"]["foreign_keys"]) != "[map[columns:[item_id] referenced:[id] schema:main table:item] map[columns:[paid] referenced:[k] schema:main table:payroll_secret]]" {
		t.Errorf("sale: %v", tables["sale"])
	}
	narrow := data[[]any](t, f.do(call{method: "GET", path: "/v1/schema/tables?database=shop", bearer: narrowKey}))
	if len(narrow) != 1 || narrow[0].(map[string]any)["name"] != "item" {
		t.Errorf("narrowed: %v", narrow)
	}
}
