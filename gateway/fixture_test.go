package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/fs/ggml"
	"go.uber.org/goleak"

	"sluice/internal/fakerunner/fakebin"
	"sluice/models"
	"sluice/scheduler"
)

// fakeBinary is the fake child, built once.
var fakeBinary string

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	dir, err := os.MkdirTemp("", "gateway-test-")
	if err == nil {
		fakeBinary, err = fakebin.Build(dir)
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

// fixture is the real handler over a real models folder and the real scheduler. The runner behind it is a fake that
// works word by word, so that answers are known; the real child is tested from internal/e2e.
type fixture struct {
	t       *testing.T
	cfg     Config
	handler http.Handler
	fake    *fakeRunner
	people  *people
	log     *syncBuffer
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	store, err := models.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	addModel(t, store, "tiny", ggml.KV{"general.architecture": "llama", "llama.context_length": uint32(4096), "llama.embedding_length": uint32(8),
		"llama.block_count": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}})
	addModel(t, store, "encoder", ggml.KV{"general.architecture": "bert", "bert.context_length": uint32(512), "bert.embedding_length": uint32(8),
		"bert.block_count": uint32(1), "bert.pooling_type": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}})
	f := &fixture{fake: &fakeRunner{}, log: &syncBuffer{}}
	if tt, ok := t.(*testing.T); ok {
		f.t = tt
	}
	f.cfg = Config{Version: "1.2.3", Models: store, Ledger: &memoryLedger{}, OpenOllama: true, Loopback: true,
		Log: slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&f.cfg)
	}
	if f.cfg.Accounts == nil {
		f.cfg.Accounts = newPeople(t)
	}
	f.people = f.cfg.Accounts.(*people)
	if f.cfg.Scheduler == nil {
		f.cfg.Scheduler = runScheduler(t, func(context.Context) (scheduler.Runner, error) { return f.fake.start(), nil })
	}
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	return f
}

// runScheduler runs a scheduler until the test ends. It does not end while a lease is out, and the test fails then.
func runScheduler(t testing.TB, start func(context.Context) (scheduler.Runner, error)) *scheduler.Scheduler {
	t.Helper()
	sched, err := scheduler.New(scheduler.Config{NumCtx: 64, Log: slog.New(slog.DiscardHandler), Start: start, Grace: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sched.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the scheduler ended with %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the scheduler does not end: a lease was not released")
		}
	})
	return sched
}

// addModel writes a tiny GGUF file and makes a model of it, as a client would.
func addModel(t testing.TB, store *models.Store, name string, kv ggml.KV) {
	t.Helper()
	addModelWith(t, store, name, plainTemplate, kv)
}

const (
	plainTemplate = "{{ range .Messages }}{{ .Role }}: {{ .Content }} {{ end }}"

	// toolTemplate has Qwen2.5's form of a call.
	toolTemplate = `{{ range .Tools }}tool {{ .Function }} {{ end }}{{ range .Messages }}{{ .Role }}: {{ .Content }}{{ if .ToolCalls }}<tool_call>
{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}
</tool_call>{{ end }} {{ end }}`

	// thinkTemplate has Qwen3's form of a thought.
	thinkTemplate = `{{ range .Tools }}tool {{ .Function }} {{ end }}{{ range .Messages }}{{ .Role }}: {{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ if .ToolCalls }}<tool_call>
{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}
</tool_call>{{ end }} {{ end }}{{ if .Think }}/think{{ else }}/no_think{{ end }} `

	insertTemplate = "{{ if .Suffix }}<pre>{{ .Prompt }}<suf>{{ .Suffix }}<mid>{{ else }}{{ range .Messages }}{{ .Role }}: {{ .Content }} {{ end }}{{ end }}"
)

// withAble adds models that can do more than tiny: "caller" calls tools, "thinker" thinks and calls tools, "seer" takes
// images, "filler" fills gaps.
func withAble(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := newFixture(t, change)
	llama := func(more ggml.KV) ggml.KV {
		kv := ggml.KV{"general.architecture": "llama", "llama.context_length": uint32(4096), "llama.embedding_length": uint32(8),
			"llama.block_count": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}}
		for k, v := range more {
			kv[k] = v
		}
		return kv
	}
	addModelWith(t, f.cfg.Models, "caller", toolTemplate, llama(nil))
	addModelWith(t, f.cfg.Models, "thinker", thinkTemplate, llama(nil))
	addModelWith(t, f.cfg.Models, "seer", plainTemplate, llama(ggml.KV{"llama.vision.block_count": uint32(1)}))
	addModelWith(t, f.cfg.Models, "filler", insertTemplate, llama(nil))
	return f
}

func addModelWith(t testing.TB, store *models.Store, name, template string, kv ggml.KV) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = ggml.WriteGGUF(file, kv, []*ggml.Tensor{{Name: "token_embd.weight", Kind: 0, Shape: []uint64{8, 2}, WriterTo: bytes.NewReader(make([]byte, 64))}})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if err := store.AddBlob(t.Context(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), models.CreateRequest{Name: name, Template: template, Files: map[string]string{"m.gguf": digest}}, nil); err != nil {
		t.Fatal(err)
	}
}

// call is one request. Host is local unless set, as a client on this machine sends it.
type call struct {
	method, path string
	body         any // a string goes as it is, anything else as JSON
	bearer       string
	header       map[string]string
	host         string
}

func (f *fixture) do(c call) *httptest.ResponseRecorder {
	f.t.Helper()
	return serve(f.t, f.handler, c)
}

func serve(t testing.TB, h http.Handler, c call) *httptest.ResponseRecorder {
	t.Helper()
	var body io.Reader
	switch b := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	r := httptest.NewRequest(c.method, c.path, body)
	r.Host = "127.0.0.1:11434"
	if c.host != "" {
		r.Host = c.host
	}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for k, v := range c.header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// object parses a JSON answer.
func object(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("not a JSON object: %v in %.200q", err, body)
	}
	return v
}

// lines parses an NDJSON answer, which must have no blank line and end with a newline.
func lines(t testing.TB, body []byte) []map[string]any {
	t.Helper()
	if !bytes.HasSuffix(body, []byte("\n")) {
		t.Fatalf("the last line has no newline: %q", body)
	}
	var out []map[string]any
	for line := range bytes.SplitSeq(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
		out = append(out, object(t, line))
	}
	return out
}

func wantStatus(t testing.TB, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d: %.300s", w.Code, status, w.Body)
	}
}

// waitLoaded asks the scheduler until what is loaded satisfies ok, for things that happen after an answer.
func (f *fixture) waitLoaded(ok func([]scheduler.Loaded) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	for {
		loaded, err := f.cfg.Scheduler.Loaded(ctx)
		if err != nil {
			f.t.Fatalf("never as wanted: %v", err)
		}
		if ok(loaded) {
			return
		}
	}
}

func none(loaded []scheduler.Loaded) bool { return len(loaded) == 0 }

func idle(loaded []scheduler.Loaded) bool {
	return !slices.ContainsFunc(loaded, func(l scheduler.Loaded) bool { return l.InFlight > 0 })
}
