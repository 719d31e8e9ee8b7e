package remote

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/runner"
)

// What a server is sent: only what the caller asked for, in words that it knows.
func TestRequests(t *testing.T) {
	end := events(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	line := `{"done":true}` + "\n"
	list := func(owner string) string {
		return `{"data":[{"id":"m","owned_by":"` + owner + `","max_model_len":100}]}`
	}
	options := map[string]any{"temperature": 0.5, "top_k": 20.0, "num_predict": 9.0, "seed": 3.0, "stop": []any{"END"}, "repeat_penalty": 1.2, "num_ctx": 8192.0, "num_gpu": 99.0, "use_mmap": false, "min_p": nil}
	with := func(change func(*runner.Chat)) runner.GenerateRequest {
		c := question("x")
		change(c)
		return runner.GenerateRequest{Chat: c, Truncate: true, Shift: true}
	}
	cases := map[string]struct {
		kind, owner string
		req         runner.GenerateRequest
		want        string // of the body, its keys in order
	}{
		"a chat without a wish leaves all to the server": {OpenAI, "x", with(func(*runner.Chat) {}),
			`{"messages":[{"content":"x","role":"user"}],"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		"OpenAI's words for options": {OpenAI, "x", with(func(c *runner.Chat) { c.Options = options }),
			`{"max_tokens":9,"messages":[{"content":"x","role":"user"}],"model":"m","seed":3,"stop":["END"],"stream":true,"stream_options":{"include_usage":true},"temperature":0.5}`},
		"vLLM's extensions, and no thought": {OpenAI, "vllm", with(func(c *runner.Chat) { c.Options, c.Think = options, &api.ThinkValue{Value: false} }),
			`{"chat_template_kwargs":{"enable_thinking":false},"max_tokens":9,"messages":[{"content":"x","role":"user"}],"model":"m","repetition_penalty":1.2,"seed":3,"stop":["END"],"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_k":20}`},
		"llama-server's": {OpenAI, "llamacpp", with(func(c *runner.Chat) { c.Options = map[string]any{"top_k": 1, "repeat_penalty": 1.5} }),
			`{"messages":[{"content":"x","role":"user"}],"model":"m","repeat_penalty":1.5,"stream":true,"stream_options":{"include_usage":true},"top_k":1}`},
		"a length of thought": {OpenAI, "x", with(func(c *runner.Chat) { c.Think = &api.ThinkValue{Value: "low"} }),
			`{"messages":[{"content":"x","role":"user"}],"model":"m","reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true}}`},
		"a schema": {OpenAI, "x", with(func(c *runner.Chat) { c.Format = `{"type":"object"}` }),
			`{"messages":[{"content":"x","role":"user"}],"model":"m","response_format":{"json_schema":{"name":"answer","schema":{"type":"object"}},"type":"json_schema"},"stream":true,"stream_options":{"include_usage":true}}`},
		"any JSON": {OpenAI, "x", with(func(c *runner.Chat) { c.Format = "null" }),
			`{"messages":[{"content":"x","role":"user"}],"model":"m","response_format":{"type":"json_object"},"stream":true,"stream_options":{"include_usage":true}}`},
		"two answers with their probabilities": {OpenAI, "x", runner.GenerateRequest{Chat: question("x"), N: 2, Logprobs: true, TopLogprobs: 3},
			`{"logprobs":true,"messages":[{"content":"x","role":"user"}],"model":"m","n":2,"stream":true,"stream_options":{"include_usage":true},"top_logprobs":3}`},
		"a text": {OpenAI, "x", runner.GenerateRequest{Prompt: "Once", Chat: &runner.Chat{Options: map[string]any{"num_predict": -1.0}}},
			`{"model":"m","prompt":"Once","stream":true,"stream_options":{"include_usage":true}}`},
		"a text of a caller that knows no chats": {OpenAI, "x", runner.GenerateRequest{Prompt: "Once", NumPredict: 5, Stop: []string{"\n"}, Sampling: runner.Sampling{Temperature: 0.25, TopP: 1, Seed: -1}},
			`{"frequency_penalty":0,"max_tokens":5,"model":"m","presence_penalty":0,"prompt":"Once","stop":["\n"],"stream":true,"stream_options":{"include_usage":true},"temperature":0.25,"top_p":1}`},
		"Ollama's chat: the context only as asked, nothing of the load, nothing that is true anyway": {Ollama, "", with(func(c *runner.Chat) { c.Options, c.Think = options, &api.ThinkValue{Value: true} }),
			`{"messages":[{"content":"x","role":"user"}],"model":"qwen3:8b","options":{"num_ctx":8192,"num_predict":9,"repeat_penalty":1.2,"seed":3,"stop":["END"],"temperature":0.5,"top_k":20},"think":true}`},
		"Ollama's chat with a schema, uncut": {Ollama, "", runner.GenerateRequest{Chat: &runner.Chat{Messages: question("x").Messages, Format: `{"type":"object"}`}},
			`{"format":{"type":"object"},"messages":[{"content":"x","role":"user"}],"model":"qwen3:8b","options":{},"shift":false,"truncate":false}`},
		"Ollama's text is raw": {Ollama, "", runner.GenerateRequest{Prompt: "Once", Schema: "null", Chat: &runner.Chat{}, Truncate: true, Shift: true},
			`{"format":"json","model":"qwen3:8b","options":{},"prompt":"Once","raw":true,"suffix":"","system":"","template":""}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, map[string]http.HandlerFunc{"/v1/models": say(list(c.owner)), "/health": say(""), "/api/tags": say(ollamaTags), "/api/show": say(ollamaShow),
				"/v1/chat/completions": say(end), "/v1/completions": say(end), "/api/chat": say(line), "/api/generate": say(line)})
			_, r, _ := asked(t, Config{Kind: c.kind, URL: p.URL + map[string]string{OpenAI: "/v1/", Ollama: "/api"}[c.kind]})
			err := r.Generate(t.Context(), c.req, new(gathered).take)
			got := p.last("/v1/chat/completions") + p.last("/v1/completions") + p.last("/api/chat") + p.last("/api/generate")
			if c.req.N > 1 { // the peer answers one of them
				if fault.CodeOf(err) != fault.Busy {
					t.Errorf("half of the answers are %v", err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			h := p.headers[len(p.headers)-1]
			if h.Get("Authorization") != "Bearer "+secretKey || h.Get(HopHeader) != "1" {
				t.Errorf("headers %v", h)
			}
		})
	}
}

func TestSeveralAnswersOfOllamaHaveSeedsOfTheirOwn(t *testing.T) {
	p, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"message":{"content":"Hi"},"done":true}` + "\n")})
	chat := question("x")
	chat.Options = map[string]any{"seed": json.Number("5")}
	var g gathered
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: chat, N: 3}, g.take); err != nil {
		t.Fatal(err)
	}
	seeds := ""
	for _, b := range p.bodies["/api/chat"] {
		text, _ := json.Marshal(b["options"].(map[string]any)["seed"])
		seeds += string(text) + " "
	}
	if seeds != "5 6 7 " || g.String() != "[] Hi stop;[] Hi stop;[] Hi stop; 0+0" {
		t.Errorf("seeds %s, answers %s", seeds, g.String())
	}
}

func TestHopsAreCounted(t *testing.T) {
	p, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"done":true}` + "\n")})
	if err := r.Generate(WithHops(t.Context(), 3), runner.GenerateRequest{Chat: question("x")}, new(gathered).take); err != nil {
		t.Fatal(err)
	}
	if got := p.headers[len(p.headers)-1].Get(HopHeader); got != "4" {
		t.Errorf("the hop is %q", got)
	}
}

// A grammar would be passed over in silence by all but another Sluice.
func TestGrammarsAreNotPassedOver(t *testing.T) {
	_, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"done":true}` + "\n")})
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x"), Grammar: `root ::= "x"`}, new(gathered).take); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("%v", err)
	}
	p, _ := ollamaPeer(t, nil)
	p.routes["/api/tags"] = fail(200, ollamaTags, "X-Sluice-Version", "1")
	p.routes["/api/chat"] = say(`{"done":true}` + "\n")
	_, r, _ = asked(t, Config{Kind: Ollama, URL: p.URL})
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x"), Grammar: `root ::= "x"`}, new(gathered).take); err != nil || !strings.Contains(p.last("/api/chat"), `"grammar":"root ::= \"x\""`) {
		t.Errorf("%v: %s", err, p.last("/api/chat"))
	}
}

func TestVectorsScoresAndTokens(t *testing.T) {
	_, r := openaiPeer(t, map[string]http.HandlerFunc{
		"/v1/embeddings": say(`{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}],"usage":{"prompt_tokens":4}}`),
		"/v1/rerank":     say(`{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":8}}`),
		"/tokenize":      say(`{"count":2,"max_model_len":100,"tokens":[5,6]}`),
		"/detokenize":    say(`{"prompt":"ab"}`),
	})
	v, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a", "b"}})
	if err != nil || v.Vectors[0][0] != 1 || v.Vectors[1][1] != 1 || v.PromptTokens != 4 {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a"}}); !Unavailable(err) {
		t.Errorf("two vectors for one text: %v", err)
	}
	s, err := r.Rerank(t.Context(), runner.RerankRequest{Query: "q", Documents: []string{"a", "b"}})
	if err != nil || s.Scores[0] != 0 || s.Scores[1] < 2.19 || s.Scores[1] > 2.2 || s.PromptTokens != 8 { // ln 9
		t.Errorf("%+v %v", s, err)
	}
	if got := logits([]float64{-3, 0.5}); got[0] != -3 || got[1] != 0.5 {
		t.Errorf("logits became %v", got)
	}
	tokens, err := r.Tokenize(t.Context(), "ab", true)
	if err != nil || len(tokens) != 2 {
		t.Errorf("%v %v", tokens, err)
	}
	if text, err := r.Detokenize(t.Context(), []int{5, 6}); err != nil || text != "ab" {
		t.Errorf("%q %v", text, err)
	}
	// Ollama has vectors, and nothing of the rest.
	_, r = ollamaPeer(t, map[string]http.HandlerFunc{"/api/embed": say(`{"embeddings":[[1,0]],"prompt_eval_count":2}`)})
	if v, err := r.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a"}}); err != nil || len(v.Vectors) != 1 || v.PromptTokens != 2 {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := r.Rerank(t.Context(), runner.RerankRequest{Documents: []string{"a"}}); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("rerank: %v", err)
	}
	if _, err := r.Tokenize(t.Context(), "a", false); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("tokenize: %v", err)
	}
	if _, err := r.Detokenize(t.Context(), []int{1}); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("detokenize: %v", err)
	}
}
