package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPsSaysWhereAModelIs(t *testing.T) {
	for name, row := range map[string]struct{ entry, want string }{
		"in main memory":          {`{"size":100,"placement":[{"device":"cpu","bytes":100}]}`, "CPU"},
		"nothing is known yet":    {`{"state":"loading","size":100}`, "CPU"},
		"whole on a GPU":          {`{"size":110,"layers":33,"placement":[{"device":"CUDA0","layers":33,"bytes":100},{"device":"cpu","bytes":10}]}`, "100% GPU"},
		"whole on two":            {`{"size":110,"layers":33,"placement":[{"device":"CUDA0","layers":20,"bytes":60},{"device":"CUDA1","layers":13,"bytes":40}]}`, "100% GPU (CUDA0+CUDA1)"},
		"a part of it":            {`{"size":110,"layers":33,"placement":[{"device":"CUDA0","layers":23,"bytes":70},{"device":"cpu","bytes":40}]}`, "23/33 layers CUDA0"},
		"layers are not known":    {`{"size":100,"placement":[{"device":"CUDA0","bytes":75},{"device":"cpu","bytes":25}]}`, "75% CUDA0"},
		"elsewhere":               {`{"size":0,"remote":"vllm-a","placement":[]}`, "remote vllm-a"},
		"elsewhere, as of Ollama": {`{"size":100,"size_vram":100}`, "CPU"},
	} {
		var m loadedModel
		if err := json.Unmarshal([]byte(row.entry), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.placement(); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestPsSaysWhenAModelGoes(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		model loadedModel
		want  string
	}{
		"idle":               {loadedModel{State: "ready", ExpiresAt: now.Add(90 * time.Second)}, "in 1m30s"},
		"late":               {loadedModel{State: "ready", ExpiresAt: now.Add(-time.Second)}, "in 0s"},
		"in use":             {loadedModel{State: "ready", InFlight: 1, ExpiresAt: now.Add(time.Minute)}, "when idle"},
		"kept for ever":      {loadedModel{State: "ready", ExpiresAt: now.Add(100 * 365 * 24 * time.Hour)}, "never"},
		"pinned":             {loadedModel{State: "ready", Pinned: true, ExpiresAt: now.Add(time.Minute)}, "never (pinned)"},
		"on its way out":     {loadedModel{State: "draining", InFlight: 1, Pinned: true}, "now"},
		"elsewhere":          {loadedModel{State: "ready", Remote: "x"}, "-"},
		"loading, and asked": {loadedModel{State: "loading", Waiting: 2, ExpiresAt: now.Add(5 * time.Minute)}, "in 5m0s"},
	} {
		if got := row.model.unloads(now); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// cli runs a command line against a server, and gives both streams and the exit code.
func cli(t *testing.T, url string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("SLUICE_URL", url)
	t.Setenv("SLUICE_KEY", "")
	root := newRoot()
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		errs.WriteString("error: " + describe(err))
		code = exitCode(err)
	}
	return out.String(), errs.String(), code
}

func TestPsAsATableAndAsJSON(t *testing.T) {
	const body = `{"models":[{"name":"big:latest","state":"loading","progress":0.43,"size":5000000000,"context_length":4096,"in_flight":0,"waiting":3,"expires_at":"2318-01-01T00:00:00Z","placement":[{"device":"CUDA0","layers":20,"bytes":4000000000}],"layers":33,"warning":"13 layers found no room on a GPU","something_new":1}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	defer srv.Close()
	out, _, code := cli(t, srv.URL, "ps")
	for _, want := range []string{"loading 43%", "20/33 layers CUDA0", "5.0 GB", "0 (+3 waiting)", "never", "warning: big:latest: 13 layers found no room"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("no %q in (exit %d)\n%s", want, code, out)
		}
	}
	out, _, code = cli(t, srv.URL, "ps", "--json")
	var got struct{ Models []map[string]any }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.Models[0]["something_new"] != 1.0 || got.Models[0]["warning"] == nil {
		t.Errorf("--json leaves something out: %v, %s", err, out)
	}
}

func TestCommandsThatChangeModelsHaveJSONToo(t *testing.T) {
	asked := ""
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.Method + " " + r.URL.Path }))
	defer srv.Close()
	for route, args := range map[string][]string{
		"POST /api/generate": {"stop", "m"}, "POST /api/copy": {"cp", "a", "m"}, "DELETE /api/delete": {"rm", "m"},
	} {
		out, errs, code := cli(t, srv.URL, args...)
		if code != 0 || out != "" || !strings.HasSuffix(errs, " m\n") || asked != route {
			t.Errorf("%v: exit %d, %q, %q, asked %s", args, code, out, errs, asked)
		}
		if out, errs, code = cli(t, srv.URL, append(args, "--json")...); code != 0 || errs != "" || out != `{"model":"m","status":"success"}`+"\n" {
			t.Errorf("%v --json: exit %d, %q, %q", args, code, out, errs)
		}
	}
	for _, name := range []string{"pull", "push", "create", "cp", "list", "ps", "show", "stop", "rm"} {
		if out, _, code := cli(t, srv.URL, name, "--help"); code != 0 || !strings.Contains(out, "Usage:\n  sluice "+name) || !strings.Contains(out, "--json") {
			t.Errorf("%s --help: exit %d\n%s", name, code, out)
		}
	}
}
