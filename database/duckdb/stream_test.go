package duckdb_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// rss reads the process's resident memory in bytes.
func rss(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(raw)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestRowsStream reads ten million rows, about 700 MB, and looks at the memory on the way.
func TestRowsStream(t *testing.T) {
	s := open(t)
	before, start := rss(t), time.Now()
	r, err := s.Run(t.Context(), approve(t, s, "SELECT i, 'a text of some length, number ' || i AS note, i * 1.5 AS x FROM range(10000000) AS r(i)"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	rows, batches, most := int64(0), 0, int64(0)
	first := time.Duration(0)
	for r.Next() {
		if rows == 0 {
			first = time.Since(start)
		}
		rows += r.RecordBatch().NumRows()
		if batches++; batches%100 == 0 {
			most = max(most, rss(t)-before)
		}
	}
	if r.Err() != nil || rows != 10_000_000 {
		t.Fatal(rows, r.Err())
	}
	t.Logf("first batch after %s, all after %s, at most %d MB more memory", first, time.Since(start), most>>20)
	if most > 300<<20 {
		t.Errorf("memory grew by %d MB", most>>20)
	}
}

// TestSlowReaderHoldsTheEngineBack reads a little of a large result, waits for nothing, and looks at what was computed.
func TestSlowReaderHoldsTheEngineBack(t *testing.T) {
	s := open(t)
	before := rss(t)
	r, err := s.Run(t.Context(), approve(t, s, "SELECT i, repeat('x', 500) || i AS note FROM range(1000000000) AS r(i)"))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if grown := rss(t) - before; grown > 200<<20 {
		t.Errorf("one batch costs %d MB", grown>>20)
	}
	released := time.Now()
	r.Release()
	if d := time.Since(released); d > 5*time.Second {
		t.Errorf("leaving a large result takes %s", d)
	}
}

func TestCancel(t *testing.T) {
	s := open(t)
	cause := errors.New("the client left")
	for name, sql := range map[string]string{
		"before the first row": "SELECT count(*) FROM range(1000000000000) a(i) WHERE i % 7 = 3",
		"between batches":      "SELECT i FROM range(1000000000000) AS r(i)",
		"in a recursion":       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		r, err := s.Run(ctx, approve(t, s, sql))
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Release()
		}
		if fault.CodeOf(err) != fault.Canceled || !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: it took %s", name, d)
		}
	}
	if got := run(t, s, "SELECT 1"); !slices.Equal(got, []string{"[1]"}) {
		t.Errorf("after it: %v", got)
	}
}

func TestErrorInMidStream(t *testing.T) {
	s := open(t)
	r, err := s.Run(t.Context(), approve(t, s, "SELECT CASE WHEN i = 500000 THEN error('boom') ELSE i END FROM range(1000000) AS r(i)"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
	}
	var f *fault.Error
	if !errors.As(r.Err(), &f) || f.Code != fault.Invalid || f.Kind != "query" {
		t.Errorf("%v", r.Err())
	}
}

// TestSortSpills sorts more than fits into the memory limit.
func TestSortSpills(t *testing.T) {
	s := openAs(t, database.Config{Name: "s", Path: t.TempDir() + "/s.duckdb", MemoryLimit: "150MB", Threads: 1}, nil,
		"CREATE TABLE t AS SELECT hash(i) AS h, repeat('x', 100) || i AS s FROM range(2000000) r(i)")
	r, err := s.Run(t.Context(), approve(t, s, "SELECT h, s FROM t ORDER BY h"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	n := int64(0)
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	if n != 2_000_000 || r.Err() != nil {
		t.Error(n, r.Err())
	}
}

func TestExplain(t *testing.T) {
	s := open(t, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)")
	a := approve(t, s, "EXPLAIN SELECT * FROM t WHERE a = 1")
	if !a.Explain() || len(a.Relations()) != 1 {
		t.Errorf("%+v", a)
	}
	if got := run(t, s, "EXPLAIN SELECT * FROM t WHERE a = 1"); len(got) != 1 || !bytes.Contains([]byte(got[0]), []byte("SEQ_SCAN")) {
		t.Errorf("%v", got)
	}
}

func TestTypesAndValues(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct{ sql, typ, value string }{
		"boolean":                   {"true", "BOOLEAN", "true"},
		"null":                      {"NULL::VARCHAR", "TEXT", "null"},
		"tinyint":                   {"(-128)::TINYINT", "TINYINT", "-128"},
		"bigint within 2^53":        {"9007199254740992::BIGINT", "BIGINT", "9007199254740992"},
		"bigint beyond":             {"9007199254740993::BIGINT", "BIGINT", `"9007199254740993"`},
		"unsigned":                  {"18446744073709551615::UBIGINT", "UBIGINT", `"18446744073709551615"`},
		"hugeint":                   {"(-9007199254740993)::HUGEINT", "DECIMAL(38,0)", `"-9007199254740993"`},
		"sum of integers":           {"sum(x) FROM (VALUES (2000000000), (2000000001)) v(x)", "BIGINT", "4000000001"},
		"hugeint within 2^53":       {"(-9007199254740992)::HUGEINT", "DECIMAL(38,0)", `"-9007199254740992"`},
		"hugeint of 38 digits":      {"99999999999999999999999999999999999999::HUGEINT", "DECIMAL(38,0)", `"99999999999999999999999999999999999999"`},
		"unsigned hugeint":          {"7::UHUGEINT", "DECIMAL(38,0)", `"7"`},
		"hugeints in lists":         {"[MAP {1::HUGEINT: 2::HUGEINT}]", "MAP(DECIMAL(38,0), DECIMAL(38,0))[]", `[{"1":"2"}]`},
		"a decimal without places":  {"5::DECIMAL(38,0)", "DECIMAL(38,0)", `"5"`},
		"decimal":                   {"(-1234567.89)::DECIMAL(18,2)", "DECIMAL(18,2)", `"-1234567.89"`},
		"double":                    {"1.5::DOUBLE", "DOUBLE", "1.5"},
		"an exponent is a double":   {"1.5e3", "DOUBLE", "1500"},
		"float":                     {"0.1::FLOAT", "FLOAT", "0.1"},
		"not a number":              {"'nan'::DOUBLE", "DOUBLE", `"NaN"`},
		"infinity":                  {"'-inf'::DOUBLE", "DOUBLE", `"-Infinity"`},
		"text":                      {"'a\"é'", "TEXT", `"a\"é"`},
		"blob":                      {"'\\x00\\xFFab'::BLOB", "BLOB", `"AP9hYg=="`},
		"date":                      {"DATE '2026-01-31'", "DATE", `"2026-01-31"`},
		"an old date":               {"DATE '0001-01-01'", "DATE", `"0001-01-01"`},
		"time":                      {"TIME '23:59:59.5'", "TIME", `"23:59:59.5"`},
		"time with zone":            {"'10:00:00+01:30'::TIMETZ", "TEXT", `"10:00:00+01:30"`},
		"timestamp":                 {"TIMESTAMP '2024-03-31 02:30:00.123456'", "TIMESTAMP", `"2024-03-31T02:30:00.123456Z"`},
		"timestamp with zone":       {"TIMESTAMPTZ '2024-03-31 02:30:00+02'", "TIMESTAMPTZ", `"2024-03-31T00:30:00Z"`},
		"timestamp in nanoseconds":  {"TIMESTAMP_NS '2024-03-31 02:30:00.123456789'", "TIMESTAMP_NS", `"2024-03-31T02:30:00.123456789Z"`},
		"timestamp in seconds":      {"TIMESTAMP_S '2024-03-31 02:30:00'", "TIMESTAMP_S", `"2024-03-31T02:30:00Z"`},
		"infinite timestamp":        {"'infinity'::TIMESTAMP", "TIMESTAMP", `"infinity"`},
		"the end of the day":        {"TIME '24:00:00'", "TIME", `"24:00:00"`},
		"midnight":                  {"TIME '00:00:00'", "TIME", `"00:00:00"`},
		"the end of a zoned day":    {"'24:00:00+01'::TIMETZ", "TEXT", `"24:00:00+01"`},
		"a date BC":                 {"DATE '0044-03-15 (BC)'", "DATE", `"0044-03-15 (BC)"`},
		"a timestamp BC":            {"TIMESTAMP '0044-03-15 (BC) 10:30:00'", "TIMESTAMP", `"0044-03-15T10:30:00Z (BC)"`},
		"a struct without names":    {"row(1, row(true, 'x'))", "STRUCT(INTEGER, STRUCT(BOOLEAN, TEXT))", `[1,[true,"x"]]`},
		"interval":                  {"INTERVAL '1 year 2 months 3 days 4.5 seconds'", "INTERVAL", `"P1Y2M3DT4.5S"`},
		"uuid":                      {"'7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60'::UUID", "UUID", `"7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60"`},
		"json":                      {`'{"b":1,"a":[1,2]}'::JSON`, "JSON", `{"b":1,"a":[1,2]}`},
		"bits":                      {"'0101'::BIT", "TEXT", `"0101"`},
		"enum":                      {"'paid'::ENUM('new', 'paid')", "TEXT", `"paid"`},
		"list":                      {"[1, NULL, 3]", "INTEGER[]", "[1,null,3]"},
		"empty list":                {"[]::VARCHAR[]", "TEXT[]", "[]"},
		"list of booleans":          {"[true, NULL, false]", "BOOLEAN[]", "[true,null,false]"},
		"array":                     {"[1, 2]::INTEGER[2]", "INTEGER[2]", "[1,2]"},
		"struct":                    {"{'a': 1, 'b': true, 'c': 5::HUGEINT}", "STRUCT(a INTEGER, b BOOLEAN, c DECIMAL(38,0))", `{"a":1,"b":true,"c":"5"}`},
		"map":                       {"MAP {'k1': 10, 'k2': NULL}", "MAP(TEXT, INTEGER)", `{"k1":10,"k2":null}`},
		"map of booleans":           {"MAP {1: true}", "MAP(INTEGER, BOOLEAN)", `{"1":true}`},
		"list of maps":              {"[MAP {1: true}]", "MAP(INTEGER, BOOLEAN)[]", `[{"1":true}]`},
		"struct with a list":        {"{'a': [true]}", "STRUCT(a BOOLEAN[])", `{"a":[true]}`},
		"the session's zone is UTC": {"CAST(TIMESTAMPTZ '2024-07-01 00:00:00+00' AS VARCHAR)", "TEXT", `"2024-07-01 00:00:00+00"`},
	} {
		r, err := s.Run(t.Context(), approve(t, s, "SELECT "+c.sql))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if typ := database.ColumnType(r.Schema().Field(0)); typ != c.typ {
			t.Errorf("%s: type %s, want %s", name, typ, c.typ)
		}
		if got := drain(t, r); !slices.Equal(got, []string{"[" + c.value + "]"}) {
			t.Errorf("%s: %s, want %s", name, got, c.value)
		}
		r.Release()
	}
}

func TestTypesThatCannotBeReturned(t *testing.T) {
	s := open(t)
	for sql, kind := range map[string]string{"SELECT 1::BIGNUM": "type", "SELECT 170141183460469231731687303715884105727::HUGEINT": "range"} {
		r, err := s.Run(t.Context(), approve(t, s, sql))
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Release()
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != kind {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestParams(t *testing.T) {
	s := open(t)
	a := approve(t, s, "SELECT $1 + 1, $2")
	r, err := s.RunParams(t.Context(), a, []any{int64(41), "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(t, r); !slices.Equal(got, []string{`[42,"x"]`}) {
		t.Error(got)
	}
	r.Release()
	for name, params := range map[string][]any{"too few": {int64(1)}, "none": nil, "an odd type": {int64(1), math.Pi, 3}} {
		if _, err := s.RunParams(t.Context(), a, params); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkApprove measures the gate, catalogue included.
func BenchmarkApprove(b *testing.B) {
	s := fixture(b)
	sql := "SELECT c.region, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.region ORDER BY 2 DESC"
	for b.Loop() {
		if _, err := s.Approve(b.Context(), sql, sqlguard.ReadOnly, everything); err != nil {
			b.Fatal(err)
		}
	}
}

// leaving is a context that ends between two looks at it, and wakes nobody: what a cancellation looks like that comes
// while the engine fetches.
type leaving struct {
	context.Context
	looks int // how many times it is still alive
}

func (l *leaving) Done() <-chan struct{} { return nil }
func (l *leaving) Err() error {
	if l.looks--; l.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestAnEndByCancellationIsNoEnd: a fetch that was interrupted may give no rows and no error.
func TestAnEndByCancellationIsNoEnd(t *testing.T) {
	s := open(t)
	for _, sql := range []string{"SELECT 1 WHERE false", "SELECT 1"} {
		ctx := &leaving{Context: t.Context(), looks: math.MaxInt}
		r, err := s.Run(ctx, approve(t, s, sql))
		if err != nil {
			t.Fatal(err)
		}
		if sql == "SELECT 1" && !r.Next() {
			t.Fatal(r.Err())
		}
		ctx.looks = 1
		if r.Next() || fault.CodeOf(r.Err()) != fault.Canceled {
			t.Errorf("%s: a result that was cancelled at its end passes for whole: %v", sql, r.Err())
		}
		r.Release()
	}
}

// TestApproveAsksNoClosedInstance: the second opinion needs an open file too.
func TestApproveAsksNoClosedInstance(t *testing.T) {
	s := open(t)
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := approve(t, s, "SELECT 1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.engine.Check(gone, cat, a); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("after the caller left: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approve(t.Context(), "SELECT 1", sqlguard.ReadOnly, everything); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("after Close: %v", err)
	}
}
