package e2e

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The engine is a child process: nothing of llama.cpp is in the gateway's binary, and it is in the runner's.
func TestGatewayDoesNotLinkTheEngine(t *testing.T) {
	bin, err := need("SLUICE_TEST_BIN")
	if err != nil {
		t.Fatal(err)
	}
	count := func(name string) int {
		f, err := elf.Open(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		symbols, err := f.Symbols()
		if err != nil {
			t.Fatalf("%s: %v (built with -s?)", name, err)
		}
		n := 0
		for _, s := range symbols {
			if strings.HasPrefix(s.Name, "ggml_") || strings.HasPrefix(s.Name, "llama_") {
				n++
			}
		}
		return n
	}
	if n := count("sluice"); n != 0 {
		t.Errorf("bin/sluice has %d symbols of the engine", n)
	}
	if count("sluice-runner") == 0 {
		t.Error("bin/sluice-runner has no symbol of the engine: this test looks for the wrong names")
	}
}

func TestExitCodes(t *testing.T) {
	readOnly := createKey(t, "exit codes", "read_only")
	cases := map[string]struct {
		key  string
		args []string
		code int
		says string
	}{
		"a query works":                            {readOnly, []string{"sql", "-d", "shop", "SELECT count(*) AS n FROM orders"}, 0, "n"},
		"a write is refused":                       {adminKey, []string{"sql", "-d", "shop", "DELETE FROM orders"}, 3, "only read"},
		"a read-only key does not copy":            {readOnly, []string{"copy", "-d", "shop", "COPY (SELECT 1 AS a) TO LAKE 'exports/x' WITH (CONNECTION = 'local')"}, 3, "read_write"},
		"a wrong key is not let in":                {"slc_wrong", []string{"sql", "-d", "shop", "SELECT 1"}, 3, "key"},
		"no key is not let in":                     {"", []string{"sql", "-d", "shop", "SELECT 1"}, 3, "key"},
		"a missing model fails":                    {adminKey, []string{"show", "no-such-model"}, 1, "not found"},
		"a wrong flag is a usage error":            {adminKey, []string{"sql", "--wrong"}, 2, "--help"},
		"a missing argument is a usage error":      {adminKey, []string{"show"}, 2, "--help"},
		"an unknown command is told apart":         {adminKey, []string{"frobnicate"}, 2, "unknown command"},
		"so is an unknown one below a group":       {adminKey, []string{"keys", "creat"}, 2, "unknown command"},
		"a command of a later version says so":     {adminKey, []string{"mcp", "x"}, 1, "not there in this version"},
		"a host that nobody allowed is refused":    {adminKey, []string{"pull", "models.example.org/a/b"}, 3, "models.example.org"},
		"pulling needs an admin":                   {readOnly, []string{"pull", "x"}, 3, "admin"},
		"a declined ask is a refusal, in JSON too": {readOnly, []string{"ask", "--json", "-d", "shop", "--model", "no-such-model", "x"}, 1, "not found"},
		"JSON on request":                          {readOnly, []string{"sql", "--json", "-d", "shop", "SELECT 1 AS one"}, 0, `"one"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := shared.command(c.key, c.args...)
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, want %d; output %q, want %q in it", code, c.code, out, c.says)
			}
		})
	}
}

// A start that fails says why, in a sentence, and leaves nothing running.
func TestStartsThatFail(t *testing.T) {
	settings := func(text string) string {
		path := filepath.Join(t.TempDir(), "sluice.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct {
		args []string
		code int
		says string
	}{
		"the port is taken":                {[]string{"--home", t.TempDir(), "--listen", strings.TrimPrefix(shared.url, "http://")}, 1, "is another server running?"},
		"the home is in use":               {[]string{"--home", sharedHome, "--listen", "127.0.0.1:0"}, 1, "another server uses"},
		"the file is not there":            {[]string{"--home", t.TempDir(), "--listen", "127.0.0.1:0", "--config", settings("databases: {a: {kind: duckdb, path: typo.duckdb}}")}, 2, "there is no file"},
		"a key that nobody knows":          {[]string{"--config", settings("databsaes: {}")}, 2, "line 1: unknown key databsaes"},
		"an allowlist that covers nothing": {[]string{"--home", t.TempDir(), "--listen", "127.0.0.1:0", "--config", settings("lake: {connections: {l: {url: 'file:///nowhere/at/all', write_allowlist: ['../x']}}}")}, 1, "../x"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := shared.command("", append([]string{"serve"}, c.args...)...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(out, c.says) || strings.Contains(out, "goroutine ") {
				t.Errorf("%v, want exit status %d and %q in:\n%s", err, c.code, c.says, out)
			}
		})
	}
}

func createKey(t *testing.T, name, role string) string {
	t.Helper()
	var key struct{ Key string }
	shared.data(t, adminKey, "POST", "/v1/keys", object{"name": name, "role": role}, &key)
	if !strings.HasPrefix(key.Key, "slc_") {
		t.Fatalf("key %q", key.Key)
	}
	return key.Key
}

// kill -9 of the server leaves no runner behind, and the next start works on the same home.
func TestKilledServer(t *testing.T) {
	home := t.TempDir()
	s, err := start(home)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := s.call(t, "", "POST", "/api/generate", object{"model": tiny, "prompt": "Hi", "stream": false, "options": object{"num_predict": 1}}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	pids := s.runners(t)
	if len(pids) != 1 {
		t.Fatalf("runners %v", pids)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	eventually(t, "the orphaned runner ends by itself", func() bool {
		return errors.Is(syscall.Kill(pids[0], 0), syscall.ESRCH)
	})
	s, err = start(home)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := s.call(t, "", "GET", "/api/tags", nil); status != 200 || !strings.Contains(text, tiny) {
		t.Errorf("after the restart: %d %s", status, text)
	}
	if err := s.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Secrets are never logged.
func TestLogHoldsNoSecrets(t *testing.T) {
	key := createKey(t, "secret", "read_only")
	shared.call(t, key, "GET", "/v1/databases", nil)
	shared.call(t, "slc_a_wrong_but_secret_bearer", "GET", "/v1/databases", nil)
	log := shared.logText()
	for _, secret := range []string{adminKey, key, "slc_a_wrong_but_secret_bearer"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
	if log == "" {
		t.Error("the log is empty: this test looks at nothing")
	}
	stores, err := filepath.Glob(filepath.Join(sharedHome, "control.db*")) // what was written last is in the -wal file
	if err != nil || len(stores) == 0 {
		t.Fatalf("no control store: %v", err)
	}
	for _, path := range stores {
		if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), key) {
			t.Errorf("%s holds the key itself (%v)", path, err)
		}
	}
}
