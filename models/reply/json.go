package reply

import (
	"encoding/json"
	"strings"
)

// valueEnd is the length of the JSON object or list at the beginning of b, or -1 when it is not complete. It only counts
// brackets outside of strings.
func valueEnd(b string) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// gate tells from the first words of a text whether it can be a call.
type gate int

const (
	gateShut gate = iota
	gateUnclear
	gateOpen
)

// The words of a call. Models copy them from different papers.
var (
	nameKeys     = []string{"name", "tool_name", "function_name", "tool", "function"}
	argumentKeys = []string{"arguments", "parameters", "args"}
	otherKeys    = []string{"id", "type", "index", "tool_call_id", "call_id"}
	listKeys     = []string{"tool_calls", "tool_call"}
)

func known(key string) bool {
	for _, list := range [][]string{nameKeys, argumentKeys, otherKeys, listKeys} {
		for _, k := range list {
			if k == key {
				return true
			}
		}
	}
	return false
}

// gate looks at the first key of an object, or of the first object of a list, and at its value when it is a name. So an
// answer that is JSON is let through after its first word, not when it is complete.
func (s *scanner) gate(b string, lenient bool) gate {
	b = strings.TrimLeft(b, spaces)
	if b == "" {
		return gateUnclear
	}
	if b[0] == '[' {
		if b = strings.TrimLeft(b[1:], spaces); b == "" {
			return gateUnclear
		}
	}
	if b[0] != '{' {
		return gateShut
	}
	key, rest, g := quotedText(strings.TrimLeft(b[1:], spaces))
	if g != gateOpen {
		return g
	}
	if !known(key) && !(lenient && s.names[key]) {
		return gateShut
	}
	rest = strings.TrimLeft(rest, spaces)
	if rest == "" {
		return gateUnclear
	}
	if rest[0] != ':' {
		return gateShut
	}
	rest = strings.TrimLeft(rest[1:], spaces)
	isName := false
	for _, k := range nameKeys {
		isName = isName || k == key
	}
	if !isName || strings.HasPrefix(rest, "{") {
		return gateOpen
	}
	name, _, g := quotedText(rest)
	if g == gateOpen && !s.names[name] {
		return gateShut
	}
	return g
}

// quotedText reads a JSON string at the beginning of b.
func quotedText(b string) (value, rest string, g gate) {
	if b == "" {
		return "", "", gateUnclear
	}
	if b[0] != '"' {
		return "", "", gateShut
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			if json.Unmarshal([]byte(b[:i+1]), &value) != nil {
				return "", "", gateShut
			}
			return value, b[i+1:], gateOpen
		}
	}
	return "", "", gateUnclear
}

// escapeControls writes the control characters inside JSON strings the way JSON wants them: models put line breaks into
// long arguments as they are.
func escapeControls(b []byte) []byte {
	const hex = "0123456789abcdef"
	out, quoted, escaped := make([]byte, 0, len(b)+16), false, false
	for _, c := range b {
		switch {
		case quoted && c == '\n':
			out = append(out, `\n`...)
		case quoted && c == '\r':
			out = append(out, `\r`...)
		case quoted && c == '\t':
			out = append(out, `\t`...)
		case quoted && c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
	}
	return out
}
