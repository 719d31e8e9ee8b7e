package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
	"sluice/models/registry"
	"sluice/scheduler"
)

// fakeRegistry does what its functions say, and notes what it was asked for.
type fakeRegistry struct {
	pull, push func(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error

	mu    sync.Mutex
	asked []registry.Transfer
}

func (r *fakeRegistry) note(t registry.Transfer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, t)
}

func (r *fakeRegistry) last() registry.Transfer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return registry.Transfer{}
	}
	return r.asked[len(r.asked)-1]
}

func (r *fakeRegistry) Pull(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
	r.note(t)
	return r.pull(ctx, t, tell)
}

func (r *fakeRegistry) Push(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
	r.note(t)
	return r.push(ctx, t, tell)
}

// tellAll tells two layers' progress, as a real pull does.
func tellAll(tell func(api.ProgressResponse)) {
	if tell == nil {
		return
	}
	tell(api.ProgressResponse{Status: "pulling manifest"})
	for _, n := range []int64{0, 40, 100} {
		tell(api.ProgressResponse{Status: "pulling aaaaaaaaaaaa", Digest: "sha256:aa", Total: 100, Completed: n})
	}
	tell(api.ProgressResponse{Status: success})
}

func withRegistry(t *testing.T) (*fixture, *fakeRegistry) {
	t.Helper()
	r := &fakeRegistry{}
	f := newFixture(t, func(c *Config) { c.Registry = r })
	r.pull = func(_ context.Context, tr registry.Transfer, tell func(api.ProgressResponse)) error {
		tellAll(tell)
		addModel(t, f.cfg.Models, tr.Name, ggml.KV{"general.architecture": "llama", "llama.context_length": uint32(4096), "llama.embedding_length": uint32(8),
			"llama.block_count": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}, "general.name": "pulled " + tr.Name})
		return nil
	}
	r.push = func(_ context.Context, _ registry.Transfer, tell func(api.ProgressResponse)) error {
		tellAll(tell)
		return nil
	}
	return f, r
}

func TestPullAndPushTellTheirProgress(t *testing.T) {
	for name, row := range map[string]struct {
		path, body string
		want       registry.Transfer
	}{
		"pull by model":             {"/api/pull", `{"model":"new"}`, registry.Transfer{Name: "new"}},
		"pull by name, as JS sends": {"/api/pull", `{"name":"new","stream":true,"insecure":true}`, registry.Transfer{Name: "new", Insecure: true}},
		"push":                      {"/api/push", `{"model":"TINY"}`, registry.Transfer{Name: "tiny:latest"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := withRegistry(t)
			w := f.do(call{method: "POST", path: row.path, body: row.body, bearer: adminKey})
			wantStatus(t, w, 200)
			ls := lines(t, w.Body.Bytes())
			if w.Header().Get("Content-Type") != ndjsonForm || len(ls) != 5 || ls[0]["status"] != "pulling manifest" {
				t.Errorf("%s: %v", w.Header(), ls)
			}
			if ls[2]["completed"] != 40.0 || ls[2]["total"] != 100.0 || ls[2]["digest"] != "sha256:aa" {
				t.Errorf("a layer's line is %v", ls[2])
			}
			for i, l := range ls {
				if (l["status"] == "success") != (i == len(ls)-1) {
					t.Errorf("line %d: %v", i, l)
				}
			}
			if r.last() != row.want {
				t.Errorf("asked for %+v, want %+v", r.last(), row.want)
			}
			body := strings.TrimSuffix(strings.Replace(row.body, `"stream":true,`, "", 1), "}") + `,"stream":false}`
			if w := f.do(call{method: "POST", path: row.path, body: body, bearer: adminKey}); w.Code != 200 || w.Body.String() != `{"status":"success"}` {
				t.Errorf("in one piece: %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestPullsThatFail(t *testing.T) {
	notThere := fault.New(fault.NotFound, "fake", "the registry has no model x")
	secret := fmt.Errorf("open /srv/secret/place: disk broken")
	for name, row := range map[string]struct {
		body   string
		before bool // any line
		err    error
		status int
		says   string
	}{
		"before the first byte it is a status":    {`{"model":"x"}`, true, notThere, 404, "no model x"},
		"after it, the last line":                 {`{"model":"x"}`, false, notThere, 200, "no model x"},
		"without a stream it is a status":         {`{"model":"x","stream":false}`, false, notThere, 404, "no model x"},
		"a host that is not allowed":              {`{"model":"h/x/y","stream":false}`, false, fault.New(fault.Denied, "fake", "h is not among the registries"), 403, "registries"},
		"a registry that is not there":            {`{"model":"x"}`, true, &fault.Error{Code: fault.Busy, Msg: "not reached", RetryAfter: 7 * time.Second}, 503, "not reached"},
		"what nobody classified is not told":      {`{"model":"x"}`, false, secret, 200, "internal error"},
		"a panic is an error line, not a cut":     {`{"model":"x"}`, false, nil, 200, "internal error"},
		"without a model":                         {`{"stream":false}`, true, nil, 400, "model is required"},
		"with a model that the store cannot read": {`{"model":"x","stream":true}`, true, fault.New(fault.Invalid, "fake", "invalid model name"), 400, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := withRegistry(t)
			r.pull = func(_ context.Context, _ registry.Transfer, tell func(api.ProgressResponse)) error {
				if !row.before && tell != nil {
					tell(api.ProgressResponse{Status: "pulling manifest"})
				}
				if row.err == nil {
					panic("secret of the registry")
				}
				return row.err
			}
			w := f.do(call{method: "POST", path: "/api/pull", body: row.body, bearer: adminKey})
			wantStatus(t, w, row.status)
			ls := lines(t, append(w.Body.Bytes(), "\n"[:max(0, 1-strings.Count(w.Body.String(), "\n"))]...))
			last := ls[len(ls)-1]
			if text, _ := last["error"].(string); !strings.Contains(text, row.says) || strings.Contains(text, "secret") {
				t.Errorf("the last line is %v, want %q in it", last, row.says)
			}
			if row.status == 503 && w.Header().Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
		})
	}
}

func TestPushOfAModelThatIsNotThere(t *testing.T) {
	f, r := withRegistry(t)
	wantStatus(t, f.do(call{method: "POST", path: "/api/push", body: `{"model":"no-such"}`, bearer: adminKey}), 404)
	// A key for some models cannot give another away, nor fetch one that it could not use.
	wantStatus(t, f.do(call{method: "POST", path: "/api/push", body: `{"model":"tiny"}`, bearer: narrowKey}), 404)
	wantStatus(t, f.do(call{method: "POST", path: "/api/pull", body: `{"model":"tiny"}`, bearer: narrowKey}), 403)
	if r.last() != (registry.Transfer{}) {
		t.Errorf("the registry was asked for %+v", r.last())
	}
}

func TestAServerWithoutARegistrySaysSo(t *testing.T) {
	f := newFixture(t, nil)
	for _, path := range []string{"/api/pull", "/api/push"} {
		w := f.do(call{method: "POST", path: path, body: `{"model":"tiny"}`, bearer: adminKey})
		if w.Code != 501 || !strings.Contains(w.Body.String(), "this server neither pulls nor pushes") || !strings.Contains(w.Body.String(), "/api/create") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestAPulledModelReplacesTheOneThatIsLoaded: the old runner would go on answering under the new model's name.
func TestAPulledModelReplacesTheOneThatIsLoaded(t *testing.T) {
	for name, change := range map[string]call{
		"pull":   {path: "/api/pull", body: `{"model":"tiny","stream":false}`},
		"create": {path: "/api/create", body: `{"model":"tiny","from":"encoder","stream":false}`},
		"copy":   {path: "/api/copy", body: `{"source":"encoder","destination":"tiny"}`},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := withRegistry(t)
			generate := call{method: "POST", path: "/api/generate", body: `{"model":"tiny","prompt":"a","stream":false}`}
			wantStatus(t, f.do(generate), 200)
			f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && idle(l) })
			change.method, change.bearer = "POST", adminKey
			wantStatus(t, f.do(change), 200)
			f.waitLoaded(none)
		})
	}
	f, r := withRegistry(t)
	wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: `{"model":"tiny","prompt":"a","stream":false}`}), 200)
	r.pull = func(context.Context, registry.Transfer, func(api.ProgressResponse)) error { return nil } // it was the newest one
	wantStatus(t, f.do(call{method: "POST", path: "/api/pull", body: `{"model":"tiny","stream":false}`, bearer: adminKey}), 200)
	if loaded, err := f.cfg.Scheduler.Loaded(t.Context()); err != nil || len(loaded) != 1 || loaded[0].State != "ready" {
		t.Errorf("a pull that changed nothing unloaded the model: %+v, %v", loaded, err)
	}
}

// TestAPullerWhoLeavesEndsTheirPullOnly: each caller's work has a context of its own.
func TestAPullerWhoLeavesEndsTheirPullOnly(t *testing.T) {
	f, r := withRegistry(t)
	begun, ended, goOn := make(chan string, 2), make(chan string, 1), make(chan struct{})
	pulled := r.pull
	r.pull = func(ctx context.Context, tr registry.Transfer, tell func(api.ProgressResponse)) error {
		tell(api.ProgressResponse{Status: "pulling manifest"})
		begun <- tr.Name
		select {
		case <-ctx.Done():
			ended <- tr.Name
			return ctx.Err()
		case <-goOn:
			return pulled(ctx, tr, tell)
		}
	}
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	start := func(ctx context.Context, name string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/api/pull", strings.NewReader(`{"model":"`+name+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+adminKey)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		<-begun
		return resp
	}
	ctx, leave := context.WithCancel(t.Context())
	start(ctx, "left")
	stays := start(t.Context(), "stays")
	leave()
	if got := <-ended; got != "left" {
		t.Errorf("%s ended", got)
	}
	close(goOn)
	last := ""
	for in := bufio.NewScanner(stays.Body); in.Scan(); {
		last = in.Text()
	}
	if last != `{"status":"success"}` {
		t.Errorf("the other pull ended with %s", last)
	}
}

// TestAQuietPullIsNotTakenForDead: the limit of a write is no limit of the time between two writes.
func TestAQuietPullIsNotTakenForDead(t *testing.T) {
	f, r := withRegistry(t)
	f.cfg.WriteTimeout = 10 * time.Millisecond
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	pulled := r.pull
	r.pull = func(ctx context.Context, tr registry.Transfer, tell func(api.ProgressResponse)) error {
		tell(api.ProgressResponse{Status: "verifying sha256 digest"})
		<-time.After(20 * f.cfg.WriteTimeout)
		return pulled(ctx, tr, tell)
	}
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	req, err := http.NewRequest("POST", srv.URL+"/api/pull", strings.NewReader(`{"model":"quiet"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	last := ""
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		last = in.Text()
	}
	if last != `{"status":"success"}` {
		t.Errorf("it ended with %q", last)
	}
}

func TestReadyzTellsWhatTheServerWarnsOf(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Warnings = func() []string { return []string{"pulling qwen2.5:7b: 43 %"} } })
	w := f.do(call{method: "GET", path: "/readyz"})
	wantStatus(t, w, 200)
	if got := fmt.Sprint(object(t, w.Body.Bytes())["warnings"]); got != "[pulling qwen2.5:7b: 43 %]" {
		t.Errorf("warnings %s", got)
	}
}
