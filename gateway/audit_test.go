package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/access"
	"sluice/models/registry"
)

// memoryLedger keeps entries in memory. With broken set it takes none.
type memoryLedger struct {
	mu      sync.Mutex
	entries []AuditEntry
	broken  error
	verdict AuditVerdict
}

func (m *memoryLedger) Append(_ context.Context, e AuditEvent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	details, err := json.Marshal(e.Details)
	if err != nil {
		return err
	}
	m.entries = append(m.entries, AuditEntry{Seq: int64(len(m.entries) + 1), Time: time.Now().UTC(), Kind: e.Kind, Principal: e.Principal,
		RequestID: e.RequestID, Details: details})
	return nil
}

func (m *memoryLedger) Entries(_ context.Context, f AuditFilter) ([]AuditEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Limit <= 0 {
		return nil, errors.New("no limit")
	}
	var out []AuditEntry
	for i := len(m.entries) - 1; i >= 0 && len(out) < f.Limit; i-- {
		e := m.entries[i]
		kind := e.Kind == f.Kind || f.Kind == "" || strings.HasSuffix(f.Kind, ".") && strings.HasPrefix(e.Kind, f.Kind)
		if kind && (f.Principal == "" || e.Principal == f.Principal) && !e.Time.Before(f.Since) && (f.Before == 0 || e.Seq < f.Before) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memoryLedger) Verify(context.Context) (AuditVerdict, error) { return m.verdict, m.broken }

// text is all that was recorded, as one text.
func (m *memoryLedger) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, _ := json.Marshal(m.entries)
	return string(all)
}

// kinds are what was recorded, in order.
func (m *memoryLedger) kinds() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, e := range m.entries {
		out = append(out, e.Kind)
	}
	return out
}

func ledgerOf(f *fixture) *memoryLedger { return f.cfg.Ledger.(*memoryLedger) }

// last is the newest entry with its details.
func (m *memoryLedger) last(t *testing.T) (AuditEntry, map[string]any) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) == 0 {
		t.Fatal("nothing was recorded")
	}
	e := m.entries[len(m.entries)-1]
	return e, object(t, e.Details)
}

// changes are requests that change something, with the kind of the entry that each leaves.
var changes = map[string]struct {
	kind string
	call call
}{
	"a key is made":      {"key.create", call{method: "POST", path: "/v1/keys", body: map[string]any{"name": "n", "role": "read_only"}}},
	"a key is deleted":   {"key.delete", call{method: "DELETE", path: "/v1/keys/k-writer"}},
	"a key is changed":   {"key.change", call{method: "PATCH", path: "/v1/keys/k-writer", body: map[string]any{"name": "m"}}},
	"a user is made":     {"user.create", call{method: "POST", path: "/v1/users", body: map[string]any{"name": "zoe", "role": "read_only", "password": "swordfish swordfish"}}},
	"a user is changed":  {"user.change", call{method: "PATCH", path: "/v1/users/ann", body: map[string]any{"disabled": true}}},
	"a user is deleted":  {"user.delete", call{method: "DELETE", path: "/v1/users/ann"}},
	"a right is granted": {"grant.create", call{method: "POST", path: "/v1/grants", body: map[string]any{"principal": "ann", "kind": "model", "name": "tiny"}}},
	"a model is made":    {"model.create", call{method: "POST", path: "/api/create", body: map[string]any{"model": "made", "from": "tiny", "stream": false}}},
	"a model is copied":  {"model.copy", call{method: "POST", path: "/api/copy", body: map[string]any{"source": "tiny", "destination": "copied"}}},
	"a model is deleted": {"model.delete", call{method: "DELETE", path: "/api/delete", body: map[string]any{"model": "encoder"}}},
	"a model is pulled":  {"model.pull", call{method: "POST", path: "/api/pull", body: map[string]any{"model": "pulled", "stream": false}}},
	"a model is pushed":  {"model.push", call{method: "POST", path: "/api/push", body: map[string]any{"model": "tiny", "stream": false}}},
}

// withPeople is a fixture with a registry and the user ann, whose password is given.
func withPeople(t *testing.T, password string) *fixture {
	t.Helper()
	f, _ := withRegistry(t)
	if _, err := f.people.CreateUser(t.Context(), access.User{Name: "ann", Role: access.ReadOnly}, password); err != nil {
		t.Fatal(err)
	}
	return f
}

// state is all that the changes could change.
func state(t *testing.T, f *fixture) string {
	t.Helper()
	var out strings.Builder
	for _, path := range []string{"/v1/keys", "/v1/users", "/v1/grants", "/api/tags"} {
		w := f.do(call{method: "GET", path: path, bearer: adminKey})
		wantStatus(t, w, 200)
		body := object(t, w.Body.Bytes())
		list, ok := body["data"].([]any)
		if !ok {
			list = body["models"].([]any)
		}
		for _, v := range list {
			delete(v.(map[string]any), "last_used") // asking changes it
		}
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		fmt.Fprintln(&out, path, list)
	}
	return out.String()
}

func TestWhatIsChangedIsRecordedBefore(t *testing.T) {
	for sentence, row := range changes {
		t.Run(sentence, func(t *testing.T) {
			f := withPeople(t, "correct horse battery")
			before := state(t, f)
			row.call.bearer, row.call.header = adminKey, map[string]string{"X-Request-Id": "req-1"}

			ledgerOf(f).broken = errors.New("disk full: /secret/place")
			w := f.do(row.call)
			if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(f.log.String(), "could not be put into the audit ledger") {
				t.Errorf("a ledger that takes nothing: %d %s", w.Code, w.Body)
			}
			if after := state(t, f); after != before {
				t.Errorf("what could not be recorded was done:\n%s\nbefore:\n%s", after, before)
			}

			ledgerOf(f).broken = nil
			wantStatus(t, f.do(row.call), 200)
			if kinds := ledgerOf(f).kinds(); !slices.Equal(kinds, []string{row.kind}) {
				t.Fatalf("recorded: %v", kinds)
			}
			if e, details := ledgerOf(f).last(t); e.Principal != "k-admin" || e.RequestID != "req-1" || details["owner"] != "admin" || len(details) < 2 || details["failed"] != nil {
				t.Errorf("the entry is %+v %v", e, details)
			}
			if state(t, f) == before && row.kind != "model.push" {
				t.Error("nothing was changed")
			}
		})
	}
}

// What fails after it was recorded has a second entry that says so.
func TestWhatFailsIsRecordedToo(t *testing.T) {
	f := withPeople(t, "correct horse battery")
	w := f.do(call{method: "DELETE", path: "/api/delete", bearer: adminKey, body: map[string]any{"model": "not-there"}})
	wantStatus(t, w, 404)
	e, details := ledgerOf(f).last(t)
	if e.Kind != "model.delete" || details["failed"] != "not_found" || details["model"] != "not-there" || len(ledgerOf(f).kinds()) != 2 {
		t.Errorf("%+v %v", e, details)
	}
}

// What only reads, or is refused, is counted and leaves no entry.
func TestReadingIsCountedNotRecorded(t *testing.T) {
	f := withPeople(t, "correct horse battery")
	for _, path := range []string{"/v1/keys", "/v1/auth/me", "/api/tags", "/v1/audit", "/v1/users"} {
		f.do(call{method: "GET", path: path, bearer: readOnlyKey})
		f.do(call{method: "GET", path: path, bearer: wrongKey})
	}
	for _, row := range changes {
		row.call.bearer = readOnlyKey
		if w := f.do(row.call); w.Code < 400 {
			t.Errorf("%s %s by a reader: %d", row.call.method, row.call.path, w.Code)
		}
	}
	for _, e := range ledgerOf(f).kinds() {
		t.Errorf("recorded: %s", e)
	}
	text := f.do(call{method: "GET", path: "/metrics"}).Body.String()
	for _, series := range []string{`sluice_access_checks_total{result="allowed"}`, `sluice_access_checks_total{result="unauthenticated"} 5`, `sluice_access_checks_total{result="denied"}`} {
		if !strings.Contains(text, series) {
			t.Errorf("no %s", series)
		}
	}
}

func TestLoginsAreRecorded(t *testing.T) {
	f := withPeople(t, "correct horse battery")
	login := func(user, password string) *httptest.ResponseRecorder {
		return f.do(call{method: "POST", path: "/v1/auth/login", body: map[string]any{"user": user, "password": password}})
	}
	wantStatus(t, login("ann", "wrong horse battery"), 401)
	if e, details := ledgerOf(f).last(t); e.Kind != "auth.login" || details["failed"] != "unauthenticated" || details["user"] != "ann" {
		t.Errorf("%+v %v", e, details)
	}
	wantStatus(t, login("my password is here", "x"), 401)
	if _, details := ledgerOf(f).last(t); details["user"] != "" {
		t.Errorf("what is no user's name was recorded: %v", details)
	}
	ledgerOf(f).broken = errors.New("full")
	wantStatus(t, login("ann", "correct horse battery"), 500)
	ledgerOf(f).broken = nil
	token := data[map[string]any](t, login("ann", "correct horse battery"))["token"].(string)
	if e, details := ledgerOf(f).last(t); e.Kind != "auth.login" || e.Principal == "" || details["owner"] != "ann" || details["failed"] != nil {
		t.Errorf("%+v %v", e, details)
	}
	wantStatus(t, f.do(call{method: "POST", path: "/v1/auth/logout", bearer: token}), 200)
	if e, _ := ledgerOf(f).last(t); e.Kind != "auth.logout" || e.Principal == "" {
		t.Errorf("%+v", e)
	}
}

func TestAnAskIsRecordedWithItsSQL(t *testing.T) {
	const sql = "SELECT name FROM item ORDER BY name"
	f := withAgent(t, &scripted{answers: []string{sql, sql, "DROP TABLE item"}})
	const question = "What is my neighbour's secret?"
	a := data[map[string]any](t, f.ask(readOnlyKey, map[string]any{"question": question}))
	cell := a["rows"].([]any)[0].([]any)[0].(string)
	if kinds := ledgerOf(f).kinds(); !slices.Equal(kinds, []string{"ask.run", "ask.end"}) {
		t.Fatalf("recorded: %v", kinds)
	}
	_, end := ledgerOf(f).last(t)
	run := object(t, ledgerOf(f).entries[0].Details)
	if run["sql"] != a["sql"] || run["database"] != "shop" || end["outcome"] != "answered" || end["ask"] != a["ask_id"] || end["rows"] != float64(len(a["rows"].([]any))) {
		t.Errorf("run %v, end %v", run, end)
	}
	if text := ledgerOf(f).text(); strings.Contains(text, cell) || strings.Contains(text, "neighbour") {
		t.Errorf("rows or the question are in the ledger: %s", text)
	}

	ledgerOf(f).broken = errors.New("full")
	w := f.ask(readOnlyKey, map[string]any{"stream": true})
	if strings.Contains(w.Body.String(), cell) || !strings.Contains(w.Body.String(), "event: error") {
		t.Errorf("an ask that cannot be recorded: %s", w.Body)
	}
	ledgerOf(f).broken = nil
	if a := data[map[string]any](t, f.ask(readOnlyKey, nil)); a["outcome"] != "declined" {
		t.Errorf("%v", a)
	}
	if _, end := ledgerOf(f).last(t); end["outcome"] != "declined" || len(ledgerOf(f).kinds()) != 3 {
		t.Errorf("%v %v", end, ledgerOf(f).kinds())
	}
}

func TestTheLedgerIsReadByAdmins(t *testing.T) {
	f := newFixture(t, nil)
	for i := range 5 {
		kind := []string{"key.create", "copy.start"}[i%2]
		if err := ledgerOf(f).Append(t.Context(), AuditEvent{Kind: kind, Principal: "k", Details: map[string]any{"i": i}}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(query string) *httptest.ResponseRecorder {
		return f.do(call{method: "GET", path: "/v1/audit" + query, bearer: adminKey})
	}
	page := func(query string) (seqs []int64, next any) {
		w := get(query)
		for _, e := range data[[]any](t, w) {
			seqs = append(seqs, int64(e.(map[string]any)["seq"].(float64)))
		}
		return seqs, object(t, w.Body.Bytes())["meta"].(map[string]any)["next_cursor"]
	}
	for query, want := range map[string]string{
		"": "[5 4 3 2 1] <nil>", "?limit=2": "[5 4] 4", "?limit=2&cursor=4": "[3 2] 2", "?limit=2&cursor=2": "[1] <nil>", "?kind=copy.start": "[4 2] <nil>",
		"?kind=key.": "[5 3 1] <nil>", "?principal=x": "[] <nil>", "?since=2100-01-01": "[] <nil>", "?since=2020-01-01T00:00:00Z&limit=1": "[5] 5",
	} {
		if seqs, next := page(query); fmt.Sprintf("%v %v", seqs, next) != want {
			t.Errorf("%q: %v %v, want %s", query, seqs, next, want)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?cursor=", "?cursor=-1", "?cursor=x", "?since=yesterday"} {
		failure(t, get(query), 400, "invalid")
	}
	ledgerOf(f).verdict = AuditVerdict{Status: "partial", Entries: 4, FirstBad: 5, Reason: "entry 5 is missing", Seq: 4, Hash: "ab"}
	v := data[map[string]any](t, get("/verify"))
	if fmt.Sprint(v) != "map[entries:4 first_bad:5 hash:ab reason:entry 5 is missing seq:4 status:partial]" {
		t.Errorf("verdict: %v", v)
	}
	for _, path := range []string{"", "/verify"} {
		for bearer, status := range map[string]int{"": 401, wrongKey: 401, readOnlyKey: 403, writerKey: 403, narrowKey: 403, agentKey: 403} {
			if w := f.do(call{method: "GET", path: "/v1/audit" + path, bearer: bearer}); w.Code != status {
				t.Errorf("%s with %q: %d", path, bearer, w.Code)
			}
		}
	}
}

// Whatever secrets requests bring or answers give, none is in the ledger.
func TestNoSecretIsInTheLedger(t *testing.T) {
	const password, other = "sentinel-password-1", "sentinel-password-2"
	f := withPeople(t, password)
	f.cfg.Registry.(*fakeRegistry).pull = func(context.Context, registry.Transfer, func(api.ProgressResponse)) error { return errors.New("no") }
	const bearer = "a-bearer-of-no-form-at-all"
	f.people.put(t, bearer, access.Key{ID: "k-sentinel", Role: access.Admin})
	secrets := []string{password, other, bearer}
	keep := func(w *httptest.ResponseRecorder, field string) {
		t.Helper()
		secrets = append(secrets, data[map[string]any](t, w)[field].(string))
	}
	login := map[string]any{"user": "ann", "password": password}
	keep(f.do(call{method: "POST", path: "/v1/auth/login", body: login}), "token")
	token := secrets[len(secrets)-1]
	f.do(call{method: "POST", path: "/v1/auth/login", body: map[string]any{"user": password, "password": other}, bearer: bearer})
	f.do(call{method: "POST", path: "/v1/auth/reauth", body: login, bearer: token})
	f.do(call{method: "POST", path: "/v1/auth/reauth", body: map[string]any{"password": other}, bearer: token})
	keep(f.do(call{method: "POST", path: "/v1/keys", bearer: bearer, body: map[string]any{"name": "n", "role": "read_only"}}), "key")
	made := secrets[len(secrets)-1]
	for _, row := range changes {
		row.call.bearer, row.call.header = bearer, map[string]string{"X-Request-Id": bearer}
		f.do(row.call)
	}
	f.do(call{method: "PATCH", path: "/v1/users/ann", bearer: token, body: map[string]any{"password": other, "current_password": password}})
	for _, leak := range []string{made, "https://me:" + other + "@example.org/x", bearer} {
		f.do(call{method: "POST", path: "/v1/keys", bearer: bearer, body: map[string]any{"name": "its key is " + leak, "role": "read_only", "tables": []string{"a." + leak}, "models": []string{leak}}})
		for _, path := range []string{"/api/pull", "/api/push", "/api/delete", "/api/create", "/api/copy"} {
			method := "POST"
			if path == "/api/delete" {
				method = "DELETE"
			}
			f.do(call{method: method, path: path, bearer: bearer, body: map[string]any{"model": leak, "from": leak, "source": leak, "destination": leak, "stream": false}})
		}
	}
	f.do(call{method: "POST", path: "/v1/auth/logout", bearer: token})
	text := ledgerOf(f).text()
	if !strings.Contains(text, "[secret]") || len(ledgerOf(f).kinds()) < 20 {
		t.Errorf("too little was tried: %s", text)
	}
	for _, secret := range secrets {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%q is in the ledger: …%s…", secret, text[max(0, i-150):min(len(text), i+100)])
		}
	}
}

func TestTextsOfTheLedgerAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	got := Presentable(t.Context(), long).(string)
	if cut, rest, ok := strings.Cut(got, "ä… ("); !ok || len(cut) > maxAuditText || rest != fmt.Sprintf("10000 bytes, SHA-256 %x)", sha256.Sum256([]byte(long))) {
		t.Errorf("%d bytes, and %q", len(cut), rest)
	}
	many := slices.Repeat([]string{long}, 100)
	list := Presentable(t.Context(), many).([]any)
	if len(list) != maxAuditList+1 || len(list[0].(string)) > 103 {
		t.Errorf("%d of %d bytes", len(list), len(list[0].(string)))
	}
	if got := Presentable(t.Context(), []string(nil)); got != nil {
		t.Errorf("no list is %v", got)
	}
	if got := Presentable(t.Context(), 7); got != 7 {
		t.Errorf("a number is %v", got)
	}
}
