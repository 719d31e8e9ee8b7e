package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/access"
)

// plain are statements that read tables and no more.
var plain = []string{
	"SELECT count(*) FROM item", "SELECT id, upper(name) FROM item ORDER BY id", "SELECT CURRENT_DATE", "SELECT DATE '2026-01-31' + INTERVAL 1 DAY", "DESCRIBE item", "SUMMARIZE item",
	"SELECT region, count(*) FROM sale GROUP BY region", "WITH s AS (SELECT * FROM sale) SELECT max(id) FROM s", "SELECT id FROM sale USING SAMPLE 3 ROWS (reservoir, 1)",
}

// beyond are statements that read something besides tables: readers get some of them (true), others get none at all.
var beyond = map[string]bool{
	"SELECT now()": true, "SELECT NOW() FROM item": true, `SELECT "now"()`: true, "SELECT main.now()": true, "SELECT current_timestamp": true, "SELECT CURRENT_TIME": true, "SELECT localtimestamp": true,
	"SELECT get_current_timestamp()": true, "SELECT transaction_timestamp()": true, "SELECT age(DATE '2020-01-01')": true, "SELECT error('x') FROM item WHERE false": true,
	"SELECT id FROM item WHERE added < now()": true, "SELECT * FROM (SELECT now() AS n)": true, "WITH c AS (SELECT now() AS n) SELECT * FROM c": true, "SELECT (SELECT max(now()) FROM item)": true,
	"SELECT id FROM item ORDER BY now()": true, "SELECT count(*) FILTER (WHERE now() IS NULL) FROM item": true, "SELECT list_transform([1], lambda x: now())": true, "SELECT CASE WHEN id = 1 THEN now() END FROM item": true,
	"EXPLAIN SELECT id FROM item": true, "explain SELECT 1": true, "/* a */ EXPLAIN SELECT 1": true,
	"EXPLAIN ANALYZE SELECT id FROM item": false,
	"SELECT random()":                     false, "SELECT uuid()": false, "SELECT gen_random_uuid()": false, "SELECT setseed(0.5)": false, "SELECT current_user": false, "SELECT session_user": false, "SELECT user": false,
	"SELECT current_user()": false, "SELECT current_role": false, "SELECT current_setting('memory_limit')": false, "SELECT getvariable('x')": false, "SELECT nextval('s')": false, "SELECT currval('s')": false,
	"SELECT getenv('HOME')": false, "SELECT version()": false, "SELECT txid_current()": false, "SELECT current_database()": false, "SELECT current_schema()": false, "SELECT current_query()": false,
	"SELECT * FROM duckdb_settings()": false, "SELECT * FROM duckdb_functions()": false, "SELECT * FROM pg_catalog.pg_tables": false, "SELECT * FROM read_csv('x.csv')": false, "SELECT * FROM 'x.csv'": false,
	"PRAGMA database_size": false, "SET threads = 1": false, "SELECT 1; SELECT 2": false, "DELETE FROM item": false, "CREATE TABLE x (a INT)": false, "COPY item TO 'x.csv'": false, "PREPARE p AS SELECT 1": false,
}

// ofTables says whether a statement of the lists reads a table: one that does not is no answer to a question, as whatever it
// gives is the model's.
func ofTables(sql string) bool { return strings.Contains(sql, "item") || strings.Contains(sql, "sale") }

// TestRestrictedPrincipalsReadNothingButTables tries the ways around that: by each kind of restricted credential, in each form of
// an answer, and through a model.
func TestRestrictedPrincipalsReadNothingButTables(t *testing.T) {
	model := &scripted{}
	f := withAgent(t, model)
	shop := access.Grant{Kind: access.GrantDatabase, Database: "shop"}
	write, read := access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "/"}, access.Grant{Kind: access.GrantLakeRead, Connection: "local", Path: "/"}
	f.user(t, "guest", access.Restricted, shop, write, read)
	f.user(t, "ann", access.ReadWrite, shop, write, read)
	f.user(t, "root", access.Admin)
	key := func(bearer string, more m) string {
		body := m{"name": "x"}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", bearer, body))["key"].(string)
	}
	as := func(user string) map[string]string { return map[string]string{"X-User": user} }
	actsFor := m{"header": "X-User"}
	const aboveGuest = "slc_above_guest"
	f.people.put(t, aboveGuest, access.Key{ID: "key_above_guest", Owner: "guest", Role: access.Admin}) // no route makes one
	type caller struct {
		bearer string
		header map[string]string
	}
	do := func(who caller, path, accept string, body any) *httptest.ResponseRecorder {
		header := map[string]string{"Accept": accept}
		for k, v := range who.header {
			header[k] = v
		}
		return f.do(call{method: "POST", path: path, bearer: who.bearer, body: body, header: header})
	}
	forms := []string{"", ndjsonForm, csvForm, arrowForm}
	ask := func(who caller, sql string) m {
		model.answers = []string{sql}
		return data[m](t, do(who, "/v1/database/ask", "", m{"database": "shop", "question": "what?"}))
	}
	for sentence, who := range map[string]caller{
		"a restricted user":                      {bearer: f.login(t, "guest")},
		"a restricted user's admin key":          {bearer: aboveGuest},
		"an admin's restricted key":              {bearer: key(adminKey, m{"role": "restricted"})},
		"a writer's restricted key":              {bearer: key(f.login(t, "ann"), m{"role": "restricted"})},
		"a writer's restricted agent":            {bearer: key(f.login(t, "ann"), m{"role": "restricted", "agent": true})},
		"acting for a restricted user":           {bearer: key(adminKey, m{"role": "read_write", "acts_for": actsFor}), header: as("guest")},
		"a restricted key, acting for an admin":  {bearer: key(adminKey, m{"role": "restricted", "acts_for": actsFor}), header: as("root")},
		"a restricted user's, acting for admins": {bearer: key(adminKey, m{"role": "restricted", "owner": "guest", "acts_for": actsFor}), header: as("root")},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, sql := range plain {
				for _, form := range forms {
					if w := do(who, "/v1/query/execute", form, m{"database": "shop", "sql": sql}); w.Code != 200 {
						t.Errorf("%s as %q: %d %s", sql, form, w.Code, w.Body)
					}
				}
				if a := ask(who, sql); (a["outcome"] == "answered") != ofTables(sql) {
					t.Errorf("asked, %s: %v", sql, a)
				}
			}
			for sql := range beyond {
				for _, form := range forms {
					w := do(who, "/v1/query/execute", form, m{"database": "shop", "sql": sql})
					if failure(t, w, 422, "refused")["message"] == "" {
						t.Errorf("%s as %q: %s", sql, form, w.Body)
					}
				}
				if a := ask(who, sql); a["outcome"] == "answered" || a["rows"] != nil || a["sql"] != nil {
					t.Errorf("asked, %s: %v", sql, a)
				}
			}
			for _, sql := range []string{copySQL("x"), "EXPLAIN " + copySQL("x"), createSQL, "DROP EXTERNAL TABLE ext"} {
				for _, form := range forms {
					if e := failure(t, do(who, "/v1/query/execute", form, m{"database": "shop", "sql": sql}), 403, "denied"); e["kind"] != "auth" {
						t.Errorf("%s: %v", sql, e)
					}
				}
				if a := ask(who, sql); a["outcome"] != "declined" {
					t.Errorf("asked, %s: %v", sql, a)
				}
			}
			failure(t, do(who, "/v1/lake/copy", "", m{"database": "shop", "sql": copySQL("x")}), 403, "denied")
			if w := do(who, "/v1/query/execute", "", m{"database": "shop", "sql": "SELECT $1 + 1", "params": []int{1}}); fmt.Sprint(data[m](t, w)["rows"]) != "[[2]]" {
				t.Errorf("a parameter: %s", w.Body)
			}
			failure(t, do(who, "/v1/query/execute", "", m{"database": "shup", "sql": "SELECT 1"}), 404, "not_found")
		})
	}
	// Readers get what is said of them, so that the refusals above are those of the role.
	for sql, readers := range beyond {
		if w := f.sql(readOnlyKey, sql); (w.Code == 200) != readers {
			t.Errorf("a reader, %s: %d %s", sql, w.Code, w.Body)
		}
		if a := ask(caller{bearer: readOnlyKey}, sql); (a["outcome"] == "answered") != (readers && ofTables(sql) && !strings.Contains(strings.ToLower(sql), "explain")) {
			t.Errorf("a reader asks, %s: %v", sql, a)
		}
	}
	if runs := data[[]any](t, f.json("GET", "/v1/lake/runs", adminKey, nil)); len(runs) != 0 {
		t.Errorf("runs: %v", runs)
	}
}

// TestTheRoleCountsFromTheNextRequest: a statement that the gate let through for a reader is refused once he is restricted.
func TestTheRoleCountsFromTheNextRequest(t *testing.T) {
	f := withShop(t)
	f.user(t, "ann", access.ReadOnly, access.Grant{Kind: access.GrantDatabase, Database: "shop"})
	ann := f.login(t, "ann")
	key := data[m](t, f.json("POST", "/v1/keys", ann, m{"name": "x", "role": "read_only"}))["key"].(string)
	for _, step := range []struct {
		role   string
		status int
	}{{"read_only", 200}, {"restricted", 422}, {"read_write", 200}, {"restricted", 422}} {
		data[m](t, f.json("PATCH", "/v1/users/ann", adminKey, m{"role": step.role}))
		for _, bearer := range []string{ann, key} {
			for _, sql := range []string{"SELECT now() IS NULL", "EXPLAIN SELECT 1"} {
				wantStatus(t, f.sql(bearer, sql), step.status)
			}
			wantStatus(t, f.sql(bearer, "SELECT count(*) FROM item"), 200)
		}
	}
}

// TestRestrictedPrincipalsSeeWhatTheyMayRead, as others do, and nothing else.
func TestRestrictedPrincipalsSeeWhatTheyMayRead(t *testing.T) {
	f := withShop(t)
	f.user(t, "guest", access.Restricted, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "item"})
	f.user(t, "nobody", access.Restricted)
	guest, nobody := f.login(t, "guest"), f.login(t, "nobody")
	if got := named(t, f.json("GET", "/v1/databases", guest, nil)); got != "shop" {
		t.Errorf("databases: %s", got)
	}
	if got := named(t, f.json("GET", "/v1/schema/tables?database=shop", guest, nil)); got != "item" {
		t.Errorf("tables: %s", got)
	}
	failure(t, f.sql(guest, "SELECT * FROM sale"), 422, "refused")
	if got := named(t, f.json("GET", "/v1/databases", nobody, nil)); got != "" {
		t.Errorf("databases: %s", got)
	}
	failure(t, f.sql(nobody, "SELECT 1"), 404, "not_found")
	failure(t, f.json("GET", "/v1/schema/tables?database=shop", nobody, nil), 404, "not_found")
	if tags := object(t, f.json("GET", "/api/tags", guest, nil).Body.Bytes()); len(tags["models"].([]any)) != 2 {
		t.Errorf("models: %v", tags)
	}
}
