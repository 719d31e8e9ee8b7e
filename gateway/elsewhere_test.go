package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// afar is a server elsewhere that answers with the chunks of a test, and keeps what it is asked. Real ones are tested in scheduler/remote.
type afar struct {
	name, backend string
	offers        []*models.Model
	changes       chan struct{}

	mu       sync.Mutex
	gone     bool
	chunks   []runner.Chunk
	err      error
	requests []runner.GenerateRequest
}

func newAfar(t *testing.T, backend string, names ...string) *afar {
	t.Helper()
	a := &afar{name: "afar", backend: backend, changes: make(chan struct{}, 1), chunks: []runner.Chunk{{Text: "from"}, {Text: " afar"}, {DoneReason: "stop", Done: true, Usage: &runner.Usage{PromptTokens: 7, EvalTokens: 3}}}}
	for _, name := range names {
		told := models.Told{Capabilities: []string{"completion", "tools", "thinking", "vision"}, ContextLength: 4096, Details: api.ModelDetails{Family: "qwen3", ParameterSize: "8B"}}
		if strings.Contains(name, "embed") {
			told.Capabilities = []string{"embedding"}
		}
		m, err := models.Remote(name, told)
		if err != nil {
			t.Fatal(err)
		}
		a.offers = append(a.offers, m)
	}
	return a
}

func (a *afar) Name() string             { return a.name }
func (a *afar) Slots() int               { return 4 }
func (a *afar) Changes() <-chan struct{} { return a.changes }
func (a *afar) Failed(error)             { a.set(func() { a.gone = true }) }
func (a *afar) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (a *afar) set(change func()) {
	a.mu.Lock()
	change()
	a.mu.Unlock()
	select {
	case a.changes <- struct{}{}:
	default:
	}
}

func (a *afar) Models() []*models.Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return nil
	}
	return a.offers
}

func (a *afar) Runner(*models.Model) scheduler.Runner { return &afarRunner{a, make(chan struct{})} }

func (a *afar) last() runner.GenerateRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		return runner.GenerateRequest{}
	}
	return a.requests[len(a.requests)-1]
}

type afarRunner struct {
	*afar
	done chan struct{}
}

func (r *afarRunner) Load(context.Context, runner.LoadRequest, func(float32)) (runner.LoadReport, error) {
	return runner.LoadReport{Backend: r.backend, Parallel: 4, Chats: true}, nil
}

func (r *afarRunner) Generate(_ context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	r.mu.Lock()
	r.requests = append(r.requests, req)
	chunks, err := r.chunks, r.err
	if r.gone { // the scheduler has not heard of it yet
		err = &fault.Error{Code: fault.Busy, Kind: "unavailable", Msg: "gone", RetryAfter: time.Second}
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *afarRunner) Embed(_ context.Context, req runner.EmbedRequest) (out runner.EmbedResponse, err error) {
	for range req.Inputs {
		out.Vectors = append(out.Vectors, []float32{3, 4})
		out.PromptTokens++
	}
	return out, nil
}

func (r *afarRunner) Rerank(context.Context, runner.RerankRequest) (out runner.RerankResponse, err error) {
	return out, fault.New(fault.Unimplemented, "afar", "no scores there")
}

func (r *afarRunner) Tokenize(context.Context, string, bool) ([]int, error) {
	return nil, fault.New(fault.Unimplemented, "afar", "no tokens there")
}

func (r *afarRunner) Detokenize(context.Context, []int) (string, error) {
	return "", fault.New(fault.Unimplemented, "afar", "no tokens there")
}
func (r *afarRunner) SetThreads(context.Context, int) error { return nil }
func (r *afarRunner) Done() <-chan struct{}                 { return r.done }
func (r *afarRunner) Err() error                            { return nil }
func (r *afarRunner) Stop(context.Context) error            { return nil }

// withAfar is a fixture whose scheduler has servers elsewhere too.
func withAfar(t *testing.T, remotes ...*afar) *fixture {
	t.Helper()
	var f *fixture
	f = withAble(t, func(c *Config) {
		list := make([]scheduler.Remote, len(remotes))
		for i, r := range remotes {
			list[i] = r
		}
		sched, err := scheduler.New(scheduler.Config{NumCtx: 64, Log: slog.New(slog.DiscardHandler), Remotes: list, Grace: time.Minute,
			Start: func(context.Context) (scheduler.Runner, error) { return f.fake.start(), nil }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- sched.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the scheduler ended with %v", err)
			}
		})
		c.Scheduler = sched
	})
	return f
}

func chatBody(model string, more map[string]any) map[string]any {
	body := map[string]any{"model": model, "messages": []map[string]any{{"role": "user", "content": "hello"}}, "stream": false}
	for k, v := range more {
		body[k] = v
	}
	return body
}

const toolsAfar = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"place":{"type":"string"}}}}}]`

func TestChatsElsewhere(t *testing.T) {
	a := newAfar(t, "ollama", "qwen3:8b")
	f := withAfar(t, a)
	args := api.NewToolCallFunctionArguments()
	args.Set("place", "Rome")
	a.chunks = []runner.Chunk{{Thinking: "let me see"}, {Text: "<think>as text"}, {Calls: []api.ToolCall{{ID: "theirs", Function: api.ToolCallFunction{Name: "weather", Arguments: args}}}},
		{Text: `{"name":"weather"}`}, {DoneReason: "stop", Done: true, Usage: &runner.Usage{PromptTokens: 7, EvalTokens: 3}}}
	w := f.do(call{method: "POST", path: "/api/chat", body: chatBody("QWEN3:8B", map[string]any{"tools": json.RawMessage(toolsAfar), "options": map[string]any{"temperature": 0.5, "num_ctx": 99}, "format": map[string]any{"type": "object"}})})
	wantStatus(t, w, 200)
	got := object(t, w.Body.Bytes())
	msg := got["message"].(map[string]any)
	if msg["thinking"] != "let me see" || msg["content"] != `<think>as text{"name":"weather"}` {
		t.Errorf("what was told apart there is told apart again: %v", msg)
	}
	calls := msg["tool_calls"].([]any)
	if c := calls[0].(map[string]any); len(calls) != 1 || !strings.HasPrefix(c["id"].(string), "call_") || c["id"] == "theirs" {
		t.Errorf("calls %v", calls)
	}
	if got["prompt_eval_count"] != 7.0 || got["eval_count"] != 3.0 || got["model"] != "QWEN3:8B" || w.Header().Get(truncatedHeader) != "" {
		t.Errorf("%v", got)
	}
	req := a.last()
	c := req.Chat
	if c == nil || len(c.Messages) != 1 || len(c.Tools) != 1 || c.Format != `{"type":"object"}` || c.Options["num_ctx"] != 99.0 || len(c.Options) != 2 || !c.Think.Bool() || c.Force != nil || req.Prompt != "" {
		t.Errorf("it was asked %+v with %+v", req, c)
	}
	if f.fake.last().Prompt != "" {
		t.Error("a runner here was asked too")
	}
	// the same in a stream, by OpenAI's route
	w = f.do(call{method: "POST", path: "/v1/chat/completions", body: map[string]any{"model": "qwen3:8b", "stream": true, "messages": []map[string]any{{"role": "user", "content": "hello"}}, "tools": json.RawMessage(toolsAfar)}})
	wantStatus(t, w, 200)
	for _, want := range []string{`"reasoning":"let me see"`, `"name":"weather"`, `"finish_reason":"tool_calls"`, "[DONE]"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is not in %s", want, w.Body)
		}
	}
}

func TestRequiredCallsElsewhere(t *testing.T) {
	a := newAfar(t, "openai", "gpt:1")
	f := withAfar(t, a)
	args := api.NewToolCallFunctionArguments()
	a.chunks = []runner.Chunk{{Calls: []api.ToolCall{{Function: api.ToolCallFunction{Name: "weather", Arguments: args}}}}, {DoneReason: "stop", Done: true}}
	w := f.do(call{method: "POST", path: "/v1/chat/completions", body: map[string]any{"model": "gpt:1", "messages": []map[string]any{{"role": "user", "content": "hello"}}, "tools": json.RawMessage(toolsAfar),
		"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "weather"}}}})
	wantStatus(t, w, 200)
	if !strings.Contains(w.Body.String(), `"tool_calls":[{`) {
		t.Errorf("%s", w.Body)
	}
	c := a.last().Chat
	if c == nil || c.Force == nil || c.Force.Tool != "weather" || !strings.Contains(c.Force.Schema, `"const":"weather"`) || len(c.Tools) != 1 || c.Format != "" {
		t.Errorf("it was asked %+v", c)
	}
}

func TestTextsElsewhere(t *testing.T) {
	a := newAfar(t, "ollama", "qwen3:8b")
	f := withAfar(t, a)
	ask := func(more map[string]any) (string, runner.GenerateRequest) {
		t.Helper()
		body := map[string]any{"model": "qwen3:8b", "prompt": "Once", "stream": false}
		for k, v := range more {
			body[k] = v
		}
		w := f.do(call{method: "POST", path: "/api/generate", body: body})
		if w.Code != http.StatusOK {
			return w.Body.String(), a.last()
		}
		got := object(t, w.Body.Bytes())
		if got["context"] != nil {
			t.Errorf("a context of tokens that nobody counted: %v", got["context"])
		}
		return got["response"].(string), a.last()
	}
	text, req := ask(map[string]any{"system": "be brief", "images": []string{"iVBORw0KGgo="}})
	if text != "from afar" || len(req.Chat.Messages) != 2 || req.Chat.Messages[0].Role != "system" || req.Chat.Messages[1].Content != "Once" || len(req.Chat.Messages[1].Images) != 1 {
		t.Errorf("%q, asked %+v", text, req.Chat)
	}
	text, req = ask(map[string]any{"raw": true, "options": map[string]any{"num_predict": 3}})
	if text != "from afar" || req.Prompt != "Once" || len(req.Chat.Messages) != 0 || req.Chat.Options["num_predict"] != 3.0 {
		t.Errorf("%q, asked %+v", text, req)
	}
	text, req = ask(map[string]any{"template": "<{{ .Prompt }}>"})
	if text != "from afar" || req.Prompt != "<Once>" || len(req.Chat.Messages) != 0 {
		t.Errorf("%q, asked %+v", text, req)
	}
	if text, _ = ask(map[string]any{"context": []int{1, 2}}); !strings.Contains(text, "/api/chat") {
		t.Errorf("a context: %s", text)
	}
	if text, _ = ask(map[string]any{"suffix": "end"}); !strings.Contains(text, "does not support insert") {
		t.Errorf("a suffix: %s", text)
	}
	if text, _ = ask(map[string]any{"_debug_render_only": true}); !strings.Contains(text, "does not tell how") {
		t.Errorf("the prompt: %s", text)
	}
	w := f.do(call{method: "POST", path: "/v1/completions", body: map[string]any{"model": "qwen3:8b", "prompt": "Once"}})
	wantStatus(t, w, 200)
	if req := a.last(); req.Prompt != "" || len(req.Chat.Messages) != 1 || !strings.Contains(w.Body.String(), "from afar") {
		t.Errorf("as Ollama has it, completions are chats: %s, asked %+v", w.Body, req)
	}
	a = newAfar(t, "openai", "qwen3:8b")
	f = withAfar(t, a)
	w = f.do(call{method: "POST", path: "/v1/completions", body: map[string]any{"model": "qwen3:8b", "prompt": "Once"}})
	wantStatus(t, w, 200)
	if req := a.last(); req.Prompt != "Once" || len(req.Chat.Messages) != 0 || !strings.Contains(w.Body.String(), "from afar") {
		t.Errorf("as OpenAI has it, they are not: %s, asked %+v", w.Body, req)
	}
}

func TestVectorsAndTokensElsewhere(t *testing.T) {
	f := withAfar(t, newAfar(t, "openai", "embed:1", "qwen3:8b"))
	w := f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "embed:1", "input": []string{"a", "b"}}})
	wantStatus(t, w, 200)
	if e := object(t, w.Body.Bytes())["embeddings"].([]any); len(e) != 2 || e[0].([]any)[1] != 0.8 {
		t.Errorf("%s", w.Body)
	}
	w = f.do(call{method: "POST", path: "/v1/rerank", body: map[string]any{"model": "embed:1", "query": "q", "documents": []string{"a"}}})
	wantStatus(t, w, 200)
	for path, body := range map[string]map[string]any{"/api/tokenize": {"model": "qwen3:8b", "text": "x"}, "/api/detokenize": {"model": "qwen3:8b", "tokens": []int{1}}} {
		if w := f.do(call{method: "POST", path: path, body: body}); w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "no tokens there") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w = f.do(call{method: "POST", path: "/v1/messages/count_tokens", body: map[string]any{"model": "qwen3:8b", "messages": []map[string]any{{"role": "user", "content": "x"}}}})
	wantStatus(t, w, http.StatusNotImplemented)
}

// A key that is narrowed to some models does not see those of servers elsewhere either.
func TestModelsElsewhereAreNotForEverybody(t *testing.T) {
	f := withAfar(t, newAfar(t, "ollama", "qwen3:8b"))
	for bearer, status := range map[string]int{narrowKey: 404, adminKey: 200, "": 200} {
		w := f.do(call{method: "POST", path: "/api/chat", body: chatBody("qwen3:8b", nil), bearer: bearer})
		if w.Code != status {
			t.Errorf("key %q: %d %s", bearer, w.Code, w.Body)
		}
	}
}

// What is installed here and offered there is answered by whoever is there.
func TestAServerElsewhereThatIsGoneIsReplaced(t *testing.T) {
	a := newAfar(t, "ollama", "thinker", "qwen3:8b")
	f := withAfar(t, a)
	a.err = &fault.Error{Code: fault.Busy, Kind: "unavailable", Msg: "gone", RetryAfter: time.Second}
	f.fake.script = []string{"<think>", "hm", "</think>", "from here"}
	// Wherever the first lease is: the first one here is loaded by it, so servers elsewhere go first.
	w := f.do(call{method: "POST", path: "/api/chat", body: chatBody("thinker", nil)})
	wantStatus(t, w, 200)
	msg := object(t, w.Body.Bytes())["message"].(map[string]any)
	if msg["content"] != "from here" || msg["thinking"] != "hm" {
		t.Errorf("%v", msg)
	}
	if asked := a.last(); asked.Prompt == "" || asked.Chat == nil || len(asked.Chat.Messages) != 1 {
		t.Errorf("the server elsewhere was not asked first, or not with both: %+v", asked)
	}
	if got := f.fake.last().Prompt; !strings.Contains(got, "user: hello") {
		t.Errorf("the runner here was asked %q", got)
	}
	// What is only there is busy, not unknown.
	a.set(func() { a.gone, a.err = false, nil })
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: chatBody("qwen3:8b", nil)}), 200)
	a.set(func() { a.gone = true })
	w = f.do(call{method: "POST", path: "/api/chat", body: chatBody("qwen3:8b", nil)})
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("a model of a server that is gone: %d %s", w.Code, w.Body)
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: chatBody("no-such", nil)}), 404)
}

func TestRequestsInACircleEnd(t *testing.T) {
	f := withAfar(t, newAfar(t, "ollama", "qwen3:8b"))
	for hop, status := range map[string]int{"": 200, "1": 200, "4": 200, "5": 409, "-1": 400, "x": 400} {
		header := map[string]string{}
		if hop != "" {
			header["X-Sluice-Hop"] = hop
		}
		w := f.do(call{method: "POST", path: "/api/chat", body: chatBody("qwen3:8b", nil), header: header})
		if w.Code != status {
			t.Errorf("hop %q: %d %s", hop, w.Code, w.Body)
		}
	}
}
