package registry

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/registrytest"
)

const secret = "hunter2"

func TestTokens(t *testing.T) {
	me := map[string]string{"user": "me", "password": secret}
	cases := map[string]struct {
		login *registrytest.Login
		who   map[string]string
		push  bool
		code  fault.Code
		text  string
	}{
		"anyone may pull, with a token":                 {login: &registrytest.Login{User: "me", Password: secret}},
		"a token that is good for two requests":         {login: &registrytest.Login{User: "me", Password: secret, Lives: 2}},
		"the user may push":                             {login: &registrytest.Login{User: "me", Password: secret}, who: me, push: true},
		"tokens run out in the middle of a push":        {login: &registrytest.Login{User: "me", Password: secret, Lives: 3}, who: me, push: true},
		"a stranger may not push":                       {login: &registrytest.Login{User: "me", Password: secret}, push: true, code: fault.Denied, text: "wants a login for library/m"},
		"nor may a wrong password":                      {login: &registrytest.Login{User: "me", Password: "another"}, who: me, push: true, code: fault.Denied, text: "wants a login"},
		"a password without tokens":                     {login: &registrytest.Login{User: "me", Password: secret, Basic: true}, who: me},
		"a password that is missing":                    {login: &registrytest.Login{User: "me", Password: secret, Basic: true}, code: fault.Denied, text: "wants a login"},
		"a password that is wrong":                      {login: &registrytest.Login{User: "me", Password: "another", Basic: true}, who: me, code: fault.Denied, text: "does not allow it"},
		"a token server elsewhere, without TLS":         {login: &registrytest.Login{User: "me", Password: secret, Realm: "http://127.0.0.1:9/token"}, who: me, code: fault.Denied, text: "without TLS"},
		"a token server elsewhere, of a plain registry": {login: &registrytest.Login{User: "me", Password: secret, Realm: "https://127.0.0.1:9/token"}, who: me, code: fault.Denied, text: "without TLS"},
		"a token server that is none":                   {login: &registrytest.Login{User: "me", Password: secret, Realm: "::"}, code: fault.Conflict, text: "not a URL"},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t, registrytest.Options{Login: row.login})
			file := gguf(t, 2*partBytes, 6)
			c := newClient(t, t.TempDir(), r, func(cfg *Config) {
				if row.who != nil {
					cfg.Credentials = map[string]Credential{r.Host: {User: row.who["user"], Password: row.who["password"]}}
				}
			})
			var err error
			if row.push {
				create(t, c.store, "m", file, "")
				err = c.Push(t.Context(), Transfer{Name: "m", Insecure: true}, nil)
			} else {
				seed(t, r, "m", file, "")
				err = c.pull(t.Context(), "m")
			}
			if row.text != "" {
				wantFault(t, err, row.code, row.text)
				if text := fmt.Sprintf("%v %+v", err, fault.Public(err)); strings.Contains(text, secret) || strings.Contains(text, "token-") {
					t.Errorf("the error has a secret: %s", text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !row.push {
				wantModel(t, c, r, "m")
			}
			if !row.login.Basic && row.login.Issued() == 0 {
				t.Error("no token was asked for")
			}
		})
	}
}

// A token server on another host gets a password only when it is an allowed registry itself.
func TestWhoGetsThePassword(t *testing.T) {
	for name, row := range map[string]struct {
		hosts []string
		want  bool
	}{
		"the registry's own":              {[]string{"example.com"}, false},
		"one that is an allowed registry": {[]string{"example.com", "cdn.example.com"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			login := &registrytest.Login{User: "me", Password: secret, Realm: "https://cdn.example.com/token"}
			r := startRegistry(t, registrytest.Options{TLS: true, Login: login})
			seed(t, r, "m", gguf(t, 100_000, 5), "")
			c := publicly(t, r, map[string]string{"example.com": "203.0.113.1", "cdn.example.com": "203.0.113.2"})
			c.cfg.Hosts = row.hosts
			mustPull(t, c, "m")
			asked := r.Requests("", "/token")
			if len(asked) == 0 {
				t.Fatal("no token was asked for")
			}
			for _, q := range asked {
				if got := q.Authorization != ""; got != row.want {
					t.Errorf("the password was sent: %t", got)
				}
			}
		})
	}
}

func TestCredentialsDoNotShow(t *testing.T) {
	c := Credential{User: "me", Password: secret, Token: secret}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "credential", c)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c, c), fmt.Sprintf("%v", Config{Credentials: map[string]Credential{"h": c}}), log.String()} {
		if strings.Contains(text, secret) {
			t.Error(text)
		}
	}
}

func TestChallenges(t *testing.T) {
	cases := map[string]struct {
		header string
		scheme string
		params map[string]string
	}{
		"as Docker's":                  {`Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull"`, "bearer", map[string]string{"realm": "https://auth.example/token", "service": "registry.example", "scope": "repository:a/b:pull"}},
		"commas and quotes in a value": {`bearer realm="x", scope="repository:a:pull,push", service="a \"b\""`, "bearer", map[string]string{"realm": "x", "scope": "repository:a:pull,push", "service": `a "b"`}},
		"no quotes":                    {`Basic realm=registry`, "basic", map[string]string{"realm": "registry"}},
		"nothing":                      {``, "", map[string]string{}},
		"an open quote":                {`Bearer realm="x`, "bearer", map[string]string{"realm": "x"}},
		"the first one counts":         {`Bearer realm="x",realm="y"`, "bearer", map[string]string{"realm": "x"}},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseChallenge(row.header); got.scheme != row.scheme || !maps.Equal(got.params, row.params) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://auth.example/token",service="a \"b\"",scope="repository:a/b:pull,push"`)
	f.Fuzz(func(t *testing.T, header string) {
		for key := range parseChallenge(header).params {
			if key != strings.ToLower(key) {
				t.Errorf("the key %q is not lower case", key)
			}
		}
	})
}
