package gateway

import "testing"

// lists are the routes of lists, each with at least two entries for an admin in the fixture with a shop.
var lists = []string{"/v1/keys", "/v1/databases", "/v1/schema/tables?database=shop", "/v1/lake/connections", "/v1/lake/runs", "/v1/lake/external-tables"}

func TestListsTakeALimitAndRefuseACursor(t *testing.T) {
	f := withShop(t)
	for _, name := range []string{"a", "b"} {
		data[map[string]any](t, f.sql(adminKey, copySQL(name)))
		data[map[string]any](t, f.sql(adminKey, "CREATE EXTERNAL TABLE ext_"+name+" STORED AS PARQUET LOCATION 'exports/"+name+"' PARTITIONED BY (region VARCHAR) WITH (CONNECTION = 'local')"))
	}
	for _, path := range lists {
		get := call{method: "GET", bearer: adminKey}
		with := func(query string) call {
			c := get
			c.path = path + "?" + query
			if u := "database=shop"; len(path) > len(u) && path[len(path)-len(u):] == u {
				c.path = path + "&" + query
			}
			return c
		}
		all := len(data[[]any](t, f.do(with(""))))
		if single := path == "/v1/databases" || path == "/v1/lake/connections"; all < 2 && !single || all == 0 {
			t.Errorf("%s lists %d entries", path, all)
		}
		if n := len(data[[]any](t, f.do(with("limit=1")))); n != 1 {
			t.Errorf("%s with limit=1 lists %d", path, n)
		}
		if n := len(data[[]any](t, f.do(with("limit=1000")))); n != all {
			t.Errorf("%s with limit=1000 lists %d of %d", path, n, all)
		}
		for _, bad := range []string{"limit=0", "limit=-1", "limit=", "limit=1001", "limit=x", "limit=1.5"} {
			failure(t, f.do(with(bad)), 400, "invalid")
		}
		for _, cursor := range []string{"cursor=", "cursor=abc", "limit=1&cursor=abc"} {
			failure(t, f.do(with(cursor)), 501, "unimplemented")
		}
	}
}
