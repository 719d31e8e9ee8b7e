package reply

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
)

// callsIn reads a complete JSON value. It is calls when each object in it is a call of a given tool.
func (s *scanner) callsIn(value string, lenient bool) ([]toolCall, bool) {
	data := []byte(value)
	if !json.Valid(data) {
		if data = escapeControls(data); !json.Valid(data) {
			return nil, false
		}
	}
	return s.callsOf(data, lenient, 0)
}

// maxNesting is how deep a list or an envelope around calls may be.
const maxNesting = 3

func (s *scanner) callsOf(data []byte, lenient bool, depth int) ([]toolCall, bool) {
	data = bytes.TrimSpace(data)
	if depth > maxNesting || len(data) == 0 {
		return nil, false
	}
	if data[0] == '[' {
		var items []json.RawMessage
		if json.Unmarshal(data, &items) != nil || len(items) == 0 {
			return nil, false
		}
		var calls []toolCall
		for _, item := range items {
			more, ok := s.callsOf(item, lenient, depth+1)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return nil, false
	}
	return s.object(object, lenient, depth)
}

// object reads an object as a call, or as the envelope of calls.
func (s *scanner) object(object map[string]json.RawMessage, lenient bool, depth int) ([]toolCall, bool) {
	if len(object) == 1 {
		for key, v := range object {
			switch {
			case slices.Contains(listKeys, key):
				return s.callsOf(v, lenient, depth+1)
			case lenient && s.names[key]: // {"get_weather": {"city": "Paris"}}
				call, ok := newCall(key, v)
				return []toolCall{call}, ok
			}
		}
	}
	name, args := "", json.RawMessage(nil)
	hasArgs := false
	for _, key := range nameKeys {
		v, ok := object[key]
		if !ok {
			continue
		}
		if inner := bytes.TrimSpace(v); len(inner) > 0 && inner[0] == '{' { // {"type": "function", "function": {…}}
			if !s.onlyKeys(object, key) {
				return nil, false
			}
			return s.callsOf(inner, lenient, depth+1)
		}
		if json.Unmarshal(v, &name) != nil || !s.names[name] {
			return nil, false
		}
		delete(object, key)
		break
	}
	for _, key := range argumentKeys {
		if v, ok := object[key]; ok {
			args, hasArgs = v, true
			delete(object, key)
			break
		}
	}
	if name == "" || !s.onlyKeys(object, "") && !(lenient && hasArgs) {
		return nil, false
	}
	call, ok := newCall(name, args)
	return []toolCall{call}, ok
}

// onlyKeys tells whether an object has nothing beyond what may accompany a call, and key.
func (s *scanner) onlyKeys(object map[string]json.RawMessage, key string) bool {
	for k := range object {
		if k != key && !slices.Contains(otherKeys, k) {
			return false
		}
	}
	return true
}

// newCall makes a call. Arguments are an object, a text that holds one, or absent.
func newCall(name string, args []byte) (toolCall, bool) {
	args = bytes.TrimSpace(args)
	call := toolCall{Function: api.ToolCallFunction{Name: name, Arguments: api.NewToolCallFunctionArguments()}}
	var inner string
	if len(args) > 0 && args[0] == '"' && json.Unmarshal(args, &inner) == nil {
		args = bytes.TrimSpace([]byte(inner))
	}
	if len(args) == 0 || string(args) == "null" {
		return call, true
	}
	if !json.Valid(args) {
		args = escapeControls(args)
	}
	if args[0] != '{' || json.Unmarshal(args, &call.Function.Arguments) != nil {
		return toolCall{}, false
	}
	return exact(call, args)
}

// exact puts whole numbers that a float64 cannot hold, such as ids, into the arguments as they were written.
func exact(call toolCall, args []byte) (toolCall, bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var written map[string]any
	if dec.Decode(&written) != nil {
		return toolCall{}, false
	}
	for key, v := range written {
		if long, kept := keepLong(v); kept {
			call.Function.Arguments.Set(key, long)
		}
	}
	return call, true
}

// keepLong makes float64 of the numbers in v, but leaves those that it would change.
func keepLong(v any) (out any, kept bool) {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && (math.Abs(f) < 1<<53 || !whole(string(v))) {
			return f, false
		}
		return v, true
	case []any:
		for i := range v {
			var k bool
			v[i], k = keepLong(v[i])
			kept = kept || k
		}
	case map[string]any:
		for key := range v {
			var k bool
			v[key], k = keepLong(v[key])
			kept = kept || k
		}
	}
	return v, kept
}

func whole(number string) bool { return strings.Trim(number, "-0123456789") == "" }
