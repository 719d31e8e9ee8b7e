package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/ollama/ollama/api"

	"sluice/agent"
)

// schemaBook makes schemas of the Go types that are read and written, each once, under its name.
type schemaBook struct {
	schemas map[string]*jsonschema.Schema
	types   map[string]reflect.Type
	err     error
}

// dialectErrors are the bodies of errors, one for each dialect.
var dialectErrors = map[dialect]any{ollamaDialect: ollamaErrorBody{}, openaiDialect: openaiErrorBody{}, anthropicDialect: anthropicErrorBody{}, sluiceDialect: errorEnvelope{}}

var errorNames = map[dialect]string{ollamaDialect: "OllamaError", openaiDialect: "OpenAIError", anthropicDialect: "AnthropicError", sluiceDialect: "Error"}

func refTo(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}
}

// objectOf is an object with these fields and no others.
func objectOf(fields map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: fields, Required: required, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

func text() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

func oneOfTexts(texts ...string) *jsonschema.Schema {
	s := text()
	for _, t := range texts {
		s.Enum = append(s.Enum, t)
	}
	return s
}

func between(kind string, least, most float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: kind, Minimum: &least, Maximum: &most}
}

// pathPart is the schema of a part of a path: not empty, as with an empty one it is another path.
func pathPart() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", MinLength: new(1)}
}

// ownForms are types that write or read themselves in a form that reflection does not see. The first are the same both ways.
var ownForms = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage]():               {},
	reflect.TypeFor[time.Time]():                     {Type: "string", Format: "date-time"},
	reflect.TypeFor[api.ImageData]():                 {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[api.ToolCallFunctionArguments](): {Type: "object"},
	reflect.TypeFor[agent.Outcome]():                 oneOfTexts(string(agent.Answered), string(agent.Declined), string(agent.Failed), string(agent.CopyRequested)),
}

// readForms are those of types that only requests have.
var readForms = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[api.ThinkValue](): {Types: []string{"boolean", "string"}},
	reflect.TypeFor[keepAlive]():      {Types: []string{"string", "number"}, Description: "how long the model stays loaded: seconds, or a text such as 5m; 0 lets it go, below 0 is for ever"},
	reflect.TypeFor[Life]():           {Types: []string{"string", "number"}, Description: "seconds, or a text such as 12h or 90d"},
	reflect.TypeFor[stopTexts]():      {Types: []string{"null", "string", "array"}, Items: text()},
	reflect.TypeFor[promptTexts]():    {Types: []string{"string", "array"}, Items: text()},
	reflect.TypeFor[rerankDocument](): {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object", Properties: map[string]*jsonschema.Schema{"text": text()}, Required: []string{"text"}}}},
	reflect.TypeFor[api.Tool](): {Type: "object", Properties: map[string]*jsonschema.Schema{"type": text(), "function": {Type: "object", Required: []string{"name"},
		Properties: map[string]*jsonschema.Schema{"name": text(), "description": text(), "parameters": {Type: "object", Description: "JSON Schema of an object"}}}}},
}

// infer makes the schema of a type.
func (b *schemaBook) infer(t reflect.Type, forms ...map[reflect.Type]*jsonschema.Schema) *jsonschema.Schema {
	all := map[reflect.Type]*jsonschema.Schema{}
	for _, m := range append(forms, ownForms) {
		for k, v := range m {
			all[k] = v
		}
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: all})
	if err != nil {
		b.err = errors.Join(b.err, err)
		return &jsonschema.Schema{}
	}
	// What is embedded by a pointer may be absent as a whole.
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && throughPointer(t, f.Index) {
				s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
			}
		}
	}
	return s
}

// throughPointer tells whether a promoted field is one of a struct that is embedded by a pointer.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// request is the schema of a body that is read.
func (b *schemaBook) request(op operation) *jsonschema.Schema {
	if s, ok := op.in.(*jsonschema.Schema); ok {
		return s.CloneSchemas()
	}
	t := reflect.TypeOf(op.in)
	s := b.infer(t, readForms)
	walkSchema(s, func(s *jsonschema.Schema) {
		s.Required = nil // Go takes what is absent for its zero value; what must be there is said by the route
		if !op.strict && s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil {
			s.AdditionalProperties = nil
		}
	})
	s.Required = op.need
	name := strings.ToUpper(op.id[:1]) + op.id[1:] + "Request" // not the type's: two routes may read one type and need different fields
	b.schemas[name] = s
	return refTo(name)
}

// response is the schema of a value that is written: every field is there unless it is left out when it is empty.
func (b *schemaBook) response(v any, id string) *jsonschema.Schema {
	if s, ok := v.(*jsonschema.Schema); ok {
		return s.CloneSchemas()
	}
	t := reflect.TypeOf(v)
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return &jsonschema.Schema{Type: "array", Items: b.named(t.Elem(), id, b.infer(t.Elem()))}
	case t.Kind() == reflect.Struct:
		return b.named(t, id+"Response", b.infer(t))
	}
	return b.infer(t)
}

// inferred is the schema of a value that is written, without a name.
func (b *schemaBook) inferred(v any) *jsonschema.Schema { return b.infer(reflect.TypeOf(v)) }

func (b *schemaBook) add(name string, v any) { b.schemas[name] = b.infer(reflect.TypeOf(v)) }

// named puts a schema under its type's name, or another for a type that has none. Two types must not share a name.
func (b *schemaBook) named(t reflect.Type, other string, s *jsonschema.Schema) *jsonschema.Schema {
	name := t.Name()
	if name == "" {
		name = other
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if b.types == nil {
		b.types = map[string]reflect.Type{}
	}
	if had, ok := b.types[name]; ok && had != t {
		b.err = errors.Join(b.err, fmt.Errorf("two types are called %s: %s and %s", name, had, t))
	}
	if had, ok := b.schemas[name]; ok && !reflect.DeepEqual(had, s) {
		b.err = errors.Join(b.err, fmt.Errorf("two schemas are called %s", name))
	}
	b.types[name], b.schemas[name] = t, s
	return refTo(name)
}

// walkSchema calls f for a schema and all that are in it.
func walkSchema(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	f(s)
	for _, p := range s.Properties {
		walkSchema(p, f)
	}
	for _, p := range slices.Concat(s.AnyOf, s.OneOf, s.AllOf) {
		walkSchema(p, f)
	}
	walkSchema(s.Items, f)
	walkSchema(s.AdditionalProperties, f)
}
