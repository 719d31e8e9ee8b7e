package duckdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/sqlguard"
)

// costly statements would take gigabytes outside the engine's memory limit, or minutes that no interrupt ends.
var costlyStatements = []string{
	"SELECT repeat('x', 1000000000)", "SELECT repeat('x', 10001)", "SELECT ('x').repeat(1000000000)",
	"SELECT repeat(repeat('x', 10000), 10000)", "WITH a AS (SELECT repeat(name, 10000) AS s FROM t) SELECT repeat(s, 1000) FROM a",
	"SELECT replace(repeat('a', 10000) || name, 'a', repeat('b', 10000)) FROM t",
	"SELECT array_to_string(range(1000000), '" + strings.Repeat("b", 900) + "')", "SELECT repeat(lpad(name, 10000, ' '), 1000) FROM t", "SELECT replace(repeat('a', 10000), 'a', '" + strings.Repeat("b", 2000) + "')",
	"SELECT repeat('" + strings.Repeat("b", 20000) + "' || name, 1000) FROM t",
	"SELECT damerau_levenshtein(repeat('a', 10000), repeat('b', 10000))", "SELECT levenshtein(name, name) FROM t", "SELECT editdist3(name, name) FROM t",
	"SELECT jaro_similarity(name, name) FROM t", "SELECT jaro_winkler_similarity(name, left(name, -1)) FROM t", "SELECT damerau_levenshtein(name, 'abc') FROM t",
	"SELECT levenshtein(name, left(name, id)) FROM t",
	"SELECT list_resize([1], 1000000000)", "SELECT list_resize([], 10000, list_resize([], 10000, 1))",
	"SELECT lpad('x', 1000000000, ' ')",
	"SELECT format('{:>1000000000}', 'x')", "SELECT format('{:{}}', 5, 1000000000)", "SELECT format(name, 5) FROM t", "SELECT format('{:' || '>1000000000}', 'x')",
	"SELECT format('{:.1000000000f}', 1.0::DOUBLE)", "SELECT format('{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}', format('{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}', repeat(name, 10001))) FROM t",
	"SELECT printf('%1000000000d', 1)", "SELECT printf('%.1000000000f', 1.0::DOUBLE)", "SELECT printf('%*d', 1000000000, 1)", "SELECT printf(name, 1) FROM t",
	"SELECT printf('%501d%501d', 1, 2)", "SELECT printf('%%%1000000000d', 1)", "SELECT printf('%-0 1000000000s', 'x')",
	"SELECT bin(bin(bin(bin(bin(bin(bin(bin(name)))))))) FROM t", "SELECT list_reduce(range(31)::VARCHAR[], (a, b) -> a || a)",
	"SELECT reduce(['a', 'b'], lambda a, b: a || b || a)", "SELECT array_reduce(['a', 'b'], (a, b) -> hex(a))", "SELECT list_reduce([['a']], (a, b) -> list_transform(a, x -> x || x))",
	"SELECT list_reduce([1], (a, b) -> replace(a, 'x', 'xx'))", "SELECT bitstring('01', 1000000000)", "SELECT equi_width_bins(0, 1000000000, id, false) FROM t", "SELECT reservoir_quantile(id, 0.5, 1000000000) FROM t",
	"SELECT range(4000000000)", "SELECT generate_series(1, 4000000000)", "SELECT list_sum(range(4000000000))", "SELECT unnest(range(id)) FROM t",
	"SELECT range(0, -4000000000, -1)", "SELECT len(range(1000000000000, 1, -1))", "SELECT range(1000001)", "SELECT * FROM unnest(range(4000000000))",
	"SELECT list_transform(range(100000), x -> range(100000))", "SELECT generate_series(DATE '1900-01-01', DATE '2100-01-01', INTERVAL 1 SECOND)",
	"SELECT generate_series(DATE '2024-01-01', (SELECT DATE '2024-02-01'), INTERVAL 1 DAY)", "SELECT range(TIMESTAMP '2024-01-01', TIMESTAMP '2025-01-01', INTERVAL '1 microsecond')",
	"SELECT (repeat('a', 10000) || name) LIKE '%a_%a_%a_%b' FROM t", "SELECT name LIKE p FROM t, (VALUES ('%a%a%a%b')) v(p)", "SELECT name ILIKE '%a%a%a%b' FROM t",
	"SELECT (repeat('a', 10000) || name) ILIKE '%a%a%b' FROM t", "SELECT name ILIKE '%a%b%', repeat(name, 10000) FROM t", "SELECT name GLOB '*a*a*a*b' FROM t",
	"SELECT name NOT LIKE '%a_%a_%a_%b' FROM t", "SELECT name LIKE '%a%a%a%a' ESCAPE '!' FROM t", "SELECT name LIKE repeat('%a_', 20) FROM t",
	"SELECT name LIKE p FROM (SELECT name, '%a%a%a%b' AS p FROM t)", "SELECT list_filter(['%a%a%a%b'], p -> 'aaa' LIKE p)",
}

// computedSizes are refused by the engine when a value is too large, and run when none is.
var computedSizes = map[string]bool{
	"SELECT length(repeat('x', 1000000000 + i::INTEGER)) FROM range(8) r(i)": false, "SELECT repeat('x', 1e9)": false, "SELECT repeat('x', 996 + id) FROM t": false,
	"SELECT lpad('x', CAST('1000000000' AS INTEGER), ' ')": false, "SELECT rpad(name, id + 996, ' ') FROM t": false, "SELECT list_resize([1], id * 300) FROM t": false, "SELECT repeat('x', 995 + id), lpad(name, id, ' ') FROM t": true,
	"SELECT array_resize([1], id) FROM t": true, "SELECT rpad(name, id, ' ') FROM t": true, "SELECT repeat('*', id) FROM t": true, "SELECT lpad(name, (length(name) + 2)::INTEGER, '.') FROM t": true,
	"SELECT lpad(name, (SELECT max(id) FROM t)::INTEGER, '.') FROM t": true, "SELECT lpad('a', id - 3, ' ') FROM t": true,
	"SELECT printf(CASE WHEN id > 2 THEN '%05d' ELSE '%d' END, id) FROM t": true,
}

func TestComputedSizes(t *testing.T) {
	s := open(t, "CREATE TABLE t AS SELECT 'Jo' || i AS name, i::INTEGER AS id FROM range(5) r(i)")
	for sql, fits := range computedSizes {
		a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if fits {
			sameRows(t, s, "computed", sql, a)
			continue
		}
		r, err := s.Run(t.Context(), a)
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Release()
		}
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "DECIMAL(3,0)") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	a := approve(t, s, "SELECT repeat('x', id) FROM t")
	r, err := s.Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if name := r.Schema().Field(0).Name; name != "repeat('x', id)" {
		t.Errorf("the column is called %s", name)
	}
}

// TestPatternsOfParameters: the value is looked at when it comes.
func TestPatternsOfParameters(t *testing.T) {
	s := open(t, "CREATE TABLE t AS SELECT 'Jo' || i AS name, i::INTEGER AS id FROM range(5) r(i)")
	for name, c := range map[string]struct {
		sql    string
		params []any
		rows   int // -1: refused
	}{
		"one pattern":                    {"SELECT id FROM t WHERE name LIKE $1", []any{"J%3"}, 1},
		"joined with literals":           {"SELECT id FROM t WHERE name ILIKE '%' || $1 || '%'", []any{"o"}, 5},
		"by the second of two":           {"SELECT id FROM t WHERE id > $1 AND name LIKE concat($2, '%')", []any{int64(2), "Jo"}, 2},
		"no pattern at all":              {"SELECT id FROM t WHERE name LIKE $1", []any{nil}, 0},
		"GLOB has another wildcard":      {"SELECT id FROM t WHERE name GLOB $1", []any{"%%%%%"}, 0},
		"too many":                       {"SELECT id FROM t WHERE name LIKE $1", []any{"%a%a%a%b"}, -1},
		"too many with the literals":     {"SELECT id FROM t WHERE name LIKE '%' || $1 || '%'", []any{"a%b%c"}, -1},
		"too many by repeating":          {"SELECT id FROM t WHERE name LIKE $1 || $1", []any{"%a%"}, -1},
		"too many in the other's syntax": {"SELECT id FROM t WHERE name GLOB $1", []any{"*a*a*a*b"}, -1},
		"a question mark":                {"SELECT id FROM t WHERE name LIKE ?", []any{"%a%a%a%b"}, -1},
	} {
		a, err := s.Approve(t.Context(), c.sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, err := s.RunParams(t.Context(), a, c.params)
		if c.rows < 0 {
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				r.Release()
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := drain(t, r); len(got) != c.rows {
			t.Errorf("%s: %s", name, got)
		}
		r.Release()
	}
}

// ordinary statements use the same functions as people do.
var ordinaryStatements = []string{
	"SELECT repeat('ab', 3)", "SELECT repeat('-', 20), repeat('=', 40), repeat(name, 10) FROM t", "SELECT repeat('x', 10000)", "SELECT repeat('x', 3::BIGINT)",
	"SELECT lpad(name, 10, '0'), rpad(name, 20, ' '), lpad(id::VARCHAR, 5, '0'), lpad(name, 9, '0'), lpad(name, 8, '0'), lpad(name, 7, '0') FROM t",
	"SELECT range(10), generate_series(1, 12), range(10, 0, -2)", "SELECT unnest(range(1000000)) LIMIT 3", "SELECT unnest(generate_series(1, 3)) AS n",
	"SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY))", "SELECT range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL '1 month')",
	"SELECT range(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00', INTERVAL '90' MINUTE)", "SELECT generate_series('2024-01-05'::DATE, '2024-01-01'::DATE, INTERVAL (-1) DAY)",
	"SELECT d FROM generate_series(DATE '2024-01-01', (SELECT DATE '2024-02-01'), INTERVAL 1 DAY) g(d)", "SELECT i FROM t, range(t.id) r(i)",
	"SELECT count(*) FROM range(2000000)", "SELECT list_transform(range(1, 13), m -> printf('%02d', m))",
	"SELECT printf('%05d', id), printf('%s is %d%%', name, id), printf('%10s|%-10s', name, name), printf('%.2f', id / 3) FROM t",
	"SELECT format('{:.2f}', id / 3), format('{} <{}>', name, id), format('{0} {1} {0}', name, id), format('{{}} {:>10}', name), format('{:,}', id) FROM t",
	"SELECT list_reduce(['a', 'b'], (a, b) -> a || ', ' || b), list_reduce([1, 2, 3], (a, b) -> CASE WHEN a > b THEN a ELSE a * 10 + b END), hex(name) FROM t",
	"SELECT list_resize([1, 2], 5, 0), bitstring('0101', 10), factorial(id), bar(id, 0, 10, 20) FROM t",
	"SELECT levenshtein(name, 'Jon'), jaro_winkler_similarity(name, 'Jon'), damerau_levenshtein(left(name, 200), 'Jon'), jaccard(name, name) FROM t",
	"SELECT levenshtein(lower(left(a.name, 100)), lower(left(b.name, 100))) FROM t a, t b", "SELECT replace(replace(name, '-', ''), ' ', '_'), strftime(DATE '2024-01-01', '%Y-%m-%d') FROM t",
	"SELECT name LIKE '%o%', name LIKE 'J_n%', name ILIKE '%o%', name NOT LIKE '%a%b%c%d%e%', name GLOB 'J*', name LIKE '%10!%%' ESCAPE '!' FROM t",
	"SELECT name ILIKE '%foo%bar%' FROM t", "SELECT a.id FROM t a JOIN t b ON a.name LIKE '%' || b.name || '%'", "SELECT a.id FROM t a, t b WHERE a.name ILIKE concat('%', lower(b.name), '%')",
	"SELECT lower(name) AS name FROM t WHERE name LIKE name || '%'", "SELECT string_agg(name, ', '), max(id, 3), approx_top_k(name, 3), reservoir_quantile(id, 0.5) FROM t",
}

func TestCostlyCallsAreRefused(t *testing.T) {
	s := open(t, "CREATE TABLE t AS SELECT 'Jo' || i AS name, i::INTEGER AS id FROM range(5) r(i)")
	for _, sql := range costlyStatements {
		a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
		var f *fault.Error
		switch {
		case err == nil:
			t.Errorf("allowed: %s\nas %s", sql, a.SQL())
		case !errors.As(err, &f) || f.Code != fault.Refused || f.Hint == "" || f.Position == 0:
			t.Errorf("%s: %+v has no hint or place", sql, err)
		case strings.Contains(f.Msg, "on the list"), f.Kind == "syntax":
			t.Errorf("%s: refused for another reason: %s", sql, f.Msg)
		}
	}
}

func TestOrdinaryCallsRun(t *testing.T) {
	s := open(t, "CREATE TABLE t AS SELECT 'Jo' || i AS name, i::INTEGER AS id FROM range(5) r(i)")
	for _, sql := range ordinaryStatements {
		a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		r, err := s.Run(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for r.Next() {
		}
		if r.Err() != nil {
			t.Errorf("%s: %v", sql, r.Err())
		}
		r.Release()
	}
}

// TestViewsShowNoMore: a plan and an error at will would tell of what a view leaves out.
func TestViewsShowNoMore(t *testing.T) {
	s := open(t, "CREATE TABLE pay (name VARCHAR, amount INTEGER); CREATE VIEW poor AS SELECT * FROM pay WHERE amount < 10")
	poor := func(r sqlguard.Relation) bool { return r.Name == "poor" }
	for sql, want := range map[string]string{
		"EXPLAIN SELECT * FROM poor": "plan of a view",
		"EXPLAIN WITH x AS (SELECT * FROM main.poor) SELECT 1 WHERE EXISTS (SELECT * FROM x)": "plan of a view",
		"SELECT CASE WHEN amount > 9 THEN error('high') END FROM poor":                        "error is not allowed",
		"SELECT (SELECT error('x')) FROM (SELECT * FROM POOR)":                                "error is not allowed",
		"SELECT \"ERROR\"('x') FROM poor":                                                     "error is not allowed",
	} {
		_, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, poor)
		if fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{"SELECT * FROM poor", "EXPLAIN SELECT * FROM pay", "SELECT CASE WHEN amount > 9 THEN error('high') END FROM pay", "EXPLAIN WITH poor AS (SELECT 1) SELECT * FROM poor"} {
		if _, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestPathsOfTheLakeAreNotShown: the text for people names the table, and an error tells no file.
func TestPathsOfTheLakeAreNotShown(t *testing.T) {
	s, root := makeLake(t)
	a := approve(t, s, "SELECT note FROM events WHERE day = '2024-01-01' AND id = 3")
	if !strings.Contains(a.SQL(), root) {
		t.Error("the executed text has no path, so this test proves nothing")
	}
	if want := `SELECT note FROM events WHERE (("day" = '2024-01-01') AND (id = 3))`; a.Shown() != want {
		t.Errorf("shown as %s, want %s", a.Shown(), want)
	}
	if own := approve(t, s, "SELECT title FROM names"); own.Shown() != own.SQL() {
		t.Errorf("without external tables %s is shown as %s", own.SQL(), own.Shown())
	}
	a = approve(t, s, "SELECT CAST(note AS INTEGER) FROM events WHERE day = '2024-01-01'")
	r, err := s.Run(t.Context(), a)
	if err == nil {
		for r.Next() {
		}
		err = r.Err()
		r.Release()
	}
	if err == nil || strings.Contains(fault.Public(err).Msg, root) || strings.Contains(fault.Public(err).Msg, "n0") {
		t.Errorf("the cast's error is %v", err)
	}
}

// TestPruningLeavesTheGateFree: terms that take long hold up neither parsing nor their own statement.
func TestPruningLeavesTheGateFree(t *testing.T) {
	p, err := duckdb.NewParser()
	if err != nil {
		t.Fatal(err)
	}
	// What the gate would not let through: 1e13 steps in a lambda that an interrupt can end.
	tree, err := p.Parse(t.Context(), "SELECT (SELECT count(*) FROM range(10000000000000) r(i) WHERE i % 7 = 3) > 0")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Statements []struct {
			Node struct {
				SelectList []json.RawMessage `json:"select_list"`
			} `json:"node"`
		} `json:"statements"`
	}
	if err := json.Unmarshal(tree, &parsed); err != nil || len(parsed.Statements) != 1 {
		t.Fatal(err, string(tree))
	}
	value := "2024"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, duckdb.ParserConns)
	started := time.Now()
	for range duckdb.ParserConns {
		go func() {
			_, err := p.Prune(ctx, []sqlguard.Column{{Name: "year", Type: "INTEGER"}}, []sqlguard.ExternalFile{{Path: "x", Values: []*string{&value}}}, parsed.Statements[0].Node.SelectList)
			ended <- err
		}()
	}
	var errs []error
	for len(errs) < duckdb.ParserConns {
		select {
		case err := <-ended:
			errs = append(errs, err)
			continue
		default:
		}
		asked := time.Now()
		if _, err := p.Parse(t.Context(), fmt.Sprintf("SELECT %d", len(errs))); err != nil || time.Since(asked) > duckdb.PruneTime/2 {
			t.Errorf("parsing took %s beside slow pruning: %v", time.Since(asked), err)
			cancel()
			break
		}
	}
	cancel()
	for len(errs) < duckdb.ParserConns {
		errs = append(errs, <-ended)
	}
	if took := time.Since(started); took > 5*duckdb.PruneTime {
		t.Errorf("pruning ended after %s", took)
	}
	if slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, duckdb.ErrPruneTime) }) {
		t.Errorf("pruning ended with %v", errs)
	}
}
