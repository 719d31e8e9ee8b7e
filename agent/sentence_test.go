package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/database"
)

func table(truncated bool, columns string, rows ...[]any) *Table {
	t := &Table{Truncated: truncated}
	for name := range strings.FieldsSeq(columns) {
		t.Columns = append(t.Columns, database.Column{Name: name})
	}
	for _, row := range rows {
		var cells []json.RawMessage
		for _, v := range row {
			cell, _ := json.Marshal(v) // numbers, texts and lists always have a JSON form
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func TestDescribe(t *testing.T) {
	long := strings.Repeat("é", 200)
	for name, row := range map[string]struct {
		in   *Table
		want string
	}{
		"no row":                        {table(false, "n"), "No rows match."},
		"one value":                     {table(false, "count_star()", []any{int64(42)}), "count_star(): 42."},
		"NULL":                          {table(false, "sum", []any{nil}), "sum: no value."},
		"a decimal as it is":            {table(false, "total", []any{"1234567.80"}), "total: 1234567.80."},
		"a large float has no exponent": {table(false, "total", []any{1234567890.5}), "total: 1234567890.5."},
		"truth":                         {table(false, "ok", []any{true}), "ok: true."},
		"one row":                       {table(false, "name n", []any{"Ada", int64(3)}), "name: Ada, n: 3."},
		"two rows":                      {table(false, "name", []any{"Ada"}, []any{"Bo"}), "2 rows: name: Ada; name: Bo."},
		"many rows": {
			table(false, "n", []any{int64(1)}, []any{int64(2)}, []any{int64(3)}, []any{int64(4)}),
			"4 rows. The first 3: n: 1; n: 2; n: 3.",
		},
		"cut rows say so": {
			table(true, "n", []any{int64(1)}, []any{int64(2)}),
			"More than 2 rows: n: 1; n: 2.",
		},
		"one cut row says so": {table(true, "n", []any{int64(1)}), "More than 1 row: n: 1."},
		"many cut rows": {
			table(true, "n", []any{1}, []any{2}, []any{3}, []any{4}),
			"More than 4 rows. The first 3: n: 1; n: 2; n: 3.",
		},
		"many columns": {
			table(false, "a b c d e f g h", []any{1, 2, 3, 4, 5, 6, 7, 8}),
			"a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, and 2 more columns.",
		},
		"a long text is cut at a letter": {table(false, "t", []any{long}), "t: " + strings.Repeat("é", 120) + "…."},
		"a very long text is cut":        {table(false, "t", []any{strings.Repeat("x", 1<<20)}), "t: " + strings.Repeat("x", 120) + "…."},
		"blanks only, and very many":     {table(false, "t", []any{strings.Repeat(" ", 1<<20)}), "t: …."},
		"a small float":                  {table(false, "t", []any{1e-9}), "t: 0.000000001."},
		"a huge float":                   {table(false, "t", []any{1e21}), "t: 1000000000000000000000."},
		"a list":                         {table(false, "t", []any{[]any{1, nil, "a"}}), `t: [1,null,"a"].`},
		"a struct":                       {table(false, "t", []any{map[string]any{"a": map[string]any{"b": 1.5}}}), `t: {"a":{"b":1.5}}.`},
		"JSON":                           {table(false, "t", []any{json.RawMessage(`{"b":1,"a":[1,2]}`)}), `t: {"b":1,"a":[1,2]}.`},
		"a long list is cut":             {table(false, "t", []any{make([]int, 500)}), "t: [" + strings.Repeat("0,", 59) + "0…."},
		"no row fits":                    {table(true, "t"), "There are rows, but the first one is too large to show."},
		"line breaks become blanks":      {table(false, "t", []any{"a\n\n b"}), "t: a b."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(row.in); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

func TestPresentable(t *testing.T) {
	for name, text := range map[string]string{
		"a slot":              "Dear [Your Name], the total is 5.",
		"a slot in angles":    "The total is <value>.",
		"a template":          "The total is {{ total }}.",
		"crosses":             "The total is XXX.",
		"a tag of a tool":     "<tool_call>run</tool_call>",
		"a call in JSON":      `{"name": "run_sql", "arguments": {}}`,
		"our own tool":        "database_ask(question)",
		"a code block":        "Here:\n```sql\nSELECT 1\n```",
		"a fence in mid-line": "x ```",
		"nothing":             "  \n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := presentable(text, "instead"); got != "instead" {
				t.Errorf("it passed: %q", got)
			}
		})
	}
	for name, text := range map[string]string{
		"a sentence":           "count_star(): 42.",
		"a list":               "tags: [1 2 3].",
		"a size":               "size: XL.",
		"a name in its column": "name: Ada.",
	} {
		t.Run(name, func(t *testing.T) {
			if got := presentable(text, "instead"); got != text {
				t.Errorf("it was kept back")
			}
		})
	}
}
