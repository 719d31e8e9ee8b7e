package reply

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// The module's parsers log each text that they cannot read.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// modelOf makes an installed model of a family, with a template and the names of its built-in formats.
func modelOf(t testing.TB, family, template, parser string) *models.Model {
	t.Helper()
	s, err := models.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gguf := bytes.NewBufferString("GGUF")
	str := func(s string) {
		_ = binary.Write(gguf, binary.LittleEndian, uint64(len(s)))
		gguf.WriteString(s)
	}
	_ = binary.Write(gguf, binary.LittleEndian, uint32(3))
	_ = binary.Write(gguf, binary.LittleEndian, [2]uint64{0, 1})
	str("general.architecture")
	_ = binary.Write(gguf, binary.LittleEndian, uint32(8))
	str(family)
	sum := sha256.Sum256(gguf.Bytes())
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if err := s.AddBlob(t.Context(), digest, gguf); err != nil {
		t.Fatal(err)
	}
	req := models.CreateRequest{Name: "m", Files: map[string]string{"m.gguf": digest}, Template: template, Parser: parser}
	if err := s.Create(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("m")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	plainTemplate = "{{ range .Messages }}{{ .Role }}: {{ .Content }}\n{{ end }}assistant: "
	thinkTemplate = "{{ range .Messages }}{{ .Role }}: {{ if .Thinking }}<think>\n{{ .Thinking }}\n</think>\n{{ end }}{{ .Content }}\n{{ end }}assistant: "
)

// weather are the tools of the tests.
func weather(t testing.TB) []api.Tool {
	t.Helper()
	var tools []api.Tool
	err := json.Unmarshal([]byte(`[
		{"type":"function","function":{"name":"get_weather","description":"The weather","parameters":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer"},"night":{"type":"boolean"}}}}},
		{"type":"function","function":{"name":"get_weather_now","description":"Now","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},
		{"type":"function","function":{"name":"say_hello","description":"Hello","parameters":{"type":"object","properties":{}}}},
		{"type":"function","function":{"name":"write_file","description":"File","parameters":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}}},
		{"type":"function","function":{"name":"my tool-1.x","description":"Odd","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}}
	]`), &tools)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// outcome is what a reader made of a whole answer.
type outcome struct {
	content, thinking, calls string
}

// read feeds the pieces of an answer and joins what comes out.
func read(t testing.TB, m *models.Model, c models.Conversation, pieces ...string) (o outcome) {
	t.Helper()
	prompt, err := m.Prompt(c)
	if err != nil {
		t.Fatal(err)
	}
	return readFrom(t, New(m, c, prompt), pieces...)
}

func readFrom(t testing.TB, r *Reader, pieces ...string) (o outcome) {
	t.Helper()
	calls := []map[string]json.RawMessage{}
	for i, piece := range pieces {
		p := r.Add(piece, i == len(pieces)-1)
		o.content += p.Content
		o.thinking += p.Thinking
		for _, call := range p.Calls {
			if call.Function.Index != len(calls) || call.ID != "" {
				t.Errorf("call %d has index %d and id %q", len(calls), call.Function.Index, call.ID)
			}
			args, err := json.Marshal(call.Function.Arguments)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, map[string]json.RawMessage{call.Function.Name: args})
		}
	}
	if len(calls) > 0 {
		data, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		o.calls = string(data)
	}
	return o
}

// splits are ways to cut a text: at every single place, into single bytes, and by a rule that mixes.
func splits(text string) (out [][]string) {
	for i := range len(text) + 1 {
		out = append(out, []string{text[:i], text[i:]})
	}
	var bytes, mixed []string
	for i := range len(text) {
		bytes = append(bytes, text[i:i+1])
	}
	for i, n := 0, 1; i < len(text); n = n%7 + 2 {
		end := min(i+n, len(text))
		mixed = append(mixed, text[i:end])
		i = end
	}
	return append(out, append(bytes, ""), append(mixed, ""))
}
