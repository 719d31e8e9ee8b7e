package gateway

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/access"
)

// give gives a right through the route.
func (f *fixture) give(t *testing.T, g m) string {
	t.Helper()
	return data[m](t, f.json("POST", "/v1/grants", adminKey, g))["id"].(string)
}

// named gives the names of a list's entries, sorted.
func named(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var all []string
	for _, e := range data[[]any](t, w) {
		all = append(all, fmt.Sprint(e.(m)["name"]))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestGrantsCountFromTheNextRequest: what is given may be read at once, and what is taken away may not.
func TestGrantsCountFromTheNextRequest(t *testing.T) {
	f := withShop(t)
	f.user(t, "ann", access.ReadWrite)
	ann := f.login(t, "ann")
	key := data[m](t, f.json("POST", "/v1/keys", ann, m{"name": "x", "role": "read_only"}))["key"].(string)
	see := func(bearer string) string {
		if databases := named(t, f.json("GET", "/v1/databases", bearer, nil)); databases == "" {
			failure(t, f.json("GET", "/v1/schema/tables?database=shop", bearer, nil), 404, "not_found")
			failure(t, f.sql(bearer, "SELECT 1"), 404, "not_found")
			return ""
		}
		return named(t, f.json("GET", "/v1/schema/tables?database=shop", bearer, nil))
	}
	expect := func(step, want string) {
		t.Helper()
		for who, bearer := range map[string]string{"ann": ann, "ann's key": key} {
			if got := see(bearer); got != want {
				t.Errorf("%s: %s sees %q, want %q", step, who, got, want)
			}
			if w := f.sql(bearer, "SELECT count(*) FROM item"); (w.Code == 200) != strings.Contains(want, "item") {
				t.Errorf("%s: %s reads item: %d %s", step, who, w.Code, w.Body)
			}
		}
	}
	expect("at first", "")
	table := f.give(t, m{"principal": "ann", "kind": "table", "database": "shop", "table": "item"})
	expect("with a table", "item")
	database := f.give(t, m{"principal": "ANN", "kind": "database", "database": "shop"})
	expect("with the database", "item payroll_secret sale")
	data[m](t, f.json("DELETE", "/v1/grants/"+database, adminKey, nil))
	expect("without it again", "item")
	data[m](t, f.json("DELETE", "/v1/grants/"+table, adminKey, nil))
	expect("without any", "")
	failure(t, f.json("DELETE", "/v1/grants/"+table, adminKey, nil), 404, "not_found")
	failure(t, f.json("GET", "/v1/grants/"+table, adminKey, nil), 404, "not_found")

	for sentence, row := range map[string]struct {
		body   m
		status int
		says   string
	}{
		"a database that is not there":   {m{"principal": "ann", "kind": "database", "database": "shup"}, 400, "shup"},
		"a table of such":                {m{"principal": "ann", "kind": "table", "database": "shup", "table": "item"}, 400, "shup"},
		"a connection that is not there": {m{"principal": "ann", "kind": "lake_write", "connection": "lokal", "path": "a"}, 400, "lokal"},
		"a principal that is not there":  {m{"principal": "eve", "kind": "database", "database": "shop"}, 400, "eve"},
		"a kind that is none":            {m{"principal": "ann", "kind": "admin"}, 400, "kinds are"},
		"a field that a kind has not":    {m{"principal": "ann", "kind": "database", "database": "shop", "table": "item"}, 400, "no table"},
		"a path that climbs":             {m{"principal": "ann", "kind": "lake_read", "connection": "local", "path": "../x"}, 400, "path"},
		"what ann has":                   {m{"principal": "ann", "kind": "model", "name": "tiny"}, 409, "already"},
		"a field that nobody knows":      {m{"principal": "ann", "kind": "model", "name": "x", "role": "admin"}, 400, "role"},
	} {
		if sentence == "what ann has" {
			f.give(t, row.body)
		}
		if w := f.json("POST", "/v1/grants", adminKey, row.body); w.Code != row.status || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%s: %d %s", sentence, w.Code, w.Body)
		}
	}
	if list := data[[]any](t, f.json("GET", "/v1/grants", ann, nil)); len(list) != 1 || list[0].(m)["principal"] != "ann" || list[0].(m)["created_by"] != "admin" {
		t.Errorf("ann's grants: %v", list)
	}
	// With one grant on models, only that model.
	if tags := object(t, f.json("GET", "/api/tags", ann, nil).Body.Bytes()); len(tags["models"].([]any)) != 1 {
		t.Errorf("ann's models: %v", tags)
	}
	wantStatus(t, f.json("POST", "/api/show", ann, m{"model": "encoder"}), 404)
}

// TestCopyByUsers: each of the things that COPY needs is taken away once.
func TestCopyByUsers(t *testing.T) {
	f := withShop(t)
	f.byTheirClock()
	shop := access.Grant{Kind: access.GrantDatabase, Database: "shop"}
	write := access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "exports/ann"}
	read := access.Grant{Kind: access.GrantLakeRead, Connection: "local", Path: "exports/ann/"}
	f.user(t, "ann", access.ReadWrite, shop, write, read)
	f.user(t, "reader", access.ReadOnly, shop, write, read)
	f.user(t, "tables", access.ReadWrite, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "sale"}, write, read)
	f.user(t, "nolake", access.ReadWrite, shop)
	ann := f.login(t, "ann")
	keyOf := func(bearer string, more m) string {
		body := m{"name": "x", "role": "read_write"}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", bearer, body))["key"].(string)
	}
	key, agent, narrow := keyOf(ann, nil), keyOf(ann, m{"agent": true}), keyOf(ann, m{"tables": []string{"shop.sale"}})
	elsewhere, reading := keyOf(ann, m{"databases": []string{}}), keyOf(ann, m{"role": "read_only"})
	acting := keyOf(adminKey, m{"acts_for": m{"header": "X-User"}})
	for sentence, row := range map[string]struct {
		bearer, path string
		status       int
	}{
		"with all that it needs":             {ann, "exports/ann/x", 200},
		"with a key":                         {key, "exports/ann/y", 200},
		"a folder of a like name":            {ann, "exports/annex", 403},
		"the folder above":                   {ann, "exports", 403},
		"another folder":                     {ann, "exports/bob", 403},
		"a folder that climbs":               {ann, "exports/ann/../bob", 400},
		"the same, encoded":                  {ann, "exports/ann/%2e%2e/bob", 400},
		"by an agent's key":                  {agent, "exports/ann/x", 403},
		"by a key narrowed to tables":        {narrow, "exports/ann/x", 403},
		"by a key of no database":            {elsewhere, "exports/ann/x", 404},
		"by a read_only key":                 {reading, "exports/ann/x", 403},
		"by a reader":                        {f.login(t, "reader"), "exports/ann/x", 403},
		"by who reads some tables":           {f.login(t, "tables"), "exports/ann/x", 403},
		"without a grant on the lake":        {f.login(t, "nolake"), "exports/ann/x", 403},
		"by an admin's read_write key":       {writerKey, "exports/ann/x", 403},
		"by an admin, outside the allowlist": {adminKey, "other/x", 403},
	} {
		w := f.sql(row.bearer, strings.Replace(copySQL("x"), "exports/x", row.path, 1))
		if w.Code != row.status {
			t.Errorf("%s: %d %s", sentence, w.Code, w.Body)
		}
		if w.Code == 403 && object(t, w.Body.Bytes())["error"].(m)["kind"] != "auth" {
			t.Errorf("%s: %s", sentence, w.Body)
		}
	}
	w := f.do(call{method: "POST", path: "/v1/lake/copy", bearer: acting, header: map[string]string{"X-User": "ann"}, body: m{"database": "shop", "sql": strings.Replace(copySQL("x"), "exports/x", "exports/ann/z", 1)}})
	failure(t, w, 403, "denied")
	f.grant(t, "k-writer", access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "exports/w"})
	data[m](t, f.sql(writerKey, copySQL("w")))
	// Who has no grant on a connection does not learn whether it exists.
	var answers []string
	for _, name := range []string{"local", "nowhere"} {
		w := f.sql(f.login(t, "nolake"), strings.Replace(copySQL("x"), "'local'", "'"+name+"'", 1))
		answers = append(answers, strings.ReplaceAll(failure(t, w, 403, "denied")["message"].(string), name, "C"))
	}
	if answers[0] != answers[1] {
		t.Errorf("a connection that is there and one that is not: %q", answers)
	}
	if list := data[[]any](t, f.json("GET", "/v1/lake/connections", f.login(t, "nolake"), nil)); len(list) != 0 {
		t.Errorf("connections: %v", list)
	}
	// One sees one's own runs, from another login and not with every key.
	for bearer, count := range map[string]int{ann: 2, f.login(t, "ann"): 2, key: 1, agent: 0, f.login(t, "nolake"): 0, adminKey: 3} {
		if runs := data[[]any](t, f.json("GET", "/v1/lake/runs", bearer, nil)); len(runs) != count {
			t.Errorf("%d runs, want %d", len(runs), count)
		}
	}
	f.people.wait(16 * time.Minute)
	inner := strings.Replace(copySQL("x"), "exports/x", "exports/ann/x", 1)
	if e := failure(t, f.sql(ann, inner), 403, "denied"); !strings.Contains(fmt.Sprint(e["hint"]), "reauth") {
		t.Errorf("%v", e)
	}
	data[m](t, f.sql(key, inner)) // a key is as fresh as ever
	data[m](t, f.json("POST", "/v1/auth/reauth", ann, m{"password": passwordOf("ann")}))
	data[m](t, f.sql(ann, inner))
}

// TestExternalTablesByUsers: a table lasts as long as who made it may read its folder.
func TestExternalTablesByUsers(t *testing.T) {
	f := withShop(t)
	data[m](t, f.sql(adminKey, copySQL("sales")))
	shop := access.Grant{Kind: access.GrantDatabase, Database: "shop"}
	f.user(t, "ann", access.ReadWrite, shop)
	f.user(t, "bob", access.ReadOnly, shop)
	f.user(t, "eve", access.ReadWrite, shop, access.Grant{Kind: access.GrantLakeRead, Connection: "local", Path: "exports/other"})
	f.user(t, "one", access.ReadOnly, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "ext"})
	ann, bob, eve, one := f.login(t, "ann"), f.login(t, "bob"), f.login(t, "eve"), f.login(t, "one")
	failure(t, f.sql(ann, createSQL), 403, "denied")
	read := f.give(t, m{"principal": "ann", "kind": "lake_read", "connection": "local", "path": "exports/sales/*"})
	failure(t, f.sql(eve, createSQL), 403, "denied")
	failure(t, f.sql(bob, createSQL), 403, "denied")
	data[m](t, f.sql(ann, createSQL))
	for who, bearer := range map[string]string{"ann": ann, "bob": bob, "one": one} {
		if w := f.sql(bearer, "SELECT count(*) FROM ext"); w.Code != 200 {
			t.Errorf("%s: %d %s", who, w.Code, w.Body)
		}
	}
	failure(t, f.sql(eve, "DROP EXTERNAL TABLE ext"), 403, "denied")
	failure(t, f.sql(bob, "DROP EXTERNAL TABLE ext"), 403, "denied")
	// Without the right of who made it, nobody reads it, the admin neither.
	data[m](t, f.json("DELETE", "/v1/grants/"+read, adminKey, nil))
	for who, bearer := range map[string]string{"ann": ann, "bob": bob, "one": one, "admin": adminKey} {
		if w := f.sql(bearer, "SELECT count(*) FROM ext"); w.Code != 422 {
			t.Errorf("%s reads it: %d %s", who, w.Code, w.Body)
		}
		if who != "one" && strings.Contains(named(t, f.json("GET", "/v1/schema/tables?database=shop", bearer, nil)), "ext") {
			t.Errorf("%s sees it", who)
		}
	}
	f.give(t, m{"principal": "ann", "kind": "lake_read", "connection": "local", "path": "/"})
	wantStatus(t, f.sql(bob, "SELECT count(*) FROM ext"), 200)
	disabled := true
	if _, err := f.people.ChangeUser(t.Context(), "ann", access.UserChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	failure(t, f.sql(bob, "SELECT count(*) FROM ext"), 422, "refused")
	data[m](t, f.sql(adminKey, "DROP EXTERNAL TABLE ext")) // it can still be removed
}
