package gateway

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sluice/access"
)

const shopFile = `# what the shop asks every day
database: shop
verified_queries:
  - name: item_count
    question: How many items are there?
    sql: |
      SELECT count(*) AS n
      FROM item
    verified_by: carla
    verified_at: 1714497970
    use_as_onboarding_question: true
  - question: Which items are dear?
    sql: SELECT name FROM item WHERE price > 10
    verified_at: 2026-01-31
    note: over ten
`

func (f *fixture) importFile(bearer, query, file string) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: "POST", path: "/v1/learning/import" + query, bearer: bearer, body: file, header: map[string]string{"Content-Type": "application/yaml"}})
}

func counts(i m) string { return fmt.Sprint(i["added"], i["replaced"], i["unchanged"], i["refused"]) }

func TestAFileThereAndBack(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT 1 FROM item"}})
	ann, bob, _ := withFolk(t, f)
	if got := data[m](t, f.importFile(ann, "?dry_run=true", shopFile)); counts(got) != "2 0 0 0" || got["dry_run"] != true {
		t.Errorf("a dry run: %v", got)
	}
	if list, _ := entries(t, f.get("/v1/learning/verified", ann)); len(list) != 0 {
		t.Errorf("a dry run imported %v", list)
	}
	if got := data[m](t, f.importFile(ann, "", shopFile)); counts(got) != "2 0 0 0" {
		t.Errorf("imported: %v", got)
	}
	if got := data[m](t, f.importFile(ann, "", shopFile)); counts(got) != "0 0 2 0" {
		t.Errorf("imported again: %v", got)
	}
	if got := ledgerOf(f).kinds(); fmt.Sprint(f.kinds("learning.")) != "[learning.import]" {
		t.Errorf("ledger: %v", got)
	}
	list, _ := entries(t, f.get("/v1/learning/verified?database=shop", ann))
	for _, v := range list {
		if v["verified_by"] != "ann" || v["owner"] != "ann" { // a file says what it likes
			t.Errorf("under whose name: %v", v)
		}
	}
	if a := data[m](t, f.ask(ann, nil)); a["verified"] != true || fmt.Sprint(a["rows"]) != "[[3]]" {
		t.Errorf("it does not answer: %v", a)
	}
	changed := strings.Replace(shopFile, "price > 10", "price > 11", 1)
	if got := data[m](t, f.importFile(ann, "", changed)); counts(got) != "0 1 1 0" {
		t.Errorf("changed: %v", got)
	}

	w := f.get("/v1/learning/export?database=shop", ann)
	wantStatus(t, w, 200)
	for _, part := range []string{"database: shop\n", "verified_queries:\n", "name: item_count\n", "name: which_items_are_dear\n", "question: How many items are there?\n", "note: over ten\n", "verified_by: ann\n"} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the export lacks %q:\n%s", part, w.Body)
		}
	}
	if !strings.HasPrefix(w.Header().Get("Content-Type"), yamlForm) {
		t.Errorf("type %q", w.Header().Get("Content-Type"))
	}
	if got := data[m](t, f.importFile(ann, "", w.Body.String())); counts(got) != "0 0 2 0" {
		t.Errorf("what was exported, imported again: %v", got)
	}
	if got := data[m](t, f.importFile(bob, "", w.Body.String())); counts(got) != "2 0 0 0" {
		t.Errorf("imported by another: %v", got)
	}
	asJSON := f.do(call{method: "GET", path: "/v1/learning/export", bearer: bob, header: map[string]string{"Accept": "application/json"}})
	file := data[m](t, asJSON)
	if got := data[m](t, f.send("/v1/learning/import", bob, file)); counts(got) != "0 0 2 0" {
		t.Errorf("as JSON: %v", got)
	}

	// An admin's file keeps who confirmed it and when, and may serve everybody.
	if got := data[m](t, f.importFile(adminKey, "?shared=true", shopFile)); counts(got) != "2 0 0 0" {
		t.Errorf("an admin's: %v", got)
	}
	w = f.get("/v1/learning/export?shared=true", bob)
	if !strings.Contains(w.Body.String(), "verified_by: carla") || !strings.Contains(w.Body.String(), "verified_at: 1714497970") || !strings.Contains(w.Body.String(), "database: shop") {
		t.Errorf("shared: %s", w.Body)
	}
	if own := f.get("/v1/learning/export?shared=false", bob).Body.String(); strings.Contains(own, "carla") || !strings.Contains(own, "verified_by: bob") {
		t.Errorf("his own: %s", own)
	}
}

func TestAFileIsImportedWholeOrNotAtAll(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT 1 FROM item"}})
	ann, _, eve := withFolk(t, f)
	file := shopFile + "  - question: What is secret?\n    sql: SELECT k FROM payroll_secret\n  - question: Delete all\n    sql: DELETE FROM item\n" +
		"  - question: How many items are there?\n    sql: SELECT 5 FROM item\n  - question: Elsewhere\n    sql: SELECT 1 FROM item\n    database: none\n  - question: ' '\n    sql: SELECT 1 FROM item\n"
	e := failure(t, f.importFile(eve, "", file), 422, "refused")
	if text := fmt.Sprint(e["message"]); !strings.HasPrefix(text, "5 of 7 entries are refused, so nothing was imported: entry 3") || strings.Contains(text, "zzpay") {
		t.Errorf("message: %v", text)
	}
	if list, _ := entries(t, f.get("/v1/learning/verified", eve)); len(list) != 0 || len(f.kinds("learning.")) != 0 {
		t.Errorf("half a file: %v", list)
	}
	got := data[m](t, f.importFile(eve, "?partial=true", file))
	var status []string
	for _, e := range got["entries"].([]any) {
		status = append(status, fmt.Sprint(e.(m)["status"]))
	}
	if counts(got) != "2 0 0 5" || fmt.Sprint(status) != "[added added refused refused refused refused refused]" {
		t.Errorf("partial: %v", got)
	}
	// The same words for a table that he may not read and one that is not there.
	secret, missing := got["entries"].([]any)[2].(m)["error"], data[m](t, f.importFile(eve, "?partial=true", strings.ReplaceAll(file, "payroll_secret", "payroll_secrex")))["entries"].([]any)[2].(m)["error"]
	if strings.ReplaceAll(fmt.Sprint(missing), "secrex", "secret") != secret {
		t.Errorf("%v, and for one that is not there %v", secret, missing)
	}
	for name, row := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":             {"", 400, "invalid"},
		"no list":             {"database: shop\n", 400, "invalid"},
		"an empty list":       {"verified_queries: []\n", 400, "invalid"},
		"no YAML":             {"verified_queries: [}\n", 400, "invalid"},
		"a text":              {"hello", 400, "invalid"},
		"an unknown field":    {"verified_querys: []\n", 400, "invalid"},
		"an unknown field 2":  {"verified_queries:\n  - question: q\n    sql: s\n    who: me\n", 400, "invalid"},
		"a time that is none": {"verified_queries:\n  - question: q\n    sql: s\n    verified_at: yesterday\n", 400, "invalid"},
		"a bomb":              {"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nverified_queries: [*b,*b]\n", 400, "invalid"},
		"a merge":             {"database: shop\n<<: {shared: true}\nverified_queries: []\n", 400, "invalid"},
		"two documents":       {"database: shop\n---\nverified_queries: []\n", 400, "invalid"},
		"too many":            {"verified_queries:\n" + strings.Repeat("  - {question: q, sql: s}\n", maxEntries+1), 413, "too_large"},
		"too long":            {"#" + strings.Repeat(" ", maxYAML), 413, "too_large"},
	} {
		t.Run(name, func(t *testing.T) { failure(t, f.importFile(ann, "", row.body), row.status, row.code) })
	}
	failure(t, f.importFile(ann, "?partial=maybe", shopFile), 400, "invalid")
	failure(t, f.get("/v1/learning/export?database=none", ann), 404, "not_found")
	failure(t, f.get("/v1/learning/export?shared=x", ann), 400, "invalid")
}

// TestTheLedgerComesFirst: what cannot be recorded is not done.
func TestTheLedgerComesFirst(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, _, _ := withFolk(t, f)
	id := f.asked(ann, itemsQuestion)
	pair := fmt.Sprint(data[m](t, f.mark(id, ann, m{"mark": "right"}))["verified"].(m)["id"])
	ledgerOf(f).broken = fmt.Errorf("disk full")
	failure(t, f.mark(id, ann, m{"mark": "wrong"}), 500, "internal")
	failure(t, f.remove("/v1/learning/verified/"+pair, ann), 500, "internal")
	failure(t, f.importFile(ann, "", shopFile), 500, "internal")
	failure(t, f.send("/v1/learning/verified", ann, m{"database": "shop", "question": "q", "sql": "SELECT id FROM item"}), 500, "internal")
	ledgerOf(f).broken = nil
	list, _ := entries(t, f.get("/v1/learning/verified", ann))
	if q := data[m](t, f.get("/v1/learning/questions/"+id, ann)); len(list) != 1 || list[0]["id"] != pair || q["mark"] != "right" {
		t.Errorf("it was done all the same: %v %v", list, q)
	}
	if text := ledgerOf(f).text(); strings.Contains(text, "How many") {
		t.Errorf("a question is in the ledger: %s", text)
	}
}

func TestAnswersOfLearningFitTheDocument(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	x := newFits(f)
	id := f.asked(adminKey, itemsQuestion)
	at := "/v1/learning/questions/" + id
	x.get("/v1/learning/questions", adminKey, 200)
	x.get("/v1/learning/questions?limit=1&mark=none", adminKey, 200)
	x.get("/v1/learning/questions?mark=x", adminKey, 400)
	x.get("/v1/learning/questions", "", 401)
	x.get(at, adminKey, 200)
	x.get(at+"x", adminKey, 404)
	made := data[m](t, x.post(at+"/mark", adminKey, m{"mark": "right", "note": "n", "shared": true}, 200))
	x.post("/v1/database/ask", adminKey, m{"database": "shop", "question": itemsQuestion}, 200)
	x.post(at+"/mark", agentKey, m{"mark": "right"}, 403)
	x.post(at+"/mark", adminKey, m{"mark": "no"}, 400)
	x.post(at+"/mark", adminKey, m{"mark": "right", "sql": "DROP TABLE item"}, 422)
	x.get("/v1/learning/verified", adminKey, 200)
	x.get("/v1/learning/verified/"+fmt.Sprint(made["verified"].(m)["id"]), adminKey, 200)
	x.get("/v1/learning/verified/none", adminKey, 404)
	x.get("/v1/learning/export", adminKey, 200)
	x.do(call{method: "GET", path: "/v1/learning/export?database=shop", bearer: adminKey, header: map[string]string{"Accept": "application/json"}}, 200)
	own := data[m](t, x.post("/v1/learning/verified", adminKey, m{"database": "shop", "question": "Which items?", "sql": "SELECT name FROM item"}, 200))
	x.post("/v1/learning/import", adminKey, m{"database": "shop", "partial": true, "verified_queries": []m{{"question": "a", "sql": "SELECT id FROM item"}, {"question": "b", "sql": "x"}}}, 200)
	x.post("/v1/learning/import", adminKey, m{"verified_queries": []m{{"question": "b", "sql": "x"}}}, 422)
	x.do(call{method: "DELETE", path: "/v1/learning/verified/" + fmt.Sprint(own["id"]), bearer: adminKey}, 200)
	x.do(call{method: "DELETE", path: "/v1/learning/verified/" + fmt.Sprint(own["id"]), bearer: adminKey}, 404)
	x.post(at+"/mark", adminKey, m{"mark": ""}, 200)
	x.mustHaveSeen("/v1/learning/")
}

// TestADeletedUsersQuestionsAreGone: the next one of that name finds nothing.
func TestADeletedUsersQuestionsAreGone(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, _, _ := withFolk(t, f)
	data[m](t, f.mark(f.asked(ann, itemsQuestion), ann, m{"mark": "right"}))
	if err := f.people.DeleteUser(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	f.user(t, "ann", access.ReadOnly, access.Grant{Kind: access.GrantDatabase, Database: "shop"})
	ann = f.login(t, "ann")
	questions, _ := entries(t, f.get("/v1/learning/questions", ann))
	pairs, _ := entries(t, f.get("/v1/learning/verified", ann))
	if len(questions)+len(pairs) != 0 {
		t.Errorf("%v %v", questions, pairs)
	}
	if all, _ := entries(t, f.get("/v1/learning/questions", adminKey)); slices.ContainsFunc(all, func(q m) bool { return q["user"] == "ann" }) {
		t.Errorf("an admin sees %v", all)
	}
}
