package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/jsonschema-go/jsonschema"
)

// described is the document as a client reads it.
type described struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Tags        []string
		Summary     string
		Security    []map[string][]string
		Parameters  []struct{ Name, In string }
		RequestBody *struct {
			Content map[string]struct{ Schema json.RawMessage }
		} `json:"requestBody"`
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

func (f *fixture) document() (described, []byte) {
	f.t.Helper()
	w := f.do(call{method: "GET", path: "/v1/openapi.json"})
	wantStatus(f.t, w, 200)
	var d described
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		f.t.Fatal(err)
	}
	return d, w.Body.Bytes()
}

// TestDocumentAndRoutesAreEqual: a route that only one of them has is a mistake.
func TestDocumentAndRoutesAreEqual(t *testing.T) {
	f := newFixture(t, nil)
	doc, _ := f.document()
	served := map[string]bool{}
	for _, r := range f.handler.(*gin.Engine).Routes() {
		served[r.Method+" "+openapiPath(r.Path)] = true
	}
	if len(served) < 80 {
		t.Fatalf("only %d routes were found", len(served))
	}
	told, ids := map[string]bool{}, map[string]string{}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			name := strings.ToUpper(method) + " " + path
			told[name] = true
			if !served[name] {
				t.Errorf("%s is described and not served", name)
			}
			if op.Summary == "" || op.Summary == "Not described" {
				t.Errorf("%s is served and not described: add it to operations()", name)
			}
			if ids[op.OperationID] != "" || op.OperationID == "" {
				t.Errorf("%s and %s have the id %q", name, ids[op.OperationID], op.OperationID)
			}
			ids[op.OperationID] = name
		}
	}
	for name := range served {
		if !told[name] {
			t.Errorf("%s is served and not in the document", name)
		}
	}
	absent := map[string]bool{}
	s := &server{}
	for _, r := range s.absentRoutes() {
		absent[r.method+" "+openapiPath(r.path)] = true
	}
	for name := range operations() {
		method, path := cutMethod(name)
		if name = method + " " + openapiPath(path); !served[name] || absent[name] {
			t.Errorf("%s is in operations() and not served", name)
		}
	}
}

// TestDocumentIsOpenAPI holds it to the OpenAPI Initiative's own schema, and its schemas to JSON Schema.
func TestDocumentIsOpenAPI(t *testing.T) {
	doc, body := newFixture(t, nil).document()
	official, err := os.ReadFile("testdata/openapi/schema-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(official, &schema); err != nil {
		t.Fatal(err)
	}
	rules, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var instance map[string]any
	if err := json.Unmarshal(body, &instance); err != nil {
		t.Fatal(err)
	}
	if err := rules.Validate(instance); err != nil {
		t.Errorf("not an OpenAPI 3.1 document: %v", err)
	}
	instance["info"] = "a text"
	if rules.Validate(instance) == nil {
		t.Error("the schema takes anything")
	}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			if op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					doc.rules(t, path+" "+method, media.Schema)
				}
			}
			for status, res := range op.Responses {
				for _, media := range res.Content {
					doc.rules(t, path+" "+method+" "+status, media.Schema)
				}
			}
		}
	}
}

var refs = regexp.MustCompile(`"#/components/schemas/(\w+)"`)

// rules makes a validator of a schema of the document, with those that it refers to; nil for none.
func (d described) rules(t testing.TB, where string, schema json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	if len(schema) == 0 {
		return nil
	}
	defs := map[string]json.RawMessage{}
	var gather func(json.RawMessage)
	gather = func(text json.RawMessage) {
		for _, m := range refs.FindAllSubmatch(text, -1) {
			name := string(m[1])
			if _, had := defs[name]; !had {
				if d.Components.Schemas[name] == nil {
					t.Fatalf("%s: there is no schema %s", where, name)
				}
				defs[name] = d.Components.Schemas[name]
				gather(defs[name])
			}
		}
	}
	gather(schema)
	text, err := json.Marshal(map[string]any{"allOf": []json.RawMessage{schema}, "$defs": defs})
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte("#/components/schemas/"), []byte("#/$defs/")), &s); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return r
}

// TestDocumentBeforeAuthentication: it tells nothing of this server but its version, also where nothing is open.
func TestDocumentBeforeAuthentication(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.OpenOllama = false })
	w := f.do(call{method: "GET", path: "/v1/openapi.json"})
	wantStatus(t, w, 200)
	tag := w.Header().Get("ETag")
	if tag == "" || w.Header().Get("Content-Type") != "application/json; charset=utf-8" || !strings.Contains(w.Body.String(), `"version":"1.2.3"`) {
		t.Errorf("headers %v", w.Header())
	}
	if again := f.do(call{method: "GET", path: "/v1/openapi.json", header: map[string]string{"If-None-Match": tag}}); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("the same again: %d, %d bytes", again.Code, again.Body.Len())
	}
	for _, name := range []string{"tiny", "encoder", "k-admin"} {
		if strings.Contains(w.Body.String(), `"`+name+`"`) {
			t.Errorf("the document names %s", name)
		}
	}
}

// TestSecurityFollowsClass: what the document says a route asks for is what it asks for.
func TestSecurityFollowsClass(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.OpenOllama = false })
	doc, _ := f.document()
	for path, ops := range doc.Paths {
		for method, op := range ops {
			w := f.do(call{method: strings.ToUpper(method), path: concrete(path), body: "{}"})
			if len(op.Security) == 0 != (w.Code != 401) && op.OperationID != "login" { // login has a 401 of its own, and {} gets 400
				t.Errorf("%s %s: status %d without a credential, security %v", method, path, w.Code, op.Security)
			}
		}
	}
}

// concrete puts something in the places of a path.
func concrete(path string) string {
	for _, p := range []string{"{id}", "{digest}", "{model}", "{name}", "{key}", "{path}"} {
		path = strings.ReplaceAll(path, p, "x")
	}
	return path
}
