package gateway

import (
	"encoding/json"
	"fmt"
	"testing"

	"sluice/agent"
	"sluice/database"
)

func TestCharts(t *testing.T) {
	col := func(pairs ...string) (out []database.Column) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, database.Column{Name: pairs[i], Type: pairs[i+1]})
		}
		return out
	}
	table := func(columns []database.Column, n int, x func(i int) string) *agent.Table {
		tab := &agent.Table{Columns: columns}
		for i := range n {
			row := make([]json.RawMessage, len(columns))
			for k := range row {
				row[k] = json.RawMessage(x(i))
			}
			tab.Rows = append(tab.Rows, row)
		}
		return tab
	}
	each := func(i int) string { return fmt.Sprintf("%q", fmt.Sprint("v", i)) }
	same := func(int) string { return `"x"` }
	cut := table(col("region", "TEXT", "n", "BIGINT"), 3, each)
	cut.Truncated = true
	for name, row := range map[string]struct {
		in   *agent.Table
		want string
	}{
		"a number for each text":       {table(col("region", "TEXT", "n", "BIGINT"), 4, each), "bar region n"},
		"a sum before its text":        {table(col("total", "DECIMAL(38,2)", "region", "VARCHAR"), 4, each), "bar region total"},
		"a number over time":           {table(col("region", "TEXT", "sold", "DATE", "n", "BIGINT"), 400, each), "line sold n"},
		"years are time":               {table(col("year", "INTEGER", "n", "DOUBLE"), 4, each), "line year n"},
		"months as text are time":      {table(col("month", "TEXT", "n", "BIGINT"), 4, each), "line month n"},
		"an id is no amount":           {table(col("name", "TEXT", "id", "BIGINT"), 4, each), ""},
		"one row":                      {table(col("region", "TEXT", "n", "BIGINT"), 1, each), ""},
		"too many bars":                {table(col("region", "TEXT", "n", "BIGINT"), 51, each), ""},
		"the same text twice":          {table(col("region", "TEXT", "n", "BIGINT"), 4, same), ""},
		"a part of the result":         {cut, ""},
		"only numbers":                 {table(col("a", "BIGINT", "b", "BIGINT"), 4, each), ""},
		"two columns of one name":      {table(col("n", "TEXT", "N", "BIGINT"), 4, each), ""},
		"a row without a text":         {table(col("region", "TEXT", "n", "BIGINT"), 2, func(i int) string { return []string{`"a"`, "null"}[i] }), ""},
		"no table":                     {nil, ""},
		"lists are no amounts":         {table(col("region", "TEXT", "n", "BIGINT[]"), 4, each), ""},
		"a number with its text's ids": {table(col("item_id", "BIGINT", "name", "TEXT", "n", "UBIGINT"), 4, each), "bar name n"},
	} {
		got := ""
		if c := chartOf(row.in); c != nil {
			got = c.Type + " " + c.X + " " + c.Y
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
