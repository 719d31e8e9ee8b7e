package database

import (
	"math"
	"runtime"
	"testing"

	"sluice/fault"
)

func TestCollect(t *testing.T) {
	s := open(t, "CREATE TABLE big AS SELECT repeat('x', 3000000) AS s")
	const no = math.MaxInt
	for name, c := range map[string]struct {
		sql         string
		rows, bytes int
		want        string
		cut         Cut
	}{
		"whole":                         {"SELECT i, '<' || i AS s FROM range(2) r(i)", no, no, `[[0,"<0"],[1,"<1"]]`, NotCut},
		"no rows":                       {"SELECT 1 WHERE false", no, no, `[]`, NotCut},
		"as many rows as allowed":       {"SELECT * FROM range(2)", 2, no, `[[0],[1]]`, NotCut},
		"one more":                      {"SELECT * FROM range(3)", 2, no, `[[0],[1]]`, CutRows},
		"none wanted":                   {"SELECT 1", 0, no, `[]`, CutRows},
		"as many bytes as allowed":      {"SELECT * FROM range(2)", no, 4, `[[0],[1]]`, NotCut},
		"one byte less":                 {"SELECT * FROM range(2)", no, 3, `[[0]]`, CutBytes},
		"whole rows only":               {"SELECT 1, 'aaaa'", no, 7, `[]`, CutBytes},
		"rows come before bytes":        {"SELECT * FROM range(3)", 1, 2, `[[0]]`, CutRows},
		"texts outlive the batch":       {"SELECT repeat('x', 20) || i FROM range(5000) r(i) WHERE i IN (0, 4999)", no, no, `[["xxxxxxxxxxxxxxxxxxxx0"],["xxxxxxxxxxxxxxxxxxxx4999"]]`, NotCut},
		"a large text":                  {"SELECT s FROM big", no, 1 << 20, `[]`, CutBytes},
		"a large text in a list":        {"SELECT [s] FROM big", no, 1 << 20, `[]`, CutBytes},
		"a large text in a map":         {"SELECT MAP {1: s} FROM big", no, 1 << 20, `[]`, CutBytes},
		"a large text in a struct":      {"SELECT {'a': {'b': s}} FROM big", no, 1 << 20, `[]`, CutBytes},
		"a large blob":                  {"SELECT s::BLOB FROM big", no, 1 << 20, `[]`, CutBytes},
		"a long list of short ones":     {"SELECT range(900000)", no, 1 << 20, `[]`, CutBytes},
		"quotes count as they are sent": {`SELECT '""""'`, no, 8, `[]`, CutBytes},
	} {
		r, err := s.Run(t.Context(), approve(t, s, c.sql))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := Collect(r, c.rows, c.bytes)
		r.Release()
		text, jsonErr := encode(got.Rows)
		if err != nil || jsonErr != nil || got.Cut != c.cut || string(text) != c.want {
			t.Errorf("%s: %s, cut %d, %v %v; want %s, cut %d", name, text, got.Cut, err, jsonErr, c.want, c.cut)
		}
	}
}

// TestCollectEncodesNoHugeCell: what does not fit must not be made first and measured then.
func TestCollectEncodesNoHugeCell(t *testing.T) {
	s := open(t, "CREATE TABLE big AS SELECT repeat('x', 30000000) AS s, range(30000000) AS l")
	for _, sql := range []string{"SELECT s FROM big", "SELECT [s] FROM big", "SELECT l FROM big"} {
		r, err := s.Run(t.Context(), approve(t, s, sql))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Collect(r, 10, 1<<20)
		runtime.ReadMemStats(&after)
		r.Release()
		if err != nil || got.Cut != CutBytes {
			t.Errorf("%s: cut %d, %v", sql, got.Cut, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 4<<20 {
			t.Errorf("%s: %d bytes were allocated for nothing", sql, made)
		}
	}
}

func TestCollectTellsOfAFailure(t *testing.T) {
	s := open(t)
	r, err := s.Run(t.Context(), approve(t, s, "SELECT CASE WHEN i = 500000 THEN error('boom') ELSE i END FROM range(1000000) AS r(i)"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if _, err := Collect(r, math.MaxInt, math.MaxInt); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}
