package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/access"
	"sluice/database"
)

// withWritable is withShop with a file that may be written to.
func withWritable(t testing.TB) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.duckdb")
	if err := database.CreateFile(t.Context(), path, shopSQL); err != nil {
		t.Fatal(err)
	}
	shop, err := database.Open(t.Context(), database.Config{Name: "shop", Kind: "duckdb", Path: path, Writable: true, Threads: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Close() })
	people := newPeople(t)
	return newFixture(t, func(c *Config) {
		c.Accounts = people
		c.Sources, c.MaxRows = map[string]*database.Source{"shop": shop}, 3
	})
}

func (f *fixture) count(t *testing.T, what string) string {
	t.Helper()
	return fmt.Sprint(data[m](t, f.sql(adminKey, "SELECT count(*) FROM "+what))["rows"])
}

func TestAWrite(t *testing.T) {
	f := withWritable(t)
	f.user(t, "ann", access.ReadWrite, access.Grant{Kind: access.GrantDatabase, Database: "shop"})
	ann := f.login(t, "ann")
	params := func(sql string, values ...any) m {
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: ann, body: m{"database": "shop", "sql": sql, "params": values}, header: map[string]string{"Accept": csvForm}})
		return data[m](t, w)
	}
	for _, row := range []struct {
		sql    string
		values []any
		want   string
	}{
		{"INSERT INTO item (id, name) VALUES ($1, $2)", []any{7, "cap"}, "map[columns:[] command:INSERT row_count:1 rows:[] truncated:false]"},
		{"UPDATE item SET price = 2 WHERE id = 7 RETURNING id, price", nil, "map[columns:[map[name:id type:BIGINT] map[name:price type:DECIMAL(10,2)]] command:UPDATE row_count:1 rows:[[7 2.00]] truncated:false]"},
		{"DELETE FROM sale WHERE id < 5 RETURNING id", nil, "map[columns:[map[name:id type:BIGINT]] command:DELETE row_count:5 rows:[[0] [1] [2]] truncated:true]"},
		{"CREATE TABLE more AS SELECT * FROM item", nil, "map[columns:[] command:CREATE TABLE AS row_count:0 rows:[] truncated:false]"},
		{"DROP TABLE more", nil, "map[columns:[] command:DROP TABLE row_count:0 rows:[] truncated:false]"},
	} {
		if got := fmt.Sprint(params(row.sql, row.values...)); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.sql, got, row.want)
		}
	}
	for bearer, want := range map[string]string{ann: "[map[kind:duckdb name:shop writable:true]]", readOnlyKey: "[map[kind:duckdb name:shop]]", agentKey: "[map[kind:duckdb name:shop]]"} {
		if got := fmt.Sprint(data[[]any](t, f.json("GET", "/v1/databases", bearer, nil))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := f.count(t, "sale"); got != "[[4995]]" {
		t.Errorf("%s rows", got)
	}
	failure(t, f.sql(ann, "INSERT INTO item (id, name) VALUES (1, 'x')"), 400, "invalid")
	failure(t, f.sql(ann, "DELETE FROM items"), 422, "refused")
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_statements_total{kind="write",outcome="ok"}`: 5, `sluice_statements_total{kind="write",outcome="invalid"}`: 1,
		`sluice_statements_total{kind="write",outcome="refused"}`: 1})
}

// TestWhoMayNotWrite: the answer comes before the statement is looked at, and nothing is done or recorded.
func TestWhoMayNotWrite(t *testing.T) {
	f := withWritable(t)
	shop, item := access.Grant{Kind: access.GrantDatabase, Database: "shop"}, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "item"}
	f.user(t, "guest", access.Restricted, shop)
	f.user(t, "bob", access.ReadOnly, shop)
	f.user(t, "eve", access.ReadWrite, item)
	f.user(t, "ann", access.ReadWrite, shop)
	f.user(t, "joe", access.ReadWrite)
	key := func(bearer string, more m) string {
		body := m{"name": "x"}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", bearer, body))["key"].(string)
	}
	ann := f.login(t, "ann")
	before := f.count(t, "item")
	denied := map[string]string{
		"a reader's key": readOnlyKey, "an agent's key": agentKey, "a key of some tables": narrowKey, "a restricted user": f.login(t, "guest"), "a reader": f.login(t, "bob"),
		"who has one table": f.login(t, "eve"), "a writer's read_only key": key(ann, m{"role": "read_only"}), "his restricted key": key(ann, m{"role": "restricted"}),
		"his agent": key(ann, m{"role": "read_write", "agent": true}), "his key of a table": key(ann, m{"role": "read_write", "tables": []string{"shop.item"}}),
	}
	entries := len(f.cfg.Ledger.(*memoryLedger).entries)
	for _, sql := range []string{"DELETE FROM item", "INSERT INTO item (id, name) VALUES (7, 'x')", "UPDATE item SET name = 'x'", "TRUNCATE item", "DROP TABLE item", "CREATE TABLE x (a INT)",
		"ALTER TABLE item DROP COLUMN note", "CREATE INDEX i ON item (name)", "DELETE FROM nothing", "WITH c AS (SELECT 1) INSERT INTO item SELECT * FROM c", "DROP TABLE payroll_secret"} {
		for who, bearer := range denied {
			if e := failure(t, f.sql(bearer, sql), 403, "denied"); e["kind"] != "auth" {
				t.Errorf("%s, %s: %v", who, sql, e)
			}
		}
		failure(t, f.sql(f.login(t, "joe"), sql), 404, "not_found")
		failure(t, f.sql(wrongKey, sql), 401, "unauthenticated")
	}
	failure(t, f.do(call{method: "POST", path: "/v1/query/execute", bearer: key(adminKey, m{"role": "read_write", "acts_for": m{"header": "X-User"}}),
		header: map[string]string{"X-User": "ann"}, body: m{"database": "shop", "sql": "DELETE FROM item"}}), 403, "denied")
	for _, sql := range []string{"WITH x AS (DELETE FROM item RETURNING *) SELECT * FROM x", "SELECT 1; DELETE FROM item", "EXPLAIN ANALYZE DELETE FROM item", "/* SELECT */ COPY item TO 'x'"} {
		failure(t, f.sql(adminKey, sql), 422, "refused")
	}
	failure(t, f.do(call{method: "POST", path: "/v1/lake/copy", bearer: adminKey, body: m{"database": "shop", "sql": "DELETE FROM item"}}), 400, "invalid")
	if after := f.count(t, "item"); after != before {
		t.Errorf("%s rows, then %s", before, after)
	}
	for _, e := range f.cfg.Ledger.(*memoryLedger).entries[entries:] {
		if e.Kind == "write" {
			t.Errorf("recorded: %s", e.Details)
		}
	}
}

// TestADatabaseThatIsOnlyRead says so to everybody, with what would change that.
func TestADatabaseThatIsOnlyRead(t *testing.T) {
	f := withShop(t)
	for _, bearer := range []string{adminKey, writerKey, readOnlyKey, agentKey} {
		if e := failure(t, f.sql(bearer, "DELETE FROM item"), 422, "refused"); !strings.Contains(fmt.Sprint(e["hint"]), "writable: true") {
			t.Errorf("%v", e)
		}
	}
}

// TestAWriteIsInTheLedgerBeforeItIsDone, and its failure after.
func TestAWriteIsInTheLedgerBeforeItIsDone(t *testing.T) {
	f := withWritable(t)
	ledger := f.cfg.Ledger.(*memoryLedger)
	writes := func() (out []string) {
		for _, e := range ledger.entries {
			if e.Kind == "write" {
				var d map[string]any
				if err := json.Unmarshal(e.Details, &d); err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprint(d["sql"], " ", d["command"], " ", d["failed"], " ", d["database"], " ", d["owner"]))
			}
		}
		return out
	}
	data[m](t, f.sql(adminKey, "insert into item (id, name) select 8, 'postgres://u:hunter2@h/ slc_0123456789abcdef'"))
	failure(t, f.sql(adminKey, "INSERT INTO item (id, name) VALUES (8, 'x')"), 400, "invalid")
	want := `[INSERT INTO item (id, name) SELECT 8, 'postgres://[secret]@h/ [secret]' INSERT <nil> shop admin ` +
		`INSERT INTO item (id, name) VALUES (8, 'x') INSERT <nil> shop admin INSERT INTO item (id, name) VALUES (8, 'x') INSERT invalid shop admin]`
	if got := fmt.Sprint(writes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	before := f.count(t, "item")
	ledger.broken = errors.New("the disk is full")
	failure(t, f.sql(adminKey, "DELETE FROM item WHERE id = 8"), 500, "internal")
	if after := f.count(t, "item"); after != before {
		t.Errorf("%s rows, then %s: done without an entry", before, after)
	}
}

// TestARunningWrite is in the list, and who cancels it, or leaves, has nothing done.
func TestARunningWrite(t *testing.T) {
	f := withWritable(t)
	before := f.count(t, "item")
	endless := call{method: "POST", path: "/v1/query/execute", bearer: adminKey, body: m{"database": "shop", "sql": "INSERT INTO item (id, name) SELECT 100 + count(*), 'x' FROM range(100000) AS a(i), range(100000) AS b(i), range(100000) AS c(i) WHERE a.i + b.i + c.i = 1"}}
	st := f.start(endless)
	if e := st.wait(t, adminKey); e["kind"] != "write" || !strings.HasPrefix(e["statement"].(string), "INSERT INTO item (id, name) SELECT 100") {
		t.Errorf("the list has %v", e)
	}
	if e := failure(t, st.cancel(t, adminKey), 499, "canceled"); !strings.Contains(fmt.Sprint(e["message"]), "cancelled by 'admin'") {
		t.Errorf("%v", e)
	}
	st = f.start(endless)
	st.wait(t, adminKey)
	st.leave()
	<-st.done
	failure(t, st.w, 499, "canceled")
	f.cfg.StatementTimeout = 200 * time.Millisecond
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	failure(t, f.do(endless), 413, "too_large")
	if after := f.count(t, "item"); after != before {
		t.Errorf("%s rows, then %s", before, after)
	}
}
