package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/scheduler"
)

// TestPublicReports tries what users of Ollama reported, where the gateway is what decides; the numbers are those of
// docs/COMPATIBILITY.md, which names these cases.
func TestPublicReports(t *testing.T) {
	for name, trial := range map[string]func(*testing.T, *fixture){
		"1: a prompt that is cut is told of on every route, and refused where asked": tryCutPrompt,
		"2: a call is a call and not a text":                                         tryCallInText,
		"12: keep_alive as a text of seconds":                                        tryKeepAliveText,
		"16: a malformed call comes back as text":                                    tryMalformedCall,
		"18: a stream that fails ends in an error in each dialect":                   tryFailingStreams,
		"19: a format binds only behind the thinking":                                tryThinkAndFormat,
		"21: text never gets an empty vector":                                        tryEmptyVectors,
		"22: token ids are refused by name":                                          tryTokenIDs,
		"26: ps says where a model is":                                               tryPlacement,
		"27: a deleted model does not stay loaded":                                   tryDeletedModel,
		"29: streamed calls have indexes of their own and the last chunk says so":    tryStreamedCalls,
		"32: endless output has an end":                                              tryEndlessOutput,
		"38: the address of an image is refused in each dialect":                     tryImageAddress,
		"39: max_completion_tokens is max_tokens":                                    tryMaxCompletionTokens,
		"40: keep_alive and options on every route of v1":                            tryKeepAliveAndOptionsOnV1,
		"42: tokens that came from the cache are told of":                            tryCachedTokens,
	} {
		t.Run(name, func(t *testing.T) { trial(t, withAble(t, nil)) })
	}
}

// generating are the routes that generate, with the least that each takes.
var generating = map[string]string{
	"/api/chat":            `"messages":[{"role":"user","content":"TEXT"}]`,
	"/api/generate":        `"prompt":"TEXT"`,
	"/v1/chat/completions": `"messages":[{"role":"user","content":"TEXT"}]`,
	"/v1/completions":      `"prompt":"TEXT"`,
	"/v1/responses":        `"input":"TEXT"`,
	"/v1/messages":         `"max_tokens":50,"messages":[{"role":"user","content":"TEXT"}]`,
}

var tooLong = regexp.MustCompile(`prompt is too long: 20\d tokens > 64 maximum`)

// try posts to one of them.
func (f *fixture) try(path, model, text, more string) *httptest.ResponseRecorder {
	f.t.Helper()
	body := strings.ReplaceAll(generating[path], "TEXT", text)
	return f.do(call{method: "POST", path: path, body: fmt.Sprintf(`{"model":%q,%s%s}`, model, body, more)})
}

func tryCutPrompt(t *testing.T, f *fixture) {
	long := strings.Repeat("word ", 200) // the context has 64 tokens
	for path := range generating {
		allow, refuse := "", `,"truncate":false`
		switch path {
		case "/v1/responses":
			refuse = `,"truncation":"disabled"` // OpenAI's own word
		case "/v1/messages":
			allow, refuse = `,"truncate":true`, "" // Anthropic's rule
		}
		w := f.try(path, "tiny", long, `,"stream":false`+allow)
		if w.Code != 200 || w.Header().Get(truncatedHeader) == "" {
			t.Errorf("%s: %d, header %q: %.200s", path, w.Code, w.Header().Get(truncatedHeader), w.Body)
		}
		for _, stream := range []string{"false", "true"} {
			w = f.try(path, "tiny", long, `,"stream":`+stream+refuse)
			// Claude Code shortens the conversation when it finds these words and numbers.
			if w.Code != 400 || !tooLong.MatchString(w.Body.String()) {
				t.Errorf("%s, not to be cut: %d %.200s", path, w.Code, w.Body)
			}
			if e, ok := object(t, w.Body.Bytes())["error"].(map[string]any); ok && path != "/v1/messages" && e["code"] != "context_length_exceeded" {
				t.Errorf("%s: code %v", path, e["code"])
			}
		}
	}
	w := f.do(call{method: "GET", path: "/api/ps"})
	if list := object(t, w.Body.Bytes())["models"].([]any); list[0].(map[string]any)["context_length"] != 64.0 {
		t.Errorf("ps: %s", w.Body)
	}
}

// firstChoice is the message and the finish_reason of a whole chat completion.
func firstChoice(t *testing.T, w *httptest.ResponseRecorder) (map[string]any, any) {
	t.Helper()
	wantStatus(t, w, 200)
	choice := object(t, w.Body.Bytes())["choices"].([]any)[0].(map[string]any)
	return choice["message"].(map[string]any), choice["finish_reason"]
}

func tryCallInText(t *testing.T, f *fixture) {
	for name, row := range map[string]struct {
		text  string
		calls int
	}{
		"in its own form":     {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>", 1},
		"bare":                {`{"name": "get_weather", "arguments": {"city": "Köln"}}`, 1},
		"bare, no arguments":  {`{"name": "send_mail", "arguments": {}}`, 1},
		"fenced":              {"```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\"}}\n```", 1},
		"two":                 {"{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\"}}\n{\"name\": \"send_mail\", \"arguments\": {}}", 2},
		"of a tool not given": {`{"name": "rm", "arguments": {}}`, 0},
		"prose":               {"You could call get_weather.", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f.fake.script = strings.SplitAfter(row.text, " ")
			tools := fmt.Sprintf(`,"tools":[%s,%s]`, weatherTool, mailTool)
			msg, finish := firstChoice(t, f.try("/v1/chat/completions", "caller", "hi", tools))
			calls, _ := msg["tool_calls"].([]any)
			content, _ := msg["content"].(string)
			switch {
			case len(calls) != row.calls:
				t.Errorf("%d calls: %v", len(calls), msg)
			case row.calls > 0 && (finish != "tool_calls" || strings.Contains(content, "get_weather")):
				t.Errorf("finish_reason %v, content %q", finish, content)
			case row.calls == 0 && (finish != "stop" || content != row.text):
				t.Errorf("finish_reason %v, content %q", finish, content)
			}
		})
	}
}

func tryKeepAliveText(t *testing.T, f *fixture) {
	for _, keep := range []string{`"-1"`, `"300"`, `-1`, `"5m"`, `0.5`} {
		w := f.do(call{method: "POST", path: "/api/chat", body: `{"model":"tiny","messages":[],"keep_alive":` + keep + `}`})
		if w.Code != 200 || object(t, w.Body.Bytes())["done_reason"] != "load" {
			t.Errorf("keep_alive %s: %d %s", keep, w.Code, w.Body)
		}
	}
}

func tryMalformedCall(t *testing.T, f *fixture) {
	for _, text := range []string{
		"Let me see. <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Kö\n</tool_call>",
		"<tool_call>\n{\"name\": \"get_weather\"", "<tool_call>", "<tool_call>{\"name\": 5}</tool_call> and more",
	} {
		f.fake.script = strings.SplitAfter(text, " ")
		for _, stream := range []string{"true", "false"} {
			w := f.try("/api/chat", "caller", "hi", `,"stream":`+stream+`,"tools":[`+weatherTool+`]`)
			wantStatus(t, w, 200)
			body := strings.TrimSuffix(w.Body.String(), "\n") + "\n"
			var content strings.Builder
			ls := lines(t, []byte(body))
			for _, l := range ls {
				content.WriteString(l["message"].(map[string]any)["content"].(string))
				if l["message"].(map[string]any)["tool_calls"] != nil {
					t.Errorf("%q became the call %v", text, l)
				}
			}
			if strings.TrimSpace(content.String()) != strings.TrimSpace(text) || ls[len(ls)-1]["done"] != true {
				t.Errorf("stream %s: %q came out as %q, last %v", stream, text, content.String(), ls[len(ls)-1])
			}
		}
	}
}

func tryFailingStreams(t *testing.T, f *fixture) {
	f.fake.failAt, f.fake.err = 2, fault.New(fault.Internal, "fake", "secret of the runner")
	streamsEndInAnError(t, f)
	f.fake.err = nil // it panics
	streamsEndInAnError(t, f)
	f.waitLoaded(idle)
	f.fake.failAt = 0
	for path, end := range map[string]string{"/api/chat": `"done":true`, "/api/generate": `"done":true`, "/v1/chat/completions": "[DONE]", "/v1/completions": "[DONE]",
		"/v1/responses": `"response.completed"`, "/v1/messages": `"message_stop"`} {
		text := strings.TrimSpace(f.try(path, "tiny", "hi", `,"stream":true`).Body.String())
		if last := text[strings.LastIndexAny(text, "\n")+1:]; !strings.Contains(last, end) {
			t.Errorf("%s ends with %.200s", path, last)
		}
	}
}

func streamsEndInAnError(t *testing.T, f *fixture) {
	t.Helper()
	for path := range generating {
		w := f.try(path, "tiny", "hi", `,"stream":true`)
		wantStatus(t, w, 200)
		if w.Header().Get("X-Accel-Buffering") != "no" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: a proxy would hold the stream back: %v", path, w.Header())
		}
		text := strings.TrimSpace(w.Body.String())
		last := text[strings.LastIndexAny(text, "\n")+1:]
		e, there := object(t, []byte(strings.TrimPrefix(last, "data: ")))["error"]
		if path == "/v1/responses" { // its error event, or the response that failed, which has the error inside
			there = there || strings.Contains(last, `"response.failed"`) || strings.Contains(last, `"type":"error"`)
		}
		if !there || strings.Contains(text, "[DONE]") || strings.Contains(text, "message_stop") || strings.Contains(text, "secret") {
			t.Errorf("%s ends with %s (error %v)", path, last, e)
		}
	}
}

func tryThinkAndFormat(t *testing.T, f *fixture) {
	f.fake.script = []string{"<think>", "{not JSON", "</think>", `{"a":`, `1}`}
	w := f.try("/api/chat", "thinker", "hi", `,"stream":false,"think":true,"format":{"type":"object"}`)
	wantStatus(t, w, 200)
	msg := object(t, w.Body.Bytes())["message"].(map[string]any)
	if msg["content"] != `{"a":1}` || !strings.Contains(fmt.Sprint(msg["thinking"]), "{not JSON") {
		t.Errorf("message %v", msg)
	}
	// The prompt opens the thought itself: one that never came would leave the answer without a schema.
	if req := f.fake.last(); req.After != "</think>" || req.Schema == "" || !strings.HasSuffix(req.Prompt, "<think>\n") {
		t.Errorf("after %q, schema %q, prompt %q", req.After, req.Schema, req.Prompt)
	}
	wantStatus(t, f.try("/api/generate", "thinker", "hi", `,"stream":false,"think":true,"format":{"type":"object"}`), 200)
	if req := f.fake.last(); req.After != "</think>" || !strings.HasSuffix(req.Prompt, "<think>\n") {
		t.Errorf("generate: after %q, prompt %q", req.After, req.Prompt)
	}
	wantStatus(t, f.try("/api/chat", "thinker", "hi", `,"stream":false,"think":false,"format":{"type":"object"}`), 200)
	if req := f.fake.last(); req.Schema == "" || req.After != "" && strings.HasSuffix(strings.TrimSpace(req.Prompt), "/no_think") {
		t.Errorf("without thinking: after %q, schema %q", req.After, req.Schema)
	}
}

func tryEmptyVectors(t *testing.T, f *fixture) {
	var vectors []string
	for _, body := range []string{`"prompt":"x"`, `"input":"x"`, `"prompt":"y"`} { // the field of the old route, and of the new one
		w := f.do(call{method: "POST", path: "/api/embeddings", body: `{"model":"encoder",` + body + `}`})
		v, _ := object(t, w.Body.Bytes())["embedding"].([]any)
		if w.Code != 200 || len(v) != 8 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		vectors = append(vectors, fmt.Sprint(v))
	}
	if vectors[0] != vectors[1] || vectors[0] == vectors[2] {
		t.Errorf("a vector of another text: %v", vectors)
	}
	w := f.do(call{method: "POST", path: "/v1/embeddings", body: `{"model":"encoder","input":["a","b"],"encoding_format":"float"}`})
	for _, d := range object(t, w.Body.Bytes())["data"].([]any) {
		if v := d.(map[string]any)["embedding"].([]any); len(v) != 8 {
			t.Errorf("a vector of %d numbers", len(v))
		}
	}
	if w := f.do(call{method: "POST", path: "/v1/embeddings", body: `{"model":"encoder","input":["a",""]}`}); w.Code != 400 || !strings.Contains(w.Body.String(), "input[1]") {
		t.Errorf("an empty text: %d %s", w.Code, w.Body)
	}
}

func tryTokenIDs(t *testing.T, f *fixture) {
	for _, input := range []string{`[30624,99849]`, `[[1,2],[3]]`} {
		w := f.do(call{method: "POST", path: "/v1/embeddings", body: `{"model":"encoder","input":` + input + `}`})
		if w.Code != 400 || !strings.Contains(w.Body.String(), "token") {
			t.Errorf("%s: %d %s", input, w.Code, w.Body)
		}
	}
}

func tryPlacement(t *testing.T, f *fixture) {
	wantStatus(t, f.try("/api/generate", "tiny", "hi", `,"stream":false`), 200)
	w := f.do(call{method: "GET", path: "/api/ps"})
	m := object(t, w.Body.Bytes())["models"].([]any)[0].(map[string]any)
	// What the runner measured: 1110 bytes in all, 7 of them on a GPU, four requests at a time.
	if m["size"] != 1110.0 || m["size_vram"] != 7.0 || m["parallel"] == nil || m["parallel"].(float64) < 1 {
		t.Errorf("ps: %v", m)
	}
	if got := fmt.Sprint(m["placement"]); got != "[map[bytes:1103 device:cpu] map[bytes:7 device:CUDA0]]" {
		t.Errorf("placement %s", got)
	}
}

func tryDeletedModel(t *testing.T, f *fixture) {
	wantStatus(t, f.try("/api/generate", "tiny", "hi", `,"stream":false,"keep_alive":-1`), 200)
	wantStatus(t, f.do(call{method: "DELETE", path: "/api/delete", body: `{"model":"tiny"}`, bearer: adminKey}), 200)
	f.waitLoaded(none)
	wantStatus(t, f.try("/api/generate", "tiny", "hi", ""), 404)
}

func tryStreamedCalls(t *testing.T, f *fixture) {
	f.fake.script = []string{"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>", "\n<tool_call>\n{\"name\": \"send_mail\", \"arguments\": {}}\n</tool_call>", "\n"}
	w := f.try("/v1/chat/completions", "caller", "hi", fmt.Sprintf(`,"stream":true,"tools":[%s,%s]`, weatherTool, mailTool))
	wantStatus(t, w, 200)
	var finishes []any
	indexes := map[string]any{}
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		text, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		choice := object(t, []byte("{"+text))["choices"].([]any)[0].(map[string]any)
		finish, there := choice["finish_reason"]
		if !there {
			t.Errorf("no finish_reason in %s", line)
		}
		finishes = append(finishes, finish)
		calls, _ := choice["delta"].(map[string]any)["tool_calls"].([]any)
		for _, c := range calls {
			c := c.(map[string]any)
			indexes[c["function"].(map[string]any)["name"].(string)] = c["index"]
		}
	}
	if indexes["get_weather"] != 0.0 || indexes["send_mail"] != 1.0 {
		t.Errorf("indexes %v", indexes)
	}
	for i, finish := range finishes {
		if last := i == len(finishes)-1; last && finish != "tool_calls" || !last && finish != nil {
			t.Errorf("finish_reason of chunk %d of %d is %v", i+1, len(finishes), finish)
		}
	}
}

func tryEndlessOutput(t *testing.T, f *fixture) {
	f.fake.script = strings.SplitAfter(strings.Repeat("again ", 2000), " ")
	for options, most := range map[string]float64{`{}`: 64, `{"num_predict":-1}`: 64, `{"num_predict":5000}`: 640} { // one context, and ten
		w := f.try("/api/generate", "tiny", "hi", `,"stream":false,"options":`+options)
		wantStatus(t, w, 200)
		if body := object(t, w.Body.Bytes()); body["done_reason"] != "length" || body["eval_count"] != most {
			t.Errorf("%s: %v after %v tokens", options, body["done_reason"], body["eval_count"])
		}
	}
}

func tryImageAddress(t *testing.T, f *fixture) {
	for path, content := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/a.png"}}]}]`,
		"/v1/responses":        `"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://127.0.0.1:1/a.png"}]}]`,
		"/v1/messages":         `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://127.0.0.1:1/a.png"}}]}]`,
		"/api/chat":            `"messages":[{"role":"user","content":"a","images":["http://127.0.0.1:1/a.png"]}]`,
	} {
		w := f.do(call{method: "POST", path: path, body: `{"model":"seer",` + content + `}`})
		if w.Code != 400 || path != "/api/chat" && !strings.Contains(w.Body.String(), "base64") && !strings.Contains(w.Body.String(), "data:") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func tryMaxCompletionTokens(t *testing.T, f *fixture) {
	_, finish := firstChoice(t, f.try("/v1/chat/completions", "tiny", "hi", `,"max_completion_tokens":2`))
	if f.fake.last().NumPredict != 2 || finish != "length" {
		t.Errorf("num_predict %d, finish_reason %v", f.fake.last().NumPredict, finish)
	}
}

func tryKeepAliveAndOptionsOnV1(t *testing.T, f *fixture) {
	for path := range generating {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		wantStatus(t, f.try(path, "tiny", "hi", `,"keep_alive":-1,"options":{"num_ctx":48,"top_k":7}`), 200)
		if f.fake.last().Sampling.TopK != 7 {
			t.Errorf("%s: top_k %d", path, f.fake.last().Sampling.TopK)
		}
		f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && l[0].ExpiresAt.Year() > 2200 })
		wantStatus(t, f.try(path, "tiny", "hi", `,"keep_alive":0`), 200)
		f.waitLoaded(none)
	}
	w := f.do(call{method: "POST", path: "/v1/embeddings", body: `{"model":"encoder","input":"a","keep_alive":0}`})
	wantStatus(t, w, 200)
	f.waitLoaded(none)
}

func tryCachedTokens(t *testing.T, f *fixture) {
	f.fake.cached = 2
	var chat struct {
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			Details      struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	w := f.try("/v1/chat/completions", "tiny", "hi there", "")
	if err := json.Unmarshal(w.Body.Bytes(), &chat); err != nil || chat.Usage.Details.Cached != 2 || chat.Usage.PromptTokens < 3 {
		t.Errorf("OpenAI: %s", w.Body)
	}
	w = f.try("/v1/messages", "tiny", "hi there", "")
	if u := object(t, w.Body.Bytes())["usage"].(map[string]any); u["cache_read_input_tokens"] != 2.0 || u["input_tokens"] != float64(chat.Usage.PromptTokens-2) {
		t.Errorf("Anthropic: %s", w.Body)
	}
}
