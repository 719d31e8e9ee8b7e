package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/scheduler"
)

var sea = []map[string]any{{"role": "user", "content": "Say something about the sea."}}

// lastLine checks what clients need of the last line: done, a reason, and six counters above zero.
func lastLine(t *testing.T, l map[string]any, reason string) {
	t.Helper()
	if l["done"] != true || l["done_reason"] != reason {
		t.Errorf("last line %v, want done_reason %q", l, reason)
	}
	for _, k := range []string{"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"} {
		if n, ok := l[k].(float64); !ok || n <= 0 || n != float64(int64(n)) {
			t.Errorf("%s is %v", k, l[k])
		}
	}
	if l["total_duration"].(float64) < l["load_duration"].(float64) {
		t.Errorf("load_duration above total_duration: %v", l)
	}
}

func TestVersionAndProbes(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.OpenOllama = false })
	for _, method := range []string{"GET", "HEAD"} {
		for _, path := range []string{"/", "/api/version", "/healthz", "/readyz"} {
			wantStatus(t, f.do(call{method: method, path: path, bearer: wrongKey}), 200)
		}
	}
	w := f.do(call{method: "GET", path: "/api/version"})
	version := object(t, w.Body.Bytes())["version"].(string)
	if version != "0.17.4" || w.Header().Get("X-Sluice-Version") != "1.2.3" {
		t.Errorf("%q, %v", version, w.Header())
	}
	f = newFixture(t, nil)
	if w := f.do(call{method: "GET", path: "/api/status"}); w.Code != 200 || w.Body.String() != `{"cloud":{"disabled":true,"source":"none"}}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do(call{method: "GET", path: "/"}); w.Body.String() != "Ollama is running" {
		t.Errorf("%q", w.Body)
	}
}

func TestTagsShowAndPs(t *testing.T) {
	f := newFixture(t, nil)
	wantStatus(t, f.do(call{method: "HEAD", path: "/api/tags"}), 200)
	list := object(t, f.do(call{method: "GET", path: "/api/tags"}).Body.Bytes())["models"].([]any)
	if len(list) != 2 {
		t.Fatalf("tags: %v", list)
	}
	for _, e := range list {
		m := e.(map[string]any)
		if d := m["details"].(map[string]any); d["embedding_length"] != 8.0 || d["context_length"].(float64) < 512 || len(m["capabilities"].([]any)) == 0 {
			t.Errorf("entry %v", m)
		}
		// Programs take what says "embedding" for a model that cannot chat.
		if want := map[any]string{"tiny:latest": "[completion]", "encoder:latest": "[embedding]"}[m["name"]]; fmt.Sprint(m["capabilities"]) != want {
			t.Errorf("capabilities of %v: %v", m["name"], m["capabilities"])
		}
		if m["name"] != m["model"] || m["size"].(float64) <= 0 || m["digest"] == "" || m["details"].(map[string]any)["family"] == "" {
			t.Errorf("entry %v", m)
		}
	}
	for _, key := range []string{"model", "name"} {
		s := object(t, f.do(call{method: "POST", path: "/api/show", body: map[string]any{key: "TINY"}}).Body.Bytes())
		info := s["model_info"].(map[string]any)
		if info["general.architecture"] != "llama" || info["llama.context_length"] != 4096.0 || fmt.Sprint(s["capabilities"]) != "[completion]" || s["modified_at"] == nil {
			t.Errorf("show: %v", s)
		}
		for _, k := range []string{"license", "modelfile", "parameters", "template", "system", "details"} {
			if _, ok := s[k]; !ok {
				t.Errorf("show has no %s", k)
			}
		}
	}
	if ps := f.do(call{method: "GET", path: "/api/ps"}).Body.String(); ps != `{"models":[]}` {
		t.Errorf("ps: %s", ps)
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "keep_alive": "10m"}}), 200)
	f.waitLoaded(idle)
	e := object(t, f.do(call{method: "GET", path: "/api/ps"}).Body.Bytes())["models"].([]any)[0].(map[string]any)
	expires, err := time.Parse(time.RFC3339Nano, e["expires_at"].(string))
	if left := time.Until(expires); err != nil || left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("expires in %s, %v", left, err)
	}
	if e["size"] != 1110.0 || e["size_vram"] != 7.0 || e["context_length"] != 64.0 || e["state"] != "ready" || e["in_flight"] != 0.0 || e["name"] != "tiny:latest" {
		t.Errorf("ps entry %v", e)
	}
}

func TestChatStreams(t *testing.T) {
	f := newFixture(t, nil)
	w := f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea, "tools": []any{}, "unknown_key": 1, "options": map[string]any{"no_such": 1, "top_k": nil, "num_predict": 2}}})
	wantStatus(t, w, 200)
	if ct := w.Header().Get("Content-Type"); ct != "application/x-ndjson" {
		t.Errorf("content type %q", ct)
	}
	ls := lines(t, w.Body.Bytes())
	text := ""
	for i, l := range ls {
		msg := l["message"].(map[string]any)
		text += msg["content"].(string)
		if msg["role"] != "assistant" || l["model"] != "tiny" || (l["done"] == true) != (i == len(ls)-1) {
			t.Errorf("line %v", l)
		}
		if _, ok := l["eval_count"]; ok && i < len(ls)-1 {
			t.Errorf("counters before the last line: %v", l)
		}
		if at, err := time.Parse(time.RFC3339Nano, l["created_at"].(string)); err != nil || at.Location() != time.UTC {
			t.Errorf("created_at %v, %v", l["created_at"], err)
		}
	}
	if text != "one two" {
		t.Errorf("text %q", text)
	}
	lastLine(t, ls[len(ls)-1], "length")
	if got := f.fake.last().NumPredict; got != 2 {
		t.Errorf("num_predict %d", got)
	}
	f.waitLoaded(idle)
}

func TestChatAndGenerateInOnePiece(t *testing.T) {
	f := newFixture(t, nil)
	w := f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea, "stream": false}})
	wantStatus(t, w, 200)
	l := object(t, w.Body.Bytes())
	lastLine(t, l, "stop")
	if l["message"].(map[string]any)["content"] != "one two 三👋" {
		t.Errorf("%v", l)
	}
	if got := f.fake.last(); got.NumPredict != 64 || !got.Truncate || !got.Shift || got.Sampling.TopK != 40 || got.Schema != "" {
		t.Errorf("request %+v", got)
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "The sea is", "stream": false, "format": "json", "shift": false, "truncate": false}})
	wantStatus(t, w, 200)
	l = object(t, w.Body.Bytes())
	lastLine(t, l, "stop")
	if l["response"] != "one two 三👋" || len(l["context"].([]any)) == 0 {
		t.Errorf("%v", l)
	}
	if got := f.fake.last(); got.Schema != "null" || got.Shift || got.Truncate {
		t.Errorf("request %+v", got)
	}
}

func TestGenerateGoesOnFromAContext(t *testing.T) {
	f := newFixture(t, nil)
	wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "and", "context": []int{1, 2, 3}, "stream": false}}), 200)
	if got := f.fake.last().Prompt; !strings.HasPrefix(got, "w w w ") || !strings.Contains(got, "and") {
		t.Errorf("prompt %q", got)
	}
	w := f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "raw text", "raw": true, "stream": false}})
	if got := f.fake.last().Prompt; got != "raw text" || object(t, w.Body.Bytes())["context"] != nil {
		t.Errorf("prompt %q, %s", got, w.Body)
	}
}

func TestEmptyRequestsLoadAndUnload(t *testing.T) {
	f := newFixture(t, nil)
	for name, body := range map[string]string{"/api/generate": `{"model":"tiny","prompt":""%s}`, "/api/chat": `{"model":"tiny","messages":[]%s}`} {
		w := f.do(call{method: "POST", path: name, body: fmt.Sprintf(body, `,"stream":true`)})
		if l := object(t, w.Body.Bytes()); l["done"] != true || l["done_reason"] != "load" {
			t.Errorf("%s: %v", name, l)
		}
		f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && idle(l) })
		for _, zero := range []string{`0`, `"0"`, `0.0`} {
			w = f.do(call{method: "POST", path: name, body: fmt.Sprintf(body, `,"keep_alive":`+zero)})
			if l := object(t, w.Body.Bytes()); w.Code != 200 || l["done"] != true || l["done_reason"] != "unload" {
				t.Errorf("%s: %v", name, l)
			}
		}
		f.waitLoaded(none)
	}
}

func TestBadRequestsAreAStatusAndASentence(t *testing.T) {
	f := newFixture(t, nil)
	for name, row := range map[string]struct {
		path, body string
		status     int
		part       string
	}{
		"no body":                   {"/api/chat", ``, 400, "missing request body"},
		"blanks":                    {"/api/chat", " \n", 400, "missing request body"},
		"broken JSON":               {"/api/chat", `{"model":`, 400, "JSON"},
		"something after the JSON":  {"/api/chat", `{"model":"tiny"} x`, 400, "JSON"},
		"a list":                    {"/api/chat", `[]`, 400, "object"},
		"no model":                  {"/api/chat", `{"messages":[]}`, 400, "model is required"},
		"null":                      {"/api/generate", `null`, 400, "model is required"},
		"show without model":        {"/api/show", `{}`, 400, "model is required"},
		"messages is text":          {"/api/chat", `{"model":"tiny","messages":"hi"}`, 400, `"messages" cannot be a string`},
		"stream is text":            {"/api/generate", `{"model":"tiny","prompt":"a","stream":"yes"}`, 400, `"stream" cannot be a string`},
		"model is a number":         {"/api/generate", `{"model":5}`, 400, `"model" cannot be a number`},
		"keep_alive soon":           {"/api/chat", `{"model":"tiny","keep_alive":"soon"}`, 400, "keep_alive"},
		"keep_alive true":           {"/api/embed", `{"model":"tiny","keep_alive":true}`, 400, "keep_alive"},
		"think bogus":               {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a"}],"think":"bogus"}`, 400, "think"},
		"think":                     {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a"}],"think":true}`, 400, `"tiny" does not support thinking`},
		"think high":                {"/api/generate", `{"model":"tiny","prompt":"a","think":"high"}`, 400, `"tiny" does not support thinking`},
		"images":                    {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a","images":["aGk="]}]}`, 400, `"tiny" does not support images`},
		"images to generate":        {"/api/generate", `{"model":"tiny","prompt":"a","images":["aGk="]}`, 400, `"tiny" does not support images`},
		"bad base64":                {"/api/generate", `{"model":"tiny","prompt":"a","images":["%"]}`, 400, "base64"},
		"suffix":                    {"/api/generate", `{"model":"tiny","prompt":"a","suffix":"b"}`, 400, `"tiny" does not support insert`},
		"raw with system":           {"/api/generate", `{"model":"tiny","prompt":"a","raw":true,"system":"b"}`, 400, "raw mode"},
		"negative context":          {"/api/generate", `{"model":"tiny","prompt":"a","context":[-1]}`, 400, "context"},
		"format yaml":               {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a"}],"format":"yaml"}`, 400, "format"},
		"top_logprobs 21":           {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a"}],"top_logprobs":21}`, 400, "top_logprobs"},
		"an option of a wrong type": {"/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"a"}],"options":{"top_k":"x"}}`, 400, "top_k"},
		"an encoder to chat":        {"/api/chat", `{"model":"encoder","messages":[{"role":"user","content":"a"}]}`, 400, `"encoder" does not support chat`},
		"an encoder to generate":    {"/api/generate", `{"model":"encoder","prompt":"a"}`, 400, `"encoder" does not support generate`},
		"chat with a missing model": {"/api/chat", `{"model":"no-such","messages":[{"role":"user","content":"a"}]}`, 404, "model 'no-such' not found"},
		"load a missing model":      {"/api/generate", `{"model":"no-such"}`, 404, "model 'no-such' not found"},
		"unload a missing model":    {"/api/generate", `{"model":"no-such","keep_alive":0}`, 404, "model 'no-such' not found"},
		"show a missing model":      {"/api/show", `{"model":"no-such:7b"}`, 404, "model 'no-such:7b' not found"},
		"embed a missing model":     {"/api/embed", `{"model":"no-such","input":"a"}`, 404, `model "no-such" not found`},
		"embeddings of a missing":   {"/api/embeddings", `{"model":"no-such","prompt":"a"}`, 404, `model 'no-such' not found`},
		"a name that is a path":     {"/api/show", `{"model":"../../etc/passwd"}`, 404, "not found"},
		"input is a number":         {"/api/embed", `{"model":"tiny","input":5}`, 400, "invalid input type"},
		"input holds a number":      {"/api/embed", `{"model":"tiny","input":["a",5]}`, 400, "invalid input type"},
		"token ids":                 {"/api/embed", `{"model":"tiny","input":[1,2]}`, 400, "invalid input type"},
		"negative dimensions":       {"/api/embed", `{"model":"tiny","input":"a","dimensions":-1}`, 400, "dimensions"},
		"two texts to embeddings":   {"/api/embeddings", `{"model":"tiny","input":["a","b"]}`, 400, "/api/embed"},
	} {
		w := f.do(call{method: "POST", path: row.path, body: row.body})
		text, _ := object(t, w.Body.Bytes())["error"].(string)
		if w.Code != row.status || !strings.Contains(text, row.part) || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %q, want %d with %q", name, w.Code, text, row.status, row.part)
		}
	}
	f.waitLoaded(idle)
}

func TestAFailureBeforeTheFirstByteIsAStatusAfterItALine(t *testing.T) {
	for _, path := range []string{"/api/chat", "/api/generate"} {
		for at, stream := range map[int]bool{1: true, 2: true} {
			f := newFixture(t, nil)
			f.fake.failAt, f.fake.err = at, &fault.Error{Code: fault.Busy, Msg: "the model's runner stopped", RetryAfter: time.Second, Err: fmt.Errorf("killed: secret log")}
			body := map[string]any{"model": "tiny", "messages": sea, "prompt": "a", "stream": stream}
			w := f.do(call{method: "POST", path: path, body: body})
			ls := lines(t, append(bytes.TrimSuffix(w.Body.Bytes(), []byte("\n")), '\n'))
			last := ls[len(ls)-1]
			if last["error"] != "the model's runner stopped" || last["done"] != nil {
				t.Errorf("%s: %v", path, last)
			}
			if at == 1 && (w.Code != 503 || len(ls) != 1 || w.Header().Get("Retry-After") != "1") || at == 2 && (w.Code != 200 || len(ls) != 2) {
				t.Errorf("%s, failing at chunk %d: %d %s", path, at, w.Code, w.Body)
			}
			body["stream"] = false
			wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 503)
			f.waitLoaded(idle)
			f.fake.failAt = 0
			wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 200)
		}
	}
}

func TestAClientWhoLeavesStopsTheGeneration(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.hold, f.fake.ended = make(chan struct{}), make(chan error, 1)
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	for _, stream := range []bool{true, false} {
		ctx, leave := context.WithCancel(t.Context())
		body, _ := json.Marshal(map[string]any{"model": "tiny", "messages": sea, "stream": stream})
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/api/chat", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if !stream {
			go func() {
				f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && l[0].InFlight == 1 })
				leave()
			}()
		}
		res, err := srv.Client().Do(req)
		if stream {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil { // the first line came while the rest is held
				t.Fatal(err)
			}
			leave()
			_ = res.Body.Close()
		} else if err == nil {
			t.Fatal("an answer without an end")
		}
		leave()
		select {
		case err := <-f.fake.ended:
			if err == nil {
				t.Error("the generation went on to its end")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the generation goes on")
		}
		f.waitLoaded(idle)
	}
}

func TestAPromptThatIsCutIsToldOf(t *testing.T) {
	f := newFixture(t, nil)
	long := strings.Repeat("word ", 100)
	msgs := []map[string]any{{"role": "system", "content": "rules"}, {"role": "user", "content": long}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "now"}}
	w := f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": msgs}})
	ls := lines(t, w.Body.Bytes())
	if w.Header().Get("X-Sluice-Truncated") != "messages=1" || ls[len(ls)-1]["truncated"] != true || ls[0]["truncated"] != nil {
		t.Errorf("%v, %v", w.Header(), ls[len(ls)-1])
	}
	if p := f.fake.last().Prompt; strings.Contains(p, "word") || !strings.Contains(p, "rules") || !strings.Contains(p, "now") {
		t.Errorf("prompt %q", p)
	}
	if !strings.Contains(f.log.String(), "truncated") {
		t.Error("the log says nothing")
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": long, "stream": false}})
	if w.Code != 200 || w.Header().Get("X-Sluice-Truncated") != "cut" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/api/chat", "/api/generate"} {
		w := f.do(call{method: "POST", path: path, body: map[string]any{"model": "tiny", "messages": msgs, "prompt": long, "truncate": false}})
		if w.Code != 400 || !strings.Contains(w.Body.String(), "tokens > 64 maximum") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	f.waitLoaded(idle)
}

func TestAKeyMayBeNarrowedToModels(t *testing.T) {
	f := newFixture(t, nil)
	list := object(t, f.do(call{method: "GET", path: "/api/tags", bearer: narrowKey}).Body.Bytes())["models"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["name"] != "encoder:latest" {
		t.Errorf("tags: %v", list)
	}
	for path, body := range map[string]string{"/api/show": `{"model":"tiny"}`, "/api/chat": `{"model":"tiny","messages":[]}`, "/api/embeddings": `{"model":"tiny","prompt":"a"}`, "/api/generate": `{"model":"tiny","keep_alive":0}`} {
		w := f.do(call{method: "POST", path: path, bearer: narrowKey, body: body})
		if w.Code != 404 || !strings.Contains(w.Body.String(), "model 'tiny' not found") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea}}), 200)
	if ps := f.do(call{method: "GET", path: "/api/ps", bearer: narrowKey}).Body.String(); ps != `{"models":[]}` {
		t.Errorf("ps: %s", ps)
	}
}
