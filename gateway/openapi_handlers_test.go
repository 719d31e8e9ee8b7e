package gateway

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// TestHandlersReadWhatTheDocumentSays compares the bodies that the document describes with the variables named req that the
// handlers read theirs into: their type where it has a name, its fields where it has none.
func TestHandlersReadWhatTheDocumentSays(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]ast.Expr{} // handler → type of its req
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Body != nil {
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && v.Names[0].Name == "req" {
						bodies[f.Name.Name] = v.Type
					}
					return true
				})
			}
		}
	}
	bodies["pull"], bodies["push"] = bodies["transfer"], bodies["transfer"]
	delete(bodies, "transfer")
	known, seen := operations(), map[string]bool{}
	for _, r := range newFixture(t, nil).handler.(*gin.Engine).Routes() {
		op, ok := known[r.Method+" "+r.Path]
		if !ok {
			continue // of an absent route
		}
		_, name, _ := strings.Cut(r.Handler, "(*server).")
		name = strings.TrimSuffix(name, "-fm")
		typ := bodies[name]
		switch {
		case typ == nil && op.in == nil:
			continue
		case typ == nil || op.in == nil:
			t.Errorf("%s %s: the handler %s reads %v, the document describes %T", r.Method, r.Path, name, typ, op.in)
			continue
		}
		seen[name] = true
		want := reflect.TypeOf(op.in)
		switch typ := typ.(type) {
		case *ast.Ident:
			if typ.Name != want.Name() {
				t.Errorf("%s %s: the handler reads a %s, the document describes a %s", r.Method, r.Path, typ.Name, want)
			}
		case *ast.SelectorExpr:
			if typ.Sel.Name != want.Name() {
				t.Errorf("%s %s: the handler reads a %s, the document describes a %s", r.Method, r.Path, typ.Sel.Name, want)
			}
		case *ast.StructType:
			if had, told := fieldsOf(typ), namesOf(want); !slices.Equal(had, told) {
				t.Errorf("%s %s: the handler reads %v, the document describes %v", r.Method, r.Path, had, told)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d handlers were compared", len(seen))
	}
	for name := range bodies {
		if !seen[name] {
			t.Errorf("the handler %s reads a body, but no route was found for it", name)
		}
	}
}

// fieldsOf are the JSON names of a struct in the source.
func fieldsOf(s *ast.StructType) []string {
	var names []string
	for _, f := range s.Fields.List {
		if f.Tag == nil { // embedded
			if id, ok := f.Type.(*ast.Ident); ok && id.Name == "nameField" {
				names = append(names, "model", "name")
			}
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// namesOf are the JSON names of a type's fields.
func namesOf(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestUnknownFieldsAreRefusedWhereTheDocumentSaysSo: a schema without other fields is that of a route that refuses them.
func TestUnknownFieldsAreRefusedWhereTheDocumentSaysSo(t *testing.T) {
	f := withShop(t)
	doc, _ := f.document()
	strict := 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[path] {
			if op.RequestBody == nil || op.OperationID == "reauth" || op.OperationID == "addBlob" {
				continue // reauth looks at the login first; the other's body is a file
			}
			at := concrete(path)
			switch path { // what is looked for before the body is read must be there
			case "/v1/users/{id}":
				at = "/v1/users/admin"
			case "/v1/keys/{id}":
				at = "/v1/keys/k-admin"
			}
			w := f.do(call{method: strings.ToUpper(method), path: at, bearer: adminKey, body: `{"no_such_field":1}`})
			refused := w.Code == 400 && strings.Contains(w.Body.String(), "no_such_field")
			var schema struct {
				Ref string `json:"$ref"`
			}
			if err := json.Unmarshal(op.RequestBody.Content["application/json"].Schema, &schema); err != nil {
				t.Fatal(err)
			}
			var body struct{ AdditionalProperties json.RawMessage }
			if err := json.Unmarshal(doc.Components.Schemas[strings.TrimPrefix(schema.Ref, "#/components/schemas/")], &body); err != nil {
				t.Fatal(err)
			}
			if closed := string(body.AdditionalProperties) == "false"; closed != refused {
				t.Errorf("%s %s: additionalProperties %s, answered %d %s", method, path, body.AdditionalProperties, w.Code, w.Body)
			} else if closed {
				strict++
			}
		}
	}
	if strict < 9 {
		t.Errorf("only %d routes refuse unknown fields", strict)
	}
}
