package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/registrytest"
)

// pulled is a model that servers withRegistry know where to get.
const pulled = "pulled:latest"

// startRegistry starts a registry on this machine that has the small model as library/smollm2:135m.
func startRegistry(t *testing.T) *registrytest.Registry {
	t.Helper()
	r, err := registrytest.Start(registrytest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := r.Seed(filepath.Join(sharedHome, "models"), tiny, "library/"+tiny); err != nil {
		t.Fatal(err)
	}
	return r
}

// withRegistry writes the settings and the catalogue of a server that may ask that registry, and no other.
func withRegistry(t *testing.T, home string, r *registrytest.Registry, more string) {
	t.Helper()
	settings := fmt.Sprintf("listen: 127.0.0.1:0\nhome: %s\nmodels: models.yaml\nregistries: {'%s': {insecure: true}}\n%s", home, r.Host, more)
	catalogue := fmt.Sprintf("registries: ['%[1]s']\nmodels:\n  - {name: pulled, roles: [chat, sql], source: '%[1]s/library/%[2]s', size: 98MB}\n", r.Host, tiny)
	for name, text := range map[string]string{"sluice.yaml": settings, "models.yaml": catalogue} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// forget deletes a model where it is there.
func forget(t *testing.T, s *server, name string) {
	t.Helper()
	if out, err := s.command(adminKey, "rm", name); err != nil && !strings.Contains(out, "not found") {
		t.Fatalf("rm %s: %v: %s", name, err, out)
	}
}

// weights is the largest layer of the registry's model.
func weights(t *testing.T, r *registrytest.Registry) (digest string, size int64) {
	t.Helper()
	text, err := r.Manifest("library/smollm2", "135m")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Layers []struct {
			Digest string
			Size   int64
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for _, l := range m.Layers {
		if l.Size > size {
			digest, size = l.Digest, l.Size
		}
	}
	return digest, size
}

// noted is how many bytes the journals of what is being pulled say are there.
func noted(t *testing.T, home string) (n int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(home, "models", ".sluice-partial", "*.journal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var j struct{ Parts []struct{ Done int64 } }
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &j)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: %v", path, err)
		}
		for _, p := range j.Parts {
			n += p.Done
		}
	}
	return n
}

// The whole way of a model: pulled, killed in the middle with -9, pulled on, used, pushed, deleted, pulled again.
func TestAPullGoesOnAfterAKill(t *testing.T) {
	r, home := startRegistry(t), t.TempDir()
	withRegistry(t, home, r, "")
	digest, size := weights(t, r)
	const stall = 90_000_000 // in its second part
	rule := r.Add(registrytest.Fault{Do: registrytest.Stall, Path: digest, At: stall})
	s, err := launch(home)
	if err != nil {
		t.Fatal(err)
	}
	killed := s
	t.Cleanup(killed.kill) // when the test ends before that
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := s.command(adminKey, "pull", pulled)
		ended <- end{out, err}
	}()
	<-rule.Reached
	eventually(t, "most of it is durably there", func() bool { return noted(t, home) > size/2 })
	if status, text := s.call(t, "", "GET", "/api/tags", nil); status != 200 || strings.Contains(text, "pulled") {
		t.Errorf("half a model is listed: %d %s", status, text)
	}
	s.kill()
	if e := <-ended; e.err == nil || !strings.Contains(e.out, "the next `sluice pull "+pulled+"` goes on from there") {
		t.Errorf("the command says nothing of going on: %v\n%s", e.err, e.out)
	}
	r.Remove(rule)
	r.Forget()

	if s, err = launch(home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	run := func(args ...string) string {
		t.Helper()
		out, err := s.command(adminKey, args...)
		if err != nil {
			t.Fatalf("%v: %v: %s\n%s", args, err, out, s.logText())
		}
		return out
	}
	if out := run("pull", pulled); !strings.HasSuffix(out, "success\n") {
		t.Errorf("the second pull said\n%s", out)
	}
	if again := r.Sent(digest); again > size/2 {
		t.Errorf("of %d bytes %d came again", size, again)
	}
	answers := func(name string) {
		t.Helper()
		status, text := s.call(t, "", "POST", "/api/generate", object{"model": name, "prompt": "Hi", "stream": false, "options": object{"num_predict": 2}})
		if status != 200 {
			t.Fatalf("%s: %d %s", name, status, text)
		}
	}
	answers(pulled)

	mine := r.Host + "/team/mine:v1"
	run("cp", pulled, mine)
	r.Forget()
	if out := run("push", mine); !strings.HasSuffix(out, "success\n") {
		t.Errorf("the push said\n%s", out)
	}
	if n := len(r.Requests("PUT", "/v2/team/mine/manifests/v1")); n != 1 {
		t.Errorf("%d manifests were put", n)
	}
	run("rm", pulled, mine)
	if blobs, err := os.ReadDir(filepath.Join(home, "models", "blobs")); err != nil || len(blobs) > 0 {
		t.Errorf("blobs that no model has are still there: %v, %v", blobs, err)
	}
	if _, err := s.command(adminKey, "show", pulled); err == nil {
		t.Error("a deleted model is shown")
	}
	if out := run("pull", "--json", mine); !strings.HasSuffix(out, `{"status":"success"}`+"\n") || !strings.Contains(out, `"completed"`) {
		t.Errorf("pull --json said\n%s", out)
	}
	answers(mine)

	for name, row := range map[string]struct {
		model string
		code  int
	}{"a model that is not there": {"no-such-model", 1}, "a host that nobody allowed": {"models.example.org/a/b", 3}} {
		out, err := s.command(adminKey, "pull", row.model)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != row.code {
			t.Errorf("%s: %v, want exit status %d: %s", name, err, row.code, out)
		}
	}
}

// serve --pull-defaults: ready at once, with a warning; the model comes by itself.
func TestDefaultModelsAreFetched(t *testing.T) {
	r, home := startRegistry(t), t.TempDir()
	withRegistry(t, home, r, "")
	digest, _ := weights(t, r)
	rule := r.Add(registrytest.Fault{Do: registrytest.Stall, Path: digest, At: 1_000_000})
	s, err := launchWith(home, []string{"--pull-defaults"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	<-rule.Reached
	status, text := s.call(t, "", "GET", "/readyz", nil)
	if status != 200 || !strings.Contains(text, "the default model pulled is being pulled") || !strings.Contains(text, "no model is installed") {
		t.Errorf("while it pulls: %d %s", status, text)
	}
	r.Remove(rule)
	eventually(t, "the default model is there", func() bool {
		_, text := s.call(t, "", "GET", "/api/tags", nil)
		return strings.Contains(text, `"`+pulled+`"`)
	})
	eventually(t, "nothing to warn of is left", func() bool {
		_, text := s.call(t, "", "GET", "/readyz", nil)
		return text == `{"status":"ready"}`
	})
}
