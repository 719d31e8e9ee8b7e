package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/access"
)

func copySQL(name string) string {
	return "COPY (SELECT id, sold, region FROM sale) TO LAKE 'exports/" + name + "' WITH (CONNECTION = 'local', PARTITION_BY = (region))"
}

const createSQL = "CREATE EXTERNAL TABLE ext STORED AS PARQUET LOCATION 'exports/sales' PARTITIONED BY (region VARCHAR) WITH (CONNECTION = 'local')"

func TestACopyLandsAndIsReadBackThroughAnExternalTable(t *testing.T) {
	f := withShop(t)
	plan := data[map[string]any](t, f.sql(adminKey, "EXPLAIN "+copySQL("sales")))
	if plan["path"] != "exports/sales" || len(plan["columns"].([]any)) != 3 {
		t.Errorf("plan: %v", plan)
	}
	own := access.Key{ID: "k-own", Role: access.Admin}
	f.people.put(t, "slc_own", own)
	res := data[map[string]any](t, f.sql("slc_own", copySQL("sales")))
	if res["rows_written"] != 5000.0 || res["partitions_touched"] != 4.0 || res["run_id"] == "" {
		t.Errorf("copy: %v", res)
	}
	if made := data[map[string]any](t, f.sql(adminKey, createSQL)); made["created"] != "ext" {
		t.Errorf("create: %v", made)
	}
	w := f.sql(readOnlyKey, "SELECT count(*) AS n FROM ext WHERE region = 'r1'")
	if rows := data[map[string]any](t, w)["rows"]; fmt.Sprint(rows) != "[[1250]]" {
		t.Errorf("rows: %v", rows)
	}
	scans := object(t, w.Body.Bytes())["meta"].(map[string]any)["scans"]
	if fmt.Sprint(scans) != "[map[files_opened:1 files_total:4 table:main.ext]]" {
		t.Errorf("scans: %v", scans)
	}
	list := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/external-tables?database=shop", bearer: readOnlyKey}))
	if len(list) != 1 || fmt.Sprint(list[0].(map[string]any)["external"]) != "map[files:4 partition_by:[region]]" {
		t.Errorf("external tables: %v", list)
	}

	for bearer, want := range map[string]string{readOnlyKey: "[shop main ext]", narrowKey: "[]", adminKey: "[shop main ext]"} { // of all databases
		got := []any{}
		for _, e := range data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/external-tables", bearer: bearer})) {
			e := e.(map[string]any)
			got = append(got, e["database"], e["schema"], e["name"])
		}
		if fmt.Sprint(got) != want {
			t.Errorf("external tables for %s: %v, want %s", bearer, got, want)
		}
	}

	w = f.do(call{method: "POST", path: "/v1/lake/copy", bearer: adminKey, body: map[string]any{"database": "shop", "sql": copySQL("again"), "wait": true}})
	if res := data[map[string]any](t, w); res["rows_written"] != 5000.0 {
		t.Errorf("copy: %v", res)
	}
	if dropped := data[map[string]any](t, f.sql(adminKey, "DROP EXTERNAL TABLE ext")); dropped["dropped"] != "ext" {
		t.Errorf("drop: %v", dropped)
	}
	failure(t, f.sql(readOnlyKey, "SELECT * FROM ext"), 422, "refused")
	failure(t, f.sql(adminKey, "DROP EXTERNAL TABLE ext"), 404, "not_found")

	own.Role = access.ReadOnly // what it ran, it sees although it may not manage
	f.people.put(t, "slc_own", own)
	for bearer, count := range map[string]int{adminKey: 2, "slc_own": 1, readOnlyKey: 0, narrowKey: 0} {
		runs := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/runs", bearer: bearer}))
		if len(runs) != count {
			t.Errorf("%s sees %d runs, want %d", bearer, len(runs), count)
		}
		for _, r := range runs {
			if r := r.(map[string]any); r["state"] != "committed" || r["ended_at"] == nil || !strings.HasPrefix(r["statement"].(string), "COPY") {
				t.Errorf("run: %v", r)
			}
		}
	}
	if runs := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/runs?limit=1", bearer: adminKey})); len(runs) != 1 {
		t.Errorf("limit: %v", runs)
	}
	failure(t, f.do(call{method: "GET", path: "/v1/lake/runs?limit=0", bearer: adminKey}), 400, "invalid")
}

func TestLakeCopyRefusals(t *testing.T) {
	f := withShop(t)
	post := call{method: "POST", path: "/v1/lake/copy", bearer: adminKey}
	for name, row := range map[string]struct {
		bearer string
		body   map[string]any
		header map[string]string
		status int
		code   string
	}{
		"not a COPY":         {adminKey, map[string]any{"database": "shop", "sql": "SELECT 1"}, nil, 400, "invalid"},
		"no sql":             {adminKey, map[string]any{"database": "shop"}, nil, 400, "invalid"},
		"not waiting":        {adminKey, map[string]any{"database": "shop", "sql": copySQL("x"), "wait": false}, nil, 501, "unimplemented"},
		"an idempotency key": {adminKey, map[string]any{"database": "shop", "sql": copySQL("x")}, map[string]string{"Idempotency-Key": "1"}, 501, "unimplemented"},
		"a reader":           {readOnlyKey, map[string]any{"database": "shop", "sql": copySQL("x")}, nil, 403, "denied"},
		"an agent":           {agentKey, map[string]any{"database": "shop", "sql": copySQL("x")}, nil, 403, "denied"},
		"a narrowed key":     {narrowKey, map[string]any{"database": "shop", "sql": copySQL("x")}, nil, 403, "denied"},
	} {
		c := post
		c.bearer, c.body, c.header = row.bearer, row.body, row.header
		t.Run(name, func(t *testing.T) { failure(t, f.do(c), row.status, row.code) })
	}
	if e := failure(t, f.sql(adminKey, strings.Replace(copySQL("x"), "exports/x", "../x", 1)), 400, "invalid"); e["kind"] != "path" {
		t.Errorf("a path out of the lake: %v", e)
	}
	if runs := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/runs", bearer: adminKey})); len(runs) != 0 {
		t.Errorf("runs: %v", runs)
	}
}

func TestConnectionsAreShownWithoutSecrets(t *testing.T) {
	f := withShop(t)
	if list := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/connections", bearer: readOnlyKey})); len(list) != 0 {
		t.Errorf("without a grant: %v", list)
	}
	f.grant(t, "k-writer", access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "exports/a"})
	for bearer, shows := range map[string]bool{adminKey: true, writerKey: false, agentKey: false} {
		list := data[[]any](t, f.do(call{method: "GET", path: "/v1/lake/connections", bearer: bearer}))
		conn := list[0].(map[string]any)
		if _, ok := conn["url"]; ok != shows || conn["name"] != "local" || fmt.Sprint(conn["write_allowlist"]) != "[exports/]" {
			t.Errorf("%s: %v", bearer, conn)
		}
	}
	for url, want := range map[string]string{"s3://key:secret@bucket/root?secret=x#secret": "s3://bucket/root", "file:///srv/lake": "file:///srv/lake", "%": "", "secret:opaque": "secret:"} {
		if got := withoutSecrets(url); got != want {
			t.Errorf("%q: %q", url, got)
		}
	}
}

func TestWithoutLakeAndAgentTheRoutesSaySo(t *testing.T) {
	f := withShop(t)
	f.cfg.Lake, f.cfg.Agent = nil, nil
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	failure(t, f.sql(adminKey, copySQL("x")), 501, "unimplemented")
	failure(t, f.sql(adminKey, createSQL), 501, "unimplemented")
	for _, sql := range []string{copySQL("x"), "EXPLAIN " + copySQL("x"), createSQL, "DROP EXTERNAL TABLE ext"} { // who may not is told so first
		failure(t, f.sql(agentKey, sql), 403, "denied")
		failure(t, f.sql(readOnlyKey, sql), 403, "denied")
	}
	failure(t, f.do(call{method: "GET", path: "/v1/lake/runs", bearer: adminKey}), 501, "unimplemented")
	failure(t, f.do(call{method: "GET", path: "/v1/lake/connections", bearer: adminKey}), 501, "unimplemented")
	failure(t, f.do(call{method: "POST", path: "/v1/database/ask", bearer: adminKey, body: map[string]any{"database": "shop", "question": "how many?"}}), 501, "unimplemented")
}

// A folder that cannot be listed leaves its table without a count, and hides nothing else.
func TestAnUnreadableFolderDoesNotHideTables(t *testing.T) {
	f := withShop(t)
	data[map[string]any](t, f.sql(adminKey, copySQL("sales")))
	data[map[string]any](t, f.sql(adminKey, createSQL))
	folder := filepath.Join(strings.TrimPrefix(f.cfg.Lake.Connections()[0].URL, "file://"), "exports", "sales")
	if err := os.Rename(folder, folder+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sales2", folder); err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{"/v1/lake/external-tables", "/v1/schema/tables"} {
		list := data[[]any](t, f.do(call{method: "GET", path: route + "?database=shop", bearer: readOnlyKey}))
		last := list[len(list)-1].(map[string]any)
		external, _ := last["external"].(map[string]any)
		if _, counted := external["files"]; last["name"] != "ext" || external == nil || counted {
			t.Errorf("%s: %v", route, list)
		}
	}
	data[map[string]any](t, f.sql(readOnlyKey, "SELECT 1"))
	failure(t, f.sql(readOnlyKey, "SELECT * FROM ext"), 400, "invalid")
}
