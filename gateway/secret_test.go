package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/access"
)

// secrets are what only those may learn who read payroll_secret, or the external table that is made of it: names, columns,
// a folder, cells.
var secrets = []string{"secret", "zzpay", "zzexternal", "zzcolumn", "zzfolder/part", "xyzzy", "987654321"}

// nosy are statements that look for them. None spells a name in full, as a refusal may quote what was sent.
var nosy = []string{
	"SELECT * FROM payroll_sekret", "SELECT * FROM payroll_secre", "SELECT * FROM zzexterna", "SELECT zzcolum FROM item", "SELECT zzpa FROM item", "SELECT * FROM main.payroll_sekret",
	"SELECT * FROM shop.main.payroll_sekret", "SELECT count(*) FROM item WHERE EXISTS (SELECT 1 FROM payroll_sekret)", "WITH s AS (SELECT * FROM payroll_sekret) SELECT * FROM s",
	"SELECT (SELECT k FROM payroll_sekret)", "SELECT s.k FROM payroll_sekret s", "SELECT * FROM item JOIN payroll_sekret USING (id)", "SELECT * FROM item NATURAL JOIN payroll_sekret",
	"SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE payroll_sekret", "SUMMARIZE payroll_sekret", "DESCRIBE", "DESCRIBE sale", "SUMMARIZE item", "EXPLAIN SELECT * FROM payroll_sekret", "EXPLAIN SELECT * FROM sale",
	"EXPLAIN ANALYZE SELECT * FROM item", "SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.referential_constraints", "SELECT * FROM duckdb_tables()", "SELECT * FROM duckdb_constraints()",
	"SELECT * FROM sqlite_master", "SELECT table_name FROM duckdb_columns()", "PRAGMA show_tables", "FROM payroll_sekret", "SELECT * FROM query_table('payroll_sekret')", "SELECT * FROM query('SELECT * FROM payroll_sekret')",
	"SELECT * FROM read_parquet('exports/zzfolder/*.parquet')", "SELECT * FROM 'exports/zzfolder/*.parquet'", "SELECT paid FROM sale", "SELECT * FROM sale LIMIT 3",
	"COPY (SELECT * FROM payroll_sekret) TO LAKE 'exports/x' WITH (CONNECTION = 'local')", "EXPLAIN COPY (SELECT * FROM payroll_sekret) TO LAKE 'exports/x' WITH (CONNECTION = 'local')",
	"CREATE EXTERNAL TABLE payroll_sekret STORED AS PARQUET LOCATION 'exports/zz' WITH (CONNECTION = 'local')", "DROP EXTERNAL TABLE zzexterna", "SELECT 'x'::payroll_sekret", "SELECT payroll_sekret FROM item",
}

// TestASecretTableIsNowhere tries every way to learn of a table: its name, its columns, a value in it, and that it is there. Whoever
// reads other tables of the same database tries, by each kind of credential.
func TestASecretTableIsNowhere(t *testing.T) {
	model := &scripted{answers: []string{"SELECT 1"}}
	f := withAgent(t, model)
	item := access.Grant{Kind: access.GrantTable, Database: "shop", Table: "item"}
	sale := access.Grant{Kind: access.GrantTable, Database: "shop", Table: "sale"}
	f.user(t, "ann", access.ReadWrite, item, sale, access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "/"}, access.Grant{Kind: access.GrantLakeRead, Connection: "local", Path: "/"})
	f.user(t, "reader", access.ReadOnly, item, sale)
	f.user(t, "guest", access.Restricted, item, sale)
	made := func(more m) string {
		body := m{"name": "x"}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", adminKey, body))["key"].(string)
	}
	const readerKey, grantedKey, guestKey = "slc_reader", "slc_granted", "slc_guest"
	f.people.put(t, readerKey, access.Key{ID: "key_reader", Owner: "reader", Role: access.ReadOnly})
	f.people.put(t, grantedKey, access.Key{ID: "key_granted", Role: access.ReadOnly}) // the admin's own: all that keeps it out are its grants
	f.people.put(t, guestKey, access.Key{ID: "key_guest", Role: access.Restricted})
	for _, key := range []string{"key_granted", "key_guest"} {
		f.grant(t, key, item)
		f.grant(t, key, sale)
	}
	// An external table that only an admin reads, with a telling name and content.
	data[m](t, f.sql(adminKey, "COPY (SELECT k AS zzcolumn FROM payroll_secret) TO LAKE 'exports/zzfolder' WITH (CONNECTION = 'local')"))
	data[m](t, f.sql(adminKey, "CREATE EXTERNAL TABLE zzexternal STORED AS PARQUET LOCATION 'exports/zzfolder' WITH (CONNECTION = 'local')"))
	// Somebody who may reads it all the while.
	reading := f.start(call{method: "POST", path: "/v1/query/execute", bearer: adminKey, body: m{"database": "shop", "sql": "SELECT count(*) FROM payroll_secret, " + endlessFrom}})
	defer reading.cancel(t, adminKey)

	for sentence, caller := range map[string]struct {
		bearer string
		header map[string]string
	}{
		"a writer's login":                            {bearer: f.login(t, "ann")},
		"a reader's key":                              {bearer: readerKey},
		"an admin's read_only key of other tables":    {bearer: made(m{"role": "read_only", "tables": []string{"shop.item", "shop.main.sale"}})},
		"an admin's read_only key with their grants":  {bearer: grantedKey},
		"a restricted user's login":                   {bearer: f.login(t, "guest")},
		"an admin's restricted key with their grants": {bearer: guestKey},
		"an admin's restricted key of other tables":   {bearer: made(m{"role": "restricted", "tables": []string{"shop.item", "shop.main.sale"}})},
		"a reader's agent":                            {bearer: made(m{"role": "read_only", "owner": "reader", "agent": true})},
		"a program that acts for a restricted user":   {bearer: made(m{"role": "read_write", "acts_for": m{"header": "X-User"}}), header: map[string]string{"X-User": "guest"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var seen strings.Builder
			prompts, logged := len(model.seen), len(f.log.String())
			do := func(method, path string, body any, accept string) *httptest.ResponseRecorder {
				header := map[string]string{"Accept": accept}
				for k, v := range caller.header {
					header[k] = v
				}
				w := f.do(call{method: method, path: path, bearer: caller.bearer, body: body, header: header})
				fmt.Fprintln(&seen, w.Header(), w.Body)
				return w
			}
			for _, sql := range nosy {
				body := m{"database": "shop", "sql": sql}
				for _, form := range []string{"", ndjsonForm, csvForm} {
					do("POST", "/v1/query/execute", body, form)
				}
				do("POST", "/v1/lake/copy", body, "")
				model.answers = []string{sql}
				do("POST", "/v1/database/ask", m{"database": "shop", "question": "what is there?"}, "")
				do("POST", "/v1/database/ask", m{"database": "shop", "question": "what is there?", "stream": true}, "")
			}
			for _, path := range []string{"/v1/databases", "/v1/schema/tables?database=shop", "/v1/lake/external-tables", "/v1/lake/external-tables?database=shop", "/v1/lake/runs", "/v1/lake/connections",
				"/v1/auth/me", "/v1/grants", "/v1/keys", "/v1/users", "/v1/audit", "/v1/audit/verify", "/metrics", "/v1/queries", "/v1/queries?limit=1"} {
				do("GET", path, nil, "")
			}
			missing := failure(t, do("DELETE", "/v1/queries/query_none", nil, ""), 404, "not_found")
			hidden := failure(t, do("DELETE", "/v1/queries/"+reading.id(t, adminKey), nil, ""), 404, "not_found")
			if strings.ReplaceAll(missing["message"].(string), "query_none", "Q") != strings.ReplaceAll(hidden["message"].(string), reading.id(t, adminKey), "Q") {
				t.Errorf("another's statement: %q, none: %q", hidden["message"], missing["message"])
			}
			for _, c := range model.seen[prompts:] {
				fmt.Fprintln(&seen, c.Messages)
			}
			seen.WriteString(f.log.String()[logged:])
			if !strings.Contains(seen.String(), "CREATE TABLE item") || !strings.Contains(seen.String(), `"name":"sale"`) || !strings.Contains(seen.String(), `"r0"`) {
				t.Error("what the caller may read is not there: this test looks at nothing")
			}
			for _, line := range strings.Split(seen.String(), "\n") {
				for _, secret := range secrets {
					if strings.Contains(line, secret) {
						t.Errorf("%s shows in %.300s", secret, line)
					}
				}
			}
			// By its right name, it gets word for word what a table gets that is not there.
			for _, form := range []string{"SELECT * FROM %s", "SELECT k FROM main.%s", "DESCRIBE %s", "SUMMARIZE %s", "EXPLAIN SELECT * FROM %s", "SELECT * FROM item, %s", "SELECT %s.k FROM item",
				"COPY (SELECT * FROM %s) TO LAKE 'exports/x' WITH (CONNECTION = 'local')", "DROP EXTERNAL TABLE %s", "SELECT count(*) FROM %[1]s AS a, %[1]s AS b"} {
				for hidden, missing := range map[string]string{"payroll_secret": "payroll_sekrit", "zzexternal": "zzexternol"} {
					for _, accept := range []string{"", csvForm} {
						var answers [2]string
						for i, name := range []string{hidden, missing} {
							w := do("POST", "/v1/query/execute", m{"database": "shop", "sql": fmt.Sprintf(form, name)}, accept)
							e := object(t, w.Body.Bytes())["error"].(m)
							answers[i] = strings.ReplaceAll(fmt.Sprint(w.Code, e["code"], e["kind"], e["message"], e["hint"], e["position"]), name, "T")
						}
						if answers[0] != answers[1] {
							t.Errorf(form+": hidden %q, missing %q", hidden, answers[0], answers[1])
						}
					}
				}
			}
		})
	}
	if kinds := ledgerOf(f).text(); !strings.Contains(kinds, "ask.run") || strings.Contains(kinds, "xyzzy") {
		t.Errorf("the ledger has cells, or no statement of an ask: %s", kinds)
	}
}
