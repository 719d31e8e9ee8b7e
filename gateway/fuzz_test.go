package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzBodies sends any body to the routes that strangers reach: never a 500, always JSON, and a last line.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{"model":"tiny"}`, `{"model":"tiny","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"tiny","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":[1,{"b":null}]}}}]},{"role":"tool","content":"x","tool_name":"f"}]}`,
		`{"model":"tiny","prompt":"a","context":[1,2],"raw":false,"template":"{{ .Prompt }}{{ range .Messages }}{{ .Content }}{{ end }}","system":"s","stream":false}`,
		`{"model":"tiny","prompt":"a","suffix":"b","format":{"type":"object"},"keep_alive":"-1","options":{"num_predict":1,"stop":["x"],"temperature":null}}`,
		`{"model":"encoder","input":["a","b"],"dimensions":2,"truncate":false}`, `{"model":"tiny","input":{"a":1}}`,
		`{"model":"tiny","messages":[{"role":"user","content":"\ud800\u0000"}],"think":"high"}`, `{"model":"TINY:latest ","messages":[{}]}`,
		`{"model":"` + strings.Repeat("a/", 50) + `","prompt":"a"}`, `{"model":"tiny","keep_alive":1e400}`, `{"model":"tiny","options":{"num_ctx":-5,"num_gpu":1e10,"seed":1.5}}`,
	} {
		f.Add([]byte(body))
	}
	fix := newFixture(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show"} {
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Host = "localhost"
			w := httptest.NewRecorder()
			fix.handler.ServeHTTP(w, r)
			if w.Code >= 500 && w.Code != http.StatusNotImplemented {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			out := bytes.TrimSuffix(w.Body.Bytes(), []byte("\n"))
			var last map[string]any
			for line := range bytes.SplitSeq(out, []byte("\n")) {
				last = nil
				if err := json.Unmarshal(line, &last); err != nil {
					t.Fatalf("%s: not JSON: %q", path, line)
				}
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "application/x-ndjson") && last["done"] != true && last["error"] == nil {
				t.Errorf("%s: the stream ends with %v", path, last)
			}
		}
	})
}
