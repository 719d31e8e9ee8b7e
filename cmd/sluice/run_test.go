package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// chatServer answers /api/chat with lines; "wait" as the last message begins an answer and goes on until the caller leaves.
type chatServer struct {
	*httptest.Server
	begun chan struct{} // an answer that waits has begun

	mu    sync.Mutex
	asked []map[string]any
}

func newChatServer(t *testing.T, capabilities ...string) *chatServer {
	t.Helper()
	s := &chatServer{begun: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"capabilities": capabilities})
	})
	mux.HandleFunc("POST /api/chat", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, body)
		s.mu.Unlock()
		messages := body["messages"].([]any)
		last := messages[len(messages)-1].(map[string]any)["content"]
		say := func(format string, args ...any) {
			fmt.Fprintf(w, format+"\n", args...)
			w.(http.Flusher).Flush()
		}
		switch last {
		case "wait":
			say(`{"message":{"role":"assistant","content":"one"}}`)
			s.begun <- struct{}{}
			<-r.Context().Done()
		case "fail":
			w.WriteHeader(http.StatusServiceUnavailable)
			say(`{"error":"busy now"}`)
		default:
			say(`{"message":{"role":"assistant","content":"","thinking":"hm\u001b]0;x"}}`)
			text, _ := json.Marshal(fmt.Sprint("you said ", last))
			say(`{"message":{"role":"assistant","content":%s}}`, text)
			say(`{"message":{"role":"assistant","content":""},"done":true,"total_duration":2000000000,"prompt_eval_count":30,"prompt_eval_duration":1000000000,"prompt_cached_count":10,"eval_count":5,"eval_duration":500000000}`)
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *chatServer) talk() (t *talk, out, notes *lockedBuffer) {
	out, notes = &lockedBuffer{}, &lockedBuffer{}
	return &talk{client: &client{url: s.URL}, model: "m", out: out, notes: notes}, out, notes
}

// last is the body of the last chat request.
func (s *chatServer) last() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[len(s.asked)-1]
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// waitFor waits until a text has been written.
func (l *lockedBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(l.String(), text) {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("no %q in %q", text, l)
		}
	}
}

// Ctrl-C ends the answer and not the session; what was cut off is no part of the conversation.
func TestInterruptEndsTheAnswerNotTheSession(t *testing.T) {
	s := newChatServer(t)
	talk, out, notes := s.talk()
	signals := make(chan os.Signal)
	input, typing := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- talk.loop(t.Context(), input, signals) }()
	fmt.Fprintln(typing, "first")
	fmt.Fprintln(typing, "wait")
	<-s.begun
	out.waitFor(t, "one")
	signals <- os.Interrupt
	notes.waitFor(t, "hm ]0;x\n\n>>> >>> ")
	signals <- os.Interrupt // at the prompt: a hint
	fmt.Fprintln(typing, "fail")
	fmt.Fprintln(typing, `"""two`)
	fmt.Fprintln(typing, `lines"""`)
	fmt.Fprintln(typing, "/bye")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "you said first\none\nyou said two\nlines\n" {
		t.Errorf("answers %q", got)
	}
	if got := notes.String(); !strings.Contains(got, "busy now") || !strings.Contains(got, "/bye or Ctrl-D ends.") {
		t.Errorf("notes %q", got)
	}
	if n := len(s.last()["messages"].([]any)); n != 3 { // first, its answer, two lines
		t.Errorf("the last request has %d messages: %v", n, s.last())
	}
}

// SIGTERM ends the session, in mid-answer too.
func TestTerminationEndsTheSession(t *testing.T) {
	s := newChatServer(t)
	talk, _, _ := s.talk()
	signals := make(chan os.Signal)
	input, typing := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- talk.loop(t.Context(), input, signals) }()
	fmt.Fprintln(typing, "wait")
	<-s.begun
	signals <- syscall.SIGTERM
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestClearForgetsAllButTheSystemPrompt(t *testing.T) {
	s := newChatServer(t)
	talk, _, _ := s.talk()
	talk.messages = []api.Message{{Role: "system", Content: "be brief"}}
	if err := talk.loop(t.Context(), strings.NewReader("one\n/clear\n/?\ntwo\n"), nil); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.last()["messages"]); got != "[map[content:be brief role:system] map[content:two role:user]]" {
		t.Errorf("messages %s", got)
	}
}

func TestThinkingIsNoPartOfTheAnswer(t *testing.T) {
	s := newChatServer(t)
	talk, out, notes := s.talk()
	talk.verbose = true
	if err := talk.ask(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "you said x\n" || !strings.HasPrefix(notes.String(), "hm ]0;x\n") {
		t.Errorf("in a pipe: %q and %q", out, notes)
	}
	for _, want := range []string{"total   2s", "prompt  30 tokens in 1s  20.0 tokens/s  10 of them cached", "answer  5 tokens in 500ms  10.0 tokens/s"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("no %q in %q", want, notes)
		}
	}
	talk, out, notes = s.talk()
	talk.terminal = true
	if err := talk.ask(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if out.String() != dim+"hm ]0;x\n"+plain+"\nyou said x\n" || notes.String() != "" {
		t.Errorf("on a terminal: %q and %q", out, notes)
	}
	talk, out, _ = s.talk()
	talk.json = true
	if err := talk.ask(t.Context(), "x"); err != nil || strings.Count(out.String(), "\n") != 3 || !strings.HasPrefix(out.String(), `{"message"`) {
		t.Errorf("as JSON: %q, %v", out, err)
	}
}

func TestRunFlags(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want map[string]any // in the request
		says string         // else the error
	}{
		"nothing":                 {nil, map[string]any{"think": nil, "format": nil, "options": nil, "keep_alive": nil}, ""},
		"thinking":                {[]string{"--think"}, map[string]any{"think": true}, ""},
		"no thinking":             {[]string{"--think=false"}, map[string]any{"think": false}, ""},
		"a little":                {[]string{"--think=low"}, map[string]any{"think": "low"}, ""},
		"too much":                {[]string{"--think=most"}, nil, "none of true, false"},
		"JSON":                    {[]string{"--format", "json"}, map[string]any{"format": "json"}, ""},
		"a schema":                {[]string{"--format", `{"type":"object"}`}, map[string]any{"format": map[string]any{"type": "object"}}, ""},
		"a schema's file":         {[]string{"--format", schema}, map[string]any{"format": map[string]any{"type": "object"}}, ""},
		"neither":                 {[]string{"--format", "xml"}, nil, "neither"},
		"a broken schema":         {[]string{"--format", `{"type":`}, nil, "no valid JSON"},
		"options":                 {[]string{"--option", "temperature=0", "--option", "stop=[\"a\"]"}, map[string]any{"options": map[string]any{"temperature": 0.0, "stop": []any{"a"}}}, ""},
		"an option without sense": {[]string{"--option", "temperature"}, nil, "name=value"},
		"for how long":            {[]string{"--keepalive", "-1"}, map[string]any{"keep_alive": "-1"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newChatServer(t)
			t.Setenv("SLUICE_URL", s.URL)
			root := newRoot()
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetIn(strings.NewReader(""))
			root.SetArgs(append([]string{"run", "m", "hello"}, c.args...))
			err := root.ExecuteContext(t.Context())
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || exitCode(err) != exitUsage {
					t.Errorf("error %v, want a usage error with %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range c.want {
				if got := s.last()[key]; fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
					t.Errorf("%s is %#v, want %#v", key, got, want)
				}
			}
		})
	}
}

func TestPicturesInThePrompt(t *testing.T) {
	dir := t.TempDir()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "b c.PNG", "d.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text.png"), []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		prompt, want string
		images       int
		fails        bool
	}{
		"one":                       {"What is on DIR/a.png?", "What is on ?", 1, false},
		"two, one after the other":  {"Compare DIR/a.png DIR/d.png", "Compare", 2, false},
		"a space as a shell has it": {`See DIR/b\ c.PNG now`, "See  now", 1, false},
		"in quotes":                 {`See 'DIR/b c.PNG' and "DIR/d.png".`, "See  and .", 2, false},
		"one that is not there":     {"What is /no/such/file.png?", "What is /no/such/file.png?", 0, false},
		"no path":                   {"a/b.png and http://x/y.png", "a/b.png and http://x/y.png", 0, false},
		"no image":                  {"DIR/text.png", "", 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			talk, _, _ := newChatServer(t, "completion", "vision").talk()
			msg, err := talk.turn(t.Context(), strings.ReplaceAll(c.prompt, "DIR", dir))
			if c.fails {
				if err == nil {
					t.Errorf("%+v", msg)
				}
				return
			}
			if err != nil || msg.Content != c.want || len(msg.Images) != c.images {
				t.Errorf("%q with %d images, %v; want %q with %d", msg.Content, len(msg.Images), err, c.want, c.images)
			}
		})
	}
	talk, _, _ := newChatServer(t, "completion").talk()
	prompt := "What is on " + filepath.Join(dir, "a.png")
	if msg, err := talk.turn(t.Context(), prompt); err != nil || msg.Content != prompt || msg.Images != nil {
		t.Errorf("a model without vision gets %+v, %v", msg, err)
	}
}
