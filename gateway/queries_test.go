package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/access"
)

const (
	endlessFrom = "range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range + c.range = 1"
	endlessSQL  = "SELECT count(*) FROM " + endlessFrom
)

// started is a request that is being answered.
type started struct {
	f         *fixture
	requestID string
	w         *httptest.ResponseRecorder // to be read after done
	done      chan struct{}
	leave     context.CancelFunc // as when its client goes
	query     string
}

// start begins a request.
func (f *fixture) start(c call) *started {
	st := &started{f: f, requestID: rand.Text(), done: make(chan struct{})}
	header := map[string]string{"X-Request-Id": st.requestID}
	for k, v := range c.header {
		header[k] = v
	}
	text, _ := marshal(c.body)
	ctx, leave := context.WithCancel(f.t.Context())
	st.leave = leave
	r := httptest.NewRequestWithContext(ctx, c.method, c.path, strings.NewReader(string(text)))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	st.w = httptest.NewRecorder()
	go func() {
		defer close(st.done)
		f.handler.ServeHTTP(st.w, r)
	}()
	return st
}

// running is what the list says of a request's statement, to who sees it; nil when it is not there.
func (st *started) running(t *testing.T, bearer string) m {
	t.Helper()
	for _, e := range data[[]any](t, st.f.json("GET", "/v1/queries", bearer, nil)) {
		if e := e.(m); e["request_id"] == st.requestID {
			return e
		}
	}
	return nil
}

// wait gives the entry of the statement once it is in the list.
func (st *started) wait(t *testing.T, bearer string) m {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if e := st.running(t, bearer); e != nil {
			return e
		}
		select {
		case <-st.done:
			t.Fatalf("it ended before it ran: %d %s", st.w.Code, st.w.Body)
		default:
		}
	}
	t.Fatal("the statement is not in the list")
	return nil
}

func (st *started) id(t *testing.T, bearer string) string {
	t.Helper()
	if st.query == "" {
		st.query = st.wait(t, bearer)["id"].(string)
	}
	return st.query
}

// cancel cancels the statement, and waits for the answer that its caller gets.
func (st *started) cancel(t *testing.T, bearer string) *httptest.ResponseRecorder {
	t.Helper()
	id := st.id(t, bearer)
	if res := data[m](t, st.f.json("DELETE", "/v1/queries/"+id, bearer, nil)); res["cancelled"] != id {
		t.Errorf("cancelled: %v", res)
	}
	select {
	case <-st.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the statement goes on")
	}
	if e := st.running(t, adminKey); e != nil {
		t.Errorf("it is still in the list: %v", e)
	}
	return st.w
}

// withPersons is a shop with a model, and the users ann, bob and root, an admin.
func withPersons(t *testing.T, model *scripted) *fixture {
	f := withAgent(t, model)
	shop := access.Grant{Kind: access.GrantDatabase, Database: "shop"}
	f.user(t, "ann", access.ReadWrite, shop, access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: "exports"})
	f.user(t, "bob", access.ReadWrite, shop)
	f.user(t, "root", access.Admin)
	return f
}

func execute(bearer, accept, sql string) call {
	return call{method: "POST", path: "/v1/query/execute", bearer: bearer, header: map[string]string{"Accept": accept}, body: m{"database": "shop", "sql": sql}}
}

// TestAStatementIsListedAndCancelled, whichever way it came, by the person whose it is.
func TestAStatementIsListedAndCancelled(t *testing.T) {
	f := withPersons(t, &scripted{answers: []string{endlessSQL + " AND EXISTS (SELECT id FROM item)"}}) // a question is about tables
	ann, bob := f.login(t, "ann"), f.login(t, "bob")
	endlessCopy := "COPY (" + endlessSQL + ") TO LAKE 'exports/never' WITH (CONNECTION = 'local')"
	question := m{"database": "shop", "question": "how many?"}
	for sentence, row := range map[string]struct {
		call call
		kind string
		text string // that is shown
	}{
		"as JSON":                  {execute(ann, "", endlessSQL), "query", "count_star()"},
		"as CSV":                   {execute(ann, csvForm, endlessSQL), "query", "count_star()"},
		"as NDJSON":                {execute(ann, ndjsonForm, endlessSQL), "query", "count_star()"},
		"as Arrow":                 {execute(ann, arrowForm, endlessSQL), "query", "count_star()"},
		"a COPY":                   {execute(ann, "", endlessCopy), "copy", endlessCopy},
		"a COPY by its own route":  {call{method: "POST", path: "/v1/lake/copy", bearer: ann, body: m{"database": "shop", "sql": endlessCopy}}, "copy", endlessCopy},
		"an ask":                   {call{method: "POST", path: "/v1/database/ask", bearer: ann, body: question}, "ask", "count_star()"},
		"an ask that streams":      {call{method: "POST", path: "/v1/database/ask", bearer: ann, body: question, header: map[string]string{"Accept": "text/event-stream"}}, "ask", "count_star()"},
		"with a secret in a text":  {execute(ann, "", strings.Replace(endlessSQL, "count(*)", "count(*), max('slc_AAAAAAAAAAAA')", 1)), "query", "'[secret]'"},
		"with a parameter, unseen": {call{method: "POST", path: "/v1/query/execute", bearer: ann, body: m{"database": "shop", "sql": endlessSQL + " AND c.range < $1", "params": []int{424242}}}, "query", "$1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			st := f.start(row.call)
			e := st.wait(t, ann)
			if e["kind"] != row.kind || e["database"] != "shop" || e["owner"] != "ann" || e["name"] != "ann" || !strings.HasPrefix(e["key"].(string), "login_") || !strings.Contains(e["statement"].(string), row.text) ||
				strings.Contains(fmt.Sprint(e), "424242") {
				t.Errorf("entry: %v", e)
			}
			if began, err := time.Parse(time.RFC3339, e["started_at"].(string)); err != nil || began.IsZero() {
				t.Errorf("started: %v", e["started_at"])
			}
			if rows, there := e["rows"]; there != (row.kind != "copy") || there && rows != 0.0 {
				t.Errorf("rows: %v", e["rows"])
			}
			// Nobody else sees it, or learns that it is there.
			if e := st.running(t, bob); e != nil {
				t.Errorf("bob sees %v", e)
			}
			foreign := failure(t, f.json("DELETE", "/v1/queries/"+e["id"].(string), bob, nil), 404, "not_found")
			unknown := failure(t, f.json("DELETE", "/v1/queries/query_x", bob, nil), 404, "not_found")
			if strings.ReplaceAll(fmt.Sprint(foreign["message"], foreign["hint"]), e["id"].(string), "Q") != strings.ReplaceAll(fmt.Sprint(unknown["message"], unknown["hint"]), "query_x", "Q") {
				t.Errorf("a foreign id: %v, an unknown one: %v", foreign, unknown)
			}
			w := st.cancel(t, f.login(t, "ann")) // from another login of hers
			var last m
			if strings.Contains(w.Header().Get("Content-Type"), "event-stream") {
				_, payloads := events(t, w.Body.String())
				last = payloads[len(payloads)-1]["error"].(m)
			} else {
				last = failure(t, w, 499, "canceled")
			}
			if last["code"] != "canceled" || last["message"] != "the statement was cancelled by 'ann'" {
				t.Errorf("her request gets %v", last)
			}
			failure(t, f.json("DELETE", "/v1/queries/"+e["id"].(string), ann, nil), 404, "not_found")
		})
	}
	for _, r := range data[[]any](t, f.json("GET", "/v1/lake/runs", ann, nil)) {
		if r.(m)["state"] != "aborted" {
			t.Errorf("a cancelled COPY: %v", r)
		}
	}
	root := strings.TrimPrefix(f.cfg.Lake.Connections()[0].URL, "file://")
	if _, err := os.Stat(filepath.Join(root, "exports", "never")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a cancelled COPY left something: %v", err)
	}
	if kinds := fmt.Sprint(ledgerOf(f).kinds()); strings.Contains(kinds, "query.cancel") {
		t.Errorf("one's own statements, cancelled, are in the ledger: %s", kinds)
	}
	if list := data[[]any](t, f.json("GET", "/v1/queries", adminKey, nil)); len(list) != 0 {
		t.Errorf("what runs at the end: %v", list)
	}
	got := scrape(t, f)
	wantSeries(t, got, map[string]float64{`sluice_statements_total{kind="query",outcome="canceled"}`: 6, `sluice_statements_total{kind="copy",outcome="canceled"}`: 2,
		`sluice_statements_total{kind="ask",outcome="canceled"}`: 2, `sluice_statements_running`: 0})
}

// TestWhoSeesWhatRuns is access.MayStatement through the routes: other people, their keys, programs that act for them.
func TestWhoSeesWhatRuns(t *testing.T) {
	f := withPersons(t, &scripted{})
	ann := f.login(t, "ann")
	key := func(bearer string, more m) string {
		body := m{"name": "x", "role": "read_write"}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", bearer, body))["key"].(string)
	}
	annKey, annAgent, acting := key(ann, nil), key(ann, m{"agent": true}), key(adminKey, m{"acts_for": m{"header": "X-User"}})
	for sentence, row := range map[string]struct {
		runs  call
		sees  map[string]string // bearer by its description
		blind map[string]string
	}{
		"a person's": {execute(ann, "", endlessSQL), map[string]string{"her key": annKey, "an admin": f.login(t, "root"), "the admin's key": adminKey},
			map[string]string{"her agent": annAgent, "her read_only key": key(ann, m{"role": "read_only"}), "her narrowed key": key(ann, m{"tables": []string{"shop.item"}}), "bob": f.login(t, "bob"),
				"an admin's agent": agentKey, "an admin's narrowed key": narrowKey, "an admin's read_write key": writerKey}},
		"an agent's": {execute(annAgent, "", endlessSQL), map[string]string{"it": annAgent, "its owner": ann, "the admin's key": adminKey}, map[string]string{"bob": f.login(t, "bob"), "another agent": key(ann, m{"agent": true})}},
		"an admin's": {execute(adminKey, "", endlessSQL), map[string]string{"it": adminKey}, map[string]string{"ann": ann, "an admin's read_only key": readOnlyKey, "an admin's agent": agentKey, "an admin's narrowed key": narrowKey}},
	} {
		t.Run(sentence, func(t *testing.T) {
			st := f.start(row.runs)
			id := st.id(t, adminKey)
			for who, bearer := range row.blind {
				if e := st.running(t, bearer); e != nil {
					t.Errorf("%s sees it", who)
				}
				failure(t, f.json("DELETE", "/v1/queries/"+id, bearer, nil), 404, "not_found")
			}
			for who, bearer := range row.sees {
				if e := st.running(t, bearer); e == nil {
					t.Errorf("%s does not see it", who)
				}
			}
			failure(t, f.json("GET", "/v1/queries", "", nil), 401, "unauthenticated")
			failure(t, f.json("DELETE", "/v1/queries/"+id, "", nil), 401, "unauthenticated")
			st.cancel(t, adminKey)
		})
	}
	// One key acts for two people: each has their own.
	as := func(c call, user string) call {
		header := map[string]string{"X-User": user}
		for k, v := range c.header {
			header[k] = v
		}
		c.bearer, c.header = acting, header
		return c
	}
	st := f.start(as(execute("", "", endlessSQL), "ann"))
	id := st.id(t, ann)
	for user, count := range map[string]int{"ann": 1, "bob": 0, "root": 0} {
		if list := data[[]any](t, f.do(as(call{method: "GET", path: "/v1/queries"}, user))); len(list) != count {
			t.Errorf("for %s: %v", user, list)
		}
	}
	failure(t, f.do(as(call{method: "DELETE", path: "/v1/queries/" + id}, "bob")), 404, "not_found")
	failure(t, f.do(as(call{method: "DELETE", path: "/v1/queries/" + id}, "root")), 404, "not_found")
	data[m](t, f.do(as(call{method: "DELETE", path: "/v1/queries/" + id}, "ann")))
	<-st.done
	failure(t, st.w, 499, "canceled")
}

// TestAnAdminWhoCancelsIsInTheLedger, before it is done, and without the other's words.
func TestAnAdminWhoCancelsIsInTheLedger(t *testing.T) {
	f := withPersons(t, &scripted{})
	ann, root := f.login(t, "ann"), f.login(t, "root")
	st := f.start(execute(ann, "", strings.Replace(endlessSQL, "count(*)", "count(*), max('her words')", 1)))
	id := st.id(t, root)
	ledgerOf(f).mu.Lock()
	ledgerOf(f).broken = errors.New("full")
	ledgerOf(f).mu.Unlock()
	failure(t, f.json("DELETE", "/v1/queries/"+id, root, nil), 500, "internal")
	if e := st.running(t, root); e == nil {
		t.Fatal("what could not be recorded was done")
	}
	ledgerOf(f).mu.Lock()
	ledgerOf(f).broken = nil
	ledgerOf(f).mu.Unlock()
	if e := failure(t, st.cancel(t, root), 499, "canceled"); e["message"] != "the statement was cancelled by 'root'" {
		t.Errorf("ann is told %v", e)
	}
	e, details := ledgerOf(f).last(t)
	if e.Kind != "query.cancel" || !strings.HasPrefix(e.Principal, "login_") || details["owner"] != "root" || details["of"] != "ann" || details["query"] != id || details["database"] != "shop" ||
		details["of_request"] != st.requestID || details["failed"] != nil {
		t.Errorf("%+v %v", e, details)
	}
	if text := ledgerOf(f).text(); strings.Contains(text, "her words") {
		t.Errorf("the statement is in the ledger: %s", text)
	}
}
