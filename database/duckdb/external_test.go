package duckdb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/database"
	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/sqlguard"
)

// lake is a set of external tables on disk.
type lake struct{ tables []sqlguard.Table }

func (l *lake) Tables(context.Context, string) ([]sqlguard.Table, error) { return l.tables, nil }

// makeLake writes a table partitioned by day and region, with one file a partition, and opens a source with it. Files
// whose day is broken are not Parquet at all: who opens one fails.
func makeLake(t *testing.T) (s *source, root string) {
	t.Helper()
	s, root, _ = makeChangingLake(t)
	return s, root
}

// makeChangingLake gives the lake too, whose tables may be exchanged.
func makeChangingLake(t *testing.T) (s *source, root string, l *lake) {
	t.Helper()
	root = t.TempDir()
	var copies []string
	var files []sqlguard.ExternalFile
	ext := &sqlguard.External{Partitions: []sqlguard.Column{{Name: "day", Type: "DATE", Nullable: true}, {Name: "Region", Type: "VARCHAR", Nullable: true}}}
	for i, day := range []string{"2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"} {
		for _, region := range []string{"eu", "us"} {
			dir := filepath.Join(root, "events", "day="+day, "Region="+region)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "part-0.parquet")
			if day == "2024-01-04" {
				if err := os.WriteFile(file, []byte("broken"), 0o644); err != nil {
					t.Fatal(err)
				}
			} else {
				copies = append(copies, fmt.Sprintf("COPY (SELECT range + %d AS id, 'n' || range AS note FROM range(10)) TO %s (FORMAT parquet)", 100*i, duckdb.QuoteText(file)))
			}
			files = append(files, sqlguard.ExternalFile{Path: file, Values: []*string{&day, &region}})
		}
	}
	duckdb.ExecUnlocked(t, copies...)
	ext.Files = func(context.Context) ([]sqlguard.ExternalFile, error) { return files, nil }
	columns := []sqlguard.Column{{Name: "id", Type: "BIGINT"}, {Name: "note", Type: "VARCHAR"}, {Name: "day", Type: "DATE"}, {Name: "Region", Type: "VARCHAR"}}
	table := func(name string, e *sqlguard.External) sqlguard.Table {
		return sqlguard.Table{Relation: sqlguard.Relation{Schema: "main", Name: name}, Columns: columns, External: e}
	}
	empty := &sqlguard.External{Partitions: ext.Partitions, Files: func(context.Context) ([]sqlguard.ExternalFile, error) { return nil, nil }}
	broken := &sqlguard.External{Files: func(context.Context) ([]sqlguard.ExternalFile, error) {
		return nil, fault.New(fault.Conflict, "lake", "the folder is away")
	}}
	l = &lake{[]sqlguard.Table{table("events", ext), table("nothing", empty), table("broken", broken)}}
	cfg := database.Config{Name: "shop", Path: filepath.Join(t.TempDir(), "shop.duckdb"), LakeRoots: []string{root}, Threads: 2}
	return openAs(t, cfg, l, "CREATE TABLE names (region VARCHAR, title VARCHAR); INSERT INTO names VALUES ('eu', 'Europe'), ('us', 'States'), ('xx', 'None')"), root, l
}

func TestExternalTables(t *testing.T) {
	s, _ := makeLake(t)
	const good = " AND day < DATE '2024-01-04'" // leaves the broken files out
	for name, c := range map[string]struct {
		sql    string
		rows   []string
		opened int
	}{
		"one partition":                       {"SELECT count(*) FROM events WHERE day = DATE '2024-01-03' AND region = 'eu'", []string{"[10]"}, 1},
		"a bare string is compared as a date": {"SELECT min(id) FROM events WHERE day = '2024-01-02'", []string{"[100]"}, 2},
		"an alias before the column":          {"SELECT count(*) FROM events e WHERE e.day = DATE '2024-01-03'", []string{"[20]"}, 2},
		"the schema before the column":        {"SELECT count(*) FROM main.events WHERE main.events.day = DATE '2024-01-03'", []string{"[20]"}, 2},
		"IN and BETWEEN":                      {"SELECT count(*) FROM events WHERE region IN ('us') AND day BETWEEN '2024-01-01' AND '2024-01-02'", []string{"[20]"}, 2},
		"OR of partition columns":             {"SELECT count(*) FROM events WHERE (region = 'us' OR day = '2024-01-01')" + good, []string{"[40]"}, 4},
		"a pure function of one":              {"SELECT count(*) FROM events WHERE year(day) = 2024 AND month(day) = 1 AND extract(day FROM day) = 2", []string{"[20]"}, 2},
		"the file's own columns stay out":     {"SELECT count(*) FROM events WHERE id = 3" + good, []string{"[2]"}, 6},
		"OR with a file column prunes not":    {"SELECT count(*) FROM events WHERE (day = '2024-01-01' OR id = 105)" + good, []string{"[22]"}, 6},
		"no file is left":                     {"SELECT id, note, day, \"Region\" FROM events WHERE day = DATE '1999-01-01'", []string{}, 0},
		"no file is left, counted":            {"SELECT count(*) FROM events WHERE day = DATE '1999-01-01'", []string{"[0]"}, 0},
		"a table without files":               {"SELECT count(*), max(day) FROM nothing", []string{"[0,null]"}, 0},
		"columns in the table's order":        {"SELECT * FROM events WHERE day = '2024-01-01' AND region = 'eu' AND id = 1", []string{`[1,"n1","2024-01-01","eu"]`}, 1},
		"joined, its own terms prune": {"SELECT n.title, count(*) FROM events e JOIN names n ON n.region = e.\"Region\" WHERE e.day = '2024-01-02' GROUP BY 1 ORDER BY 1",
			[]string{`["Europe",10]`, `["States",10]`}, 2},
		"on the empty side of an outer join nothing is pruned by WHERE": {"SELECT n.title FROM names n LEFT JOIN (SELECT * FROM events WHERE day < '2024-01-04') e ON n.region = e.\"Region\" WHERE e.day IS NULL",
			[]string{`["None"]`}, 6},
		"the kept side of an outer join":         {"SELECT count(*) FROM events e LEFT JOIN names n ON n.region = e.\"Region\" WHERE e.day = '2024-01-01'", []string{"[20]"}, 2},
		"right of LEFT JOIN":                     {"SELECT 1 FROM names n LEFT JOIN events e ON n.region = e.\"Region\" WHERE e.day = '2024-01-01'", nil, 8},
		"left of RIGHT JOIN":                     {"SELECT 1 FROM events e RIGHT JOIN names n ON n.region = e.\"Region\" WHERE e.day = '2024-01-01'", nil, 8},
		"in a FULL JOIN":                         {"SELECT 1 FROM events e FULL JOIN names n ON n.region = e.\"Region\" WHERE e.day = '2024-01-01'", nil, 8},
		"inside the empty side":                  {"SELECT 1 FROM names n LEFT JOIN (events e JOIN names m ON m.region = e.\"Region\") ON n.region = m.region WHERE e.day = '2024-01-01'", nil, 8},
		"right of ASOF JOIN":                     {"SELECT 1 FROM names n ASOF JOIN events e ON n.region >= e.\"Region\" WHERE e.day = '2024-01-01'", nil, 8},
		"a sample is of all rows":                {"SELECT 1 FROM events TABLESAMPLE 50% WHERE day = '2024-01-01'", nil, 8},
		"a sample of the SELECT":                 {"SELECT 1 FROM events WHERE day = '2024-01-01' USING SAMPLE 50%", nil, 8},
		"inside a sampled subquery":              {"SELECT 1 FROM (SELECT * FROM events WHERE day = '2024-01-01') q TABLESAMPLE 50%", nil, 8},
		"a subquery of a sampled SELECT":         {"SELECT 1 FROM (SELECT * FROM events WHERE day = '2024-01-01') q USING SAMPLE 50%", nil, 8},
		"beside a sampled table it still prunes": {"SELECT 1 FROM names n TABLESAMPLE 50%, events WHERE day = '2024-01-01'", nil, 2},
		"a time zone decides":                    {"SELECT 1 FROM events WHERE day::TIMESTAMPTZ = '2024-01-01' AND day = to_timestamp(0)::DATE", nil, 8},
		"inside a CTE":                           {"WITH x AS (SELECT * FROM events WHERE day = '2024-01-01') SELECT count(*) FROM x WHERE region = 'eu'", []string{"[10]"}, 2},
		"no term is evaluated with a clock":      {"SELECT count(*) FROM events WHERE day < current_date - 100000 AND day < '2024-01-04'", []string{"[0]"}, 6},
		"a name that two tables have is nobody's": {"SELECT count(*) FROM events e, names n WHERE region = 'eu' AND e.day = '2024-01-01' AND e.\"Region\" = n.region",
			nil, 2},
	} {
		a, err := s.Approve(t.Context(), c.sql, sqlguard.ReadOnly, everything)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sc := a.Scans(); len(sc) != 1 || sc[0].Opened != c.opened || (sc[0].Total != 8 && !strings.Contains(c.sql, "nothing")) {
			t.Errorf("%s: scans %v, want %d opened\n%s", name, sc, c.opened, a.SQL())
		}
		if c.rows == nil {
			continue // the engine finds the name ambiguous
		}
		r, err := s.Run(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, a.SQL())
			continue
		}
		if got := drain(t, r); !slices.Equal(got, c.rows) {
			t.Errorf("%s: %v, want %v\n%s", name, got, c.rows, a.SQL())
		}
		r.Release()
	}
}

func TestExternalTablesKeepTheirTypesWhenEmpty(t *testing.T) {
	s, _ := makeLake(t)
	a, err := s.Approve(t.Context(), "SELECT * FROM events WHERE day = DATE '1999-01-01'", sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for _, f := range r.Schema().Fields() {
		got = append(got, f.Name+" "+database.ColumnType(f))
	}
	if want := []string{"id BIGINT", "note TEXT", "day DATE", "Region TEXT"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestExternalTablesShowNothingElse holds that user text cannot reach what read_parquet adds, nor read_parquet.
func TestExternalTablesShowNothingElse(t *testing.T) {
	s, root := makeLake(t)
	file := filepath.Join(root, "events", "day=2024-01-01", "Region=eu", "part-0.parquet")
	for _, sql := range []string{
		"SELECT filename FROM events WHERE day = '2024-01-01'",
		"SELECT file_row_number FROM events WHERE day = '2024-01-01'",
		"SELECT events.filename FROM events WHERE day = '2024-01-01'",
		"SELECT rowid FROM events",
		"SELECT * FROM read_parquet(" + duckdb.QuoteText(file) + ")",
		"SELECT * FROM " + duckdb.QuoteName(file),
		"SELECT * FROM " + duckdb.QuoteText(file),
	} {
		if a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything); err == nil {
			t.Errorf("%s: approved as %s", sql, a.SQL())
		}
	}
	if _, err := s.Approve(t.Context(), "SELECT * FROM events", sqlguard.ReadOnly, func(r sqlguard.Relation) bool { return r.Name != "events" }); err == nil {
		t.Error("an external table is read without a grant")
	}
}

// TestOnlyNamedTablesAreListed holds that a lake in trouble stops the statements that read it and no other.
func TestOnlyNamedTablesAreListed(t *testing.T) {
	s, _, l := makeChangingLake(t)
	if got := run(t, s, "SELECT count(*) FROM names"); !slices.Equal(got, []string{"[3]"}) {
		t.Errorf("%v", got)
	}
	listed := 0
	l.tables = []sqlguard.Table{{Relation: sqlguard.Relation{Schema: "main", Name: "events"}, Columns: []sqlguard.Column{{Name: "id", Type: "BIGINT"}},
		External: &sqlguard.External{Files: func(context.Context) ([]sqlguard.ExternalFile, error) { listed++; return nil, nil }}}}
	for sql, want := range map[string]int{"SELECT 1": 0, "SELECT * FROM events WHERE nope = 1": 0, "SELECT * FROM read_text('x'), events": 0, "SELECT * FROM events a, events b": 1} {
		listed = 0
		if _, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything); (err == nil) != (sql == "SELECT 1" || want == 1) || listed != want {
			t.Errorf("%s: listed %d times, want %d, %v", sql, listed, want, err)
		}
	}
	if _, err := s.Approve(t.Context(), "SELECT * FROM events", sqlguard.ReadOnly, func(sqlguard.Relation) bool { return false }); err == nil || listed > 1 {
		t.Error("a table without a grant was listed", listed, err)
	}
}

func TestAListErrorReachesTheCaller(t *testing.T) {
	s, _ := makeLake(t)
	_, err := s.Approve(t.Context(), "SELECT * FROM broken", sqlguard.ReadOnly, everything)
	if f := fault.Public(err); f.Code != fault.Conflict || f.Msg != "the folder is away" {
		t.Errorf("%+v", f)
	}
}

// TestAFileThatVanishes: an overwrite deletes the files of a statement that was approved just before.
func TestAFileThatVanishes(t *testing.T) {
	s, root := makeLake(t)
	a := approve(t, s, "SELECT * FROM events WHERE day = '2024-01-02'")
	if err := os.RemoveAll(filepath.Join(root, "events", "day=2024-01-02", "Region=us")); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), a)
	if err == nil {
		for r.Next() {
		}
		err = r.Err()
		r.Release()
	}
	if f := fault.Public(err); f.Code != fault.Busy || f.RetryAfter != time.Second || !strings.Contains(f.Msg, "ask again") || strings.Contains(f.Msg, root) {
		t.Errorf("%+v", f)
	}
	// A file that is there and broken is no reason to ask again.
	r, err = s.Run(t.Context(), approve(t, s, "SELECT * FROM events WHERE day = '2024-01-04'"))
	if err == nil {
		r.Release()
	}
	if fault.CodeOf(err) == fault.Busy || err == nil {
		t.Errorf("a broken file: %v", err)
	}
}
