package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDecidingOnCopyRequests: what is asked of the server, and what a person gets to see of its answers.
func TestDecidingOnCopyRequests(t *testing.T) {
	const one = `{"id":"copyreq_1","state":"pending","statement":"COPY (SELECT 1) TO LAKE 'a' WITH (CONNECTION = 'local')","sql":"SELECT 1\u001b[2J","database":"shop","connection":"local","path":"a","sha256":"ab12",` +
		`"columns":[{"name":"x","type":"INT64","partition":false},{"name":"p","type":"","partition":true}],"owner":"ann","key_name":"robot","created_at":"2026-05-01T12:00:00Z","expires_at":"2026-05-02T12:00:00Z"}`
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		answer := one
		switch {
		case r.Method == "GET" && r.URL.Path == "/v1/lake/copy/requests":
			answer = "[" + one + "]"
		case strings.HasSuffix(r.URL.Path, "/none"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"code":"not_found","message":"copy request 'none' not found"}}`)
			return
		case strings.HasSuffix(r.URL.Path, "/approve"):
			answer = `{"run_id":"run_1","rows_written":5,"files_written":1,"bytes_written":10,"copy_request":` + one + `}`
		case r.URL.Path == "/v1/lake/copy", r.URL.Path == "/v1/query/execute":
			w.WriteHeader(http.StatusAccepted)
			answer = `{"outcome":"copy_requested","copy_request":` + one + `}`
		}
		fmt.Fprintf(w, `{"data":%s,"meta":{}}`, answer)
	}))
	defer server.Close()
	for line, want := range map[string]struct {
		asked, shown string
		code         int
	}{
		"copy requests":                   {"GET /v1/lake/copy/requests", "ann (robot)", 0},
		"copy requests --state pending":   {"GET /v1/lake/copy/requests?state=pending", "local:a", 0},
		"copy requests copyreq_1":         {"GET /v1/lake/copy/requests/copyreq_1", "p (partition)", 0},
		"copy requests none":              {"GET /v1/lake/copy/requests/none", "", 1},
		"copy approve copyreq_1":          {`GET /v1/lake/copy/requests/copyreq_1; POST /v1/lake/copy/requests/copyreq_1/approve {"sha256":"ab12"}`, "copied 5 rows", 0},
		"copy deny copyreq_1 --reason no": {`POST /v1/lake/copy/requests/copyreq_1/deny {"reason":"no"}`, "denied copyreq_1", 0},
		"copy withdraw copyreq_1":         {"DELETE /v1/lake/copy/requests/copyreq_1", "withdrawn copyreq_1", 0},
		"copy -d shop COPY":               {`POST /v1/lake/copy {"database":"shop","sql":"COPY","wait":true}`, "nothing was copied yet", 0},
		"sql -d shop COPY":                {`POST /v1/query/execute {"database":"shop","sql":"COPY"}`, "sluice copy approve copyreq_1", 0},
		"copy approve copyreq_1 --json":   {`GET /v1/lake/copy/requests/copyreq_1; POST /v1/lake/copy/requests/copyreq_1/approve {"sha256":"ab12"}`, `"run_id": "run_1"`, 0},
		"copy requests --json":            {"GET /v1/lake/copy/requests", `"state": "pending"`, 0},
		"copy withdraw copyreq_1 --json":  {"DELETE /v1/lake/copy/requests/copyreq_1", `"id": "copyreq_1"`, 0},
		"copy approve":                    {"", "", 2},
		"copy requests ../../v1/users":    {"GET /v1/lake/copy/requests/..%2F..%2Fv1%2Fusers", "", 0},
	} {
		asked = nil
		out, errs, code := typedCLI(t, server.URL, "", strings.Fields(line)...)
		if got := strings.Join(asked, "; "); got != want.asked || code != want.code || !strings.Contains(out, want.shown) || strings.Contains(out, "\x1b") {
			t.Errorf("sluice %s: status %d, asked %q\n%s%s", line, code, got, out, errs)
		}
	}
}
