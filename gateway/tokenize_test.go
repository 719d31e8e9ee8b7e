package gateway

import (
	"strings"
	"testing"
)

func TestTokenizeAndDetokenize(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.special = 2
	for _, key := range []string{"text", "content", "prompt"} {
		w := f.do(call{method: "POST", path: "/api/tokenize", body: map[string]any{"model": "tiny", key: "one two three", "keep_alive": "5m", "options": map[string]any{"num_ctx": nil}}})
		wantStatus(t, w, 200)
		if got := object(t, w.Body.Bytes()); len(got["tokens"].([]any)) != 3 || got["count"] != 3.0 || got["model"] != "tiny" {
			t.Errorf("%s: %v", key, got)
		}
	}
	w := f.do(call{method: "POST", path: "/api/tokenize", body: map[string]any{"name": "encoder", "text": "one two three", "special": true}})
	if got := object(t, w.Body.Bytes()); got["count"] != 5.0 {
		t.Errorf("with BOS and EOS: %v", got)
	}
	w = f.do(call{method: "POST", path: "/api/tokenize", body: map[string]any{"model": "tiny", "text": ""}})
	if got := strings.TrimSpace(w.Body.String()); got != `{"count":0,"model":"tiny","tokens":[]}` {
		t.Errorf("no text: %s", got)
	}
	w = f.do(call{method: "POST", path: "/api/detokenize", body: map[string]any{"model": "tiny", "tokens": []int{4, 5}}})
	if got := object(t, w.Body.Bytes()); got["text"] != "w w " {
		t.Errorf("%v", got)
	}
	w = f.do(call{method: "POST", path: "/api/detokenize", body: map[string]any{"model": "tiny", "tokens": []int{}}})
	if got := object(t, w.Body.Bytes()); w.Code != 200 || got["text"] != "" {
		t.Errorf("no tokens: %v", got)
	}
	for name, row := range map[string]struct {
		path, body string
		status     int
		part       string
	}{
		"no text":            {"/api/tokenize", `{"model":"tiny"}`, 400, "text is required"},
		"a list of texts":    {"/api/tokenize", `{"model":"tiny","text":["a"]}`, 400, `"text" cannot be an array`},
		"no model":           {"/api/tokenize", `{"text":"a"}`, 400, "model is required"},
		"a missing model":    {"/api/tokenize", `{"model":"no-such","text":"a"}`, 404, "not found"},
		"no tokens":          {"/api/detokenize", `{"model":"tiny"}`, 400, "tokens is required"},
		"a negative token":   {"/api/detokenize", `{"model":"tiny","tokens":[1,-2]}`, 400, "-2"},
		"a token of text":    {"/api/detokenize", `{"model":"tiny","tokens":["a"]}`, 400, "tokens"},
		"a missing model, 2": {"/api/detokenize", `{"model":"no-such","tokens":[1]}`, 404, "not found"},
	} {
		w := f.do(call{method: "POST", path: row.path, body: row.body})
		if text, _ := object(t, w.Body.Bytes())["error"].(string); w.Code != row.status || !strings.Contains(strings.ReplaceAll(text, "a array", "an array"), row.part) {
			t.Errorf("%s: %d %q", name, w.Code, text)
		}
	}
	for path, body := range map[string]string{"/api/tokenize": `{"model":"tiny","text":"a"}`, "/api/detokenize": `{"model":"tiny","tokens":[1]}`} {
		wantStatus(t, f.do(call{method: "POST", path: path, bearer: narrowKey, body: body}), 404)
	}
	f.waitLoaded(idle)
}
