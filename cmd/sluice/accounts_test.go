package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// accountServer answers the routes of users, keys and grants, and keeps what it was asked.
type accountServer struct {
	*httptest.Server
	asked []string // "METHOD /path body", the token after it
}

func newAccountServer(t *testing.T) *accountServer {
	t.Helper()
	s := &accountServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)+" "+r.Header.Get("Authorization")))
		answer := `{}`
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/auth/login":
			if !strings.Contains(string(body), "right") {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"error":{"code":"unauthenticated","message":"the user or the password is wrong"}}`)
				return
			}
			answer = fmt.Sprintf(`{"token":"slt_%s","expires_at":%q,"authenticated_at":%q}`, strings.Repeat("x", 43), time.Now().Add(time.Hour).Format(time.RFC3339), time.Now().Format(time.RFC3339))
		case "GET /v1/auth/me":
			answer = `{"kind":"login","user":"ann"}`
		case "GET /v1/users":
			answer = `[{"name":"ann","role":"read_only","has_password":true,"created_at":"2026-03-01T12:00:00Z","last_login":null},{"name":"bob\u001b[2J","role":"admin","disabled":true,"created_at":"2026-03-01T12:00:00Z"}]`
		case "GET /v1/keys":
			answer = `[{"id":"key_1","name":"webui","role":"read_only","owner":"ann","agent":true,"databases":["shop"],"tables":[],"models":null,"acts_for":{"header":"X-User"},"created_at":"2026-03-01T12:00:00Z"}]`
		case "GET /v1/grants":
			answer = `[{"id":"grant_1","principal":"ann","kind":"lake_write","connection":"local","path":"a","created_by":"admin","created_at":"2026-03-01T12:00:00Z"}]`
		case "POST /v1/keys":
			answer = `{"id":"key_2","key":"slc_secret"}`
		case "POST /v1/grants":
			if strings.Contains(string(body), "nope") {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"error":{"code":"denied","message":"this needs the password again","hint":"sluice login"}}`)
				return
			}
		}
		fmt.Fprintf(w, `{"data":%s,"meta":{}}`, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *accountServer) last() string { return s.asked[len(s.asked)-1] }

// typedCLI runs a command with text on stdin.
func typedCLI(t *testing.T, url, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("SLUICE_URL", url)
	root := newRoot()
	var out, errs bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		errs.WriteString("error: " + describe(err))
		code = exitCode(err)
	}
	return out.String(), errs.String(), code
}

func TestLoginIsKeptForItsServerAlone(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("SLUICE_KEY", "")
	s, other := newAccountServer(t), newAccountServer(t)
	_, errs, code := typedCLI(t, s.URL, "wrong password\n", "login", "--user", "ann", "--password-stdin")
	if code != 3 || !strings.Contains(errs, "wrong") {
		t.Errorf("a wrong password: exit %d, %s", code, errs)
	}
	out, errs, code := typedCLI(t, s.URL, "right password\n", "login", "--user", "ann", "--password-stdin")
	if code != 0 || out != "" || !strings.Contains(errs, "as ann until") || s.last() != `POST /v1/auth/login {"password":"right password","user":"ann"}` {
		t.Errorf("exit %d, %q, %q, asked %s", code, out, errs, s.last())
	}
	file := filepath.Join(config, "sluice", "logins.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	token := " Bearer slt_" + strings.Repeat("x", 43)
	typedCLI(t, s.URL, "", "users", "list")
	if !strings.HasSuffix(s.last(), token) {
		t.Errorf("the login is not used: %s", s.last())
	}
	typedCLI(t, other.URL, "", "users", "list")
	if strings.Contains(other.last(), "Bearer") {
		t.Errorf("the token went to another server: %s", other.last())
	}
	t.Setenv("SLUICE_KEY", "slc_mine")
	typedCLI(t, s.URL, "", "users", "list")
	if !strings.HasSuffix(s.last(), " Bearer slc_mine") {
		t.Errorf("SLUICE_KEY does not come first: %s", s.last())
	}
	if _, errs, _ := typedCLI(t, s.URL, "right password\n", "login", "--user", "ann", "--password-stdin"); !strings.Contains(errs, "SLUICE_KEY is set") || strings.Contains(s.last(), "slc_mine") {
		t.Errorf("%s; %s", errs, s.last())
	}
	t.Setenv("SLUICE_KEY", "")
	// A login that has ended is not sent: where nobody needs one, it would be in the way.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var logins map[string]login
	if err := json.Unmarshal(text, &logins); err != nil {
		t.Fatal(err)
	}
	l := logins[s.URL]
	l.ExpiresAt = time.Now().Add(-time.Second)
	if err := saveLogin(s.URL, &l); err != nil {
		t.Fatal(err)
	}
	typedCLI(t, s.URL, "", "users", "list")
	if strings.Contains(s.last(), "Bearer") {
		t.Errorf("a login that has ended was sent: %s", s.last())
	}
	l.ExpiresAt = time.Now().Add(time.Hour)
	if err := saveLogin(s.URL, &l); err != nil {
		t.Fatal(err)
	}
	out, _, code = typedCLI(t, s.URL, "", "logout", "--json")
	if code != 0 || s.last() != "POST /v1/auth/logout "+token || !strings.Contains(out, `"success"`) {
		t.Errorf("exit %d, %s, %s", code, out, s.last())
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "slt_") {
		t.Errorf("the token is kept: %s, %v", text, err)
	}
	if _, errs, code := typedCLI(t, s.URL, "", "logout"); code != 1 || !strings.Contains(errs, "no login") {
		t.Errorf("a second logout: exit %d, %s", code, errs)
	}
	// A damaged file is no login, and the next login mends it.
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	typedCLI(t, s.URL, "", "users", "list")
	if _, _, code := typedCLI(t, s.URL, "right password\n", "login", "--user", "ann", "--password-stdin"); code != 0 || savedToken(s.URL, time.Now()) == "" {
		t.Error("a damaged file is in the way")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestAccountCommands(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("SLUICE_KEY", "slc_k")
	s := newAccountServer(t)
	for sentence, row := range map[string]struct {
		args  []string
		stdin string
		code  int
		asked string // without the key; "" nothing
		says  string // in stdout or stderr
	}{
		"users":                     {[]string{"users", "list"}, "", 0, "GET /v1/users", "disabled"},
		"a user":                    {[]string{"users", "add", "ann", "--role", "read_write", "--password-stdin"}, "a password\n", 0, `POST /v1/users {"name":"ann","password":"a password","role":"read_write"}`, "made user ann"},
		"a user without a password": {[]string{"users", "add", "ann", "--no-password"}, "", 0, `POST /v1/users {"name":"ann","role":"read_only"}`, "made user ann"},
		"a user, no way to ask":     {[]string{"users", "add", "ann"}, "", 2, "", "--password-stdin"},
		"a user, nothing on stdin":  {[]string{"users", "add", "ann", "--password-stdin"}, "", 2, "", "missing on stdin"},
		"a user with both":          {[]string{"users", "add", "ann", "--password-stdin", "--no-password"}, "x\n", 2, "", "exclude"},
		"a user without a name":     {[]string{"users", "add"}, "", 2, "", "--help"},
		"one's own password":        {[]string{"users", "passwd", "--password-stdin"}, "old one\nnew one\n", 0, `PATCH /v1/users/ann {"current_password":"old one","password":"new one"}`, "have ended"},
		"another's password":        {[]string{"users", "passwd", "bob", "--password-stdin"}, "new one\n", 0, `PATCH /v1/users/bob {"password":"new one"}`, "have ended"},
		"a role":                    {[]string{"users", "role", "ann", "admin"}, "", 0, `PATCH /v1/users/ann {"role":"admin"}`, "has the role admin"},
		"disable":                   {[]string{"users", "disable", "ann"}, "", 0, `PATCH /v1/users/ann {"disabled":true}`, "disabled ann"},
		"enable":                    {[]string{"users", "enable", "ann"}, "", 0, `PATCH /v1/users/ann {"disabled":false}`, "enabled ann"},
		"rm":                        {[]string{"users", "rm", "a/b"}, "", 0, `DELETE /v1/users/a%2Fb`, "deleted a/b"},
		"keys":                      {[]string{"keys", "list"}, "", 0, "GET /v1/keys", "agent shop nothing acts for X-User"},
		"a key":                     {[]string{"keys", "create", "x", "--owner", "ann", "--expires-in", "90d", "--acts-for", "X-User", "--database", "a,b"}, "", 0, `POST /v1/keys {"name":"x","role":"read_only","owner":"ann","databases":["a","b"],"acts_for":{"header":"X-User"},"expires_in":"2160h0m0s"}`, "slc_secret"},
		"a key of no life":          {[]string{"keys", "create", "x", "--expires-in", "soon"}, "", 2, "", "90d"},
		"a key changed":             {[]string{"keys", "change", "key_1", "--all-databases", "--role", "restricted", "--table", "shop.a", "--no-expiry"}, "", 0, `PATCH /v1/keys/key_1 {"databases":null,"expires_in":null,"role":"restricted","tables":["shop.a"]}`, "changed key key_1"},
		"nothing changed":           {[]string{"keys", "change", "key_1"}, "", 2, "", "nothing to change"},
		"a key deleted":             {[]string{"keys", "delete", "key_1"}, "", 0, "DELETE /v1/keys/key_1", "deleted key key_1"},
		"grants":                    {[]string{"grants", "list", "--principal", "a&b"}, "", 0, "GET /v1/grants?principal=a%26b", "local:a"},
		"a grant":                   {[]string{"grants", "add", "ann", "table", "--database", "shop", "--table", "orders"}, "", 0, `POST /v1/grants {"principal":"ann","kind":"table","database":"shop","table":"orders"}`, "gave ann table on shop.orders"},
		"a grant refused":           {[]string{"grants", "add", "nope", "model", "--name", "x"}, "", 3, `POST /v1/grants {"principal":"nope","kind":"model","name":"x"}`, "hint: sluice login"},
		"a grant of nothing":        {[]string{"grants", "add", "ann"}, "", 2, "", "--help"},
		"a grant less":              {[]string{"grants", "rm", "grant_1"}, "", 0, "DELETE /v1/grants/grant_1", "took grant_1 away"},
		"login without a user":      {[]string{"login", "--password-stdin"}, "x\n", 2, "", "--user is missing"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s.asked = nil
			out, errs, code := typedCLI(t, s.URL, row.stdin, row.args...)
			asked := ""
			if len(s.asked) > 0 {
				asked = strings.TrimSuffix(s.last(), " Bearer slc_k")
				asked = strings.TrimSpace(strings.TrimSuffix(asked, "Bearer slc_k"))
			}
			if code != row.code || asked != row.asked || !strings.Contains(out+errs, row.says) || strings.Contains(out+errs, "\x1b") {
				t.Errorf("exit %d, want %d; asked %s, want %s; %q, want %q in it", code, row.code, asked, row.asked, out+errs, row.says)
			}
			if row.code == 0 {
				s.asked = nil
				out, errs, code := typedCLI(t, s.URL, row.stdin, append(row.args, "--json")...)
				if code != 0 || !json.Valid([]byte(out)) || errs != "" {
					t.Errorf("--json: exit %d, %q, %q", code, out, errs)
				}
			}
		})
	}
	for _, args := range [][]string{{"login"}, {"logout"}, {"users"}, {"users", "passwd"}, {"keys", "create"}, {"keys", "change"}, {"grants", "add"}} {
		if out, _, code := typedCLI(t, s.URL, "", append(args, "--help")...); code != 0 || !strings.Contains(out, "Usage:\n  sluice "+strings.Join(args, " ")) || !strings.Contains(out, "--json") {
			t.Errorf("%v --help: exit %d\n%s", args, code, out)
		}
	}
}
