package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// endless answers with a text, and never ends the answer.
type endless struct{ routes map[string]string }

func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	go func() {
		_, err := io.WriteString(out, e.routes[r.URL.Path])
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for err == nil { // a byte now and then keeps the connection from being idle
			select {
			case <-tick.C:
				_, err = io.WriteString(out, "\n")
			case <-r.Context().Done():
				return
			}
		}
	}()
	go func() {
		<-r.Context().Done()
		_ = in.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: in, Request: r}, nil
}

// All of an answer is there: that its connection never ends is no reason to wait.
func TestAnswersThatNeverEnd(t *testing.T) {
	const chat = `{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, Config{Kind: OpenAI, URL: "http://there:8000", Transport: endless{map[string]string{
			"/v1/models": strings.ReplaceAll(vllmList, `"vllm"`, `"x"`), "/v1/chat/completions": events(chat, "[DONE]"),
			"/v1/embeddings": `{"data":[{"index":0,"embedding":[1]}]}`,
		}}})
		begin := time.Now()
		o, err := s.ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.offer(o)
		r := s.Runner(o.models[0])
		var g gathered
		if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take); err != nil || g.usage == nil {
			t.Errorf("%v, %s", err, g.String())
		}
		if _, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"x"}}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 3*time.Second { // of the bubble's clock, which only waits move
			t.Errorf("three answers that were there at once took %s", took)
		}
	})
}

// What is small on the wire must not be large in memory.
func TestSmallTextsThatWouldBeLarge(t *testing.T) {
	many := func(before, one, after string, size int) string {
		return before + strings.Repeat(one+",", size/(len(one)+1)) + one + after
	}
	tiny := 12 << 20
	ask := func(kind string, routes map[string]http.HandlerFunc) error {
		s, _ := newServer(t, Config{Kind: kind, URL: newPeer(t, routes).URL})
		_, err := s.ask(t.Context())
		return err
	}
	cases := map[string]func() error{
		"a list of OpenAI's": func() error {
			return ask(OpenAI, map[string]http.HandlerFunc{"/v1/models": say(many(`{"data":[`, "{}", "]}", tiny))})
		},
		"a list of Ollama's": func() error {
			return ask(Ollama, map[string]http.HandlerFunc{"/api/tags": say(many(`{"models":[`, "{}", "]}", tiny))})
		},
		"pieces of an answer": func() error {
			_, r := openaiPeer(t, map[string]http.HandlerFunc{"/v1/chat/completions": say(many(`data: {"choices":[`, "{}", "]}\n\n", tiny))})
			return r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, (&gathered{}).take)
		},
		"calls of an answer": func() error {
			_, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(many(`{"message":{"tool_calls":[`, "{}", "]}}\n", tiny))})
			return r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, (&gathered{}).take)
		},
		"vectors of OpenAI's": func() error {
			_, r := openaiPeer(t, map[string]http.HandlerFunc{"/v1/embeddings": say(many(`{"data":[`, "{}", "]}", tiny))})
			_, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"x"}})
			return err
		},
		"vectors of Ollama's": func() error {
			_, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/embed": say(many(`{"embeddings":[`, "[]", "]}", tiny))})
			_, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"x"}})
			return err
		},
		"scores": func() error {
			_, r := openaiPeer(t, map[string]http.HandlerFunc{"/v1/rerank": say(many(`{"results":[`, "{}", "]}", tiny))})
			_, err := r.Rerank(t.Context(), runner.RerankRequest{Query: "x", Documents: []string{"y"}})
			return err
		},
		"tokens": func() error {
			_, r := openaiPeer(t, map[string]http.HandlerFunc{"/tokenize": say(many(`{"tokens":[`, "0", "]}", tiny))})
			_, err := r.Tokenize(t.Context(), "x", false)
			return err
		},
	}
	for name, do := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := do(); err == nil {
				t.Error("it is taken")
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 { // the texts themselves, some times over
				t.Errorf("%d MiB were used", used>>20)
			}
		})
	}
}

// Counters only grow, and dates have four digits.
func TestNumbersWithoutReason(t *testing.T) {
	_, r := openaiPeer(t, map[string]http.HandlerFunc{"/v1/chat/completions": say(events(`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-7,"completion_tokens":9223372036854775807,"prompt_tokens_details":{"cached_tokens":5}}}`, "[DONE]")),
		"/v1/embeddings": say(`{"data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":-3}}`),
		"/v1/rerank":     say(`{"results":[{"index":0,"relevance_score":0.5}],"usage":{"prompt_tokens":-3,"total_tokens":-9}}`)})
	var g gathered
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take); err != nil {
		t.Fatal(err)
	}
	if u := *g.usage; u.PromptTokens != 0 || u.CachedTokens != 0 || u.EvalTokens != maxTokens {
		t.Errorf("%+v", u)
	}
	if e, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"x"}}); err != nil || e.PromptTokens != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := r.Rerank(t.Context(), runner.RerankRequest{Documents: []string{"x"}}); err != nil || e.PromptTokens != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	_, r = ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"error":null,"message":{"content":"Hi"},"done":true,"prompt_eval_count":-1,"eval_count":-2,"eval_duration":-3,"prompt_eval_duration":9223372036854775807}` + "\n")})
	g = gathered{}
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take); err != nil { // "error": null is none
		t.Fatal(err)
	}
	if u := *g.usage; u.PromptTokens != 0 || u.EvalTokens != 0 || u.EvalDuration != 0 || u.PromptDuration > 1000*time.Hour {
		t.Errorf("%+v", u)
	}
	p := newPeer(t, map[string]http.HandlerFunc{"/v1/models": say(`{"data":[{"id":"m","created":1e18,"max_model_len":1e300},{"id":"n","created":-5,"max_model_len":-1}]}`)})
	s, _ := newServer(t, Config{Kind: OpenAI, URL: p.URL})
	o, err := s.ask(t.Context())
	if err != nil || len(o.models) != 2 {
		t.Fatalf("%v, %v", o, err)
	}
	for _, m := range o.models {
		if _, err := json.Marshal(m.ModifiedAt); err != nil {
			t.Error(err)
		}
	}
}

// Whatever a server calls its models, people read it in their terminals and lists.
func TestNamesWithoutReason(t *testing.T) {
	evil := `\u001b[31mred\u009b31m\u202e`
	p := newPeer(t, map[string]http.HandlerFunc{
		"/api/tags": say(strings.ReplaceAll(`{"models":[{"model":"Qwen:8B","digest":"EVIL"},{"model":"qwen:8b"},{"model":"../../etc/passwd"},{"model":"EVIL"},{"model":"a b"},{"model":"m","digest":"abc"}]}`, "EVIL", evil)),
		"/api/show": say(`{"license":"` + strings.Repeat("x", maxPage+1) + `","details":{"family":"` + evil + `","families":["` + strings.Repeat("y", maxWord+1) + `","ok"]},"capabilities":["completion","` + evil + `"]}`),
	})
	s, _ := newServer(t, Config{Kind: Ollama, URL: p.URL})
	o, err := s.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range o.models {
		names = append(names, m.Name)
		text := fmt.Sprintf("%s %s %+v %v %v", m.Name, m.Digest, m.Facts, m.Capabilities(), m.License)
		if strings.ContainsAny(text, "\x1b\u009b\u202e") || len(text) > 2000 {
			t.Errorf("%.300q", text)
		}
	}
	if got := strings.Join(names, " "); got != "Qwen:8B passwd:latest m:latest" {
		t.Errorf("it offers %q", got)
	}
}

// A server that repeats what it was sent must not tell our key to our clients.
func TestOurKeyIsNotRepeated(t *testing.T) {
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"%s what is this? %s"}}`, strings.Repeat("x", 380), r.Header.Get("Authorization"))
		}
	}
	stream := func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "data: {\"error\":{\"code\":400,\"message\":\"%s\"}}\n\n", r.Header.Get("Authorization"))
	}
	for name, answer := range map[string]http.HandlerFunc{"400": echo(400), "401": echo(401), "404": echo(404), "409": echo(409), "500": echo(500), "503": echo(503), "in a stream": stream} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": say(""), "/v1/chat/completions": answer})
			_, r, log := asked(t, Config{Kind: OpenAI, URL: p.URL})
			err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, (&gathered{}).take)
			if err == nil {
				t.Fatal("no error")
			}
			for _, text := range []string{err.Error(), fault.Public(err).Msg, log.String()} {
				if strings.Contains(text, secretKey) || strings.Contains(text, secretKey[:12]) {
					t.Errorf("the key is in %q", text)
				}
			}
		})
	}
}

// FuzzOpenAIAnswer: whatever comes, nothing panics, an answer ends once, and what it says of its work is within reason.
func FuzzOpenAIAnswer(f *testing.F) {
	f.Add(events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, "[DONE]"))
	f.Add(events(`{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]},"finish_reason":"length"}]}`))
	f.Add(`{"error":{"message":"x","code":"429"}}` + "\n")
	f.Add(": ping\r\ndata: null\ndata: {\"choices\":null,\"usage\":{}}\ndata:[DONE]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := New(Config{Name: "x", Kind: OpenAI, URL: "http://x", Key: secretKey, Transport: canned(text)})
		if err != nil {
			t.Fatal(err)
		}
		r := &Runner{s: s, id: "m"}
		var g gathered
		err = r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x"), N: 2}, g.take)
		whole(t, &g, err)
	})
}

// FuzzOllamaAnswer: as FuzzOpenAIAnswer.
func FuzzOllamaAnswer(f *testing.F) {
	f.Add(`{"message":{"content":"Hi","thinking":"hm"},"done":false}` + "\n" + `{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":true,"done_reason":"stop","eval_count":3}` + "\n")
	f.Add(`{"error":"no"}`)
	f.Add(`{"error":null,"message":{"tool_calls":[{}]},"done":true,"eval_count":-1}`)
	f.Add("null\n{}\n[]\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := New(Config{Name: "x", Kind: Ollama, URL: "http://x", Key: secretKey, Transport: canned(text)})
		if err != nil {
			t.Fatal(err)
		}
		r := &Runner{s: s, id: "m"}
		var g gathered
		err = r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take)
		whole(t, &g, err)
	})
}

// whole holds what is true of every answer.
func whole(t *testing.T, g *gathered, err error) {
	t.Helper()
	switch {
	case err == nil && g.usage == nil:
		t.Error("it ended well, and its last chunk did not come")
	case err != nil && g.usage != nil:
		t.Errorf("the last chunk came, and then %v", err)
	case err != nil && fault.CodeOf(err) == fault.Internal:
		t.Errorf("%v is not classified", err)
	case g.usage != nil && (g.usage.PromptTokens < 0 || g.usage.EvalTokens < 0 || g.usage.CachedTokens > g.usage.PromptTokens):
		t.Errorf("%+v", g.usage)
	}
	for _, calls := range g.calls {
		for _, c := range calls {
			if c.Function.Name == "" {
				t.Error("a call of nothing")
			}
		}
	}
}

// canned answers everything with one text.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c))), Request: r}, nil
}
