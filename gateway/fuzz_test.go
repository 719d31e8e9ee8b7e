package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// inferenceRoutes read JSON from those who may use models.
var inferenceRoutes = []string{
	"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/tokenize", "/api/detokenize", "/api/rerank",
	"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank", "/v1/messages", "/v1/messages/count_tokens",
}

// FuzzBodies sends any body to the routes that strangers reach: never a 500, always JSON, and a stream has an end.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{"model":"tiny"}`, `{"model":"tiny","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"tiny","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":[1,{"b":null}]}}}]},{"role":"tool","content":"x","tool_name":"f"}]}`,
		`{"model":"tiny","prompt":"a","context":[1,2],"raw":false,"template":"{{ .Prompt }}{{ range .Messages }}{{ .Content }}{{ end }}","system":"s","stream":false}`,
		`{"model":"tiny","prompt":"a","suffix":"b","format":{"type":"object"},"keep_alive":"-1","options":{"num_predict":1,"stop":["x"],"temperature":null}}`,
		`{"model":"encoder","input":["a","b"],"dimensions":2,"truncate":false}`, `{"model":"tiny","input":{"a":1}}`,
		`{"model":"tiny","messages":[{"role":"user","content":"\ud800\u0000"}],"think":"high"}`, `{"model":"TINY:latest ","messages":[{}]}`,
		`{"model":"` + strings.Repeat("a/", 50) + `","prompt":"a"}`, `{"model":"tiny","keep_alive":1e400}`, `{"model":"tiny","options":{"num_ctx":-5,"num_gpu":1e10,"seed":1.5}}`,
		`{"model":"caller","messages":[{"role":"user","content":"a"}],"tools":[` + weatherTool + `,` + mailTool + `],"n":2,"logprobs":true,"top_logprobs":3,"stream":true}`,
		`{"model":"caller","messages":[{"role":"user","content":"a"}],"tools":[` + weatherTool + `],"tool_choice":{"type":"function","function":{"name":"get_weather"}},"parallel_tool_calls":false,"stream_options":{"include_usage":true},"stream":true}`,
		`{"model":"caller","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","$defs":{"A":{"$ref":"#/$defs/A"}},"properties":{"a":{"type":["array",null],"items":{"$ref":"#/$defs/A"}}}}}}],"tool_choice":"required"}`,
		`{"model":"thinker","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}],"max_completion_tokens":2,"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}}`,
		`{"model":"thinker","max_tokens":3,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"f","input":{}}]}],"thinking":{"type":"enabled","budget_tokens":1024},"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"},"stream":true}`,
		`{"model":"caller","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}],"instructions":"i","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"stream":true}`,
		`{"model":"encoder","query":"q","documents":["a",{"text":"b"}],"top_n":1,"return_documents":true}`,
		`{"model":"seer","prompt":"[img-3]","images":["aGk="],"n":2}`, `{"model":"filler","prompt":["a"],"suffix":"b","echo":true,"best_of":2,"logprobs":1}`,
		`{"model":"tiny","text":"a b","special":true}`, `{"model":"tiny","tokens":[1,-1]}`, `{"model":"tiny","prompt":"a","options":{"grammar":"root ::="},"_debug_render_only":true}`,
	} {
		f.Add([]byte(body))
	}
	fix := withAble(f, nil)
	fix.fake.script = []string{"<think>hm", "</think>", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}", "\n</tool_call>", " {\"name\": \"f\"}"}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range inferenceRoutes {
			checkAnswer(t, path, fix.post(http.MethodPost, path, body))
		}
	})
}

// FuzzManageBodies sends any body to the routes that change models.
func FuzzManageBodies(f *testing.F) {
	for _, body := range []string{
		``, `null`, `{"model":"new","from":"tiny"}`, `{"name":"new","from":"tiny","system":"s","template":"{{ .Prompt }}","parameters":{"stop":["a"],"num_ctx":5},"messages":[{"role":"user","content":"a"}],"license":["a","b"],"stream":false}`,
		`{"source":"tiny","destination":"second"}`, `{"model":"second"}`, `{"model":"x","files":{"a.gguf":"sha256:00"}}`, `{"model":"x","from":"tiny","parameters":{"top_k":"a"}}`,
		`{"model":"x","from":"../tiny","adapters":{"a":"b"},"quantize":"q4_0"}`, `{"source":"a/b/c/d/e","destination":""}`,
	} {
		f.Add([]byte(body))
	}
	fix := newFixture(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		for path, method := range map[string]string{"/api/create": http.MethodPost, "/api/copy": http.MethodPost, "/api/delete": http.MethodDelete} {
			checkAnswer(t, path, fix.post(method, path, body))
		}
	})
}

// FuzzDataBodies sends any body to Sluice's own routes.
func FuzzDataBodies(f *testing.F) {
	for _, body := range []string{
		``, `null`, `{"database":"shop","sql":"SELECT 1"}`, `{"database":"shop","sql":"SELECT ?::INT","params":[1],"max_rows":5}`, `{"database":"shop","question":"how many items?","stream":true}`,
		`{"database":"shop","sql":"COPY (SELECT 1 AS a) TO LAKE 'exports/x' WITH (CONNECTION = 'local')","wait":true}`, `{"name":"n","role":"read_only","databases":[],"tables":null}`,
		`{"database":"shop","sql":"SELECT 1; DROP TABLE item"}`, `{"database":"no","sql":""}`, `{"unknown":1}`,
	} {
		f.Add([]byte(body))
	}
	fix := withShop(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/query/execute", "/v1/lake/copy", "/v1/database/ask", "/v1/keys"} {
			checkAnswer(t, path, fix.post(http.MethodPost, path, body))
		}
	})
}

// post sends a body as the admin.
func (f *fixture) post(method, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+adminKey)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// checkAnswer checks what holds for every answer to every body.
func checkAnswer(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= 500 && w.Code != http.StatusNotImplemented {
		t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	body := w.Body.Bytes()
	switch kind := w.Header().Get("Content-Type"); {
	case len(body) == 0 && w.Code < 300:
	case strings.HasPrefix(kind, "text/event-stream"):
		checkEvents(t, path, body)
	case strings.HasPrefix(kind, "application/x-ndjson"):
		var last map[string]any
		for line := range bytes.SplitSeq(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
			last = nil
			if err := json.Unmarshal(line, &last); err != nil {
				t.Fatalf("%s: not JSON: %q", path, line)
			}
		}
		if last["done"] != true && last["status"] != "success" && last["error"] == nil {
			t.Errorf("%s: the stream ends with %v", path, last)
		}
	default:
		if !strings.HasPrefix(kind, "application/json") || !json.Valid(body) {
			t.Errorf("%s: %q, not JSON: %q", path, kind, body)
		}
	}
}

// checkEvents checks that each event is JSON and that the last one ends its dialect's stream.
func checkEvents(t *testing.T, path string, body []byte) {
	t.Helper()
	if !bytes.HasSuffix(body, []byte("\n\n")) {
		t.Errorf("%s: the last event is not closed: %q", path, body)
	}
	last := ""
	for event := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
		last = event
		for line := range strings.SplitSeq(event, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Fatalf("%s: not JSON: %q", path, data)
			}
		}
	}
	for _, end := range []string{"[DONE]", `"error"`, `"message_stop"`, `"response.completed"`, `"response.incomplete"`, `"response.failed"`, "event: done", "event: error"} {
		if strings.Contains(last, end) {
			return
		}
	}
	t.Errorf("%s: the stream ends with %q", path, last)
}
