package sqlguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/fault"
)

// TestClassifyGolden shows what each text is taken for. `go test ./sqlguard -rewrite` accepts a change.
func TestClassifyGolden(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "classify"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			st, err := Classify(d.Input)
			var f *fault.Error
			switch {
			case errors.As(err, &f):
				rest, _, _ := strings.Cut(d.Input[min(f.Position-1, len(d.Input)):], "\n")
				return fmt.Sprintf("%s (%s): %s\nat %d: %s\n", f.Code, f.Kind, f.Msg, f.Position, rest)
			case err != nil:
				return err.Error() + "\n"
			case st.Query != "":
				return "a query\n"
			}
			var v any = st.Copy
			if st.Create != nil {
				v = st.Create
			} else if st.Drop != nil {
				v = st.Drop
			}
			out, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%T %s\n", v, out)
		})
	})
}

// FuzzClassify holds that no text makes it panic, and that what it takes for a COPY is one: its query stands in the text
// where it says, between parentheses.
func FuzzClassify(f *testing.F) {
	for _, sql := range []string{
		"SELECT 1", "", ";", "COPY", "COPY (SELECT 1) TO LAKE 'x' WITH (CONNECTION = 'c')", "EXPLAIN COPY (SELECT ')' AS a) TO LAKE 'x' WITH (CONNECTION = 'c', PARTITION_BY = (a, \"B c\"))",
		"COPY (SELECT 1) TO PROGRAM 'id'", "COPY (SELECT 1) TO LAKE E'x' WITH (CONNECTION = 'c')", "CREATE EXTERNAL TABLE t (a INT, b DECIMAL(18,2)) STORED AS PARQUET LOCATION 'x' PARTITIONED BY (d DATE) WITH (CONNECTION = 'c')",
		"DROP EXTERNAL TABLE IF EXISTS \"t\"", "COPY (SELECT 1\x00) TO LAKE 'x' WITH (CONNECTION = 'c')", "COPY (SELECT $$)$$) TO LAKE 'x' WITH (CONNECTION = 'c', MODE = append);", "COPY ((((", "COPY (SELECT {'a': [1, 2]}) TO LAKE '''' WITH ()",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		st, err := Classify(sql)
		var fe *fault.Error
		switch {
		case err != nil && (!errors.As(err, &fe) || fe.Code != fault.Invalid || fe.Position < 1 || fe.Position > len(sql)+1):
			t.Fatalf("%#v", err)
		case err == nil && st.Copy != nil:
			c := st.Copy
			if end := c.QueryAt + len(c.Query); end >= len(sql) || sql[c.QueryAt:end] != c.Query || sql[c.QueryAt-1] != '(' || sql[end] != ')' || c.Connection == "" {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// TestBytes holds the checks that come before any parser.
func TestBytes(t *testing.T) {
	for name, c := range map[string]struct {
		sql string
		at  int // 1-based place of the refusal, 0 when it passes, -1 when it has no place
	}{
		"plain text":                         {"SELECT 1\t\r\n", 0},
		"too long":                           {strings.Repeat(" ", MaxBytes+1), -1},
		"just short enough":                  {strings.Repeat(" ", MaxBytes), 0},
		"NUL":                                {"SELECT 1\x00", 9},
		"NUL in a literal":                   {"SELECT '\x00'", 9},
		"broken UTF-8":                       {"SELECT '\xff'", 9},
		"a bell":                             {"SELECT 1\a", 9},
		"delete":                             {"SELECT 1\x7f", 9},
		"a space of another kind":            {"SELECT\u00a01", 7},
		"a zero-width space":                 {"SELECT\u200b1", 7},
		"a byte order mark":                  {"\ufeffSELECT 1", 1},
		"in a literal":                       {"SELECT '\u00a0'", 0},
		"in a literal with a quote":          {"SELECT 'it''s\u00a0'", 0},
		"after a literal with a quote":       {"SELECT 'it''s'\u00a0", 15},
		"in a name":                          {"SELECT \"a\u00a0b\"", 0},
		"in a comment":                       {"SELECT 1 -- a\u00a0b\n", 0},
		"after a comment":                    {"SELECT 1 -- a\n\u00a0", 15},
		"in a nested comment":                {"SELECT /* /* */ \u00a0 */ 1", 0},
		"after a nested comment":             {"SELECT /* /* */ */\u00a01", 19},
		"in a dollar-quoted literal":         {"SELECT $a$ \u00a0 $a$", 0},
		"after a dollar-quoted literal":      {"SELECT $a$x$a$\u00a0", 15},
		"after an escaped quote":             {`SELECT E'\'` + "\u00a0'", 0},
		"a backslash is no escape elsewhere": {`SELECT '\'` + "\u00a0'", 11},
		"a long operator":                    {"SELECT " + strings.Repeat("+", 201) + "1", 8},
		"the longest that may be":            {"SELECT " + strings.Repeat("+", 200) + "1", 0},
		"signs that alternate":               {"SELECT 1 " + strings.Repeat("-+", 101) + "1", 10},
		"comments in comments":               {"SELECT 1 " + strings.Repeat("/*", 8000) + strings.Repeat("*/", 8000), 10},
		"comment after comment":              {"SELECT 1 " + strings.Repeat("/**/", 8000), 10},
		"a line of dashes":                   {"SELECT 1 -- " + strings.Repeat("-", 180) + "\n", 0},
		"operators one by one":               {"SELECT 1" + strings.Repeat(" + 1", 1000), 0},
	} {
		err := checkBytes(c.sql)
		var f *fault.Error
		switch {
		case c.at == 0 && err != nil, c.at != 0 && !errors.As(err, &f), c.at > 0 && f.Position != c.at, c.at < 0 && f.Position != 0:
			t.Errorf("%s: %v at %+v, want %d", name, err, f, c.at)
		}
	}
}

// TestUnknownIsRefused changes one thing at a time in a good tree; each change must be refused by construction.
func TestUnknownIsRefused(t *testing.T) {
	good := `{"node":{"type":"SELECT_NODE","modifiers":[],"cte_map":{"map":[]},"select_list":[{"class":"CONSTANT","type":"VALUE_CONSTANT","alias":"","query_location":7,` +
		`"value":{"type":{"id":"INTEGER","type_info":null},"is_null":false,"value":1}}],"from_table":{"type":"EMPTY","alias":"","sample":null,"query_location":0},"where_clause":null,` +
		`"group_expressions":[],"group_sets":[],"aggregate_handling":"STANDARD_HANDLING","having":null,"sample":null,"qualify":null},"named_param_map":[]}`
	check := func(tree string) error {
		n, err := decode([]byte(tree))
		if err != nil {
			t.Fatal(tree, err)
		}
		w := &walker{req: Request{Catalog: &Catalog{DefaultSchema: "main"}, Profile: ReadOnly}}
		return w.statement(n)
	}
	if err := check(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a field of the statement":   {`"named_param_map":[]`, `"named_param_map":[],"more":1`},
		"a field of the query":       {`"having":null`, `"having":null,"into":null`},
		"a kind of query":            {`SELECT_NODE`, `INSERT_NODE`},
		"a class":                    {`"class":"CONSTANT"`, `"class":"DEFAULT"`},
		"a type of a class":          {`VALUE_CONSTANT`, `VALUE_OTHER`},
		"a field of an expression":   {`"query_location":7`, `"query_location":7,"hidden":{}`},
		"a literal's type":           {`"INTEGER"`, `"POINTER"`},
		"a literal's value":          {`"value":1}`, `"value":{"x":1}}`},
		"a table reference":          {`"EMPTY"`, `"COLUMN_DATA"`},
		"a list that is an object":   {`"modifiers":[]`, `"modifiers":{"a":1}`},
		"a list with a string":       {`"modifiers":[]`, `"modifiers":["x"]`},
		"an expression that is text": {`"having":null`, `"having":"x"`},
		"a query that is text":       {`"cte_map":{"map":[]}`, `"cte_map":"x"`},
		"a handling":                 {`STANDARD_HANDLING`, `OTHER`},
		"grouping sets of text":      {`"group_sets":[]`, `"group_sets":[["x"]]`},
	} {
		tree := strings.Replace(good, change[0], change[1], 1)
		if tree == good {
			t.Fatalf("%s: nothing changed", name)
		}
		if err := check(tree); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZeroValuesRefuse: what nobody filled in lets nothing through.
func TestZeroValuesRefuse(t *testing.T) {
	if (Approved{}).Valid() {
		t.Error("the zero Approved is valid")
	}
	g := New("", nil)
	if _, err := g.Check(t.Context(), Request{SQL: "SELECT 1", Profile: ReadOnly}); fault.CodeOf(err) != fault.Unimplemented {
		t.Error(err)
	}
	g = New(DuckDB, nil)
	if _, err := g.Check(t.Context(), Request{SQL: "SELECT 1", Database: "x", Catalog: &Catalog{}}); fault.CodeOf(err) != fault.Refused {
		t.Error(err)
	}
	if _, err := g.Check(t.Context(), Request{SQL: "SELECT 1", Profile: ReadOnly}); fault.CodeOf(err) != fault.Internal {
		t.Error(err)
	}
}
