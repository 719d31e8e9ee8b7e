package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sluice/fault"
)

// askServer answers /v1/database/ask by the words of the question.
type askServer struct {
	*httptest.Server
	begun chan struct{} // an ask that waits has begun

	mu    sync.Mutex
	asked []map[string]any
}

func newAskServer(t *testing.T, databases ...string) *askServer {
	t.Helper()
	s := &askServer{begun: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/databases", func(w http.ResponseWriter, r *http.Request) {
		list := []map[string]string{}
		for _, name := range databases {
			list = append(list, map[string]string{"name": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
	})
	mux.HandleFunc("POST /v1/database/ask", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, body)
		s.mu.Unlock()
		event := func(name string, v any) {
			text, _ := json.Marshal(v)
			fmt.Fprintf(w, ": a comment\n\nevent: %s\ndata: %s\n\n", name, text)
			w.(http.Flusher).Flush()
		}
		done := func(answer map[string]any) { event("done", map[string]any{"data": answer}) }
		event("schema", map[string]string{"stage": "schema", "text": "3 tables\x1b[2J"})
		switch body["question"] {
		case "wait":
			s.begun <- struct{}{}
			<-r.Context().Done()
		case "delete":
			done(map[string]any{"outcome": "declined", "answer": "This was not done."})
		case "hard":
			done(map[string]any{"outcome": "failed", "answer": "I could not answer this."})
		case "busy":
			event("error", map[string]any{"error": map[string]string{"code": "busy", "message": "busy now"}})
		case "cut":
		default:
			event("answer", map[string]string{"stage": "answer", "text": "n: 3."})
			done(map[string]any{"outcome": "answered", "answer": "n: 3.\x1b]0;x\a", "sql": "SELECT count(*) AS n FROM item", "truncated": true, "verified": true,
				"columns": []map[string]string{{"name": "n", "type": "BIGINT"}, {"name": "what", "type": "TEXT"}}, "rows": []any{[]any{3, "pen\nand ink"}}})
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *askServer) asking() (a *asking, out, notes *lockedBuffer) {
	out, notes = &lockedBuffer{}, &lockedBuffer{}
	return &asking{client: &client{url: s.URL}, database: "shop", out: out, notes: notes}, out, notes
}

func TestAskOnTheCommandLine(t *testing.T) {
	s := newAskServer(t)
	for name, row := range map[string]struct {
		question   string
		change     func(*asking)
		out, notes string
		code       int
		says       string
	}{
		"an answer": {"How many?", func(*asking) {}, "n  what\n3  pen and ink\nn: 3. ]0;x \n",
			"schema    3 tables [2J\n1 rows, cut: there are more\na person has confirmed the SQL of this question\n", 0, ""},
		"with its SQL": {"How many?", func(a *asking) { a.sql = true }, "n  what\n3  pen and ink\nn: 3. ]0;x \n\nSELECT count(*) AS n FROM item\n", "schema", 0, ""},
		"on a terminal": {"How many?", func(a *asking) { a.width, a.line = func() int { return 9 }, func() int { return 12 } }, "n  what\n3  pen a…\nn: 3. ]0;x \n",
			"\r\x1b[K\x1b[2mschema 3 t…\x1b[0m\r\x1b[K1 rows", 0, ""},
		"declined":      {"delete", func(*asking) {}, "", "schema", exitRefused, "declined: This was not done."},
		"failed":        {"hard", func(*asking) {}, "", "schema", exitFailed, "failed: I could not answer this."},
		"an error":      {"busy", func(*asking) {}, "", "schema", exitFailed, "busy now"},
		"half a stream": {"cut", func(*asking) {}, "", "schema", exitFailed, "without its last event"},
	} {
		t.Run(name, func(t *testing.T) {
			a, out, notes := s.asking()
			row.change(a)
			err := a.ask(t.Context(), row.question)
			code := 0
			if err != nil {
				code = exitCode(err)
			}
			if code != row.code || row.says != "" && !strings.Contains(describe(err), row.says) {
				t.Errorf("exit code %d, %v", code, err)
			}
			if out.String() != row.out || !strings.HasPrefix(notes.String(), row.notes) {
				t.Errorf("out %q\nnotes %q", out, notes)
			}
		})
	}
	a, out, notes := s.asking()
	a.json = true
	if err := a.ask(t.Context(), "How many?"); err != nil {
		t.Fatal(err)
	}
	var got answer
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Outcome != "answered" || notes.String() != "" {
		t.Errorf("%v %q %q", err, out, notes)
	}
}

func TestAnAskIsCancelled(t *testing.T) {
	s := newAskServer(t)
	a, _, notes := s.asking()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.begun; cancel() }()
	if err := a.ask(ctx, "wait"); fault.CodeOf(err) != fault.Canceled || exitCode(err) != exitFailed {
		t.Errorf("%v %q", err, notes)
	}
}

// TestAskSession: questions go on from those that were answered, and from no others.
func TestAskSession(t *testing.T) {
	s := newAskServer(t)
	a, out, notes := s.asking()
	input, typist, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	ended := make(chan error, 1)
	go func() { ended <- a.loop(t.Context(), input, signals) }()
	typed := func(text string) {
		if _, err := typist.WriteString(text + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	typed("How many?")
	typed("delete")
	notes.waitFor(t, "declined: This was not done.")
	typed("wait")
	<-s.begun
	signals <- os.Interrupt
	typed("/sql")
	typed("And pens?")
	out.waitFor(t, "SELECT count(*)")
	typed("/clear")
	notes.waitFor(t, "forgotten.")
	typed("/?")
	typed("How many?")
	typed("/bye")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	typist.Close()
	input.Close()
	var conversations []string
	for _, body := range s.asked {
		conversations = append(conversations, fmt.Sprint(body["question"], " after ", body["conversation"]))
	}
	turn := "[map[question:How many? sql:SELECT count(*) AS n FROM item]]"
	want := []string{"How many? after <nil>", "delete after " + turn, "wait after " + turn, "And pens? after " + turn, "How many? after <nil>"}
	if fmt.Sprint(conversations) != fmt.Sprint(want) {
		t.Errorf("asked %q\nwant  %q", conversations, want)
	}
	if strings.Contains(notes.String(), "error: declined") || !strings.Contains(notes.String(), "shop> ") || !strings.Contains(notes.String(), "/clear     forgets") {
		t.Errorf("notes %q", notes)
	}
}

func TestAskSessionEndsWithASignal(t *testing.T) {
	s := newAskServer(t)
	a, _, _ := s.asking()
	input, typist, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	ended := make(chan error, 1)
	go func() { ended <- a.loop(t.Context(), input, signals) }()
	if _, err := typist.WriteString("wait\n"); err != nil {
		t.Fatal(err)
	}
	<-s.begun
	signals <- syscall.SIGTERM
	if err := <-ended; err != nil {
		t.Error(err)
	}
	typist.Close()
	input.Close()
}

func TestWhichDatabase(t *testing.T) {
	for name, row := range map[string]struct {
		there []string
		code  int
		says  string
	}{
		"one":  {[]string{"shop"}, 0, ""},
		"none": {nil, exitFailed, "no database that you may read"},
		"two":  {[]string{"shop", "erp"}, exitUsage, "-d with one of: erp, shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SLUICE_URL", newAskServer(t, row.there...).URL)
			t.Setenv("SLUICE_KEY", "slc_x")
			root := newRoot()
			var out lockedBuffer
			root.SetOut(&out)
			root.SetErr(&out)
			root.SetArgs([]string{"ask", "How", "many?"})
			err := root.ExecuteContext(t.Context())
			code := 0
			if err != nil {
				code = exitCode(err)
			}
			if code != row.code || row.says != "" && (err == nil || !strings.Contains(describe(err), row.says)) {
				t.Errorf("exit code %d, %v", code, err)
			}
		})
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	header, right := []string{"id", "name", "note"}, []bool{true, false, false}
	rows := [][]string{{"1", "pen", "a long note about a pen"}, {"2", "日本語", "x"}}
	for most, want := range map[int]string{
		80: "id  name    note\n 1  pen     a long note about a pen\n 2  日本語  x\n",
		24: "id  name    note\n 1  pen     a long note…\n 2  日本語  x\n",
		18: "id  name    note\n 1  pen     a lon…\n 2  日本語  x\n",
		10: "id    1\nname  pen\nnote  a lo…\n\nid    2\nname  日本…\nnote  x\n",
	} {
		got := fitted(header, rows, right, most)
		if got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", most, got, want)
		}
		for line := range strings.Lines(got) {
			if n := span(strings.TrimRight(line, "\n")); n > most && most > 10 {
				t.Errorf("%d columns: the line %q takes %d", most, line, n)
			}
		}
	}
	if got := fitted(nil, nil, nil, 10); got != "\n" {
		t.Errorf("no columns: %q", got)
	}
}
