package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// queriesServer has one running statement, and keeps what it was asked to cancel.
func queriesServer(t *testing.T) (srv *httptest.Server, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.RequestURI)
		id := strings.TrimPrefix(r.URL.Path, "/v1/queries/")
		switch {
		case r.Method == "GET":
			fmt.Fprint(w, `{"data":[{"id":"query_A","kind":"query","database":"shop","owner":"ann","key":"key_1","name":"dash\u001b[2J","statement":"SELECT *\n\tFROM orders","started_at":"2026-03-01T12:00:00Z","rows":17,"request_id":"r1","something_new":1},`+
				`{"id":"query_B","kind":"copy","database":"shop","owner":"bob","key":"login_1","name":"bob","statement":"COPY …","started_at":"2026-03-01T12:00:01Z","request_id":"r2"}],"meta":{}}`)
		case id == "query_A" || id == "query_B":
			fmt.Fprintf(w, `{"data":{"cancelled":%q},"meta":{}}`, id)
		case id == "query_D":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"code":"unauthenticated","message":"this key is not known"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"error":{"code":"not_found","message":"there is no running statement"}}`)
		}
	}))
	t.Cleanup(srv.Close)
	return srv, asked
}

func TestQueriesAsATableAndAsJSON(t *testing.T) {
	srv, _ := queriesServer(t)
	for _, args := range [][]string{{"queries"}, {"queries", "list"}} {
		out, errs, code := cli(t, srv.URL, args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || errs != "" || len(lines) != 3 || strings.Contains(out, "\x1b") {
			t.Fatalf("%v: exit %d, %q\n%s", args, code, errs, out)
		}
		for line, wants := range map[int][]string{
			0: {"ID", "KIND", "DATABASE", "WHO", "SINCE", "ROWS", "STATEMENT"},
			1: {"query_A", "query", "shop", "ann (dash", " ago", "17", "SELECT * FROM orders"},
			2: {"query_B", "copy", "bob  ", "-", "COPY …"},
		} {
			for _, want := range wants {
				if !strings.Contains(lines[line], want) {
					t.Errorf("%v: no %q in line %d of\n%s", args, want, line, out)
				}
			}
		}
		out, errs, code = cli(t, srv.URL, append(args, "--json")...)
		var got []map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || errs != "" || len(got) != 2 || got[0]["something_new"] != 1.0 || got[0]["statement"] != "SELECT *\n\tFROM orders" {
			t.Errorf("%v --json leaves something out: %v, exit %d, %s", args, err, code, out)
		}
	}
}

func TestQueriesFitTheTerminal(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 1, 30, 0, time.UTC)
	n := int64(1234567)
	long := strings.Repeat("sélect 漢字 ", 50)
	all := []runningStatement{
		{ID: "query_" + strings.Repeat("X", 26), Kind: "query", Database: "shop", Owner: "ann", Statement: long, StartedAt: now.Add(-90 * time.Second), Rows: &n},
		{ID: "query_short", Kind: "external", Owner: "bob", Name: "bob", Statement: "DROP EXTERNAL TABLE x", StartedAt: now.Add(time.Minute)},
	}
	line := func(width int) string {
		var out strings.Builder
		if err := printTable(&out, statementHeader, statementRows(all, now, width)); err != nil {
			t.Fatal(err)
		}
		return strings.Split(out.String(), "\n")[1]
	}
	for _, width := range []int{120, 200} {
		if got := line(width); utf8.RuneCountInString(got) != width || !strings.HasSuffix(got, "…") {
			t.Errorf("a line of %d characters in %d columns: %s", utf8.RuneCountInString(got), width, got)
		}
	}
	if got := line(40); !strings.HasSuffix(got, "  "+string([]rune(long)[:leastStatement-1])+"…") {
		t.Errorf("a narrow terminal shows nothing of the statement: %s", got)
	}
	if got := line(0); !strings.HasSuffix(got, strings.TrimSpace(long)) {
		t.Errorf("cut although nobody looks at a terminal: %s", got)
	}
	rows := statementRows(all, now, 0)
	if rows[0][4] != "1m30s ago" || rows[1][4] != "0s ago" || rows[1][2] != "-" || rows[1][3] != "bob" || rows[1][5] != "-" || rows[0][5] != "1234567" {
		t.Errorf("%q", rows)
	}
	if rows := statementRows(nil, now, 80); len(rows) != 0 {
		t.Errorf("%q of no statements", rows)
	}
}

func TestQueriesCancel(t *testing.T) {
	for sentence, row := range map[string]struct {
		ids   []string
		code  int
		asked []string
		says  string // on stderr
		json  string // on stdout, with --json; "" nothing
	}{
		"one":                           {[]string{"query_A"}, 0, []string{"query_A"}, "cancelled query_A\n", `{"cancelled":["query_A"],"missing":[]}`},
		"two":                           {[]string{"query_A", "query_B"}, 0, []string{"query_A", "query_B"}, "cancelled query_A\ncancelled query_B\n", `{"cancelled":["query_A","query_B"],"missing":[]}`},
		"one that has ended meanwhile":  {[]string{"query_C", "query_B"}, 1, []string{"query_C", "query_B"}, "cancelled query_B\nerror: not running, or not yours: query_C", `{"cancelled":["query_B"],"missing":["query_C"]}`},
		"a key that is not let in":      {[]string{"query_A", "query_D", "query_B"}, 3, []string{"query_A", "query_D"}, "cancelled query_A\nerror: this key is not known", `{"cancelled":["query_A"],"missing":[]}`},
		"an id that is somewhere else":  {[]string{"../keys/key_1"}, 1, []string{"..%2Fkeys%2Fkey_1"}, "error: not running, or not yours: ../keys/key_1", `{"cancelled":[],"missing":["../keys/key_1"]}`},
		"an id is missing":              {nil, 2, nil, "--help", ""},
		"an id that a terminal follows": {[]string{"\x1b[2J"}, 1, []string{"%1B%5B2J"}, "not yours: [2J", `{"cancelled":[],"missing":["\u001b[2J"]}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			srv, asked := queriesServer(t)
			out, errs, code := cli(t, srv.URL, append([]string{"queries", "cancel"}, row.ids...)...)
			var want []string
			for _, id := range row.asked {
				want = append(want, "DELETE /v1/queries/"+id)
			}
			if code != row.code || out != "" || !strings.Contains(errs, row.says) || !slices.Equal(*asked, want) {
				t.Errorf("exit %d, want %d; %q, %q; asked %q, want %q", code, row.code, out, errs, *asked, want)
			}
			out, errs, code = cli(t, srv.URL, append([]string{"queries", "cancel", "--json"}, row.ids...)...)
			var compact strings.Builder
			if row.json != "" {
				var v any
				if err := json.Unmarshal([]byte(out), &v); err != nil {
					t.Fatal(err, out)
				}
				b, _ := json.Marshal(v)
				compact.Write(b)
			}
			if code != row.code || compact.String() != row.json || strings.Contains(errs, "cancelled ") {
				t.Errorf("--json: exit %d, %s, want %s; %q", code, compact.String(), row.json, errs)
			}
		})
	}
	srv, asked := queriesServer(t)
	if _, errs, code := cli(t, srv.URL, "queries", "stop", "query_A"); code != 2 || !strings.Contains(errs, "unknown command") || len(*asked) != 0 {
		t.Errorf("a command that is not there: exit %d, %s, asked %q", code, errs, *asked)
	}
}
