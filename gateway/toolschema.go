package gateway

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// maxSchemaDepth bounds how deep a tool's parameters are followed, references included: below it anything goes.
const maxSchemaDepth = 16

// maxSchemaNodes bounds what the references of one tool's parameters unfold to: eight properties that refer to where they are make
// a quarter of a gigabyte in sixteen steps. What is beyond may be anything.
const maxSchemaNodes = 5000

// simplifier makes the schema of one tool.
type simplifier struct {
	defs  any
	nodes int // so far
}

// argumentSchema is the schema of a tool's arguments, made of what every grammar compiler has. What it leaves out, such as
// a pattern, leaves the model more freedom; a required call must not fail because of it (#18226). Its properties stay in
// the tool's order.
func argumentSchema(p api.ToolFunctionParameters) (any, error) {
	out := orderedObject{}
	props := orderedObject{}
	simple := &simplifier{defs: p.Defs}
	if p.Properties != nil {
		for name, prop := range p.Properties.All() {
			var v any
			text, err := json.Marshal(prop)
			if err == nil {
				err = json.Unmarshal(text, &v)
			}
			if err != nil {
				return nil, fault.Wrap(err, fault.Invalid, "gateway.tools", "the parameters of a tool cannot be read")
			}
			props = append(props, field{name, simple.schema(v, 0)})
		}
	}
	out = append(out, field{"type", "object"})
	if len(props) > 0 {
		out = append(out, field{"properties", props})
	}
	var required []string
	for _, name := range p.Required {
		if slices.ContainsFunc(props, func(m field) bool { return m.name == name }) && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out = append(out, field{"required", required})
	}
	return out, nil
}

// schemaTypes are JSON Schema's.
var schemaTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// schema keeps of a schema the type, properties, items, alternatives and constants. References are put in place.
func (s *simplifier) schema(v any, depth int) any {
	in, ok := v.(map[string]any)
	if s.nodes++; !ok || depth > maxSchemaDepth || s.nodes > maxSchemaNodes {
		return map[string]any{}
	}
	if ref, ok := in["$ref"].(string); ok {
		name, local := strings.CutPrefix(ref, "#/$defs/")
		all, _ := s.defs.(map[string]any)
		if !local || all[name] == nil {
			return map[string]any{}
		}
		return s.schema(all[name], depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := in[key].([]any); ok && len(list) > 0 {
			out := make([]any, len(list))
			for i, e := range list {
				out[i] = s.schema(e, depth+1)
			}
			return map[string]any{"anyOf": out}
		}
	}
	if list, ok := in["enum"].([]any); ok && len(list) > 0 {
		return map[string]any{"enum": list}
	}
	if value, ok := in["const"]; ok {
		return map[string]any{"const": value}
	}
	out := map[string]any{}
	switch kind := in["type"].(type) {
	case string:
		if slices.Contains(schemaTypes, kind) {
			out["type"] = kind
		}
	case []any:
		known := slices.DeleteFunc(slices.Clone(kind), func(k any) bool {
			name, _ := k.(string)
			return !slices.Contains(schemaTypes, name)
		})
		if len(known) > 0 && len(known) == len(kind) {
			out["type"] = known
		}
	}
	if props, ok := in["properties"].(map[string]any); ok && len(props) > 0 && out["type"] == "object" {
		simple := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(props)) { // always the same ones, should they be too many
			simple[name] = s.schema(props[name], depth+1)
		}
		out["properties"] = simple
		if required, ok := in["required"].([]any); ok {
			known := slices.DeleteFunc(slices.Clone(required), func(r any) bool {
				name, _ := r.(string)
				return simple[name] == nil
			})
			if len(known) > 0 {
				out["required"] = known
			}
		}
	}
	if items, ok := in["items"]; ok && out["type"] == "array" {
		out["items"] = s.schema(items, depth+1)
	}
	return out
}

// orderedObject is a JSON object whose members keep their order.
type orderedObject []field

type field struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o orderedObject) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}
