package gateway

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sluice/access"
	"sluice/agent"
)

// taught is a fixture whose agent records, and knows what was confirmed.
func taught(t *testing.T, model *scripted) *fixture {
	t.Helper()
	f := withShop(t)
	a, err := agent.New(agent.Config{Completer: model, Model: "tiny",
		Record: agent.RecordIn(f.people.store), Verified: agent.VerifiedIn(f.people.store)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	f.cfg.Agent = a
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) get(path, bearer string) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: "GET", path: path, bearer: bearer})
}

func (f *fixture) send(path, bearer string, body any) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: "POST", path: path, bearer: bearer, body: body})
}

func (f *fixture) remove(path, bearer string) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: "DELETE", path: path, bearer: bearer})
}

// asked asks, and gives the ask's id.
func (f *fixture) asked(bearer, question string) string {
	f.t.Helper()
	return fmt.Sprint(data[map[string]any](f.t, f.ask(bearer, map[string]any{"question": question}))["ask_id"])
}

func (f *fixture) mark(id, bearer string, body m) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.send("/v1/learning/questions/"+id+"/mark", bearer, body)
}

// kinds are those of the ledger's entries, in order, that begin so.
func (f *fixture) kinds(beginning string) []string {
	return slices.DeleteFunc(ledgerOf(f).kinds(), func(kind string) bool { return !strings.HasPrefix(kind, beginning) })
}

const itemsQuestion = "How many items are there?"

// withFolk makes people: ann and bob may read the whole shop, eve only the table of items.
func withFolk(t *testing.T, f *fixture) (ann, bob, eve string) {
	t.Helper()
	shop := access.Grant{Kind: access.GrantDatabase, Database: "shop"}
	f.user(t, "ann", access.ReadOnly, shop)
	f.user(t, "bob", access.ReadOnly, shop)
	f.user(t, "eve", access.ReadOnly, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "item"})
	return f.login(t, "ann"), f.login(t, "bob"), f.login(t, "eve")
}

func TestARightAnswerAnswersTheQuestionFromThenOn(t *testing.T) {
	model := &scripted{answers: []string{"SELECT count(*) AS n FROM item"}}
	f := taught(t, model)
	ann, bob, _ := withFolk(t, f)
	id := f.asked(ann, itemsQuestion)
	made := data[m](t, f.mark(id, ann, m{"mark": "right", "note": "checked"}))
	pair := made["verified"].(m)
	if made["mark"] != "right" || made["marked_by"] != "ann" || pair["owner"] != "ann" || pair["shared"] != false || pair["verified_by"] != "ann" || pair["from_ask"] != id {
		t.Errorf("marked: %v", made)
	}
	model.seen = nil
	a := data[m](t, f.ask(ann, m{"question": "Please, how many items are there"}))
	if a["verified"] != true || a["verified_by"] != "ann" || a["verified_at"] == nil || fmt.Sprint(a["rows"]) != "[[3]]" || len(model.seen) != 0 {
		t.Errorf("asked again: %v, %d calls", a, len(model.seen))
	}
	if a := data[m](t, f.ask(bob, m{"question": itemsQuestion})); a["verified"] != false || a["verified_by"] != nil {
		t.Errorf("another gets what ann confirmed for herself: %v", a)
	}
	if a := data[m](t, f.ask(ann, m{"question": "How many items are there with 2 notes?"})); a["verified"] != false {
		t.Errorf("another question is taken for it: %v", a)
	}
	q := data[m](t, f.get("/v1/learning/questions/"+id, ann))
	if q["mark"] != "right" || q["note"] != "checked" || len(q["candidates"].([]any)) == 0 || q["timings_ms"] == nil || q["sql"] == "" || strings.Contains(fmt.Sprint(q), "[[3]]") {
		t.Errorf("detail: %v", q)
	}
}

// m's list form: the answers of lists.
func entries(t *testing.T, w *httptest.ResponseRecorder) (out []m, next string) {
	t.Helper()
	wantStatus(t, w, 200)
	body := object(t, w.Body.Bytes())
	for _, e := range body["data"].([]any) {
		out = append(out, e.(map[string]any))
	}
	next, _ = body["meta"].(map[string]any)["next_cursor"].(string)
	return out, next
}

func TestAMarkTakenBackTakesItsPairBack(t *testing.T) {
	for name, mark := range map[string]string{"wrong": "wrong", "no mark": ""} {
		t.Run(name, func(t *testing.T) {
			f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
			ann, _, _ := withFolk(t, f)
			id := f.asked(ann, itemsQuestion)
			pair := data[m](t, f.mark(id, ann, m{"mark": "right"}))["verified"].(m)["id"]
			back := data[m](t, f.mark(id, ann, m{"mark": mark}))
			if fmt.Sprint(back["withdrawn"]) != fmt.Sprintf("[%s]", pair) || back["verified"] != nil || back["mark"] != mark {
				t.Errorf("taken back: %v", back)
			}
			failure(t, f.get(fmt.Sprintf("/v1/learning/verified/%s", pair), ann), 404, "not_found")
			if a := data[m](t, f.ask(ann, m{"question": itemsQuestion})); a["verified"] != false {
				t.Errorf("it still answers: %v", a)
			}
			if got := f.kinds("learning."); !slices.Equal(got, []string{"learning.verify", "learning.mark"}) {
				t.Errorf("ledger: %v", got)
			}
		})
	}
}

func TestACorrectedAnswer(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT max(id) AS n FROM item"}})
	ann, _, eve := withFolk(t, f)
	id := f.asked(ann, itemsQuestion)
	for name, row := range map[string]struct {
		body   m
		status int
		code   string
	}{
		"a write":                   {m{"mark": "right", "sql": "DELETE FROM item"}, 422, "refused"},
		"no table":                  {m{"mark": "right", "sql": "SELECT 3"}, 422, "refused"},
		"a plan":                    {m{"mark": "right", "sql": "EXPLAIN SELECT * FROM item"}, 422, "refused"},
		"a table that is not there": {m{"mark": "right", "sql": "SELECT * FROM nothing"}, 422, "refused"},
		"one that does not run":     {m{"mark": "right", "sql": "SELECT CAST(name AS INTEGER) FROM item"}, 422, "refused"},
		"a COPY":                    {m{"mark": "right", "sql": "COPY (SELECT 1) TO LAKE 'x' WITH (CONNECTION = 'local')"}, 422, "refused"},
		"SQL with the mark wrong":   {m{"mark": "wrong", "sql": "SELECT * FROM item"}, 400, "invalid"},
		"shared by a user":          {m{"mark": "right", "shared": true}, 403, "denied"},
		"another mark":              {m{"mark": "maybe"}, 400, "invalid"},
		"no mark":                   {m{"note": "x"}, 400, "invalid"},
		"a mistyped field":          {m{"mark": "right", "shard": true}, 400, "invalid"},
		"a note without end":        {m{"mark": "right", "note": strings.Repeat("x", 3000)}, 413, "too_large"},
		"a NUL":                     {m{"mark": "right", "sql": "SELECT 1\x00"}, 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := f.mark(id, ann, row.body)
			if name == "one that does not run" && w.Code == 400 {
				return // the engine's own code for a cast that fails
			}
			failure(t, w, row.status, row.code)
			if q := data[m](t, f.get("/v1/learning/questions/"+id, ann)); q["mark"] != "" {
				t.Errorf("it is marked all the same: %v", q)
			}
		})
	}
	failure(t, f.mark(id, eve, m{"mark": "right", "sql": "SELECT count(*) FROM item"}), 404, "not_found")
	data[m](t, f.mark(id, ann, m{"mark": "right", "sql": "select count(*) as n from item"}))
	if a := data[m](t, f.ask(ann, m{"question": itemsQuestion})); a["verified"] != true || fmt.Sprint(a["rows"]) != "[[3]]" {
		t.Errorf("the corrected answer: %v", a)
	}
	first := data[m](t, f.mark(id, ann, m{"mark": "right"}))["verified"].(m)
	second := data[m](t, f.mark(id, ann, m{"mark": "right"}))["verified"].(m)
	if first["id"] != second["id"] || !strings.Contains(fmt.Sprint(first["sql"]), "max") {
		t.Errorf("%v, %v", first, second)
	}
}

func TestWhoSeesAQuestion(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, bob, _ := withFolk(t, f)
	f.people.put(t, "slc_annnarrow", access.Key{ID: "k-annnarrow", Owner: "ann", Role: access.ReadOnly, Tables: []string{"shop.item"}})
	f.people.put(t, "slc_annagent", access.Key{ID: "k-annagent", Owner: "ann", Role: access.ReadOnly, Agent: true})
	f.people.put(t, "slc_annlow", access.Key{ID: "k-annlow", Owner: "ann", Role: access.Restricted})
	f.people.put(t, "slc_annkey", access.Key{ID: "k-annkey", Owner: "ann", Role: access.ReadOnly})
	f.people.put(t, "slc_proxy", access.Key{ID: "k-proxy", Role: access.ReadOnly, ActsFor: "X-User"})
	byLogin, byNarrow, byAgent := f.asked(ann, itemsQuestion), f.asked("slc_annnarrow", itemsQuestion), f.asked("slc_annagent", itemsQuestion)
	for name, row := range map[string]struct {
		bearer string
		sees   []string
		not    []string
	}{
		"the person":                {ann, []string{byLogin, byNarrow, byAgent}, nil},
		"a key with all her rights": {"slc_annkey", []string{byLogin, byNarrow, byAgent}, nil},
		"an admin":                  {adminKey, []string{byLogin, byNarrow, byAgent}, nil},
		"another person":            {bob, nil, []string{byLogin, byNarrow, byAgent}},
		"a narrowed key":            {"slc_annnarrow", []string{byNarrow}, []string{byLogin, byAgent}},
		"an agent's key":            {"slc_annagent", []string{byAgent}, []string{byLogin, byNarrow}},
		"a key of a lower role":     {"slc_annlow", nil, []string{byLogin, byNarrow, byAgent}},
		"an admin's agent":          {agentKey, nil, []string{byLogin, byNarrow, byAgent}},
		"an admin's narrowed key":   {narrowKey, nil, []string{byLogin, byNarrow, byAgent}},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := entries(t, f.get("/v1/learning/questions", row.bearer))
			var ids []string
			for _, e := range all {
				ids = append(ids, fmt.Sprint(e["id"]))
			}
			slices.Sort(ids)
			want := slices.Sorted(slices.Values(row.sees))
			if !slices.Equal(ids, want) {
				t.Errorf("the list has %v, want %v", ids, want)
			}
			for _, id := range row.sees {
				data[m](t, f.get("/v1/learning/questions/"+id, row.bearer))
			}
			unknown := failure(t, f.get("/v1/learning/questions/ask_none", row.bearer), 404, "not_found")
			for _, id := range row.not {
				e := failure(t, f.get("/v1/learning/questions/"+id, row.bearer), 404, "not_found")
				if strings.ReplaceAll(fmt.Sprint(e["message"]), id, "ask_none") != unknown["message"] {
					t.Errorf("%v, and for one that is not there %v", e["message"], unknown["message"])
				}
			}
		})
	}
	// A key that acts for ann is no person: it sees what it asked, and marks nothing.
	as := map[string]string{"X-User": "ann"}
	w := f.do(call{method: "POST", path: "/v1/database/ask", bearer: "slc_proxy", header: as, body: m{"database": "shop", "question": itemsQuestion}})
	byProxy := fmt.Sprint(data[m](t, w)["ask_id"])
	if all, _ := entries(t, f.do(call{method: "GET", path: "/v1/learning/questions", bearer: "slc_proxy", header: as})); len(all) != 1 || all[0]["id"] != byProxy {
		t.Errorf("a key that acts for her sees %v", all)
	}
	failure(t, f.do(call{method: "GET", path: "/v1/learning/questions/" + byProxy, bearer: "slc_proxy", header: map[string]string{"X-User": "bob"}}), 404, "not_found")
	failure(t, f.do(call{method: "POST", path: "/v1/learning/questions/" + byProxy + "/mark", bearer: "slc_proxy", header: as, body: m{"mark": "right"}}), 403, "denied")
	data[m](t, f.mark(byProxy, ann, m{"mark": "right"}))
	failure(t, f.get("/v1/learning/questions?user=ann", bob), 403, "denied")
	if all, _ := entries(t, f.get("/v1/learning/questions?user=ann", adminKey)); len(all) != 4 {
		t.Errorf("an admin's user=ann: %v", all)
	}
}

func TestWhoConfirms(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, bob, eve := withFolk(t, f)
	f.people.put(t, "slc_annagent", access.Key{ID: "k-annagent", Owner: "ann", Role: access.ReadOnly, Agent: true})
	f.people.put(t, "slc_anntables", access.Key{ID: "k-anntables", Owner: "ann", Role: access.ReadOnly, Tables: []string{"shop.item"}})
	pair := m{"database": "shop", "question": itemsQuestion, "sql": "SELECT count(*) AS n FROM item"}
	with := func(more m) m {
		out := m{}
		for _, from := range []m{pair, more} {
			for k, v := range from {
				out[k] = v
			}
		}
		return out
	}
	failure(t, f.send("/v1/learning/verified", "slc_annagent", pair), 403, "denied")
	failure(t, f.send("/v1/learning/verified", agentKey, with(m{"shared": true})), 403, "denied")
	failure(t, f.send("/v1/learning/import", agentKey, m{"verified_queries": []m{pair}}), 403, "denied")
	failure(t, f.send("/v1/learning/verified", ann, with(m{"shared": true})), 403, "denied")
	failure(t, f.send("/v1/learning/verified", narrowKey, with(m{"shared": true})), 403, "denied")
	failure(t, f.send("/v1/learning/import", ann, m{"shared": true, "verified_queries": []m{pair}}), 403, "denied")
	failure(t, f.send("/v1/learning/import?shared=true", ann, m{"verified_queries": []m{pair}}), 403, "denied")
	failure(t, f.send("/v1/learning/verified", eve, with(m{"sql": "SELECT count(*) FROM payroll_secret"})), 422, "refused")
	failure(t, f.send("/v1/learning/verified", eve, with(m{"database": "none"})), 404, "not_found")
	if got := f.kinds("learning."); len(got) != 0 {
		t.Fatalf("ledger of what was refused: %v", got)
	}

	// What a narrowed key confirms serves that key: whoever has it may be another than its owner.
	narrow := data[m](t, f.send("/v1/learning/verified", "slc_anntables", pair))
	if narrow["key_id"] != "k-anntables" || narrow["owner"] != "ann" {
		t.Errorf("of a narrowed key: %v", narrow)
	}
	if a := data[m](t, f.ask("slc_anntables", nil)); a["verified"] != true {
		t.Errorf("it does not serve the key: %v", a)
	}
	if a := data[m](t, f.ask(ann, nil)); a["verified"] != false {
		t.Errorf("it serves its owner: %v", a)
	}
	own := data[m](t, f.send("/v1/learning/verified", ann, pair))
	if a := data[m](t, f.ask("slc_annagent", nil)); a["verified"] != true {
		t.Errorf("what she confirmed does not serve her agent: %v", a)
	}
	at := func(v m) string { return fmt.Sprint("/v1/learning/verified/", v["id"]) }
	failure(t, f.remove(at(own), "slc_annagent"), 403, "denied")
	failure(t, f.remove(at(own), "slc_anntables"), 403, "denied")
	failure(t, f.remove(at(own), bob), 404, "not_found")
	failure(t, f.get(at(own), bob), 404, "not_found")
	failure(t, f.get(at(narrow), "slc_annagent"), 404, "not_found")

	shared := data[m](t, f.send("/v1/learning/verified", adminKey, with(m{"shared": true})))
	if a := data[m](t, f.ask(bob, nil)); a["verified"] != true || a["verified_by"] != access.BootstrapOwner {
		t.Errorf("what an admin shares: %v", a)
	}
	if got := data[m](t, f.get(at(shared), bob)); got["shared"] != true || got["owner"] != nil {
		t.Errorf("shared: %v", got)
	}
	failure(t, f.remove(at(shared), bob), 403, "denied")
	data[m](t, f.remove(at(shared), adminKey))
	data[m](t, f.remove(at(own), ann))
	data[m](t, f.remove(at(narrow), ann))
	if got := f.kinds("learning."); !slices.Equal(got, []string{"learning.verify", "learning.verify", "learning.verify", "learning.withdraw", "learning.withdraw", "learning.withdraw"}) {
		t.Errorf("ledger: %v", got)
	}
}

func TestAUsersMarkDoesNotWithdrawWhatServesEverybody(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, _, _ := withFolk(t, f)
	id := f.asked(ann, itemsQuestion)
	pair := data[m](t, f.mark(id, adminKey, m{"mark": "right", "shared": true}))["verified"].(m)
	back := data[m](t, f.mark(id, ann, m{"mark": "wrong"}))
	if fmt.Sprint(back["kept"]) != fmt.Sprintf("[%s]", pair["id"]) || fmt.Sprint(back["withdrawn"]) != "[]" {
		t.Errorf("a user's: %v", back)
	}
	back = data[m](t, f.mark(id, adminKey, m{"mark": "wrong"}))
	if fmt.Sprint(back["withdrawn"]) != fmt.Sprintf("[%s]", pair["id"]) {
		t.Errorf("an admin's: %v", back)
	}
}

func TestWhatIsRevokedIsHidden(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM payroll_secret"}})
	item := access.Grant{Kind: access.GrantTable, Database: "shop", Table: "item"}
	f.user(t, "dan", access.ReadOnly, item)
	secret := f.grant(t, "dan", access.Grant{Kind: access.GrantTable, Database: "shop", Table: "payroll_secret"})
	dan := f.login(t, "dan")
	id := f.asked(dan, "How many payroll secrets are there?")
	pair := fmt.Sprint(data[m](t, f.mark(id, dan, m{"mark": "right"}))["verified"].(m)["id"])
	shared := data[m](t, f.send("/v1/learning/verified", adminKey, m{"database": "shop", "question": "Which payroll secrets?", "sql": "SELECT * FROM payroll_secret", "shared": true}))
	if err := f.people.DeleteGrant(t.Context(), secret.ID); err != nil {
		t.Fatal(err)
	}
	for path, must := range map[string]string{"/v1/learning/questions/" + id: "hidden", "/v1/learning/questions": "hidden", "/v1/learning/verified": "hidden", "/v1/learning/verified/" + pair: "hidden", "/v1/learning/export": ""} {
		w := f.get(path, dan)
		wantStatus(t, w, 200)
		text := strings.ToLower(w.Body.String())
		if strings.Contains(text, "payroll_secret") || must != "" && !strings.Contains(text, must) {
			t.Errorf("%s: %s", path, w.Body)
		}
		if strings.HasPrefix(path, "/v1/learning/q") && !strings.Contains(text, "how many payroll secrets are there?") {
			t.Errorf("%s: the question is his own: %s", path, w.Body)
		}
	}
	failure(t, f.get(fmt.Sprint("/v1/learning/verified/", shared["id"]), dan), 404, "not_found")
	a := data[m](t, f.ask(dan, m{"question": "How many payroll secrets are there?"}))
	if a["verified"] != false || strings.Contains(fmt.Sprint(a["sql"]), "payroll") {
		t.Errorf("it still answers: %v", a)
	}
	failure(t, f.mark(id, dan, m{"mark": "right"}), 422, "refused")
	if q := data[m](t, f.get("/v1/learning/questions/"+id, adminKey)); q["hidden"] != nil || !strings.Contains(fmt.Sprint(q["sql"]), "payroll_secret") {
		t.Errorf("an admin sees all: %v", q)
	}
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	model := &scripted{answers: []string{"DELETE FROM item"}}
	f := taught(t, model)
	ann, _, _ := withFolk(t, f)
	declined := f.asked(ann, itemsQuestion)
	made := data[m](t, f.mark(declined, ann, m{"mark": "right"}))
	if made["verified"] != nil || made["why"] == "" {
		t.Errorf("a decline that was right: %v", made)
	}
	model.answers = []string{"SELECT nothing FROM nowhere"}
	failed := f.asked(ann, "How many items are there now?")
	failure(t, f.mark(failed, ann, m{"mark": "right"}), 400, "invalid")
	data[m](t, f.mark(failed, ann, m{"mark": "right", "sql": "SELECT count(*) FROM item"}))

	model.answers = []string{"SELECT count(*) AS n FROM item WHERE id > 1"}
	w := f.ask(ann, m{"question": "And above one?", "conversation": []m{{"question": itemsQuestion, "sql": "SELECT count(*) FROM item"}}})
	follow := fmt.Sprint(data[m](t, w)["ask_id"])
	if made := data[m](t, f.mark(follow, ann, m{"mark": "right"})); made["verified"] != nil || made["why"] == nil {
		t.Errorf("a follow-up alone: %v", made)
	}
	made = data[m](t, f.mark(follow, ann, m{"mark": "right", "question": "How many items have an id above one?"}))
	if made["verified"].(m)["question"] != "How many items have an id above one?" {
		t.Errorf("a follow-up with its question: %v", made)
	}
	list, _ := entries(t, f.get("/v1/learning/questions?outcome=declined&mark=right&database=shop", ann))
	if len(list) != 1 || list[0]["id"] != declined {
		t.Errorf("filters: %v", list)
	}
	for _, bad := range []string{"mark=maybe", "outcome=x", "limit=0", "limit=1001", "cursor=x", "cursor="} {
		failure(t, f.get("/v1/learning/questions?"+bad, ann), 400, "invalid")
	}
}
