package gateway

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice/access"
)

// fits is an HTTP client's view of one answer: its status, its type and its JSON are what the document says.
type fits struct {
	f     *fixture
	doc   described
	rules map[string]*jsonschema.Resolved
	seen  map[string]int // answers of success, by route
}

func newFits(f *fixture) *fits {
	doc, _ := f.document()
	return &fits{f: f, doc: doc, rules: map[string]*jsonschema.Resolved{}, seen: map[string]int{}}
}

// pathOf finds the path of the document that a request's path is of.
func (x *fits) pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if x.doc.Paths[path] != nil {
		return path
	}
	parts := strings.Split(path, "/")
	for pattern := range x.doc.Paths {
		want := strings.Split(pattern, "/")
		same := len(want) == len(parts)
		for i := range want {
			same = same && (want[i] == parts[i] || strings.HasPrefix(want[i], "{"))
		}
		if same {
			return pattern
		}
	}
	return ""
}

func (x *fits) do(c call, want int) *httptest.ResponseRecorder {
	x.f.t.Helper()
	w := x.f.do(c)
	if w.Code != want {
		x.f.t.Errorf("%s %s: status %d, want %d: %.300s", c.method, c.path, w.Code, want, w.Body)
		return w
	}
	if err := x.check(c, w); err != nil {
		x.f.t.Errorf("%s %s: %v\nanswer: %d %.600s", c.method, c.path, err, w.Code, w.Body)
	}
	return w
}

func (x *fits) check(c call, w *httptest.ResponseRecorder) error {
	path := x.pathOf(c.path)
	op, ok := x.doc.Paths[path][strings.ToLower(c.method)]
	if !ok {
		return fmt.Errorf("the document has no %s %s", c.method, path)
	}
	status := fmt.Sprint(w.Code)
	res, ok := op.Responses[status]
	if !ok {
		return fmt.Errorf("the document has no status %s", status)
	}
	if w.Code < 300 {
		x.seen[c.method+" "+path]++
	}
	if w.Body.Len() == 0 && len(res.Content) == 0 || c.method == http.MethodHead {
		return nil
	}
	media, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil {
		return err
	}
	told, ok := res.Content[media]
	if !ok {
		return fmt.Errorf("the document has no %s for %s", media, status)
	}
	if media != "application/json" {
		return nil
	}
	key := c.method + path + status
	if x.rules[key] == nil {
		x.rules[key] = x.doc.rules(x.f.t, key, told.Schema)
	}
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		return err
	}
	return x.rules[key].Validate(v)
}

// get, send and so on leave out what is always the same.
func (x *fits) get(path, bearer string, want int) *httptest.ResponseRecorder {
	x.f.t.Helper()
	return x.do(call{method: "GET", path: path, bearer: bearer}, want)
}

func (x *fits) post(path, bearer string, body any, want int) *httptest.ResponseRecorder {
	x.f.t.Helper()
	return x.do(call{method: "POST", path: path, bearer: bearer, body: body}, want)
}

func TestAnswersOfModelsFitTheDocument(t *testing.T) {
	f := withAble(t, nil)
	x := newFits(f)
	for _, path := range []string{"/", "/healthz", "/readyz", "/api/version", "/api/tags", "/api/ps", "/api/status", "/metrics", "/v1/models", "/v1/models/tiny", "/v1/models/"} {
		x.get(path, "", 200)
	}
	x.get("/v1/models/none", "", 404)
	x.get("/api/tags", wrongKey, 401)
	for _, path := range []string{"/", "/healthz", "/api/tags"} {
		x.do(call{method: "HEAD", path: path}, 200)
	}
	x.post("/api/show", "", m{"model": "tiny", "verbose": true}, 200)
	x.post("/api/show", "", "{", 400)
	hello := []m{{"role": "user", "content": "hello"}}
	tool := m{"type": "function", "function": m{"name": "f", "description": "d", "parameters": m{"type": "object", "properties": m{"a": m{"type": "string"}}}}}
	chat := func(more m) m {
		for k, v := range (m{"model": "tiny", "messages": hello, "stream": false}) {
			if _, ok := more[k]; !ok {
				more[k] = v
			}
		}
		return more
	}
	x.post("/api/chat", "", chat(m{}), 200)
	x.post("/api/chat", "", chat(m{"stream": true}), 200)
	x.post("/api/chat", "", chat(m{"n": 2, "logprobs": true, "top_logprobs": 2}), 200)
	x.post("/api/chat", "", chat(m{"messages": []m{}}), 200)
	x.post("/api/chat", "", chat(m{"messages": []m{}, "keep_alive": 0}), 200)
	x.post("/api/chat", "", chat(m{"_debug_render_only": true}), 200)
	x.post("/api/chat", "", chat(m{"model": "none"}), 404)
	x.post("/api/generate", "", m{"model": "tiny", "prompt": "x", "stream": false, "logprobs": true, "n": 2}, 200)
	x.post("/api/generate", "", m{"model": "tiny", "prompt": "x"}, 200)
	x.post("/api/embed", "", m{"model": "encoder", "input": []string{"a b", "c"}}, 200)
	x.post("/api/embed", "", m{"model": "encoder", "input": 1}, 400)
	x.post("/api/embeddings", "", m{"model": "encoder", "prompt": "a"}, 200)
	x.post("/api/tokenize", "", m{"model": "tiny", "text": "a b"}, 200)
	x.post("/api/detokenize", "", m{"model": "tiny", "tokens": []int{1}}, 200)
	for _, path := range []string{"/api/rerank", "/v1/rerank"} {
		x.post(path, "", m{"model": "encoder", "query": "q", "documents": []any{"a", m{"text": "b"}}, "return_documents": true}, 200)
		x.post(path, "", m{"model": "none", "query": "q", "documents": []string{"a"}}, 404)
	}
	x.post("/v1/chat/completions", "", chat(m{"logprobs": true, "top_logprobs": 2, "n": 2}), 200)
	x.post("/v1/chat/completions", "", chat(m{"stream": true, "stream_options": m{"include_usage": true}}), 200)
	x.post("/v1/chat/completions", "", chat(m{"n": 0}), 400)
	x.post("/v1/chat/completions", wrongKey, chat(m{}), 401)
	x.post("/v1/completions", "", m{"model": "tiny", "prompt": []string{"a", "b"}, "logprobs": 2}, 200)
	x.post("/v1/completions", "", m{"model": "tiny", "prompt": []int{1}}, 400)
	x.post("/v1/embeddings", "", m{"model": "encoder", "input": "a"}, 200)
	x.post("/v1/embeddings", "", m{"model": "encoder", "input": "a", "encoding_format": "base64"}, 200)
	x.post("/v1/responses", "", m{"model": "tiny", "input": "hi", "include": []string{"message.output_text.logprobs"}}, 200)
	x.post("/v1/responses", "", m{"model": "tiny", "input": "hi", "stream": true}, 200)
	x.post("/v1/messages", "", m{"model": "tiny", "max_tokens": 2, "messages": hello}, 200)
	x.post("/v1/messages", "", m{"model": "tiny", "max_tokens": 2, "messages": hello, "stream": true}, 200)
	x.post("/v1/messages", "", m{"model": "tiny", "messages": hello}, 400)
	x.post("/v1/messages", "", m{"model": "none", "max_tokens": 2, "messages": hello}, 404)
	x.post("/v1/messages/count_tokens", "", m{"model": "tiny", "messages": hello}, 200)
	x.get("/api/ps", "", 200)

	f.fake.script = []string{`<tool_call>`, `{"name": "f", "arguments": {"a": "x"}}`, `</tool_call>`}
	x.post("/api/chat", "", chat(m{"model": "caller", "tools": []m{tool}}), 200)
	x.post("/v1/chat/completions", "", chat(m{"model": "caller", "tools": []m{tool}}), 200)
	x.post("/v1/responses", "", m{"model": "caller", "input": "hi", "tools": []m{{"type": "function", "name": "f", "parameters": m{"type": "object"}}}}, 200)
	x.post("/v1/messages", "", m{"model": "caller", "max_tokens": 200, "messages": hello, "tools": []m{{"name": "f", "input_schema": m{"type": "object"}}}}, 200)
	f.fake.script = []string{"<think>", "well", "</think>", "yes"}
	x.post("/api/chat", "", chat(m{"model": "thinker", "think": true}), 200)
	x.post("/v1/responses", "", m{"model": "thinker", "input": "hi", "reasoning": m{"effort": "low"}}, 200)
	x.post("/v1/messages", "", m{"model": "thinker", "max_tokens": 200, "messages": hello, "thinking": m{"type": "enabled"}}, 200)

	x.post("/api/copy", adminKey, m{"source": "tiny", "destination": "small"}, 200)
	x.post("/api/create", adminKey, m{"model": "other", "from": "tiny", "stream": false}, 200)
	x.post("/api/create", adminKey, m{"model": "other2", "from": "tiny"}, 200)
	x.do(call{method: "DELETE", path: "/api/delete", bearer: adminKey, body: m{"model": "small"}}, 200)
	x.do(call{method: "DELETE", path: "/api/delete", bearer: adminKey, body: m{"model": "small"}}, 404)
	x.post("/api/blobs/sha256:"+strings.Repeat("0", 64), adminKey, "x", 400)
	x.post("/api/blobs/sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", adminKey, "x", 201)
	x.post("/api/blobs/sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", adminKey, "x", 200)
	x.do(call{method: "HEAD", path: "/api/blobs/sha256:" + strings.Repeat("0", 64), bearer: adminKey}, 404)
	x.post("/api/pull", adminKey, m{"model": "tiny"}, 501)
	x.post("/api/create", readOnlyKey, m{"model": "x", "from": "tiny"}, 403)
	x.post("/v1/images/generations", adminKey, m{}, 501)
	x.get("/v1/nodes", adminKey, 501)
	x.get("/v1/nodes", "", 401)
	x.do(call{method: "GET", path: "/healthz", host: "evil.example"}, 403)
	x.mustHaveSeen("/api/", "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models", "/v1/responses", "/v1/rerank", "/v1/messages")
}

// mustHaveSeen fails where a route of a family was never answered with success.
func (x *fits) mustHaveSeen(families ...string) {
	x.f.t.Helper()
	for path, ops := range x.doc.Paths {
		for method, op := range ops {
			name := strings.ToUpper(method) + " " + path
			_, absent := op.Responses["501"]
			if x.seen[name] > 0 || len(op.Tags) > 0 && op.Tags[0] == "absent" || absent && (path == "/api/pull" || path == "/api/push") || name == "HEAD /api/blobs/{digest}" {
				continue
			}
			for _, family := range families {
				if strings.HasPrefix(path, family) && method != "head" {
					x.f.t.Errorf("%s was never answered with success", name)
				}
			}
		}
	}
}

func TestAnswersOfAccessFitTheDocument(t *testing.T) {
	f := withShop(t)
	x := newFits(f)
	f.user(t, "ada", access.Admin)
	token := f.login(t, "ada")
	for _, bearer := range []string{adminKey, token, readOnlyKey} {
		x.get("/v1/auth/me", bearer, 200)
	}
	x.post("/v1/auth/login", "", m{"user": "ada", "password": "wrong wrong wrong"}, 401)
	x.post("/v1/auth/login", "", m{"user": "ada", "word": "x"}, 400)
	x.post("/v1/auth/logout", adminKey, nil, 400)
	x.post("/v1/users", adminKey, m{"name": "bob", "role": "read_only"}, 200)
	x.post("/v1/users", adminKey, m{"name": "bob", "role": "read_only"}, 409)
	x.get("/v1/users", adminKey, 200)
	x.get("/v1/users?limit=1", adminKey, 200)
	x.get("/v1/users?limit=0", adminKey, 400)
	x.get("/v1/users?cursor=x", adminKey, 501)
	x.get("/v1/users", readOnlyKey, 403)
	x.get("/v1/users/bob", adminKey, 200)
	x.get("/v1/users/nobody", adminKey, 404)
	x.do(call{method: "PATCH", path: "/v1/users/bob", bearer: adminKey, body: m{"disabled": true}}, 200)
	x.do(call{method: "PATCH", path: "/v1/users/bob", bearer: adminKey, body: m{}}, 400)
	made := data[m](t, x.post("/v1/keys", adminKey, m{"name": "k", "role": "read_only", "databases": []string{"shop"}, "expires_in": "12h"}, 200))
	id := fmt.Sprint(made["id"])
	x.get("/v1/keys", adminKey, 200)
	x.get("/v1/keys/"+id, adminKey, 200)
	x.do(call{method: "PATCH", path: "/v1/keys/" + id, bearer: adminKey, body: m{"name": "k2", "databases": nil, "expires_in": 3600}}, 200)
	grant := data[m](t, x.post("/v1/grants", adminKey, m{"principal": id, "kind": "table", "database": "shop", "table": "item"}, 200))
	at := "/v1/grants/" + fmt.Sprint(grant["id"])
	x.get("/v1/grants", adminKey, 200)
	x.get("/v1/grants?principal="+id, adminKey, 200)
	x.get(at, adminKey, 200)
	x.do(call{method: "DELETE", path: at, bearer: adminKey}, 200)
	x.do(call{method: "DELETE", path: at, bearer: adminKey}, 404)
	x.do(call{method: "DELETE", path: "/v1/keys/" + id, bearer: adminKey}, 200)
	x.do(call{method: "DELETE", path: "/v1/users/bob", bearer: adminKey}, 200)
	x.get("/v1/audit?limit=1", adminKey, 200)
	x.get("/v1/audit?limit=x", adminKey, 400)
	x.get("/v1/audit/verify", adminKey, 200)
	x.post("/v1/auth/logout", token, nil, 200)
	x.get("/v1/openapi.json", "", 200)
}

func TestAnswersOfDataFitTheDocument(t *testing.T) {
	f := withAgent(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	x := newFits(f)
	for _, path := range []string{"/v1/databases", "/v1/devices", "/v1/schema/tables?database=shop", "/v1/lake/runs", "/v1/lake/connections", "/v1/lake/external-tables", "/v1/queries"} {
		x.get(path, adminKey, 200)
		x.get(path, "", 401)
	}
	x.get("/v1/schema/tables?database=none", adminKey, 404)
	x.get("/v1/schema/tables", adminKey, 400)
	x.do(call{method: "DELETE", path: "/v1/queries/none", bearer: adminKey}, 404)
	run := func(sql string, more m, want int) {
		t.Helper()
		more["database"], more["sql"] = "shop", sql
		x.post("/v1/query/execute", adminKey, more, want)
	}
	run("SELECT * FROM item", m{}, 200)
	run("SELECT * FROM item WHERE id = ?", m{"params": []any{1}, "max_rows": 1}, 200)
	run("SELECT * FROM nothing", m{}, 422)
	run("DELETE FROM item", m{}, 422)
	run("SELEC", m{}, 422)
	run("", m{}, 400)
	for _, form := range []string{csvForm, ndjsonForm, arrowForm} {
		x.do(call{method: "POST", path: "/v1/query/execute", bearer: adminKey, body: m{"database": "shop", "sql": "SELECT * FROM item"}, header: map[string]string{"Accept": form}}, 200)
	}
	copied := "COPY (SELECT id, name FROM item) TO LAKE 'exports/i' WITH (CONNECTION = 'local')"
	run("EXPLAIN "+copied, m{}, 200)
	run(copied, m{}, 200)
	x.post("/v1/lake/copy", adminKey, m{"database": "shop", "sql": copied}, 200)
	x.post("/v1/lake/copy", adminKey, m{"database": "shop", "sql": "SELECT 1"}, 400)
	x.post("/v1/lake/copy", readOnlyKey, m{"database": "shop", "sql": copied}, 403)
	x.post("/v1/lake/copy", adminKey, m{"database": "shop", "sql": copied, "wait": false}, 501)
	run("CREATE EXTERNAL TABLE ext STORED AS PARQUET LOCATION 'exports/i' WITH (CONNECTION = 'local')", m{}, 200)
	run("SELECT count(*) FROM ext", m{}, 200)
	x.get("/v1/lake/external-tables", adminKey, 200)
	x.get("/v1/lake/runs?limit=1", adminKey, 200)
	x.get("/v1/schema/tables?database=shop", adminKey, 200)
	run("DROP EXTERNAL TABLE ext", m{}, 200)
	ask := m{"database": "shop", "question": "How many items are there?"}
	x.post("/v1/database/ask", adminKey, ask, 200)
	x.post("/v1/database/ask", adminKey, m{"database": "none", "question": "How many?"}, 404)
	ask["stream"] = true
	x.post("/v1/database/ask", adminKey, ask, 200)
	x.mustHaveSeen("/v1/databases", "/v1/devices", "/v1/schema", "/v1/query/", "/v1/database/", "/v1/lake/runs", "/v1/lake/connections", "/v1/lake/external-tables")
}

// TestDocumentCanBeWrong: the check sees an answer that is not as told.
func TestDocumentCanBeWrong(t *testing.T) {
	x := newFits(newFixture(t, nil))
	answer := func(status int, media, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		return w
	}
	c := call{method: "GET", path: "/healthz"}
	if err := x.check(c, answer(200, "application/json", `{"status":"ok"}`)); err != nil {
		t.Errorf("a right answer: %v", err)
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"a field more":      answer(200, "application/json", `{"status":"ok","more":1}`),
		"a field less":      answer(200, "application/json", `{}`),
		"another type":      answer(200, "application/json", `{"status":1}`),
		"another media":     answer(200, "text/html", `{"status":"ok"}`),
		"a status untold":   answer(418, "application/json", `{"error":"x"}`),
		"an error untold":   answer(403, "application/json", `{"error":{"message":"x"}}`),
		"not JSON":          answer(200, "application/json", `{`),
		"another's success": answer(201, "application/json", `{"status":"ok"}`),
	} {
		if x.check(c, w) == nil {
			t.Errorf("%s was not seen", what)
		}
	}
}
