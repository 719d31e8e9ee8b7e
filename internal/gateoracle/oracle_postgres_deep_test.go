package gateoracle

import (
	"strings"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// deep are statements that nest: head, what opens, the middle, what closes, tail. libpg_query's parser and deparser end the
// process when one of these is deep enough (pganalyze/libpg_query#366, #348).
var deep = map[string][5]string{
	"sums":                    {"SELECT 1", "+1", "", "", ""},
	"concatenations":          {"SELECT 'a'", "||'a'", "", "", ""},
	"casts":                   {"SELECT 1", "::int", "", "", ""},
	"parentheses":             {"SELECT ", "(", "1", ")", ""},
	"minus":                   {"SELECT ", "- ", "1", "", ""},
	"NOT":                     {"SELECT ", "NOT ", "true", "", ""},
	"IS NULL":                 {"SELECT 1", " IS NULL", "", "", ""},
	"AND of parentheses":      {"SELECT ", "(true AND ", "true", ")", ""},
	"AND and OR":              {"SELECT true", " AND true OR true", "", "", ""},
	"calls":                   {"SELECT ", "abs(", "1", ")", ""},
	"arrays":                  {"SELECT ", "ARRAY[", "1", "]", ""},
	"rows":                    {"SELECT ", "ROW(", "1", ")", ""},
	"subscripts":              {"SELECT (ARRAY[1])", "[1]", "", "", ""},
	"CASE":                    {"SELECT ", "CASE WHEN true THEN ", "1", " END", ""},
	"scalar sub-queries":      {"", "SELECT (", "SELECT 1", ")", ""},
	"sub-queries in FROM":     {"", "SELECT * FROM (", "SELECT 1", ") x", ""},
	"EXISTS":                  {"", "SELECT EXISTS (", "SELECT 1", ")", ""},
	"IN":                      {"", "SELECT 1 IN (", "SELECT 1", ")", ""},
	"parenthesised SELECT":    {"", "(", "SELECT 1", ")", ""},
	"unions":                  {"SELECT 1", " UNION ALL SELECT 1", "", "", ""},
	"unions to the right":     {"", "SELECT 1 UNION ALL (", "SELECT 1", ")", ""},
	"WITH":                    {"", "WITH x AS (", "SELECT 1", ") SELECT 1", ""},
	"WITH before parentheses": {"", "WITH x AS (SELECT 1) (", "SELECT 1", ")", ""},
	"joins":                   {"SELECT 1 FROM orders a0", " CROSS JOIN orders", "", "", ""},
	"joins in parentheses":    {"SELECT 1 FROM ", "(", "orders", " CROSS JOIN customers)", ""},
	"COLLATE":                 {"SELECT 'a'", " COLLATE \"C\"", "", "", ""},
	"AT TIME ZONE":            {"SELECT now()", " AT TIME ZONE 'UTC'", "", "", ""},
	"coalesce":                {"SELECT ", "coalesce(", "1", ")", ""},
	"JSON_ARRAY":              {"SELECT ", "JSON_ARRAY(", "1", ")", ""},
	"XML":                     {"SELECT ", "xmlelement(name a, ", "'x'", ")", ""},
	"LIKE":                    {"SELECT ", "('a' LIKE ", "'a'", ")", ""},
	"BETWEEN":                 {"SELECT ", "(1 BETWEEN 0 AND ", "1", ")::int", ""},
	"EXPLAIN":                 {"", "EXPLAIN ", "SELECT 1", "", ""},
	"comments":                {"SELECT 1 ", "/*", "", "*/", ""},
	"columns":                 {"SELECT 1", ",1", "", "", ""},
	"rows of VALUES":          {"VALUES (1)", ",(1)", "", "", ""},
	"ANDs":                    {"SELECT true", " AND true", "", "", ""},
	"fields":                  {"SELECT o", ".id", "", "", " FROM orders o"},
	"operators with a name":   {"SELECT 1", " OPERATOR(pg_catalog.+) 1", "", "", ""},
	"GROUPING SETS":           {"SELECT 1 FROM orders GROUP BY ", "GROUPING SETS (", "id", ")", ""},
	"windows":                 {"SELECT 1", ", sum(1) OVER (ORDER BY 1)", "", "", " FROM orders"},
	"LATERAL":                 {"", "SELECT * FROM orders, LATERAL (", "SELECT 1", ") x", ""},
}

// TestRealDeepStatements nests each to 32 KiB: a refusal or an answer, and the process lives. What is admitted, the server
// parses as well.
func TestRealDeepStatements(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	for name, d := range deep {
		deepest := 0
		for n := 1; ; n = n*3/2 + 1 {
			sql := d[0] + strings.Repeat(d[1], n) + d[2] + strings.Repeat(d[3], n) + d[4]
			a, err := o.check(t.Context(), sql, sqlguard.ReadOnly)
			if err != nil && fault.CodeOf(err) != fault.Refused && fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%s, %d deep: %v is no refusal", name, n, err)
			}
			if err == nil {
				deepest = n
				for _, v := range o.admitted(t, sql, a.SQL(), sqlguard.ReadOnly, a.Explain()) {
					t.Errorf("%s, %d deep: %s: %s", name, n, v.kind, short(v.text))
				}
			}
			if len(sql) > 40<<10 {
				break
			}
		}
		t.Logf("%s: %d", name, deepest)
	}
}
