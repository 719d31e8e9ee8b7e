package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/access"
)

// TestWhoMayCallWhat walks every route with every kind of caller, directly and through a proxy. The bodies are empty, so
// a caller who is let in gets at most a 400, and nothing is changed.
func TestWhoMayCallWhat(t *testing.T) {
	const in = 0 // let in: any status but 401 and 403
	type row struct{ none, wrong, readOnly, admin, noneProxied, wrongProxied, readOnlyProxied, adminProxied int }
	want := map[class]row{
		public:    {in, in, in, in, in, in, in, in},
		inference: {in, 401, in, in, 401, 401, in, in},
		manage:    {401, 401, 403, in, 401, 401, 403, in},
		member:    {401, 401, in, in, 401, 401, in, in},
		person:    {401, 401, 403, in, 401, 401, 403, in},
		adminOnly: {401, 401, 403, in, 401, 401, 403, in},
	}
	f := newFixture(t, nil)
	for _, rt := range newServer(f.cfg.withDefaults()).routes() {
		path := strings.NewReplacer(":digest", "x", ":id", "x", ":name", "x", ":key", "x", "*model", "x", "*path", "x").Replace(rt.path)
		w, ok := want[rt.class]
		if !ok {
			t.Fatalf("%s %s has no class of this table", rt.method, rt.path)
		}
		for proxied, statuses := range map[bool][4]int{false: {w.none, w.wrong, w.readOnly, w.admin}, true: {w.noneProxied, w.wrongProxied, w.readOnlyProxied, w.adminProxied}} {
			for i, bearer := range []string{"", wrongKey, readOnlyKey, adminKey} {
				c := call{method: rt.method, path: path, bearer: bearer}
				if proxied {
					c.header = map[string]string{"X-Forwarded-For": "198.51.100.7"}
				}
				got := f.do(c).Code
				let := got != http.StatusUnauthorized && got != http.StatusForbidden
				if statuses[i] == in && !let || statuses[i] != in && got != statuses[i] {
					t.Errorf("%s %s with %q, proxied %v: status %d, want %d", rt.method, rt.path, bearer, proxied, got, statuses[i])
				}
			}
		}
	}
}

func TestRoutesAreOpenOnlyToThisMachineAndOnlyWhenSetSo(t *testing.T) {
	chat := call{method: "POST", path: "/api/show", body: map[string]any{"model": "tiny"}}
	remove := call{method: "DELETE", path: "/api/delete", body: map[string]any{"model": "no-such"}}
	for name, row := range map[string]struct {
		open, openAdmin, loopback bool
		header                    string
		chat, remove              int
	}{
		"open on loopback":                  {open: true, loopback: true, chat: 200, remove: 401},
		"open on another address":           {open: true, chat: 401, remove: 401},
		"closed":                            {loopback: true, chat: 401, remove: 401},
		"Forwarded":                         {open: true, loopback: true, header: "Forwarded", chat: 401, remove: 401},
		"X-Forwarded-Proto":                 {open: true, loopback: true, header: "X-Forwarded-Proto", chat: 401, remove: 401},
		"X-Forwarded-Host":                  {open: true, loopback: true, header: "x-forwarded-host", chat: 401, remove: 401},
		"open_admin":                        {open: true, openAdmin: true, loopback: true, chat: 200, remove: 404},
		"open_admin through a proxy":        {open: true, openAdmin: true, loopback: true, header: "X-Forwarded-For", chat: 401, remove: 401},
		"open_admin on another address":     {open: true, openAdmin: true, chat: 401, remove: 401},
		"open_admin while Ollama's are not": {openAdmin: true, loopback: true, chat: 401, remove: 401},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *Config) { c.OpenOllama, c.OpenAdmin, c.Loopback = row.open, row.openAdmin, row.loopback })
			for i, c := range []call{chat, remove} {
				if row.header != "" {
					c.header = map[string]string{row.header: "x"}
				}
				wantStatus(t, f.do(c), []int{row.chat, row.remove}[i])
			}
		})
	}
}

func TestAuthorizationHeaderThatIsNoKeyIsNeverNobody(t *testing.T) {
	f := newFixture(t, nil)
	for name, header := range map[string]string{"unknown key": "Bearer made-up", "almost the word for no key": "Bearer ollama2", "basic": "Basic YTpi", "empty": "", "no token": "Bearer ", "only a token": adminKey} {
		w := f.do(call{method: "GET", path: "/api/tags", header: map[string]string{"Authorization": header}})
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || object(t, w.Body.Bytes())["error"] == "" {
			t.Errorf("%s: status %d, %s", name, w.Code, w.Body)
		}
	}
	wantStatus(t, f.do(call{method: "GET", path: "/api/tags", header: map[string]string{"Authorization": "bearer " + readOnlyKey}}), 200)
}

// The words for no key open nothing that no key opens: OpenAI's SDKs do not start without one.
func TestAWordForNoKeyIsNobody(t *testing.T) {
	f := newFixture(t, nil)
	for path, want := range map[string]int{"GET /api/tags": 200, "GET /v1/models": 200, "DELETE /api/delete": 401, "GET /v1/databases": 401, "GET /v1/keys": 401} {
		method, path := cutMethod(path)
		wantStatus(t, f.do(call{method: method, path: path, bearer: "Ollama", body: `{"model":"tiny"}`}), want)
	}
	wantStatus(t, f.do(call{method: "GET", path: "/api/tags", bearer: "ollama", header: map[string]string{"X-Forwarded-For": "1.2.3.4"}}), 401)
}

func TestTheKeyInTheHeaderOfAnthropicsSDKs(t *testing.T) {
	for name, row := range map[string]struct {
		auth, key string
		loopback  bool
		status    int
	}{
		"a key":                              {key: readOnlyKey, status: 200},
		"a wrong key":                        {key: wrongKey, loopback: true, status: 401},
		"a made-up key":                      {key: "made-up", loopback: true, status: 401},
		"the word for no key":                {key: "ollama", loopback: true},
		"the word for no key, as a bearer":   {auth: "unused", loopback: true},
		"the word for no key from elsewhere": {key: "ollama", status: 401},
		"an empty key":                       {key: "-", loopback: true, status: 401},
		"no key":                             {loopback: true, status: 200},
		"the same key in both":               {auth: readOnlyKey, key: readOnlyKey, status: 200},
		"two keys":                           {auth: readOnlyKey, key: adminKey, loopback: true, status: 401},
		"a wrong one beside a known one":     {auth: readOnlyKey, key: wrongKey, loopback: true, status: 401},
		"a known one beside a wrong one":     {auth: wrongKey, key: readOnlyKey, loopback: true, status: 401},
		"an empty one beside a known one":    {auth: readOnlyKey, key: "-", status: 200}, // as Claude Code is set up
		"an empty one beside a wrong one":    {auth: wrongKey, key: "-", loopback: true, status: 401},
		"a key with its scheme is no secret": {key: "Bearer " + readOnlyKey, loopback: true, status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *Config) { c.Loopback = row.loopback })
			for _, path := range []string{"/api/tags", "/v1/messages"} {
				c := call{method: "POST", path: path, bearer: row.auth, body: `{}`, header: map[string]string{}}
				if path == "/api/tags" {
					c.method = "GET"
				}
				if row.key != "" {
					c.header["x-api-key"] = strings.TrimPrefix(row.key, "-")
				}
				w := f.do(c)
				if got := w.Code == http.StatusUnauthorized; got != (row.status == 401) {
					t.Errorf("%s: status %d, want %d: %s", path, w.Code, row.status, w.Body)
				}
				if row.status == 401 && path == "/v1/messages" {
					anthropicFailure(t, w, 401, "authentication_error", "")
				}
				if strings.Contains(f.log.String(), readOnlyKey) || strings.Contains(f.log.String(), wrongKey) {
					t.Error("the log holds a key")
				}
			}
		})
	}
	f := newFixture(t, nil)
	r := httptest.NewRequest("GET", "/api/tags", nil)
	r.Host = "localhost"
	r.Header["X-Api-Key"] = []string{readOnlyKey, readOnlyKey}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	wantStatus(t, w, 401)
	w = f.do(call{method: "GET", path: "/v1/auth/me", header: map[string]string{"x-api-key": readOnlyKey}})
	if me := data[map[string]any](t, w); me["key_id"] != "k-readonly" {
		t.Errorf("me: %v", me)
	}
}

func TestTheZeroClassAndTheZeroPrincipalAreRefused(t *testing.T) {
	admin := access.Trusted("k", access.Admin)
	if permit(closed, admin, true, true) == nil {
		t.Error("a route without a class lets an admin in")
	}
	for _, cl := range []class{inference, manage, member, person, adminOnly} {
		for _, who := range []access.Principal{{}, {KeyID: "k"}, {Role: access.Admin}, {KeyID: "k", Role: access.Admin + 1}, {KeyID: "k", Owner: access.BootstrapOwner, Role: access.Admin}} {
			if permit(cl, who, false, false) == nil {
				t.Errorf("class %d lets %+v in", cl, who)
			}
		}
	}
}

func TestKeysThatMayNotMakeKeys(t *testing.T) {
	f := newFixture(t, nil)
	for _, bearer := range []string{agentKey, narrowKey, writerKey, readOnlyKey} {
		for _, c := range []call{{method: "GET", path: "/v1/keys"}, {method: "POST", path: "/v1/keys", body: map[string]any{"name": "x", "role": "admin"}}, {method: "DELETE", path: "/v1/keys/k-admin"}} {
			c.bearer = bearer
			wantStatus(t, f.do(c), 403)
		}
	}
}

func TestKeysAreMadeListedAndDeleted(t *testing.T) {
	f := newFixture(t, nil)
	w := f.do(call{method: "POST", path: "/v1/keys", bearer: adminKey, body: map[string]any{"name": "reports", "role": "read_only", "databases": []string{}}})
	wantStatus(t, w, 200)
	made := object(t, w.Body.Bytes())["data"].(map[string]any)
	key, id := made["key"].(string), made["id"].(string)
	w = f.do(call{method: "GET", path: "/v1/auth/me", bearer: key})
	wantStatus(t, w, 200)
	me := object(t, w.Body.Bytes())["data"].(map[string]any)
	if me["role"] != "read_only" || me["key_id"] != id || fmt.Sprint(me["databases"]) != "[]" || me["models"] != nil {
		t.Errorf("me: %v", me)
	}
	if w = f.do(call{method: "GET", path: "/v1/keys", bearer: adminKey}); strings.Contains(w.Body.String(), "slc_") {
		t.Errorf("the list shows a secret: %s", w.Body)
	}
	for name, body := range map[string]string{"no name": `{"role":"admin"}`, "no role": `{"name":"x"}`, "unknown role": `{"name":"x","role":"root"}`, "unknown key": `{"name":"x","role":"admin","rol":1}`} {
		if w := f.do(call{method: "POST", path: "/v1/keys", bearer: adminKey, body: body}); w.Code != 400 {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
	w = f.do(call{method: "GET", path: "/v1/keys/" + id, bearer: adminKey})
	if one := data[map[string]any](t, w); one["name"] != "reports" || one["id"] != id || strings.Contains(w.Body.String(), "slc_") {
		t.Errorf("one key: %v", one)
	}
	failure(t, f.do(call{method: "GET", path: "/v1/keys/no-such", bearer: adminKey}), 404, "not_found")
	wantStatus(t, f.do(call{method: "DELETE", path: "/v1/keys/" + id, bearer: adminKey}), 200)
	wantStatus(t, f.do(call{method: "DELETE", path: "/v1/keys/" + id, bearer: adminKey}), 404)
	wantStatus(t, f.do(call{method: "GET", path: "/v1/auth/me", bearer: key}), 401)
}
