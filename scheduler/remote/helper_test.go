package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"go.uber.org/goleak"

	"sluice/models"
	"sluice/runner"
)

const secretKey = "sk-secret-of-the-operator"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "remote-test-")
	fuzzing := slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz=") || arg == "-test.fuzzworker" })
	if err == nil && !fuzzing { // which needs none, in any of its processes
		err = buildSluice(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// peer is a server that answers each path with what a test puts there, and keeps what it was sent.
type peer struct {
	*httptest.Server
	mu      sync.Mutex
	routes  map[string]http.HandlerFunc
	bodies  map[string][]map[string]any
	headers []http.Header
}

func newPeer(t *testing.T, routes map[string]http.HandlerFunc) *peer {
	t.Helper()
	p := &peer{routes: routes, bodies: map[string][]map[string]any{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(text, &body)
		p.mu.Lock()
		p.bodies[r.URL.Path] = append(p.bodies[r.URL.Path], body)
		p.headers = append(p.headers, r.Header.Clone())
		h := p.routes[r.URL.Path]
		p.mu.Unlock()
		if h == nil {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		h(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// last is the last body that was sent to a path, as JSON.
func (p *peer) last(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.bodies[path]
	if len(all) == 0 {
		return ""
	}
	text, _ := marshal(all[len(all)-1])
	return strings.TrimSpace(string(text))
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func fail(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// events are the events of a stream, each a line of data.
func events(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }

// syncLog is a log that may be read while it is written.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newServer makes a server that is not run.
func newServer(t *testing.T, cfg Config) (*Server, *syncLog) {
	t.Helper()
	log := &syncLog{}
	cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if cfg.Name == "" {
		cfg.Name = "there"
	}
	if cfg.Key == "" {
		cfg.Key = secretKey
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.http.CloseIdleConnections)
	return s, log
}

// asked is a server that has been asked once, and a runner of its first model.
func asked(t *testing.T, cfg Config) (*Server, *Runner, *syncLog) {
	t.Helper()
	s, log := newServer(t, cfg)
	o, err := s.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.offer(o)
	if len(o.models) == 0 {
		t.Fatal("it offers nothing")
	}
	return s, s.Runner(o.models[0]), log
}

// run runs a server until the test ends.
func run(t *testing.T, s *Server) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if len(s.Models()) > 0 {
			t.Error("it offers models after its end")
		}
	})
}

// eventually waits for the changes that a server tells of.
func eventually(t *testing.T, s *Server, what string, ok func([]*models.Model) bool) {
	t.Helper()
	late := time.After(60 * time.Second)
	for !ok(s.Models()) {
		select {
		case <-s.Changes():
		case <-late:
			t.Fatalf("never: %s; it offers %d models", what, len(s.Models()))
		}
	}
}

func well(list []*models.Model) bool   { return len(list) > 0 }
func unwell(list []*models.Model) bool { return len(list) == 0 }

// gathered is an answer as its chunks tell it.
type gathered struct {
	text, thinking []string // of each answer
	calls          [][]api.ToolCall
	reasons        []string
	logprobs       int
	chunks         int
	usage          *runner.Usage
}

func (g *gathered) take(c runner.Chunk) error {
	g.chunks++
	for len(g.text) <= c.Index {
		g.text, g.thinking, g.calls, g.reasons = append(g.text, ""), append(g.thinking, ""), append(g.calls, nil), append(g.reasons, "")
	}
	if g.usage != nil {
		return fmt.Errorf("a chunk after the last one: %+v", c)
	}
	g.text[c.Index] += c.Text
	g.thinking[c.Index] += c.Thinking
	g.calls[c.Index] = append(g.calls[c.Index], c.Calls...)
	g.logprobs += len(c.Logprobs)
	if c.DoneReason != "" {
		if g.reasons[c.Index] != "" {
			return fmt.Errorf("answer %d ends twice", c.Index)
		}
		g.reasons[c.Index] = c.DoneReason
	}
	if c.Done {
		g.usage = c.Usage
	}
	return nil
}

func (g *gathered) String() string {
	var b strings.Builder
	for i := range g.text {
		fmt.Fprintf(&b, "[%s] %s", g.thinking[i], g.text[i])
		for _, c := range g.calls[i] {
			fmt.Fprintf(&b, " %s(%s)", c.Function.Name, c.Function.Arguments.String())
		}
		fmt.Fprintf(&b, " %s;", g.reasons[i])
	}
	if g.usage != nil {
		fmt.Fprintf(&b, " %d+%d", g.usage.PromptTokens, g.usage.EvalTokens)
	}
	return b.String()
}

func question(text string) *runner.Chat {
	return &runner.Chat{Messages: []api.Message{{Role: "user", Content: text}}}
}

func weather(t *testing.T) api.Tools {
	t.Helper()
	var tools api.Tools
	if err := json.Unmarshal([]byte(`[{"type":"function","function":{"name":"weather","description":"of a place","parameters":{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}}}]`), &tools); err != nil {
		t.Fatal(err)
	}
	return tools
}
