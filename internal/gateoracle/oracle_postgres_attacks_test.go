package gateoracle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// attacks are statements that gates fell for, one a line.
func attacks(t testing.TB) (out []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "attacks.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		out = append(out, line)
	}
	return out
}

// TestRealAttacksHold judges each under every profile.
func TestRealAttacksHold(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	admitted := 0
	for _, sql := range attacks(t) {
		for _, p := range profiles {
			allowed, found, _ := o.judge(t, sql, p)
			if allowed {
				admitted++
			}
			if len(found) > 0 {
				a, _ := o.check(t.Context(), sql, p)
				t.Errorf("profile %d: %s\n%s\nas %s", p, list(found), sql, a.SQL())
			}
		}
	}
	if o.held(t) != o.state {
		t.Error("the database changed")
	}
	t.Logf("%d times admitted", admitted)
}

// bombs are short and cost a parser, the gate or a server without bound, where no time limit is heard.
var bombs = map[string]string{
	"comments in comments (the scanner is quadratic)":    "SELECT 1 " + strings.Repeat("/*", 6000) + strings.Repeat("*/", 6000),
	"comment after comment":                              "SELECT 1 " + strings.Repeat("/**/", 7000),
	"a long operator":                                    "SELECT " + strings.Repeat("+", 20000) + "1",
	"stars that double the columns (a server has 1,664)": "WITH y_0 AS (SELECT * FROM orders)" + doubled(16) + " SELECT 1",
	"stars of a long join":                               "SELECT * FROM orders" + strings.Repeat(", orders t", 400),
	"rows in rows (the output doubles at every level)":   "SELECT " + strings.Repeat("ROW(", 20) + "1" + strings.Repeat(")", 20),
	"rows in rows, short":                                "SELECT " + strings.Repeat("ROW(1, ", 20) + "1" + strings.Repeat(")", 20),
	"rows in rows, in parentheses":                       "SELECT " + strings.Repeat("(1, ", 20) + "1" + strings.Repeat(")", 20),
	"rows in arrays in rows":                             "SELECT " + strings.Repeat("ARRAY[ROW(", 12) + "1" + strings.Repeat(")]", 12),
	"a series without an end":                            "SELECT count(*) FROM generate_series(1, 1000000000000)",
	"a text without an end":                              "SELECT repeat(repeat(repeat('x', 9000), 9000), 9000)",
}

func doubled(n int) string {
	var b strings.Builder
	for i := range n {
		from, to := string(rune('0'+i)), string(rune('0'+i+1))
		if i >= 9 {
			to = string(rune('a' + i - 9))
		}
		if i > 9 {
			from = string(rune('a' + i - 10))
		}
		b.WriteString(", y_" + to + " AS (SELECT * FROM y_" + from + " a, y_" + from + " b)")
	}
	return b.String()
}

func TestRealBombsAreRefused(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	for name, sql := range bombs {
		if a, err := o.check(t.Context(), sql, sqlguard.ReadOnly); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v %s", name, err, short(a.SQL()))
		}
	}
}
