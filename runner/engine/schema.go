package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/llama"

	"sluice/fault"
)

// Bounds of a schema. Converting one takes time with the square of its properties (0.9 s at 800), and its recursion is on
// the C stack, where too deep is a crash.
const (
	maxSchemaBytes    = 64 << 10
	maxSchemaDepth    = 64
	maxProperties     = 500  // of one object
	maxPropertyName   = 256  // bytes
	maxRepetition     = 2000 // llama.cpp's own bound for one repetition
	maxNestedPatterns = 10_000
	// maxExact bounds numbers: beyond it a float64 is no longer every integer.
	maxExact = 1 << 53
)

// anyJSON is the schema of every JSON object. Ollama's "json" means the same.
const anyJSON = "null"

// compile turns a schema into a grammar that llama.cpp is known to accept. "" stays "".
//
// The converter and the parser of grammars behind it abort, hang or crash on much that a stranger can write, and cut a long
// grammar without a sign. So all that is known to do so is refused here by name, and what is left is tried on the parser
// before a sampler sees it: one that gets a grammar it cannot parse gives no error, and crashes at the first token.
func compile(schema string) (string, error) {
	switch strings.TrimSpace(schema) {
	case "":
		return "", nil
	case `"json"`, "json":
		schema = anyJSON
	}
	if err := checkSchema(schema); err != nil {
		return "", err
	}
	grammar := llama.SchemaToGrammar([]byte(schema))
	if grammar == nil {
		return "", badSchema("", "it uses something that the grammar converter does not know")
	}
	if len(grammar) >= grammarLimit(len(schema))-1 {
		return "", badSchema("", "its grammar is too long; it has too many properties, alternatives or levels")
	}
	parsed := llama.NewGrammar(string(grammar), []uint32{0}, []string{"a"}, []int32{1})
	if parsed == nil {
		return "", badSchema("", "its grammar is not valid; a pattern or a property's name may have characters that cannot be used in one")
	}
	parsed.Free()
	return string(grammar), nil
}

// grammarLimit is the converter's buffer for a schema of so many bytes (llama.SchemaToGrammar). A result that fills it was cut.
func grammarLimit(schema int) int { return max(32<<10, min(1<<20, 4*schema)) }

// badSchema is the refusal. path is a JSON pointer, "" for the whole.
func badSchema(path, format string, args ...any) error {
	at := ""
	if path != "" {
		at = " at " + path
	}
	return fault.New(fault.Invalid, "engine.Generate", "the format's JSON schema cannot be used%s: %s", at, fmt.Sprintf(format, args...))
}

// checkSchema refuses what the converter must not get.
func checkSchema(schema string) error {
	if len(schema) > maxSchemaBytes {
		return badSchema("", "it has %d bytes; at most %d", len(schema), maxSchemaBytes)
	}
	if depth := jsonDepth(schema); depth > maxSchemaDepth {
		return badSchema("", "it is nested %d deep; at most %d", depth, maxSchemaDepth)
	}
	dec := json.NewDecoder(strings.NewReader(schema))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return badSchema("", "it is no JSON: %v", err)
	}
	if dec.More() {
		return badSchema("", "there is something behind it")
	}
	if _, ok := root.(map[string]any); !ok && root != nil {
		return badSchema("", "it must be an object")
	}
	c := &schemaCheck{root: root}
	return c.node("", root)
}

// jsonDepth is how deep arrays and objects are nested, found without recursion.
func jsonDepth(s string) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

type schemaCheck struct{ root any }

var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// node checks one schema and those inside it.
func (c *schemaCheck) node(path string, v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return nil // a boolean or a mistake; the converter knows it or refuses it
	}
	for _, check := range []func(string, map[string]any) error{c.ref, c.types, c.enum, c.object, c.bounds, c.pattern} {
		if err := check(path, m); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := path + "/" + key
		switch key {
		case "properties", "$defs", "definitions":
			members, _ := m[key].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if err := c.node(at+"/"+name, members[name]); err != nil {
					return err
				}
			}
		case "items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties":
			if err := c.each(at, m[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// each checks a schema, or a list of them.
func (c *schemaCheck) each(path string, v any) error {
	list, ok := v.([]any)
	if !ok {
		return c.node(path, v)
	}
	for i, v := range list {
		if err := c.node(path+"/"+strconv.Itoa(i), v); err != nil {
			return err
		}
	}
	return nil
}

// ref follows references until something that is none. Only a chain that comes back without consuming anything is an error: a
// tree that refers to itself through a property is fine. The converter recurses for ever on the former.
func (c *schemaCheck) ref(path string, m map[string]any) error {
	v, ok := m["$ref"]
	if !ok {
		return nil
	}
	return c.follow(path, v, nil)
}

func (c *schemaCheck) follow(path string, v any, seen []string) error {
	ref, ok := v.(string)
	if !ok {
		return badSchema(path, "$ref must be a string")
	}
	if slices.Contains(seen, ref) {
		return badSchema(path, "cyclic $ref %q", ref)
	}
	if !strings.HasPrefix(ref, "#/") {
		return badSchema(path, "$ref %q is remote or not supported; it must begin with #/", ref)
	}
	target, ok := c.resolve(ref)
	if !ok {
		return badSchema(path, "$ref %q points to nothing", ref)
	}
	m, ok := target.(map[string]any)
	if !ok {
		return badSchema(path, "$ref %q points to no schema", ref)
	}
	seen = append(seen, ref)
	if next, ok := m["$ref"]; ok {
		return c.follow(path, next, seen)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[key].([]any)
		for _, alt := range list {
			if next, ok := alt.(map[string]any); ok && next["$ref"] != nil {
				// A copy: alternatives do not see each other's way.
				if err := c.follow(path, next["$ref"], slices.Clone(seen)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// resolve finds what a reference points to, as the converter does: without the escapes ~0, ~1 and %.
func (c *schemaCheck) resolve(ref string) (any, bool) {
	at := c.root
	for _, name := range strings.Split(ref, "/")[1:] {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func (c *schemaCheck) types(path string, m map[string]any) error {
	v, ok := m["type"]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, t := range list {
		name, ok := t.(string)
		if !ok || !slices.Contains(schemaTypes, name) {
			return badSchema(path, "unknown type %v; there are %s", t, strings.Join(schemaTypes, ", "))
		}
	}
	return nil
}

func (c *schemaCheck) enum(path string, m map[string]any) error {
	for _, key := range []string{"enum", "anyOf", "oneOf", "allOf"} {
		v, ok := m[key]
		if !ok {
			continue
		}
		if list, ok := v.([]any); !ok || len(list) == 0 {
			return badSchema(path, "%s must be a list that is not empty", key)
		}
	}
	return nil
}

func (c *schemaCheck) object(path string, m map[string]any) error {
	v, ok := m["properties"]
	if !ok {
		return nil
	}
	members, ok := v.(map[string]any)
	if !ok {
		return badSchema(path, "properties must be an object")
	}
	if len(members) > maxProperties {
		return badSchema(path, "it has %d properties; at most %d", len(members), maxProperties)
	}
	_, open := m["additionalProperties"].(map[string]any)
	open = open || m["additionalProperties"] == true
	for name := range members {
		if len(name) > maxPropertyName {
			return badSchema(path, "a property's name has %d bytes; at most %d", len(name), maxPropertyName)
		}
		// The converter writes such names byte by byte into character classes, to keep them from the open properties.
		if open && strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`]^\-"`, r) }) {
			return badSchema(path, "property %q beside open additionalProperties: its name may have only plain letters, digits and signs", name)
		}
	}
	return nil
}

// bounds checks pairs of limits. A lower one above its upper one leaves no token, which aborts.
func (c *schemaCheck) bounds(path string, m map[string]any) error {
	for _, pair := range [][2]string{{"minLength", "maxLength"}, {"minItems", "maxItems"}} {
		low, high := 0.0, math.Inf(1)
		for i, key := range pair {
			n, said, err := number(path, m, key)
			if err != nil {
				return err
			}
			if !said {
				continue
			}
			if n < 0 || n != math.Trunc(n) || n > maxRepetition {
				return badSchema(path, "%s is %v; it must be a whole number from 0 to %d", key, n, maxRepetition)
			}
			if i == 0 {
				low = n
			} else {
				high = n
			}
		}
		if low > high {
			return badSchema(path, "%s is over %s", pair[0], pair[1])
		}
	}
	low, high := math.Inf(-1), math.Inf(1)
	for _, key := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		n, said, err := number(path, m, key)
		if err != nil {
			return err
		}
		if !said {
			continue
		}
		if math.Abs(n) > maxExact {
			return badSchema(path, "%s is beyond ±2^53", key)
		}
		switch n = math.Trunc(n); key { // as the converter does
		case "minimum":
			low = max(low, n)
		case "exclusiveMinimum":
			low = max(low, n+1)
		case "maximum":
			high = min(high, n)
		case "exclusiveMaximum":
			high = min(high, n-1)
		}
	}
	if low > high {
		return badSchema(path, "no number is within its bounds")
	}
	return nil
}

func number(path string, m map[string]any, key string) (n float64, said bool, err error) {
	v, said := m[key]
	if !said {
		return 0, false, nil
	}
	text, ok := v.(json.Number)
	if ok {
		n, err = text.Float64()
	}
	if !ok || err != nil {
		return 0, true, badSchema(path, "%s must be a number", key)
	}
	return n, true, nil
}

func (c *schemaCheck) pattern(path string, m map[string]any) error {
	v, ok := m["pattern"]
	if !ok {
		return nil
	}
	text, ok := v.(string)
	if !ok {
		return badSchema(path, "pattern must be a string")
	}
	if err := checkPattern(text); err != nil {
		var quoted bytes.Buffer
		json.HTMLEscape(&quoted, []byte(strconv.Quote(text)))
		return badSchema(path, "pattern %s: %v", quoted.String(), err)
	}
	return nil
}
