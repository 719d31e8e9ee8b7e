package duckdb_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// sumsSource holds the largest INTEGERs and such: their sums were added up by hand, with the numbers 2^31-1 = 2147483647,
// -2^31 = -2147483648, 2^63-1 = 9223372036854775807.
func sumsSource(t *testing.T) *source {
	return open(t, `CREATE TABLE t (k VARCHAR, i INTEGER, s SMALLINT, y TINYINT, us USMALLINT, ui UINTEGER, b BIGINT, h HUGEINT, d DECIMAL(9,2), f DOUBLE, o BOOLEAN);
		INSERT INTO t VALUES ('a', 2147483647, 32767, 127, 65535, 4294967295, 9223372036854775807, 1, 1.25, 0.5, true),
			('a', 2147483647, 32767, 127, 65535, 4294967295, 9223372036854775807, 1, 1.25, 0.5, true), ('b', -2147483648, -32768, -128, 1, 1, 1, 1, 1, 1, false),
			('c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
		CREATE VIEW v AS SELECT k, i FROM t`)
}

func TestSumsOfIntegersAreBigint(t *testing.T) {
	s := sumsSource(t)
	for name, c := range map[string]struct{ sql, types, rows string }{
		"every small type":            {"SELECT sum(i), sum(s), sum(y), sum(us), sum(o) FROM t", "BIGINT BIGINT BIGINT BIGINT BIGINT", `[2147483646,32766,126,131071,2]`},
		"wider ones are exact":        {"SELECT sum(b), sum(ui), sum(h) FROM t", "DECIMAL(38,0) DECIMAL(38,0) DECIMAL(38,0)", `["18446744073709551615","8589934591","3"]`},
		"others keep their types":     {"SELECT sum(d), sum(f) FROM t", "DECIMAL(38,2) DOUBLE", `["3.50",2]`},
		"all NULL":                    {"SELECT sum(i) FROM t WHERE k = 'c'", "BIGINT", `[null]`},
		"no row":                      {"SELECT sum(i) FROM t WHERE k = 'z'", "BIGINT", `[null]`},
		"in an expression":            {"SELECT sum(i) * 2, -sum(i), coalesce(sum(i), 0), sum(i) / 2 FROM t", "BIGINT BIGINT BIGINT DOUBLE", `[4294967292,-2147483646,2147483646,1073741823]`},
		"with FILTER":                 {"SELECT sum(i) FILTER (WHERE k = 'a') FROM t", "BIGINT", `[4294967294]`},
		"DISTINCT":                    {"SELECT sum(DISTINCT i) FROM t", "BIGINT", `[-1]`},
		"ordered":                     {"SELECT sum(i ORDER BY i) FROM t", "BIGINT", `[2147483646]`},
		"a window":                    {"SELECT sum(i) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) FROM t WHERE k = 'a'", "BIGINT", "[2147483647]\n[4294967294]"},
		"a window over a sum":         {"SELECT k, sum(sum(i)) OVER (ORDER BY k) FROM t WHERE k < 'c' GROUP BY k ORDER BY k", "TEXT DECIMAL(38,0)", `["a","4294967294"]` + "\n" + `["b","2147483646"]`},
		"of an expression":            {"SELECT sum(CASE WHEN i > 0 THEN 1 ELSE 0 END), sum(i // 2), sum(1), sum(s - y) FROM t", "BIGINT BIGINT BIGINT BIGINT", `[2,1073741822,4,32640]`},
		"of a cast":                   {"SELECT sum(i::BIGINT), sum(b::DOUBLE::INTEGER) FROM t WHERE k = 'b'", "DECIMAL(38,0) BIGINT", `["-2147483648",1]`},
		"in WITH":                     {"WITH x AS (SELECT k, sum(i) AS n FROM t GROUP BY k) SELECT max(n), typeof(max(n)) FROM x", "BIGINT TEXT", `[4294967294,"BIGINT"]`},
		"in WITH, by its own name":    {`WITH x AS (SELECT k, SUM(i) FROM t GROUP BY k) SELECT "sum(i)" * 2 AS n FROM x WHERE k = 'a'`, "BIGINT", `[8589934588]`},
		"in a subquery":               {"SELECT (SELECT sum(i) FROM t) + 1, n FROM (SELECT sum(us) AS n FROM t)", "BIGINT BIGINT", `[2147483647,131071]`},
		"correlated":                  {"SELECT (SELECT sum(x.i // t.y) FROM t x WHERE x.k = t.k) FROM t WHERE k = 'b'", "BIGINT", `[16777216]`},
		"recursive":                   {"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n) FROM r", "BIGINT", `[10]`},
		"of generated rows":           {"SELECT sum(x) FROM range(4) r(x)", "DECIMAL(38,0)", `["6"]`},
		"through a view":              {"SELECT sum(i) FROM v", "BIGINT", `[2147483646]`},
		"through USING":               {"SELECT sum(i) FROM t JOIN (VALUES ('a')) w(k) USING (k)", "BIGINT", `[4294967294]`},
		"in a union":                  {"SELECT sum(i) FROM t UNION ALL SELECT sum(s) FROM t", "BIGINT", "[2147483646]\n[32766]"},
		"in HAVING and ORDER BY":      {"SELECT DISTINCT k FROM t GROUP BY k HAVING sum(i) > 0", "TEXT", `["a"]`},
		"ORDER BY with DISTINCT":      {"SELECT DISTINCT sum(i) FROM t GROUP BY k ORDER BY sum(i) NULLS LAST", "BIGINT", "[-2147483648]\n[4294967294]\n[null]"},
		"QUALIFY":                     {"SELECT k FROM t QUALIFY sum(i) OVER (PARTITION BY k) < 0", "TEXT", `["b"]`},
		"a struct and a list":         {"SELECT {'n': sum(i)}, [sum(i)] FROM t", "STRUCT(n BIGINT) BIGINT[]", `[{"n":2147483646},[2147483646]]`},
		"a pivot":                     {"SELECT a FROM (PIVOT t ON k IN ('a', 'b') USING sum(i) GROUP BY o) WHERE o", "BIGINT", `[4294967294]`},
		"a pivot with names":          {`SELECT "a_sum(i)" FROM (PIVOT t ON k IN ('a') USING sum(i), count(*) GROUP BY o) WHERE o`, "BIGINT", `[4294967294]`},
		"columns of one type":         {"SELECT sum(COLUMNS('^[isy]$')) FROM t", "BIGINT BIGINT BIGINT", `[2147483646,32766,126]`},
		"an alias of the select list": {"SELECT i AS n, sum(n) OVER () AS m FROM t WHERE k = 'b'", "INTEGER BIGINT", `[-2147483648,-2147483648]`},
		"GROUP BY ALL":                {"SELECT k, sum(i) FROM t WHERE k = 'a' GROUP BY ALL", "TEXT BIGINT", `["a",4294967294]`},
		"ROLLUP":                      {"SELECT sum(i) FROM t WHERE k = 'a' GROUP BY ROLLUP (k)", "BIGINT", "[4294967294]\n[4294967294]"},
	} {
		a, err := s.Approve(t.Context(), c.sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, err := s.Run(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, a.SQL())
			continue
		}
		var types []string
		for _, f := range r.Schema().Fields() {
			types = append(types, database.ColumnType(f))
		}
		got := drain(t, r)
		r.Release()
		if !strings.Contains(c.sql, "ORDER BY k") {
			slices.Sort(got)
		}
		if want := strings.Split(c.rows, "\n"); strings.Join(types, " ") != c.types || !slices.Equal(got, want) {
			t.Errorf("%s: %s %s\nwant %s %s\n%s", name, types, got, c.types, want, a.SQL())
		}
	}
}

// TestSumsWithParameters: the type is decided before the values are there.
func TestSumsWithParameters(t *testing.T) {
	s := sumsSource(t)
	a := approve(t, s, "SELECT sum(i) FROM t WHERE k = $1")
	r, err := s.RunParams(t.Context(), a, []any{"a"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if typ := database.ColumnType(r.Schema().Field(0)); typ != "BIGINT" {
		t.Errorf("the type is %s", typ)
	}
	if got := drain(t, r); !slices.Equal(got, []string{"[4294967294]"}) {
		t.Errorf("the rows are %s", got)
	}
}

// TestSumsThatOverflow: a BIGINT that is too small is an error with a way out, never another number.
func TestSumsThatOverflow(t *testing.T) {
	s := open(t)
	// 2^31-1 added 65537 x 65538 = 4295163906 times is 9223794249319645182, and 2^63-1 is 9223372036854775807.
	a := approve(t, s, "SELECT sum(x) FROM (SELECT 2147483647 AS x FROM range(65537) a, range(65538) b)")
	if !strings.Contains(a.SQL(), "CAST(sum(x) AS BIGINT)") {
		t.Errorf("the cast is missing in %s", a.SQL())
	}
	r, err := s.Run(t.Context(), a)
	if err == nil {
		for r.Next() {
		}
		err = r.Err()
		r.Release()
	}
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Invalid || !strings.Contains(f.Hint, "sum(x::BIGINT)") {
		t.Errorf("a sum of 9223794249319645182 gave %+v", err)
	}
}

// TestSumsKeepTheirColumnNames: the cast shows in no name, also where names are taken from the text.
func TestSumsKeepTheirColumnNames(t *testing.T) {
	s := sumsSource(t)
	for sql, want := range map[string][]string{
		"SELECT SUM(i), sum(i)*2, sum(i) AS n, count(*) FROM t":                           {"sum(i)", "(sum(i) * 2)", "n", "count_star()"},
		`SELECT sum("i") FILTER (WHERE k = 'a') FROM t`:                                   {"sum(i) FILTER (WHERE (k = 'a'))"},
		"SELECT * FROM (SELECT sum(i), sum(b) FROM t)":                                    {"sum(i)", "sum(b)"},
		"SELECT (SELECT sum(i) FROM t) FROM t":                                            {"(SELECT sum(i) FROM \"source\".main.t)"},
		"SELECT sum(s) OVER (PARTITION BY k) FROM t":                                      {"sum(s) OVER (PARTITION BY k)"},
		"SELECT * FROM (PIVOT t ON k IN ('a') USING sum(i), max(i) GROUP BY o) WHERE o":   {"o", "a_sum(i)", "a_max(i)"},
		"WITH x AS (SELECT sum(i) FROM t UNION ALL SELECT sum(s) FROM t) SELECT * FROM x": {"sum(i)"},
	} {
		a := approve(t, s, sql)
		r, err := s.Run(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		var got []string
		for _, f := range r.Schema().Fields() {
			got = append(got, f.Name)
		}
		r.Release()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q\n%s", sql, got, want, a.SQL())
		}
		if strings.Contains(a.Shown(), "BIGINT") {
			t.Errorf("%s is shown as %s", sql, a.Shown())
		}
	}
}
