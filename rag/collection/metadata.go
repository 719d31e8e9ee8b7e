package collection

import (
	"encoding/json"
	"math"
	"unicode/utf8"

	"sluice/fault"
)

// Metadata are facts of a document that a search can ask to be equal: texts, numbers and truth values by name.
type Metadata map[string]any

const (
	maxFacts     = 32
	maxFactName  = 64   // bytes
	maxFactValue = 1024 // bytes of a text
)

// check refuses what cannot be compared for equality in both stores.
func (m Metadata) check(what string) error {
	const op = "collection.Metadata"
	if len(m) > maxFacts {
		return fault.New(fault.TooLarge, op, "%s has %d entries; at most %d", what, len(m), maxFacts)
	}
	for name, v := range m {
		if name == "" || len(name) > maxFactName || !clean(name) {
			return fault.New(fault.Invalid, op, "a name in %s is empty, longer than %d bytes or not plain UTF-8", what, maxFactName)
		}
		switch v := v.(type) {
		case bool:
		case string:
			if len(v) > maxFactValue || !clean(v) {
				return fault.New(fault.Invalid, op, "%s.%s is longer than %d bytes or not plain UTF-8", what, cut(name, maxFactName), maxFactValue)
			}
		case float64:
			if math.IsNaN(v) || math.Abs(v) > 1<<53 {
				return fault.New(fault.Invalid, op, "%s.%s is a number beyond 2^53: write it as a text", what, cut(name, maxFactName))
			}
		case int:
			m[name] = float64(v)
		default:
			return fault.New(fault.Invalid, op, "%s.%s is neither a text, a number, true nor false", what, cut(name, maxFactName))
		}
	}
	return nil
}

// text is the JSON of m, the same for equal ones.
func (m Metadata) text() string {
	if len(m) == 0 {
		return "{}"
	}
	out, err := json.Marshal(map[string]any(m))
	if err != nil {
		return "{}" // check refuses whatever has no JSON
	}
	return string(out)
}

func parseMetadata(text string) Metadata {
	var m Metadata
	if json.Unmarshal([]byte(text), &m) != nil || len(m) == 0 {
		return nil
	}
	return m
}

// clean says whether a text can be stored and shown: UTF-8, without the NUL that PostgreSQL has no room for.
func clean(text string) bool {
	for i := range len(text) {
		if text[i] == 0 {
			return false
		}
	}
	return utf8.ValidString(text)
}

// cut shortens a text to at most n bytes, between runes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
