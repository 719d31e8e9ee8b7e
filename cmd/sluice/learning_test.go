package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// learningServer answers as the routes of the Learning Loop do, and keeps what it was sent.
func learningServer(t *testing.T) (srv *httptest.Server, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	question := `{"id":"ask_A","asked_at":"2026-03-01T12:00:00Z","user":"ann","key_id":"login_1","database":"shop","question":"How many\n\u001b[2J orders?","outcome":"answered","model":"m","model_calls":2,"attempts":2,"agreed":true,"duration_ms":1500,"mark":"right","marked_by":"ann","marked_at":"2026-03-01T12:01:00Z"`
	pair := `{"id":"vq_A","database":"shop","question":"How many orders?","sql":"SELECT 1","shared":true,"verified_by":"ann","verified_at":"2026-03-01T12:00:00Z"}`
	answers := map[string]string{
		"GET /v1/learning/questions":             `{"data":[` + question + `}],"meta":{"next_cursor":"next1"}}`,
		"GET /v1/learning/questions/ask_A":       `{"data":` + question + `,"tables":["main.orders"],"candidates":[{"written":"SELECT 1","mended":"SELECT 2","round":"focus","verdict":"ran","rows":1,"votes":2,"took_ms":7}],"timings_ms":{"model":900}},"meta":{}}`,
		"POST /v1/learning/questions/ask_A/mark": `{"data":{"id":"ask_A","mark":"right","withdrawn":["vq_O"],"kept":["vq_S"],"verified":` + pair + `},"meta":{}}`,
		"GET /v1/learning/verified":              `{"data":[` + pair + `],"meta":{}}`,
		"GET /v1/learning/verified/vq_A":         `{"data":` + pair + `,"meta":{}}`,
		"POST /v1/learning/verified":             `{"data":` + pair + `,"meta":{}}`,
		"DELETE /v1/learning/verified/vq_A":      `{"data":{"deleted":"vq_A"},"meta":{}}`,
		"GET /v1/learning/export":                "verified_queries: []\n",
		"POST /v1/learning/import":               `{"data":{"added":1,"replaced":0,"unchanged":2,"refused":1,"dry_run":false,"entries":[{"question":"q","status":"added"},{"question":"bad","status":"refused","error":"no table x"}]},"meta":{}}`,
	}
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.Method+" "+r.RequestURI+" "+string(body))
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"code":"not_found","message":"question 'x' not found"}}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv, asked
}

func TestLearningCommands(t *testing.T) {
	srv, asked := learningServer(t)
	file := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(file, []byte("verified_queries: [x]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args string
		sent string // a part of what the server was asked
		says string // parts of what is printed, with | between them
		code int
	}{
		"list":               {"list -d shop --mark right --limit 5", "GET /v1/learning/questions?database=shop&limit=5&mark=right", "ask_A|ann|answered|right|How many [2J orders?|--cursor next1", 0},
		"a question":         {"show ask_A", "GET /v1/learning/questions/ask_A", "question   How many|model      m, 2 calls, 1.5s|try 1      focus, ran, 1 rows, 2 votes|  mended   SELECT 2|tables     main.orders|model 900ms|right, by ann", 0},
		"none of that id":    {"show x", "GET /v1/learning/questions/x", "not found", 1},
		"a mark":             {"mark ask_A right --sql SELECT --note n --shared", `"mark":"right","sql":"SELECT","note":"n","shared":true`, "marked right|as vq_A, for everybody|withdrawn: vq_O|only an admin withdraws: vq_S", 0},
		"a mark taken away":  {"mark ask_A none", `/ask_A/mark {"mark":""}`, "ask_A", 0},
		"another mark":       {"mark ask_A maybe", "", "not right, wrong or none", 2},
		"no mark":            {"mark ask_A", "", "accepts 2 arg", 2},
		"verified questions": {"verified -d shop", "GET /v1/learning/verified?database=shop&limit=50", "vq_A|everybody|ann|How many orders?", 0},
		"one of them":        {"verified vq_A", "GET /v1/learning/verified/vq_A", "confirmed  by ann|sql        SELECT 1", 0},
		"one more":           {"add -d shop q s", `{"database":"shop","question":"q","sql":"s"}`, "answered so from now on", 0},
		"one less":           {"remove vq_A", "DELETE /v1/learning/verified/vq_A", "withdrew vq_A", 0},
		"export":             {"export -d shop --shared", "GET /v1/learning/export?database=shop&shared=true", "verified_queries: []", 0},
		"import":             {"import " + file + " --partial --dry-run=false -d shop", "POST /v1/learning/import?database=shop&dry_run=false&partial=true verified_queries: [x]", "refused: entry 2 (bad): no table x|1 added, 0 replaced, 2 unchanged, 1 refused", 0},
		"no such file":       {"import nowhere.yaml", "", "nowhere.yaml", 1},
	} {
		t.Run(name, func(t *testing.T) {
			*asked = nil
			args := append([]string{"learning"}, strings.Fields(row.args)...)
			out, errs, code := cli(t, srv.URL, args...)
			if code != row.code || strings.Contains(out+errs, "\x1b") {
				t.Errorf("exit %d, want %d: %q %q", code, row.code, out, errs)
			}
			for _, part := range strings.Split(row.says, "|") {
				if !strings.Contains(out+errs, part) {
					t.Errorf("no %q in\n%s%s", part, out, errs)
				}
			}
			if sent := strings.Join(*asked, "\n"); !strings.Contains(sent, row.sent) || row.sent == "" && sent != "" {
				t.Errorf("sent %q, want %q", sent, row.sent)
			}
		})
	}
	for _, args := range []string{"list", "show ask_A", "mark ask_A right", "verified", "verified vq_A", "remove vq_A", "import " + file} {
		out, errs, code := cli(t, srv.URL, append(append([]string{"learning"}, strings.Fields(args)...), "--json")...)
		if trimmed := strings.TrimSpace(out); code != 0 || !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
			t.Errorf("%s --json: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestAnExportReplacesItsFileWholeOrNotAtAll(t *testing.T) {
	srv, _ := learningServer(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "out.yaml")
	if _, errs, code := cli(t, srv.URL, "learning", "export", "--out", path); code != 0 || !strings.Contains(errs, "wrote") {
		t.Fatalf("exit %d, %s", code, errs)
	}
	text, err := os.ReadFile(path)
	left, err2 := os.ReadDir(dir)
	if err != nil || err2 != nil || string(text) != "verified_queries: []\n" || len(left) != 1 {
		t.Errorf("%q, %v; %v", text, err, left)
	}
	if _, _, code := cli(t, srv.URL, "learning", "export", "--out", filepath.Join(dir, "none", "x.yaml")); code != 1 {
		t.Errorf("into a folder that is not there: exit %d", code)
	}
}
