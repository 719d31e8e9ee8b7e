package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// registryServer answers /api/pull and /api/push with lines.
func registryServer(t *testing.T, status int, lines ...string) (srv *httptest.Server, body *map[string]any) {
	t.Helper()
	body = &map[string]any{}
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		for _, l := range lines {
			fmt.Fprintln(w, l)
		}
	}))
	t.Cleanup(srv.Close)
	return srv, body
}

func TestPullEnds(t *testing.T) {
	manifest, success := `{"status":"pulling manifest"}`, `{"status":"success"}`
	for name, row := range map[string]struct {
		args   []string
		status int
		lines  []string
		code   int
		says   string
	}{
		"well":                           {[]string{"pull", "m"}, 200, []string{manifest, success}, 0, "success"},
		"with a push":                    {[]string{"push", "m"}, 200, []string{manifest, success}, 0, "success"},
		"with an error line":             {[]string{"pull", "m"}, 200, []string{manifest, `{"error":"the disk is full"}`}, 1, "the disk is full"},
		"early":                          {[]string{"pull", "m"}, 200, []string{manifest}, 1, "the next `sluice pull m` goes on from there"},
		"for want of a right":            {[]string{"pull", "m"}, 401, []string{`{"error":"this needs an API key"}`}, 3, "API key"},
		"because the host is not wanted": {[]string{"pull", "h/a/m"}, 403, []string{`{"error":"h is not among the registries"}`}, 3, "registries"},
		"because it is not there":        {[]string{"pull", "m"}, 404, []string{`{"error":"no such model"}`}, 1, "no such model"},
		"without a name":                 {[]string{"pull"}, 200, nil, 2, "--help"},
		"with two":                       {[]string{"push", "a", "b"}, 200, nil, 2, "--help"},
		"with a stray word":              {[]string{"pull", "m"}, 200, []string{`nonsense`}, 1, "no progress"},
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := registryServer(t, row.status, row.lines...)
			if out, errs, code := cli(t, srv.URL, row.args...); code != row.code || !strings.Contains(errs, row.says) || out != "" {
				t.Errorf("exit %d, want %d; %q, want %q in it; stdout %q", code, row.code, errs, row.says, out)
			}
		})
	}
}

func TestPullSendsWhatWasAskedAndPrintsJSON(t *testing.T) {
	lines := []string{`{"status":"pulling manifest"}`, `{"status":"pulling a","digest":"sha256:a","total":5,"completed":5}`, `{"status":"success"}`}
	srv, body := registryServer(t, 200, lines...)
	out, errs, code := cli(t, srv.URL, "pull", "--json", "--insecure", "h:5000/a/m")
	if code != 0 || errs != "" || out != strings.Join(lines, "\n")+"\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if fmt.Sprint(*body) != "map[insecure:true model:h:5000/a/m]" {
		t.Errorf("sent %v", *body)
	}
}

// Ctrl-C ends the pull, and says that nothing is lost.
func TestACancelledPullSaysThatTheNextGoesOn(t *testing.T) {
	begun, left := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"status":"pulling manifest"}`)
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		close(left)
	}))
	defer srv.Close()
	t.Setenv("SLUICE_URL", srv.URL)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { <-begun; interrupt() }()
	root := newRoot()
	root.SetErr(&lockedBuffer{})
	root.SetArgs([]string{"pull", "m"})
	err := root.ExecuteContext(ctx)
	if err == nil || exitCode(err) != 1 || !strings.Contains(describe(err), "cancelled: what was fetched is kept, and the next `sluice pull m` goes on from there") {
		t.Errorf("it ended with %v", err)
	}
	<-left
}
