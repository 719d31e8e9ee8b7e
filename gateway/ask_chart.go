package gateway

import (
	"regexp"
	"strings"

	"sluice/agent"
	"sluice/database"
)

// chart suggests how a result may be drawn: from its columns' types alone, by no model. Who draws it has the rows.
type chart struct {
	Type string `json:"type"` // bar, line
	X    string `json:"x"`    // names of columns
	Y    string `json:"y"`
}

// maxBars is how many bars can still be told apart.
const maxBars = 50

var (
	timeTypes = regexp.MustCompile(`^(DATE|TIMESTAMP|DATETIME)`)
	textTypes = regexp.MustCompile(`^(TEXT|VARCHAR|CHAR|ENUM|BPCHAR|NAME)`)
	timeNames = regexp.MustCompile(`(?i)^(year|quarter|month|week|day|date|hour)$|_(year|quarter|month|week|day|hour)$`)
	idNames   = regexp.MustCompile(`(?i)^(id|key|code|zip|year)$|_(id|key|code)$`)
)

// chartOf suggests a line where the result is a number over time, a bar for each row where it is a number for each text, and
// nothing where that would mislead: one row, a part of the result, an x that comes twice, no number beside ids.
func chartOf(t *agent.Table) *chart {
	if t == nil || t.Truncated || len(t.Rows) < 2 {
		return nil
	}
	x, y := -1, -1
	over := false // time
	for i, c := range t.Columns {
		switch {
		case timeTypes.MatchString(c.Type) || timeNames.MatchString(c.Name) && (isNumber(c) || textTypes.MatchString(c.Type)):
			if !over {
				x, over = i, true
			}
		case textTypes.MatchString(c.Type):
			if x < 0 {
				x = i
			}
		case isNumber(c) && !idNames.MatchString(c.Name):
			if y < 0 {
				y = i
			}
		}
	}
	if x < 0 || y < 0 || !over && len(t.Rows) > maxBars || twice(t.Columns, x, y) {
		return nil
	}
	seen := map[string]bool{}
	for _, row := range t.Rows {
		v := string(row[x])
		if v == "null" || seen[v] {
			return nil
		}
		seen[v] = true
	}
	out := &chart{Type: "bar", X: t.Columns[x].Name, Y: t.Columns[y].Name}
	if over {
		out.Type = "line"
	}
	return out
}

// twice tells whether one of two columns has the name of another: then a name says nothing.
func twice(columns []database.Column, x, y int) bool {
	for i, c := range columns {
		if i != x && strings.EqualFold(c.Name, columns[x].Name) || i != y && strings.EqualFold(c.Name, columns[y].Name) {
			return true
		}
	}
	return false
}
