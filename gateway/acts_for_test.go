package gateway

import (
	"net/http/httptest"
	"testing"

	"sluice/access"
)

func TestAKeyThatActsForOthers(t *testing.T) {
	f := newFixture(t, nil)
	f.user(t, "ann@example.org", access.ReadWrite, access.Grant{Kind: access.GrantModel, Name: "tiny"})
	f.user(t, "root", access.Admin)
	f.user(t, "off", access.ReadOnly)
	disabled := true
	if _, err := f.people.ChangeUser(t.Context(), "off", access.UserChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	const header = "X-OpenWebUI-User-Email"
	key := data[m](t, f.json("POST", "/v1/keys", adminKey, m{"name": "webui", "role": "read_write", "acts_for": m{"header": header}}))["key"].(string)
	as := func(path string, values ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+key)
		for _, v := range values {
			r.Header.Add(header, v)
		}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w
	}
	me := data[m](t, as("/v1/auth/me", "Ann@example.org"))
	if me["owner"] != "ann@example.org" || me["role"] != "read_write" || me["agent"] != true || me["fresh"] != false {
		t.Errorf("me: %v", me)
	}
	if tags := object(t, as("/api/tags", "ann@example.org").Body.Bytes()); len(tags["models"].([]any)) != 1 {
		t.Errorf("ann's models: %v", tags)
	}
	if tags := object(t, as("/api/tags", "root").Body.Bytes()); len(tags["models"].([]any)) != 2 {
		t.Errorf("root's models: %v", tags)
	}
	if me := data[m](t, as("/v1/auth/me", "root")); me["role"] != "read_write" {
		t.Errorf("an admin's role through a key: %v", me)
	}
	for _, path := range []string{"/v1/auth/me", "/api/tags", "/v1/databases"} {
		for sentence, values := range map[string][]string{"nobody": {}, "an unknown user": {"nobody"}, "a disabled user": {"off"}, "nothing": {""}, "two": {"ann@example.org", "root"},
			"one twice": {"root", "root"}, "a list": {"root,ann@example.org"}, "a name with a blank": {" root"}, "a key's id": {"k-admin"}} {
			w := as(path, values...)
			if w.Code != 403 {
				t.Errorf("%s for %s: %d %s", path, sentence, w.Code, w.Body)
			}
		}
	}
	for _, path := range []string{"/v1/users", "/v1/keys", "/v1/grants"} {
		wantStatus(t, as(path, "root"), 403)
	}
	// Its owner's rights are a limit too: the key of a reader who may use one model does no more for an admin.
	f.user(t, "bob", access.ReadOnly, access.Grant{Kind: access.GrantModel, Name: "encoder"})
	key = data[m](t, f.json("POST", "/v1/keys", adminKey, m{"name": "webui", "role": "read_only", "owner": "bob", "acts_for": m{"header": header}}))["key"].(string)
	if tags := object(t, as("/api/tags", "root").Body.Bytes()); len(tags["models"].([]any)) != 1 {
		t.Errorf("root's models through bob's key: %v", tags)
	}
	if tags := object(t, as("/api/tags", "ann@example.org").Body.Bytes()); len(tags["models"].([]any)) != 0 {
		t.Errorf("ann's models through bob's key: %v", tags)
	}
	// Another key's header is of no consequence.
	w := f.do(call{method: "GET", path: "/v1/auth/me", bearer: readOnlyKey, header: map[string]string{header: "root"}})
	if me := data[m](t, w); me["owner"] != access.BootstrapOwner || me["role"] != "read_only" {
		t.Errorf("me: %v", me)
	}
}
