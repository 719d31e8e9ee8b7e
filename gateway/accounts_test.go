package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/access"
)

func (f *fixture) json(method, path, bearer string, body any) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.do(call{method: method, path: path, bearer: bearer, body: body})
}

type m = map[string]any

func TestAUserLogsInAndOut(t *testing.T) {
	f := newFixture(t, nil)
	f.byTheirClock()
	data[m](t, f.json("POST", "/v1/users", adminKey, m{"name": "Ann", "role": "read_write", "password": passwordOf("ann")}))
	w := f.json("POST", "/v1/auth/login", "", m{"user": "ANN", "password": passwordOf("ann")})
	made := data[m](t, w)
	token := made["token"].(string)
	if len(token) != 47 || !strings.HasPrefix(token, "slt_") || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("login: %v", made)
	}
	expires, _ := time.Parse(time.RFC3339, made["expires_at"].(string))
	if since := time.Until(expires); since < 11*time.Hour || since > 13*time.Hour {
		t.Errorf("a login of %s", since)
	}
	me := data[m](t, f.json("GET", "/v1/auth/me", token, nil))
	if me["kind"] != "login" || me["user"] != "ann" || me["role"] != "read_write" || me["fresh"] != true || me["agent"] != false || fmt.Sprint(me["grants"]) != "[]" {
		t.Errorf("me: %v", me)
	}
	if u := data[m](t, f.json("GET", "/v1/users/ann", token, nil)); u["name"] != "ann" || u["last_login"] == nil || u["has_password"] != true || fmt.Sprint(u) == "" || strings.Contains(fmt.Sprint(u), "argon2") {
		t.Errorf("user: %v", u)
	}
	// After fresh_for the login still works, but not for what needs it fresh.
	f.people.wait(16 * time.Minute)
	if me := data[m](t, f.json("GET", "/v1/auth/me", token, nil)); me["fresh"] != false {
		t.Errorf("me: %v", me)
	}
	for body, status := range map[string]int{`{"password":"no"}`: 403, `{}`: 400, `{"user":"bob","password":"x"}`: 400} {
		wantStatus(t, f.json("POST", "/v1/auth/reauth", token, body), status)
	}
	again := data[m](t, f.json("POST", "/v1/auth/reauth", token, m{"password": passwordOf("ann")}))
	if again["token"] != token || again["expires_at"] != made["expires_at"] || again["authenticated_at"] == made["authenticated_at"] {
		t.Errorf("reauth: %v", again)
	}
	if me := data[m](t, f.json("GET", "/v1/auth/me", token, nil)); me["fresh"] != true {
		t.Errorf("me: %v", me)
	}
	wantStatus(t, f.json("POST", "/v1/auth/reauth", adminKey, m{"password": "x"}), 400)
	wantStatus(t, f.json("POST", "/v1/auth/logout", adminKey, nil), 400)
	data[m](t, f.json("POST", "/v1/auth/logout", token, nil))
	failure(t, f.json("GET", "/v1/auth/me", token, nil), 401, "unauthenticated")

	// And a login ends by itself.
	token = f.login(t, "ann")
	f.people.wait(13 * time.Hour)
	if e := failure(t, f.json("GET", "/v1/auth/me", token, nil), 401, "unauthenticated"); !strings.Contains(e["message"].(string), "log in again") {
		t.Errorf("%v", e)
	}
	for _, secret := range []string{token, passwordOf("ann")} {
		if strings.Contains(f.log.String(), secret) || strings.Contains(f.cfg.Ledger.(*memoryLedger).text(), secret) {
			t.Errorf("a secret is in the log or the ledger")
		}
	}
}

// TestALoginTellsNothing: whatever is wrong has one answer, byte for byte but for the request's id.
func TestALoginTellsNothing(t *testing.T) {
	f := newFixture(t, nil)
	f.user(t, "ann", access.ReadOnly)
	f.user(t, "off", access.ReadOnly)
	disabled := true
	if _, err := f.people.ChangeUser(t.Context(), "off", access.UserChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	answers := map[string]bool{}
	for sentence, body := range map[string]m{
		"a wrong password":               {"user": "ann", "password": "wrong password"},
		"an unknown user":                {"user": "nobody", "password": "wrong password"},
		"a disabled user":                {"user": "off", "password": passwordOf("off")},
		"the admin, who has no password": {"user": "admin", "password": "wrong password"},
		"what is no name":                {"user": "../x y", "password": "wrong password"},
		"a key's id":                     {"user": "bootstrap", "password": "wrong password"},
		"a password too long":            {"user": "ann", "password": strings.Repeat("x", 2000)},
		"the hash as password":           {"user": "ann", "password": "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"},
	} {
		w := f.json("POST", "/v1/auth/login", "", body)
		e := failure(t, w, 401, "unauthenticated")
		delete(e, "request_id")
		answers[fmt.Sprint(e)] = true
		if len(answers) != 1 {
			t.Fatalf("%s: another answer: %v", sentence, answers)
		}
	}
	for _, body := range []string{``, `{}`, `{"user":"ann"}`, `{"user":"ann","password":""}`, `{"user":"ann","password":"x","role":"admin"}`, `[]`} {
		wantStatus(t, f.json("POST", "/v1/auth/login", "", body), 400)
	}
	wantStatus(t, f.json("POST", "/v1/auth/login", "", `{"user":"ann","password":"`+strings.Repeat("x", maxCredentials)+`"}`), 413)
	if text := f.cfg.Ledger.(*memoryLedger).text(); strings.Contains(text, "../x y") || strings.Contains(text, "wrong password") || !strings.Contains(text, "ann") {
		t.Errorf("ledger: %s", text)
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	f := newFixture(t, nil)
	f.byTheirClock()
	f.user(t, "ann", access.ReadOnly)
	f.user(t, "bob", access.ReadOnly)
	try := func(user, password, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v1/auth/login", strings.NewReader(fmt.Sprintf(`{"user":%q,"password":%q}`, user, password)))
		r.Host, r.RemoteAddr = "localhost", from
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w
	}
	// Many at once do not get more guesses than one after another, whatever the address and the case of the name.
	var wait sync.WaitGroup
	codes := make([]int, 40)
	for i := range codes {
		wait.Go(func() {
			codes[i] = try([]string{"ann", "ANN"}[i%2], "guess number "+fmt.Sprint(i), fmt.Sprintf("198.51.100.%d:1", i)).Code
		})
	}
	wait.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	if count[401] != attemptsOfUser || count[503] != len(codes)-attemptsOfUser {
		t.Errorf("answers %v", count)
	}
	w := try("ann", passwordOf("ann"), "203.0.113.1:1")
	failure(t, w, 503, "busy") // locked, even for the right password
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantStatus(t, try("bob", passwordOf("bob"), "203.0.113.1:1"), 200)
	// A name that nobody has is locked in the same way.
	for range attemptsOfUser {
		try("nobody", "guess guess", "203.0.113.2:1")
	}
	failure(t, try("nobody", "guess guess", "203.0.113.3:1"), 503, "busy")
	f.people.wait(16 * time.Minute)
	wantStatus(t, try("ann", passwordOf("ann"), "203.0.113.1:1"), 200)

	// One address, many names; an account of one's own between them does not help.
	last := 0
	for i := range attemptsFrom + 10 {
		last = try(fmt.Sprintf("user%d", i), "guess guess", "[2001:db8::"+fmt.Sprint(i+1)+"]:1").Code
		if i%10 == 9 {
			try("bob", passwordOf("bob"), "[2001:db8::1]:1")
		}
	}
	if last != 503 {
		t.Errorf("the last answer is %d", last)
	}
	wantStatus(t, try("bob", passwordOf("bob"), "[2001:db8:0:1::1]:1"), 200)
	// The forwarded address is what the sender wants it to be.
	r := httptest.NewRequest("POST", "/v1/auth/login", strings.NewReader(`{"user":"bob","password":"x"}`))
	r.Host, r.RemoteAddr = "localhost", "[2001:db8::2]:1"
	r.Header.Set("X-Forwarded-For", "192.0.2.77")
	w = httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	wantStatus(t, w, 503)
	// Reauth and a change of one's own password are guesses too.
	token := f.login(t, "ann")
	for range attemptsOfUser {
		f.json("POST", "/v1/auth/reauth", token, m{"password": "guess"})
	}
	failure(t, f.json("PATCH", "/v1/users/ann", token, m{"password": "another password", "current_password": passwordOf("ann")}), 503, "busy")
}

// TestWhatUsersMayDoToAccounts tries to get more than one has.
func TestWhatUsersMayDoToAccounts(t *testing.T) {
	f := newFixture(t, nil)
	f.byTheirClock()
	f.user(t, "ann", access.ReadWrite)
	f.user(t, "bob", access.ReadOnly)
	f.user(t, "root", access.Admin)
	ann, root := f.login(t, "ann"), f.login(t, "root")
	bobs := data[m](t, f.json("POST", "/v1/keys", root, m{"name": "of bob", "role": "read_only", "owner": "bob"}))
	anns := data[m](t, f.json("POST", "/v1/keys", ann, m{"name": "mine", "role": "read_write"}))
	g := f.grant(t, "bob", access.Grant{Kind: access.GrantModel, Name: "tiny"})
	annsKey := anns["key"].(string)
	for sentence, row := range map[string]struct {
		bearer, method, path string
		body                 any
		status               int
	}{
		"listing users":                          {ann, "GET", "/v1/users", nil, 403},
		"looking at another user":                {ann, "GET", "/v1/users/bob", nil, 404},
		"looking at nobody":                      {ann, "GET", "/v1/users/nobody", nil, 404},
		"making a user":                          {ann, "POST", "/v1/users", m{"name": "eve", "role": "admin", "password": "12345678"}, 403},
		"raising one's own role":                 {ann, "PATCH", "/v1/users/ann", m{"role": "admin"}, 403},
		"the same with the password":             {ann, "PATCH", "/v1/users/ann", m{"role": "admin", "password": "another one", "current_password": passwordOf("ann")}, 403},
		"another's password":                     {ann, "PATCH", "/v1/users/bob", m{"password": "another one"}, 404},
		"the admin's password":                   {ann, "PATCH", "/v1/users/admin", m{"password": "another one"}, 404},
		"one's own password without the present": {ann, "PATCH", "/v1/users/ann", m{"password": "another one"}, 400},
		"one's own with a wrong present":         {ann, "PATCH", "/v1/users/ann", m{"password": "another one", "current_password": "nonsense"}, 403},
		"one's own, too short":                   {ann, "PATCH", "/v1/users/ann", m{"password": "short", "current_password": passwordOf("ann")}, 400},
		"a password with a key":                  {annsKey, "PATCH", "/v1/users/ann", m{"password": "another one", "current_password": passwordOf("ann")}, 403},
		"deleting a user":                        {ann, "DELETE", "/v1/users/bob", nil, 403},
		"a key for another":                      {ann, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "owner": "bob"}, 403},
		"a key for nobody":                       {ann, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "owner": "nobody"}, 403},
		"a key with a higher role":               {ann, "POST", "/v1/keys", m{"name": "x", "role": "admin"}, 403},
		"a key that acts for others":             {ann, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "acts_for": m{"header": "X-User"}}, 403},
		"a key by a key":                         {annsKey, "POST", "/v1/keys", m{"name": "x", "role": "read_only"}, 403},
		"keys by a key":                          {annsKey, "GET", "/v1/keys", nil, 403},
		"another's key":                          {ann, "GET", "/v1/keys/" + bobs["id"].(string), nil, 404},
		"changing another's key":                 {ann, "PATCH", "/v1/keys/" + bobs["id"].(string), m{"name": "x"}, 404},
		"deleting another's key":                 {ann, "DELETE", "/v1/keys/" + bobs["id"].(string), nil, 404},
		"deleting the admin's key":               {ann, "DELETE", "/v1/keys/k-admin", nil, 404},
		"raising the role of one's own key":      {ann, "PATCH", "/v1/keys/" + anns["id"].(string), m{"role": "admin"}, 403},
		"giving oneself a right":                 {ann, "POST", "/v1/grants", m{"principal": "ann", "kind": "model", "name": "tiny"}, 403},
		"taking a right of another away":         {ann, "DELETE", "/v1/grants/" + g.ID, nil, 403},
		"another's grant":                        {ann, "GET", "/v1/grants/" + g.ID, nil, 404},
		"a model deleted":                        {ann, "DELETE", "/api/delete", m{"model": "tiny"}, 403},
		"the built-in user deleted":              {root, "DELETE", "/v1/users/admin", nil, 409},
		"the built-in user disabled":             {root, "PATCH", "/v1/users/admin", m{"disabled": true}, 409},
		"the built-in user made a reader":        {root, "PATCH", "/v1/users/admin", m{"role": "read_only"}, 409},
		"a key above its owner, by an admin":     {root, "POST", "/v1/keys", m{"name": "x", "role": "admin", "owner": "bob"}, 403},
		"a user of a taken name":                 {root, "POST", "/v1/users", m{"name": "BOB", "role": "read_only"}, 409},
		"a user with the name of a key":          {root, "POST", "/v1/users", m{"name": "bootstrap", "role": "read_only"}, 400},
		"a user without a role":                  {root, "POST", "/v1/users", m{"name": "eve"}, 400},
		"a user with a short password":           {root, "POST", "/v1/users", m{"name": "eve", "role": "read_only", "password": "1234567"}, 400},
		"a key of no life":                       {root, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "expires_in": "0s"}, 400},
		"a key of a life that is none":           {root, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "expires_in": "soon"}, 400},
		"a key that acts for Authorization":      {root, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "acts_for": m{"header": "Authorization"}}, 400},
		"a table list of bare names":             {root, "POST", "/v1/keys", m{"name": "x", "role": "read_only", "tables": []string{"orders"}}, 400},
		"nothing to change":                      {root, "PATCH", "/v1/users/bob", m{}, 400},
		"one's own password as admin, stolen":    {root, "PATCH", "/v1/users/root", m{"password": "another one"}, 400},
	} {
		if w := f.json(row.method, row.path, row.bearer, row.body); w.Code != row.status {
			t.Errorf("%s: %d, want %d: %s", sentence, w.Code, row.status, w.Body)
		}
	}
	if list := data[[]any](t, f.json("GET", "/v1/keys", ann, nil)); len(list) != 1 || list[0].(m)["id"] != anns["id"] || list[0].(m)["owner"] != "ann" {
		t.Errorf("ann's keys: %v", list)
	}
	if list := data[[]any](t, f.json("GET", "/v1/grants", ann, nil)); len(list) != 0 {
		t.Errorf("ann's grants: %v", list)
	}
	if list := data[[]any](t, f.json("GET", "/v1/grants?principal=bob", root, nil)); len(list) != 1 {
		t.Errorf("bob's grants: %v", list)
	}
	// A login that is not fresh changes nothing, an admin's neither: a key, which is always fresh, would be a way around it.
	f.people.wait(20 * time.Minute)
	for sentence, row := range map[string]struct{ bearer, method, path, body string }{
		"a key":          {ann, "POST", "/v1/keys", `{"name":"x","role":"read_write"}`},
		"a wider key":    {ann, "PATCH", "/v1/keys/" + anns["id"].(string), `{"databases":null}`},
		"a user":         {root, "POST", "/v1/users", `{"name":"eve","role":"admin","password":"12345678"}`},
		"a password":     {root, "PATCH", "/v1/users/bob", `{"password":"12345678"}`},
		"a role":         {root, "PATCH", "/v1/users/bob", `{"role":"admin"}`},
		"a user deleted": {root, "DELETE", "/v1/users/bob", ``},
		"a grant":        {root, "POST", "/v1/grants", `{"principal":"bob","kind":"model","name":"x"}`},
		"a grant less":   {root, "DELETE", "/v1/grants/" + g.ID, ``},
	} {
		if e := failure(t, f.json(row.method, row.path, row.bearer, row.body), 403, "denied"); e["kind"] != "auth" || e["hint"] == "" {
			t.Errorf("%s: %v", sentence, e)
		}
	}
	data[m](t, f.json("DELETE", "/v1/keys/"+anns["id"].(string), ann, nil)) // to have less needs no password
}

// TestWhatEndsALogin: a new password, being disabled and being deleted end what a user has, at the next request.
func TestWhatEndsALogin(t *testing.T) {
	f := newFixture(t, nil)
	for name, row := range map[string]struct {
		method string
		body   any
		keyToo bool
	}{
		"password": {"PATCH", m{"password": "a new password"}, false},
		"disabled": {"PATCH", m{"disabled": true}, true},
		"deleted":  {"DELETE", nil, true},
		"lowered":  {"PATCH", m{"role": "restricted"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f.user(t, name, access.ReadWrite)
			one, two := f.login(t, name), f.login(t, name)
			key := data[m](t, f.json("POST", "/v1/keys", one, m{"name": "x", "role": "read_write"}))
			data[m](t, f.json(row.method, "/v1/users/"+name, adminKey, row.body))
			want := 401
			if name == "lowered" {
				want = 200
			}
			for _, token := range []string{one, two} {
				wantStatus(t, f.json("GET", "/v1/auth/me", token, nil), want)
			}
			w := f.json("GET", "/v1/auth/me", key["key"].(string), nil)
			if (w.Code == 401) != row.keyToo {
				t.Errorf("the key: %d %s", w.Code, w.Body)
			}
			if name == "lowered" && data[m](t, w)["role"] != "restricted" {
				t.Errorf("a key above its owner: %s", w.Body)
			}
		})
	}
	off := false
	if _, err := f.people.ChangeUser(t.Context(), "disabled", access.UserChange{Disabled: &off}); err != nil {
		t.Fatal(err)
	}
	f.login(t, "disabled")
	// A user of the same name has nothing of the one who was deleted.
	f.user(t, "deleted", access.ReadOnly)
	if list := data[[]any](t, f.json("GET", "/v1/keys", f.login(t, "deleted"), nil)); len(list) != 0 {
		t.Errorf("keys of a new user: %v", list)
	}
}

func TestOnesOwnPassword(t *testing.T) {
	f := newFixture(t, nil)
	f.user(t, "ann", access.ReadOnly)
	token := f.login(t, "ann")
	data[m](t, f.json("PATCH", "/v1/users/ann", token, m{"password": "another one", "current_password": passwordOf("ann")}))
	wantStatus(t, f.json("GET", "/v1/auth/me", token, nil), 401)
	wantStatus(t, f.json("POST", "/v1/auth/login", "", m{"user": "ann", "password": passwordOf("ann")}), 401)
	wantStatus(t, f.json("POST", "/v1/auth/login", "", m{"user": "ann", "password": "another one"}), 200)
	// The built-in user has no password until the admin's key sets one.
	data[m](t, f.json("PATCH", "/v1/users/admin", adminKey, m{"password": passwordOf("admin")}))
	if me := data[m](t, f.json("GET", "/v1/auth/me", f.login(t, "admin"), nil)); me["role"] != "admin" {
		t.Errorf("me: %v", me)
	}
}

func TestKeysEndAndAreUsed(t *testing.T) {
	f := newFixture(t, nil)
	f.byTheirClock()
	made := data[m](t, f.json("POST", "/v1/keys", adminKey, m{"name": "x", "role": "read_only", "expires_in": "2h", "databases": []string{"a"}}))
	key, path := made["key"].(string), "/v1/keys/"+made["id"].(string)
	info := func() m { return data[m](t, f.json("GET", path, adminKey, nil)) }
	if i := info(); i["last_used"] != nil || i["expires_at"] != made["expires_at"] || fmt.Sprint(i["databases"]) != "[a]" || i["acts_for"] != nil {
		t.Errorf("before: %v", i)
	}
	wantStatus(t, f.json("GET", "/v1/auth/me", key, nil), 200)
	first := info()["last_used"]
	f.people.wait(30 * time.Second)
	wantStatus(t, f.json("GET", "/v1/auth/me", key, nil), 200)
	if first == nil || info()["last_used"] != first {
		t.Errorf("used at %v, then %v: it is written once a minute", first, info()["last_used"])
	}
	f.people.wait(31 * time.Second)
	wantStatus(t, f.json("GET", "/v1/auth/me", key, nil), 200)
	if info()["last_used"] == first {
		t.Error("a later use is not seen")
	}
	data[m](t, f.json("PATCH", path, adminKey, m{"expires_in": nil, "databases": nil, "name": "y", "role": "restricted", "models": []string{}}))
	if i := info(); i["expires_at"] != nil || i["databases"] != nil || i["name"] != "y" || i["role"] != "restricted" || fmt.Sprint(i["models"]) != "[]" {
		t.Errorf("after: %v", i)
	}
	failure(t, f.json("PATCH", path, adminKey, m{"role": "read_only"}), 403, "denied")
	data[m](t, f.json("PATCH", path, adminKey, m{"expires_in": 60}))
	f.people.wait(time.Hour)
	if e := failure(t, f.json("GET", "/v1/auth/me", key, nil), 401, "unauthenticated"); !strings.Contains(e["message"].(string), "expired") {
		t.Errorf("%v", e)
	}
	wantStatus(t, f.json("GET", "/api/tags", key, nil), 401) // never nobody, where nobody would be let in
	data[m](t, f.json("PATCH", path, adminKey, m{"name": "z"}))
	for _, body := range []string{`{"databases":"a"}`, `{"expires_in":-1}`, `{"agent":true}`, `{"owner":"x"}`, `{"tables":[""]}`, `{"role":"root"}`, `{"name":""}`} {
		wantStatus(t, f.json("PATCH", path, adminKey, body), 400)
	}
	// A key with an end makes no keys: they could outlive it.
	short := data[m](t, f.json("POST", "/v1/keys", adminKey, m{"name": "short", "role": "admin", "expires_in": 3600}))
	failure(t, f.json("POST", "/v1/keys", short["key"].(string), m{"name": "long", "role": "admin"}), 403, "denied")
}
