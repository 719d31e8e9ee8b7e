package models

import (
	"bytes"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// TestComparingLongTextsIsPaidFor: two equal texts of megabytes, two hundred times, are no work that a template may ask for.
func TestComparingLongTextsIsPaidFor(t *testing.T) {
	long := func() string { return strings.Repeat("x", 4<<20) } // apart in memory
	c := Conversation{Messages: []api.Message{msg("user", long()), msg("assistant", long()), msg("user", "end")}}
	for _, compare := range []string{"eq $a $b", "ne $a $b", "le $a $b", "eq 1 (len (slice $a 0 (len $b)))"} {
		template := "{{ with .Messages }}{{ $a := (index . 0).Content }}{{ $b := (index . 1).Content }}" +
			strings.Repeat("{{ if "+compare+" }}{{ end }}", 200) + "{{ end }}"
		_, err := (&Model{Name: "m", Template: template}).Prompt(c)
		if strings.HasPrefix(compare, "eq 1") { // no text is compared
			if err != nil {
				t.Errorf("%s: %v", compare, err)
			}
			continue
		}
		wantFault(t, err, fault.Invalid, "too many steps")
	}
}

// TestComparingMeansWhatItDoes in the language itself, errors included.
func TestComparingMeansWhatItDoes(t *testing.T) {
	data := map[string]any{"s": "abc", "same": strings.Clone("abc"), "n": 3, "u": uint8(3), "f": 2.5, "t": true, "nil": nil, "list": []int{1}, "map": map[string]int{},
		"point": struct{ A, B string }{"a", "b"}, "pair": [2]string{"a", "b"}, "role": api.Message{Role: "user"}.Role, "ptr": new(int)}
	names := []string{"nothing"}
	for name := range data {
		names = append(names, name)
	}
	run := func(funcs texttemplate.FuncMap, text string) (string, error) {
		var out bytes.Buffer
		tmpl, err := texttemplate.New("t").Funcs(funcs).Parse(text)
		if err == nil {
			err = tmpl.Execute(&out, data)
		}
		return out.String(), err
	}
	counting := texttemplate.FuncMap{}
	newBudget().compares(counting)
	texts := []string{"{{ eq .n 1 2 3 }}", "{{ eq .n 1 2 }}", "{{ eq .n }}", "{{ .n | eq 3 }}", `{{ eq .n 3 "x" }}`, `{{ eq .s "x" 3 }}`, `{{ lt 1 2 3 }}`, "{{ ne }}"}
	for _, a := range names {
		for _, b := range names {
			for _, op := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
				texts = append(texts, "{{ "+op+" ."+a+" ."+b+" }}")
			}
		}
	}
	for _, text := range texts {
		want, wantErr := run(nil, text)
		got, err := run(counting, text)
		if got != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%s: %q, %v; the language: %q, %v", text, got, err, want, wantErr)
		}
	}
}
