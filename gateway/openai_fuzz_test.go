package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzChatCompletion: whatever comes in, the answer is a JSON error, a completion, or a stream that ends.
func FuzzChatCompletion(f *testing.F) {
	for _, seed := range []string{`{"model":"tiny","messages":[{"role":"user","content":"hi"}]}`, `{"model":"tiny","messages":[{"role":"tool","content":[{"type":"text","text":"x"}]}],"stream":true,"n":2,"stop":["a"]}`,
		`{"model":"caller","tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}]}`} {
		f.Add(seed)
	}
	fx := withAble(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		w := serve(t, fx.handler, call{method: "POST", path: chatPath, body: body})
		switch {
		case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
			if chunks, done := sseData(t, w); !done && dig(chunks[len(chunks)-1], "error") == nil {
				t.Errorf("a stream without an end: %q", w.Body)
			}
		case w.Code == 500:
			t.Errorf("%s", w.Body)
		default:
			if !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		}
	})
}

// FuzzResponses: whatever comes in, the answer is a JSON error, a response, or a stream that SDKs can follow.
func FuzzResponses(f *testing.F) {
	for _, seed := range []string{`{"model":"tiny","input":"hi"}`, `{"model":"tiny","stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}]}`,
		`{"model":"thinker","stream":true,"input":[{"type":"reasoning","summary":[{"text":"t"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"}]}`} {
		f.Add(seed)
	}
	fx := withAble(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		w := serve(t, fx.handler, call{method: "POST", path: responsesPath, body: body})
		switch {
		case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
			replay(t, sseEvents(t, w))
		case w.Code == 500:
			t.Errorf("%s", w.Body)
		default:
			if !json.Valid(w.Body.Bytes()) || !slices.Contains([]int{200, 400, 404, 413}, w.Code) {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		}
	})
}

// FuzzOpenAIOthers: the same of completions, embeddings and rerank.
func FuzzOpenAIOthers(f *testing.F) {
	paths := []string{completionsPath, "/v1/embeddings", "/v1/rerank"}
	for i, seed := range []string{`{"model":"filler","prompt":["a","b"],"suffix":"c","n":2,"best_of":3,"logprobs":1}`, `{"model":"encoder","input":["a"],"encoding_format":"base64","dimensions":3}`,
		`{"model":"encoder","query":"q","documents":["a",{"text":"b"}],"top_n":1}`} {
		f.Add(uint8(i), seed)
	}
	fx := withAble(f, nil)
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		w := serve(t, fx.handler, call{method: "POST", path: paths[int(path)%len(paths)], body: body})
		switch {
		case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
			if chunks, done := sseData(t, w); !done && dig(chunks[len(chunks)-1], "error") == nil {
				t.Errorf("a stream without an end: %q", w.Body)
			}
		case w.Code == 500 || !json.Valid(w.Body.Bytes()):
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
