package reply

import (
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

// An answer may be as long as a caller asks for, and is read on the server: its parts must not be looked at again and again. What
// that costs is told here by the memory asked for: 112 KB of calls in a sentence took a minute.
func TestWorkGrowsWithTheAnswer(t *testing.T) {
	call := `{"name":"f","arguments":{}} `
	for name, text := range map[string]func(n int) string{
		"calls in a sentence":          func(n int) string { return "x " + strings.Repeat(call, n) + "y" },
		"calls in fences":              func(n int) string { return "x " + strings.Repeat("\n```json\n"+call+"\n```\n", n) + "y" },
		"brackets":                     func(n int) string { return strings.Repeat("[{", 10*n) },
		"tags without an end":          func(n int) string { return strings.Repeat("<tool_call>", n) },
		"white space behind a word":    func(n int) string { return "x" + strings.Repeat(" ", 50*n) + "y" },
		"white space before the first": func(n int) string { return strings.Repeat(" \n", 50*n) + "y" },
	} {
		t.Run(name, func(t *testing.T) {
			read := func(n int) float64 {
				return testing.AllocsPerRun(1, func() { readWhole(t, text(n)) })
			}
			few, many := read(150), read(600)
			if most := 8*few + 2000; many > most {
				t.Errorf("%.0f allocations for one, %.0f for four times as much", few, many)
			}
		})
	}
}

// readWhole reads an answer of no calls in one piece, and sees that nothing is lost.
func readWhole(t *testing.T, text string) {
	tools := []api.Tool{{Type: "function", Function: api.ToolFunction{Name: "f"}}}
	r := &Reader{thought: newThought("<think>", "</think>", false), scan: newScanner(tools, false), thinker: newScanner(tools, true)}
	r.thought.hold = r.thinker.tagAt
	p := r.Add(text, true)
	if len(p.Calls) > 0 || len(p.Content) != len(text) {
		t.Errorf("%d calls, %d of %d bytes", len(p.Calls), len(p.Content), len(text))
	}
}

// A call with lines of its own is one wherever it stands, also among others that are examples.
func TestCallOnItsOwnLineBehindExamples(t *testing.T) {
	tools := []api.Tool{{Type: "function", Function: api.ToolFunction{Name: "f"}}}
	r := &Reader{thought: newThought("", "", false), scan: newScanner(tools, false), thinker: newScanner(tools, true)}
	p := r.Add("Say "+`{"name":"f","arguments":{"a":1}}`+"\n"+`{"name":"f","arguments":{"a":2}}`+"\nand more", true)
	if len(p.Calls) != 1 || !strings.Contains(p.Content, `"a":1`) {
		t.Errorf("%d calls, content %q", len(p.Calls), p.Content)
	}
}
