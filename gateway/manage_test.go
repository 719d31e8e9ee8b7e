package gateway

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"sluice/scheduler"
)

func TestCreateCopyAndDelete(t *testing.T) {
	f := newFixture(t, nil)
	admin := func(method, path string, body any) *call {
		return &call{method: method, path: path, body: body, bearer: adminKey}
	}
	show := func(name string) map[string]any {
		t.Helper()
		w := f.do(call{method: "POST", path: "/api/show", body: map[string]any{"model": name}})
		wantStatus(t, w, 200)
		return object(t, w.Body.Bytes())
	}

	w := f.do(*admin("POST", "/api/create", map[string]any{"model": "derived", "from": "tiny", "system": "Sprich Köln.", "license": "frei 👋",
		"parameters": map[string]any{"num_predict": 1, "stop": []string{"<x>"}}}))
	wantStatus(t, w, 200)
	ls := lines(t, w.Body.Bytes())
	for i, l := range ls {
		if (l["status"] == "success") != (i == len(ls)-1) {
			t.Errorf("line %d of %d: %v", i, len(ls), l)
		}
	}
	s := show("derived")
	if s["license"] != "frei 👋" || !strings.Contains(s["modelfile"].(string), "Sprich Köln.") || !strings.Contains(s["parameters"].(string), "num_predict") {
		t.Errorf("show: %v", s)
	}
	w = f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "derived", "messages": sea, "stream": false}})
	if l := object(t, w.Body.Bytes()); l["eval_count"] != 1.0 || l["done_reason"] != "length" || !strings.Contains(f.fake.last().Prompt, "Köln") {
		t.Errorf("its parameters and system prompt are not used: %v, %q", l, f.fake.last().Prompt)
	}

	w = f.do(*admin("POST", "/api/create", map[string]any{"model": "coder", "from": "tiny", "renderer": "qwen3-coder", "parser": "qwen3-coder", "requires": "0.1.0", "stream": false}))
	wantStatus(t, w, 200)
	if s := show("coder"); s["renderer"] != "qwen3-coder" || s["parser"] != "qwen3-coder" || s["requires"] != "0.1.0" || !strings.Contains(fmt.Sprint(s["capabilities"]), "tools") {
		t.Errorf("show: %v", s)
	}

	w = f.do(*admin("POST", "/api/copy", map[string]any{"source": "derived", "destination": "second"}))
	if w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("copy: %d %s", w.Code, w.Body)
	}
	if show("second")["license"] != s["license"] {
		t.Error("the copy differs")
	}

	f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && idle(l) })
	for _, name := range []string{"second", "derived"} {
		if w = f.do(*admin("DELETE", "/api/delete", map[string]any{"name": name})); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("delete: %d %s", w.Code, w.Body)
		}
	}
	f.waitLoaded(none) // a deleted model is not served any more
	wantStatus(t, f.do(call{method: "POST", path: "/api/show", body: map[string]any{"model": "derived"}}), 404)

	w = f.do(*admin("POST", "/api/create", map[string]any{"model": "whole", "from": "tiny", "stream": false}))
	if w.Code != 200 || w.Body.String() != `{"status":"success"}` {
		t.Errorf("create in one piece: %d %s", w.Code, w.Body)
	}
}

func TestManageRefusals(t *testing.T) {
	f := newFixture(t, nil)
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		part               string
	}{
		"create without model":   {"POST", "/api/create", `{"from":"tiny"}`, 400, "model is required"},
		"create from nothing":    {"POST", "/api/create", `{"model":"x"}`, 400, "from"},
		"create from a missing":  {"POST", "/api/create", `{"model":"x","from":"no-such"}`, 404, "not found"},
		"create of a bad name":   {"POST", "/api/create", `{"model":"../x","from":"tiny"}`, 400, "name"},
		"a bad template":         {"POST", "/api/create", `{"model":"x","from":"tiny","template":"{{ if }}","stream":false}`, 400, "template"},
		"a license of numbers":   {"POST", "/api/create", `{"model":"x","from":"tiny","license":5}`, 400, "license"},
		"quantize":               {"POST", "/api/create", `{"model":"x","from":"tiny","quantize":"q4_0","stream":false}`, 501, "q4_0"},
		"the old quantize":       {"POST", "/api/create", `{"model":"x","from":"tiny","quantization":"q4_0","stream":false}`, 501, "q4_0"},
		"adapters":               {"POST", "/api/create", `{"model":"x","from":"tiny","adapters":{"a":"sha256:1"},"stream":false}`, 400, "digest"},
		"a remote model":         {"POST", "/api/create", `{"model":"x","from":"tiny","remote_host":"h"}`, 501, "remote"},
		"copy without a target":  {"POST", "/api/copy", `{"source":"tiny","destination":""}`, 400, "destination"},
		"copy to a bad name":     {"POST", "/api/copy", `{"source":"tiny","destination":"a b"}`, 400, "name"},
		"copy of a missing":      {"POST", "/api/copy", `{"source":"no-such","destination":"x"}`, 404, "not found"},
		"delete of a missing":    {"DELETE", "/api/delete", `{"model":"no-such"}`, 404, "model 'no-such' not found"},
		"delete without a model": {"DELETE", "/api/delete", `{}`, 400, "model is required"},
	} {
		w := f.do(call{method: row.method, path: row.path, body: row.body, bearer: adminKey})
		if text, _ := object(t, w.Body.Bytes())["error"].(string); w.Code != row.status || !strings.Contains(text, row.part) {
			t.Errorf("%s: %d %q", name, w.Code, text)
		}
	}
	if w := f.do(call{method: "GET", path: "/api/tags"}); strings.Contains(w.Body.String(), `"x:latest"`) {
		t.Errorf("a refused model is there: %s", w.Body)
	}
}

func TestBlobs(t *testing.T) {
	f := newFixture(t, nil)
	content := "some bytes"
	path := fmt.Sprintf("/api/blobs/sha256:%x", sha256.Sum256([]byte(content)))
	for i, row := range []struct {
		method, path, body string
		status             int
	}{
		{"HEAD", path, "", 404},
		{"POST", path, "other bytes", 400},
		{"HEAD", path, "", 404},
		{"POST", path, content, 201},
		{"HEAD", path, "", 200},
		{"POST", path, content, 200},
		{"POST", "/api/blobs/md5:1", content, 400},
		{"POST", "/api/blobs/..%2fx", content, 404},
		{"HEAD", "/api/blobs/md5:1", "", 404},
	} {
		if w := f.do(call{method: row.method, path: row.path, body: row.body, bearer: adminKey}); w.Code != row.status {
			t.Errorf("step %d: %d %s, want %d", i, w.Code, w.Body, row.status)
		}
	}
}
