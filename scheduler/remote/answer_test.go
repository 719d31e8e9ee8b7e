package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/runner"
)

// The lists of a vLLM and of an Ollama that have one model each.
const (
	vllmList   = `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1700000000,"owned_by":"vllm","root":"/models/x","max_model_len":40960}]}`
	ollamaTags = `{"models":[{"name":"qwen3:8b","model":"qwen3:8b","modified_at":"2026-01-02T03:04:05.123456789+01:00","size":5225388164,"digest":"500a1f067a9f","details":{"parent_model":"","format":"gguf","family":"qwen3","families":["qwen3"],"parameter_size":"8.2B","quantization_level":"Q4_K_M"}}]}`
	ollamaShow = `{"license":"Apache","modelfile":"x","parameters":"stop \"<|im_end|>\"","template":"{{ range .Messages }}{{ .Role }}: {{ .Content }}{{ end }}","details":{"format":"gguf","family":"qwen3","families":["qwen3"],"parameter_size":"8.2B","quantization_level":"Q4_K_M"},"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,"qwen3.embedding_length":4096,"qwen3.block_count":36,"tokenizer.ggml.tokens":null},"capabilities":["completion","tools","thinking"],"modified_at":"2026-01-02T03:04:05Z"}`
)

func openaiPeer(t *testing.T, routes map[string]http.HandlerFunc) (*peer, *Runner) {
	t.Helper()
	all := map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": say("")}
	for path, h := range routes {
		all[path] = h
	}
	p := newPeer(t, all)
	_, r, _ := asked(t, Config{Kind: OpenAI, URL: p.URL})
	return p, r
}

func ollamaPeer(t *testing.T, routes map[string]http.HandlerFunc) (*peer, *Runner) {
	t.Helper()
	all := map[string]http.HandlerFunc{"/api/tags": say(ollamaTags), "/api/show": say(ollamaShow)}
	for path, h := range routes {
		all[path] = h
	}
	p := newPeer(t, all)
	_, r, _ := asked(t, Config{Kind: Ollama, URL: p.URL})
	return p, r
}

func TestAnswersInOpenAIsWords(t *testing.T) {
	piece := func(delta string) string {
		return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
	}
	end := func(reason string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
	}
	usage := `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}}`
	cases := map[string]struct {
		stream string
		n      int
		want   string
	}{
		"a plain answer": {events(piece(`{"role":"assistant","content":""}`), piece(`{"content":"Hi"}`), piece(`{"content":" there"}`), end("stop"), usage, "[DONE]"), 1,
			"[] Hi there stop; 7+3"},
		"cut off by its length":            {events(piece(`{"content":"Hi"}`), end("length"), usage, "[DONE]"), 1, "[] Hi length; 7+3"},
		"a thought, as vLLM had it":        {events(piece(`{"reasoning_content":"hm"}`), piece(`{"content":"Hi"}`), end("stop"), "[DONE]"), 1, "[hm] Hi stop; 0+0"},
		"a thought, as it has it now":      {events(piece(`{"reasoning":"hm"}`), piece(`{"content":"Hi"}`), end("stop"), "[DONE]"), 1, "[hm] Hi stop; 0+0"},
		"a thought that is told twice":     {events(piece(`{"reasoning":"hm","reasoning_content":"hm"}`), piece(`{"content":"Hi"}`), end("stop"), "[DONE]"), 1, "[hm] Hi stop; 0+0"},
		"comments, other fields, CR LF":    {": ping\r\n\r\nevent: x\r\nid: 3\r\ndata:" + piece(`{"content":"Hi"}`) + "\r\n\r\n" + events(end("stop"), "[DONE]"), 1, "[] Hi stop; 0+0"},
		"without the stream's own end":     {events(piece(`{"content":"Hi"}`), end("stop")), 1, "[] Hi stop; 0+0"},
		"a server that does not stream":    {`{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`, 1, "[] Hi stop; 0+0"},
		"a filter's end is an end":         {events(piece(`{"content":"Hi"}`), end("content_filter"), "[DONE]"), 1, "[] Hi stop; 0+0"},
		"a call in pieces":                 {events(piece(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":""}}]}`), piece(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"pla"}}]}`), piece(`{"tool_calls":[{"index":0,"function":{"arguments":"ce\":\"Rome\"}"}}]}`), end("tool_calls"), "[DONE]"), 1, `[]  weather({"place":"Rome"}) stop; 0+0`},
		"two calls, in turns":              {events(piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]}`), piece(`{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}]}`), end("tool_calls"), "[DONE]"), 1, `[]  f({}) g({}) stop; 0+0`},
		"two whole calls with one index":   {events(piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), piece(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`), end("tool_calls"), "[DONE]"), 1, `[]  f({}) g({}) stop; 0+0`},
		"a call without arguments":         {events(piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`), end("tool_calls"), "[DONE]"), 1, `[]  f({}) stop; 0+0`},
		"a call that was cut off is text":  {events(piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a"}}]}`), end("length"), "[DONE]"), 1, `[] f{"a length; 0+0`},
		"two answers":                      {events(`{"choices":[{"index":1,"delta":{"content":"B"}}]}`, `{"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}`, `{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`, usage, "[DONE]"), 2, "[] A stop;[] B length; 7+3"},
		"usage with every event, as vLLMs": {events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, "[DONE]"), 1, "[] Hi stop; 7+2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, r := openaiPeer(t, map[string]http.HandlerFunc{"/v1/chat/completions": say(c.stream)})
			var g gathered
			if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x"), N: c.n}, g.take); err != nil {
				t.Fatal(err)
			}
			if g.String() != c.want {
				t.Errorf("got  %s\nwant %s", g.String(), c.want)
			}
		})
	}
}

func TestAnswersInOllamasWords(t *testing.T) {
	cases := map[string]struct {
		stream, want string
		n            int
	}{
		"a plain answer": {`{"message":{"role":"assistant","content":"Hi"},"done":false}` + "\n" + `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3,"eval_duration":5}` + "\n", "[] Hi stop; 7+3", 1},
		"a thought and a call": {`{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}` + "\n" + `{"message":{"role":"assistant","content":"","tool_calls":[{"id":"call_x","function":{"index":0,"name":"weather","arguments":{"place":"Rome"}}}]},"done":false}` + "\n" + `{"message":{"content":""},"done":true,"done_reason":"stop"}`,
			`[hm]  weather({"place":"Rome"}) stop; 0+0`, 1},
		"an end that Ollama has and we do not": {`{"message":{"content":"Hi"},"done":true,"done_reason":"unload"}` + "\n", "[] Hi stop; 0+0", 1},
		"two answers, one after the other":     {`{"message":{"content":"Hi"},"done":true,"done_reason":"length","prompt_eval_count":7,"eval_count":3}` + "\n", "[] Hi length;[] Hi length; 7+6", 2},
		"blank lines":                          {"\n\n" + `{"message":{"content":"Hi"},"done":true}` + "\n\n", "[] Hi stop; 0+0", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(c.stream)})
			var g gathered
			if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x"), N: c.n}, g.take); err != nil {
				t.Fatal(err)
			}
			if g.String() != c.want {
				t.Errorf("got  %s\nwant %s", g.String(), c.want)
			}
		})
	}
}

// Before the first piece a failure may be given to another server; after it nobody else can answer.
func TestAnswersThatFail(t *testing.T) {
	first := events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`)
	cut := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(text))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	cases := map[string]struct {
		answer      http.HandlerFunc
		code        fault.Code
		unavailable bool
		says        string
	}{
		"cut off before the first byte":       {cut(""), fault.Busy, true, "does not answer"},
		"cut off before the first piece":      {cut(": ping\n\n"), fault.Busy, true, "does not answer"},
		"ended before the first piece":        {say(""), fault.Busy, true, "does not answer"},
		"cut off in the middle":               {cut(first), fault.Busy, false, "broke off"},
		"ended in the middle":                 {say(first), fault.Busy, false, "broke off"},
		"done, but the answer is not":         {say(first + events("[DONE]")), fault.Busy, false, "broke off"},
		"an error as the first event":         {say(events(`{"error":{"message":"engine died","code":500}}`)), fault.Busy, true, "failed"},
		"a refusal as the first event":        {say(events(`{"error":{"message":"too long","code":400}}`)), fault.Invalid, false, "too long"},
		"an error in the middle":              {say(first + events(`{"error":{"message":"engine died"}}`)), fault.Busy, false, "broke off"},
		"no JSON":                             {say(events("{")), fault.Busy, true, "does not answer"},
		"a piece of an answer nobody wants":   {say(events(`{"choices":[{"index":1,"delta":{"content":"Hi"}}]}`)), fault.Busy, true, "does not answer"},
		"500":                                 {fail(500, `{"error":{"message":"boom"}}`), fault.Busy, true, "failed: boom"},
		"502 of a proxy":                      {fail(502, `<html>bad gateway</html>`), fault.Busy, true, "failed"},
		"503":                                 {fail(503, `{"error":"loading"}`, "Retry-After", "7"), fault.Busy, false, "busy"},
		"429":                                 {fail(429, `{"error":"slow down"}`, "Retry-After", "7"), fault.Busy, false, "busy"},
		"400 with OpenAI's sentence":          {fail(400, `{"error":{"message":"max_tokens is too large: 99999","type":"x"}}`), fault.Invalid, false, "max_tokens is too large: 99999"},
		"400 with Ollama's":                   {fail(400, `{"error":"registry.ollama.ai/x does not support tools"}`), fault.Invalid, false, "does not support tools"},
		"400 with vLLM's old one":             {fail(400, `{"object":"error","message":"context is 4096","code":400}`), fault.Invalid, false, "context is 4096"},
		"422 of FastAPI":                      {fail(422, `{"detail":[{"loc":["body","n"],"msg":"bad n"}]}`), fault.Invalid, false, "bad n"},
		"a long sentence, with control codes": {fail(400, `{"error":"a\u0000\nb`+strings.Repeat("x", 5000)+`"}`), fault.Invalid, false, "a bxxx"},
		"401":                                 {fail(401, `{"error":"Bearer `+secretKey+` is wrong"}`), fault.Internal, false, ""},
		"403":                                 {fail(403, ``), fault.Internal, false, ""},
		"404 of a model":                      {fail(404, "{\"error\":{\"message\":\"The model `x` does not exist.\"}}"), fault.NotFound, false, "does not exist"},
		"404 of a route":                      {fail(404, `{"detail":"Not Found"}`), fault.Unimplemented, false, "not offered"},
		"405":                                 {fail(405, ``), fault.Unimplemented, false, "not offered"},
		"409":                                 {fail(409, `{"error":"circle"}`), fault.Conflict, false, "circle"},
		"413":                                 {fail(413, `{"error":"too large"}`), fault.TooLarge, false, "too large"},
		"to somewhere else":                   {fail(307, ``, "Location", "http://elsewhere.example/"), fault.Busy, true, "does not answer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": say(""), "/v1/chat/completions": c.answer})
			s, r, log := asked(t, Config{Kind: OpenAI, URL: p.URL})
			var g gathered
			err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take)
			if err == nil {
				t.Fatalf("no error; got %s", g.String())
			}
			shown := fault.Public(err)
			if fault.CodeOf(err) != c.code || Unavailable(err) != c.unavailable || !strings.Contains(shown.Msg, c.says) {
				t.Errorf("%s, unavailable %t: %q, want %s, %t: %q", fault.CodeOf(err), Unavailable(err), shown.Msg, c.code, c.unavailable, c.says)
			}
			if len(shown.Msg) > 1000 || strings.ContainsAny(shown.Msg, "\x00\n") {
				t.Errorf("a message of %d bytes: %.80q", len(shown.Msg), shown.Msg)
			}
			if shown.Code == fault.Busy && shown.RetryAfter <= 0 {
				t.Error("nothing says when to try again")
			}
			if strings.HasPrefix(name, "429") && shown.RetryAfter != 7*time.Second {
				t.Errorf("try again after %s", shown.RetryAfter)
			}
			if strings.Contains(err.Error()+log.String(), secretKey) {
				t.Errorf("the key got out: %v\n%s", err, log)
			}
			if refused := c.code == fault.Internal; refused != strings.Contains(log.String(), "refuses our key") {
				t.Errorf("the log says: %s", log)
			}
			if gone := c.code == fault.NotFound; gone != (len(s.Models()) == 0) {
				t.Errorf("%d models are offered after it", len(s.Models()))
			}
		})
	}
}

func TestNobodyIsThere(t *testing.T) {
	p, r := openaiPeer(t, nil)
	p.Close()
	err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, new(gathered).take)
	if !Unavailable(err) || fault.CodeOf(err) != fault.Busy || strings.Contains(fault.Public(err).Msg, "127.0.0.1") {
		t.Errorf("%v; the caller sees %q", err, fault.Public(err).Msg)
	}
}

// A server that is silent is given up: before its first byte as one that is not there, after it as one that broke off.
func TestSilence(t *testing.T) {
	cases := map[string]struct {
		before      string
		unavailable bool
		cause       error
	}{
		"from the beginning":       {"", true, errFirstByte},
		"before the first piece":   {": ping\n\n", true, errIdle},
		"in the middle":            {events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`), false, errIdle},
		"in the middle of a piece": {events(`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`) + `data: {"cho`, false, errIdle},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			leave := make(chan struct{})
			p := newPeer(t, map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": say(""), "/v1/chat/completions": func(w http.ResponseWriter, r *http.Request) {
				if c.before != "" {
					_, _ = w.Write([]byte(c.before))
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done() // it notices that we leave
				close(leave)
			}})
			_, r, _ := asked(t, Config{Kind: OpenAI, URL: p.URL, FirstByte: 200 * time.Millisecond, Idle: 200 * time.Millisecond})
			err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, new(gathered).take)
			if !errors.Is(err, c.cause) || Unavailable(err) != c.unavailable {
				t.Errorf("%v, unavailable %t", err, Unavailable(err))
			}
			<-leave
		})
	}
}

func TestWhoLeavesEndsTheAnswerThere(t *testing.T) {
	for _, kind := range []string{OpenAI, Ollama} {
		t.Run(kind, func(t *testing.T) {
			left := make(chan struct{})
			talk := func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte(map[string]string{OpenAI: events(`{"choices":[{"index":0,"delta":{"content":"on "}}]}`), Ollama: `{"message":{"content":"on "}}` + "\n"}[kind]))
					w.(http.Flusher).Flush()
				}
			}
			var r *Runner
			if kind == OpenAI {
				_, r = openaiPeer(t, map[string]http.HandlerFunc{"/v1/chat/completions": talk})
			} else {
				_, r = ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": talk})
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("gone home")
			err := r.Generate(ctx, runner.GenerateRequest{Chat: question("x")}, func(runner.Chunk) error { cancel(gone); return nil })
			if fault.CodeOf(err) != fault.Canceled || !errors.Is(err, gone) {
				t.Errorf("it ended with %v", err)
			}
			<-left
			enough := errors.New("enough")
			left = make(chan struct{})
			if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, func(runner.Chunk) error { return enough }); !errors.Is(err, enough) {
				t.Errorf("an error of emit came back as %v", err)
			}
			<-left
		})
	}
}

func TestLogprobs(t *testing.T) {
	_, r := openaiPeer(t, map[string]http.HandlerFunc{
		"/v1/chat/completions": say(events(`{"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-0.5},{"token":"Ho","logprob":-1}]}]},"finish_reason":"stop"}]}`, "[DONE]")),
		"/v1/completions":      say(events(`{"choices":[{"index":0,"text":"Hi","logprobs":{"tokens":["Hi"],"token_logprobs":[-0.5],"top_logprobs":[{"Ho":-1,"Hi":-0.5}],"text_offset":[0]},"finish_reason":"stop"}]}`, "[DONE]")),
	})
	for name, req := range map[string]runner.GenerateRequest{"of a chat": {Chat: question("x")}, "of a text": {Prompt: "x"}} {
		t.Run(name, func(t *testing.T) {
			req.Logprobs, req.TopLogprobs = true, 2
			var got []runner.Logprob
			if err := r.Generate(t.Context(), req, func(c runner.Chunk) error { got = append(got, c.Logprobs...); return nil }); err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].Token != "Hi" || string(got[0].Bytes) != "Hi" || got[0].Logprob != -0.5 || len(got[0].Top) != 2 || got[0].Top[1].Token != "Ho" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A required call: OpenAI's servers are asked for one, Ollama's answer is bound to its form.
func TestRequiredCalls(t *testing.T) {
	schema := `{"type":"object","properties":{"name":{"const":"weather"}}}`
	chat := question("x")
	chat.Tools, chat.Force, chat.Options = weather(t), &runner.ForcedCall{Tool: "weather", Schema: schema}, map[string]any{"stop": []any{"}"}}
	want := `[]  weather({"place":"Rome"}) stop; 0+0`
	p, r := ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"message":{"content":"{\"name\":\"weather\","}}` + "\n" + `{"message":{"content":"\"arguments\":{\"place\":\"Rome\"}}"},"done":true,"done_reason":"stop"}` + "\n")})
	var g gathered
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: chat}, g.take); err != nil || g.String() != want {
		t.Errorf("%v %s", err, g.String())
	}
	if body := p.last("/api/chat"); !strings.Contains(body, `"format":{"properties"`) || !strings.Contains(body, `"tools"`) || strings.Contains(body, `"stop"`) {
		t.Errorf("asked for as %s", body)
	}
	p, r = openaiPeer(t, map[string]http.HandlerFunc{"/v1/chat/completions": say(events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"place\":\"Rome\"}"}}]},"finish_reason":"stop"}]}`, "[DONE]"))})
	g = gathered{}
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: chat}, g.take); err != nil || g.String() != want {
		t.Errorf("%v %s", err, g.String())
	}
	if body := p.last("/v1/chat/completions"); !strings.Contains(body, `"tool_choice":{"function":{"name":"weather"},"type":"function"}`) || !strings.Contains(body, `"tools":[`) || strings.Contains(body, `"stop":`) {
		t.Errorf("asked for as %s", body)
	}
	// Ollama may know it for a call by itself.
	_, r = ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"message":{"content":"","tool_calls":[{"function":{"name":"weather","arguments":{"place":"Rome"}}}]}}` + "\n" + `{"message":{"content":""},"done":true}` + "\n")})
	g = gathered{}
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: chat}, g.take); err != nil || g.String() != want {
		t.Errorf("%v %s", err, g.String())
	}
	// One that was cut off is no call.
	_, r = ollamaPeer(t, map[string]http.HandlerFunc{"/api/chat": say(`{"message":{"content":"{\"name\":\"wea"},"done":true,"done_reason":"length"}` + "\n")})
	g = gathered{}
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: chat}, g.take); err != nil || g.String() != "[]  length; 0+0" {
		t.Errorf("%v %s", err, g.String())
	}
}

func TestMessagesInOpenAIsForm(t *testing.T) {
	args := func(place string) api.ToolCallFunctionArguments {
		a := api.NewToolCallFunctionArguments()
		a.Set("place", place)
		return a
	}
	call := func(id, tool, place string) api.ToolCall {
		return api.ToolCall{ID: id, Function: api.ToolCallFunction{Name: tool, Arguments: args(place)}}
	}
	png := append([]byte("\x89PNG\r\n\x1a\n"), 0)
	cases := map[string]struct {
		in   []api.Message
		want string
	}{
		"plain": {[]api.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "<b>"}}, `[{"role":"system","content":"s"},{"role":"user","content":"<b>"}]`},
		"an image": {[]api.Message{{Role: "user", Content: "what?", Images: []api.ImageData{png}}},
			`[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoA"}}]}]`},
		"results by their ids": {[]api.Message{{Role: "assistant", ToolCalls: []api.ToolCall{call("a", "f", "x"), call("b", "f", "y")}}, {Role: "tool", Content: "2", ToolCallID: "b"}, {Role: "tool", Content: "1", ToolCallID: "a"}},
			`[{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"place\":\"x\"}"}},{"index":1,"id":"b","type":"function","function":{"name":"f","arguments":"{\"place\":\"y\"}"}}]},{"role":"tool","content":"2","tool_call_id":"b"},{"role":"tool","content":"1","tool_call_id":"a"}]`},
		"results without ids, by name and order": {[]api.Message{{Role: "assistant", Content: "so", ToolCalls: []api.ToolCall{call("", "f", "x"), call("", "g", "y"), call("", "f", "z")}}, {Role: "tool", Content: "2", ToolName: "g"}, {Role: "tool", Content: "1", ToolName: "f"}, {Role: "tool", Content: "3"}},
			`[{"role":"assistant","content":"so","tool_calls":[{"index":0,"id":"call_0_0","type":"function","function":{"name":"f","arguments":"{\"place\":\"x\"}"}},{"index":1,"id":"call_0_1","type":"function","function":{"name":"g","arguments":"{\"place\":\"y\"}"}},{"index":2,"id":"call_0_2","type":"function","function":{"name":"f","arguments":"{\"place\":\"z\"}"}}]},{"role":"tool","content":"2","tool_call_id":"call_0_1"},{"role":"tool","content":"1","tool_call_id":"call_0_0"},{"role":"tool","content":"3","tool_call_id":"call_0_2"}]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := marshal(openaiMessages(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(got)) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
