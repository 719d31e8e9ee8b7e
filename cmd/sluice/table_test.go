package main

import (
	"encoding/json"
	"testing"
)

// What a model or a cell says must not steer the terminal, nor break a table.
func TestWhatATerminalGets(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nin lines": "plain\ttext\nin lines",
		"\x1b]0;owned\x07x":     " ]0;owned x",
		"\u009b31mred":          " 31mred",
		"Grüße 👋 日本語":           "Grüße 👋 日本語",
		"\x7f\r":                "  ",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`"a\tb\nc"`: "a b c", `"\u001b[2J"`: " [2J", `null`: "NULL", ``: "NULL", `12.5`: "12.5", `"NULL"`: "NULL", `{"a":1}`: `{"a":1}`,
	} {
		if got := cell(json.RawMessage(in)); got != want {
			t.Errorf("%s gives %q, want %q", in, got, want)
		}
	}
}

// The client finds the server where the server's own settings put it.
func TestWhereTheServerIs(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"by default":                       {nil, "http://127.0.0.1:11434"},
		"a host alone has Ollama's port":   {map[string]string{"OLLAMA_HOST": "10.0.0.1"}, "http://10.0.0.1:11434"},
		"ours comes before Ollama's":       {map[string]string{"OLLAMA_HOST": "a:1", "SLUICE_HOST": "b:2"}, "http://b:2"},
		"a URL comes before both":          {map[string]string{"SLUICE_HOST": "b:2", "SLUICE_URL": "https://c/"}, "https://c"},
		"a bare IPv6 address is bracketed": {map[string]string{"OLLAMA_HOST": "::1"}, "http://[::1]:11434"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"SLUICE_URL", "SLUICE_HOST", "OLLAMA_HOST"} {
				t.Setenv(v, c.env[v])
			}
			if got := newClient().url; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
