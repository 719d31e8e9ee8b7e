package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sluice/agent"
	"sluice/database"
)

func TestCellsAreData(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"a word":                     {"pen", "pen"},
		"a decimal":                  {"-1.50", "-1.50"},
		"a name with a line below":   {"total_amount", "total_amount"},
		"two names":                  {"Tom & Jerry", "Tom & Jerry"},
		"a list":                     {"[1, 2, 3]", "[1, 2, 3]"},
		"an address":                 {"ann@example.org", "ann@example.org"},
		"a pipe":                     {"a|b", `a\|b`},
		"lines":                      {"a\nb\r\n\tc", "a b c"},
		"HTML":                       {"<img src=x onerror=alert(1)>", "<\u2060img src=x onerror=alert(1)>"},
		"a tag of a chat program":    {"<details><think>", "<\u2060details><\u2060think>"},
		"a comparison":               {"<5 and a < b", "<5 and a < b"},
		"a link":                     {"[click](http://evil.example)", "[click]\u2060(http\\://evil.example)"},
		"an image":                   {"![x](http://evil.example/p.png)", "![x]\u2060(http\\://evil.example/p.png)"},
		"a link by reference":        {"[a][b]", "[a]\u2060[b]"},
		"a footnote":                 {"[^1]", "[\u2060^1]"},
		"a bare link":                {"see https://evil.example", `see https\://evil.example`},
		"a bare link without scheme": {"www.evil.example", `www\.evil.example`},
		"emphasis":                   {"*a* _b_ ~~c~~", `\*a\* \_b\_ \~\~c\~\~`},
		"code":                       {"`rm -rf`", "\\`rm -rf\\`"},
		"a formula":                  {"$5 and $6", `\$5 and \$6`},
		"an escape":                  {`\[x\]`, "\\\\\u2060[x\\\\\u2060]"},
		"an entity":                  {"&lt;b&gt; &#60;", "&\u2060lt;b&\u2060gt; &\u2060#60;"},
		"a variable":                 {"{{user}}", "{\u2060{user}}"},
		"a turn of direction":        {"a\u202eb", "a b"},
		"a control":                  {"a\x1b[2Jb", "a [2Jb"},
	} {
		if got, _ := mdCell(row.in); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	for in, want := range map[string]string{
		"# a":      `\# a`,
		"> a":      `\> a`,
		"- a\n+ b": "\\- a\n\\+ b",
		"1. a":     `1\. a`,
		"3.5 kg":   "3.5 kg",
		"[a]: b":   "[a]\u2060: b",
		"n: 3.":    "n: 3.",
		"a\n---":   "a\n\\---",
	} {
		if got := mdParagraphs(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzCells: whatever a cell holds, the table keeps its form, and no character that begins a link, an image or a tag has an effect.
func FuzzCells(f *testing.F) {
	for _, seed := range []string{"a|b", "![x](http://e)", "<b>", "\\", "\\|", "]\\(", "&#60;", "{{x}}", "``", "|\\|\\\\|"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cell, _ := mdCell(text)
		escaped := false
		for i, r := range cell {
			before := cell[:i]
			bare := !escaped
			escaped = r == '\\' && !escaped
			switch {
			case r == '\n' || r == '\r':
				t.Fatalf("%q becomes %q, with a line break", text, cell)
			case bare && strings.ContainsRune("|*`$~", r):
				t.Fatalf("%q becomes %q, with a bare %q", text, cell, r)
			case strings.HasSuffix(before, "<") && (letter(r) || r == '/' || r == '!'), strings.HasSuffix(before, "]") && (r == '(' || r == '['),
				strings.HasSuffix(before, "{") && r == '{', strings.HasSuffix(before, ":/") && r == '/' && !strings.HasSuffix(before, `\:/`):
				t.Fatalf("%q becomes %q", text, cell)
			}
		}
		if escaped {
			t.Fatalf("%q becomes %q, which takes what follows it for text", text, cell)
		}
	})
}

func rowsOf(n int, cell string) [][]json.RawMessage {
	out := make([][]json.RawMessage, n)
	for i := range out {
		out[i] = []json.RawMessage{json.RawMessage(fmt.Sprint(i)), json.RawMessage(cell)}
	}
	return out
}

func TestHowMuchOfATableIsShown(t *testing.T) {
	columns := []database.Column{{Name: "id", Type: "BIGINT"}, {Name: "a|b", Type: "TEXT"}}
	for name, row := range map[string]struct {
		rows  int
		cut   bool
		cell  string
		lines int // of the table, its head included
		says  string
	}{
		"all":                       {3, false, `"x"`, 5, ""},
		"just all":                  {50, false, `"x"`, 52, ""},
		"some":                      {312, false, `"x"`, 52, "*50 of 312 rows shown.*"},
		"some of an unknown number": {1000, true, `"x"`, 52, "*50 of more than 1000 rows shown.*"},
		"few of an unknown number":  {7, true, `"x"`, 9, "*7 of more than 7 rows shown.*"},
		"long values":               {1, false, `"` + strings.Repeat("é", 300) + `"`, 3, "*Long values are cut.*"},
		"no value":                  {1, false, `null`, 3, ""},
		"a nested value":            {1, false, `{"a":["b|c"]}`, 3, ""},
	} {
		parts := markdownOf(agent.Answer{Outcome: agent.Answered, Text: "Here.", SQL: "SELECT 1", Table: &agent.Table{Columns: columns, Rows: rowsOf(row.rows, row.cell), Truncated: row.cut}})
		text := strings.Join(parts, "")
		table, rest, _ := strings.Cut(parts[1], "\n\n")
		if n := strings.Count(table, "\n") + 1; n != row.lines || rest != "" || !strings.HasPrefix(table, `| id | a\|b |`+"\n| ---: | --- |\n") {
			t.Errorf("%s: %d lines:\n%s", name, n, table)
		}
		for _, line := range strings.Split(table, "\n") {
			if strings.Count(line, "|")-strings.Count(line, `\|`) != 3 {
				t.Errorf("%s: the line %q", name, line)
			}
		}
		if row.says == "" && len(parts) != 3 || !strings.Contains(text, row.says) || !strings.HasSuffix(text, "```sql\nSELECT 1\n```") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	wide := &agent.Table{Columns: make([]database.Column, 30), Rows: [][]json.RawMessage{make([]json.RawMessage, 30)}}
	if text := strings.Join(markdownOf(agent.Answer{Outcome: agent.Answered, Text: "Here.", Table: wide}), ""); !strings.Contains(text, "20 of 30 columns shown") {
		t.Errorf("wide: %s", text)
	}
}

func TestWhatIsNotAnsweredHasNoTable(t *testing.T) {
	for _, outcome := range []agent.Outcome{agent.Declined, agent.Failed, "copy_requested"} {
		parts := markdownOf(agent.Answer{Outcome: outcome, Text: "This was *not* done.", SQL: "SELECT secret", Table: &agent.Table{Columns: []database.Column{{Name: "a"}}, Rows: rowsOf(1, "1")}})
		if got := strings.Join(parts, ""); got != `This was \*not\* done.` {
			t.Errorf("%s: %s", outcome, got)
		}
	}
}

func TestSQLInAnAnswerStaysABlock(t *testing.T) {
	sql := "SELECT '\n```\n' AS a"
	text := strings.Join(markdownOf(agent.Answer{Outcome: agent.Answered, Text: "Here.", SQL: sql}), "")
	if sqlOf(text) != sql {
		t.Errorf("read back: %q of %q", sqlOf(text), text)
	}
	for name, in := range map[string]string{"none": "SELECT 1", "another language": "```python\nx\n```", "one without an end": "```sql\nSELECT 1"} {
		if got := sqlOf(in); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestStepsAreTextAndShort(t *testing.T) {
	for name, row := range map[string]struct {
		in   agent.Event
		want string
	}{
		"a statement":   {agent.Event{Stage: "candidate", Text: "SELECT `a`\nFROM t"}, "Candidate: ``SELECT `a` FROM t``\n\n"},
		"a refusal":     {agent.Event{Stage: "gate", Text: "refused: <b> [x](http://e)"}, "Gate: refused: <\u2060b> [x]\u2060(http\\://e)\n\n"},
		"no words":      {agent.Event{Stage: "rows"}, "Rows\n\n"},
		"the answer":    {agent.Event{Stage: "answer", Text: "3"}, ""},
		"a long one":    {agent.Event{Stage: "rows", Text: strings.Repeat("x", 400)}, "Rows: " + strings.Repeat("x", 300) + "…\n\n"},
		"a later stage": {agent.Event{Stage: "élan", Text: "x"}, ""},
	} {
		got := stepLine(row.in)
		if name == "a later stage" {
			row.want = got // only that it does not break
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
