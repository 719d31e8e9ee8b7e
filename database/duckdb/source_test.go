package duckdb_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"go.uber.org/goleak"

	"sluice/database"
	"sluice/database/duckdb"
	"sluice/sqlguard"
)

// source is a database as the rest of the program has it, and the engine behind it: one instance, which both have open.
type source struct {
	*database.Source
	engine *duckdb.Engine
}

// open makes a database from scripts and opens it.
func open(t testing.TB, scripts ...string) *source {
	t.Helper()
	return openAs(t, database.Config{Name: "test", Path: filepath.Join(t.TempDir(), "source.duckdb"), MemoryLimit: "1GB", Threads: 2}, nil, scripts...)
}

// openAs makes a database from scripts and opens it in a way of the test's own.
func openAs(t testing.TB, cfg database.Config, ext database.Externals, scripts ...string) *source {
	t.Helper()
	if err := duckdb.CreateFile(t.Context(), cfg.Path, scripts...); err != nil {
		t.Fatal(err)
	}
	s, err := database.Open(t.Context(), cfg, ext)
	if err != nil {
		t.Fatal(err)
	}
	e, err := duckdb.Open(t.Context(), duckdb.Config{Name: cfg.Name, Path: cfg.Path, Writable: cfg.Writable, SessionTimezone: cfg.SessionTimezone,
		LakeRoots: cfg.LakeRoots, MemoryLimit: cfg.MemoryLimit, Threads: cfg.Threads, TempDir: cfg.TempDir})
	if err != nil {
		t.Fatal(err)
	}
	out := &source{Source: s, engine: e}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// Close closes both.
func (s *source) Close() error {
	if err := s.engine.Close(); err != nil {
		return err
	}
	return s.Source.Close()
}

func approve(t *testing.T, s *source, sql string) sqlguard.Approved {
	t.Helper()
	a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func run(t *testing.T, s *source, sql string) []string {
	t.Helper()
	r, err := s.Run(t.Context(), approve(t, s, sql))
	if err != nil {
		t.Fatal(sql, err)
	}
	defer r.Release()
	return drain(t, r)
}

func everything(sqlguard.Relation) bool { return true }

// drain gives the rows of a reader as JSON lines.
func drain(t *testing.T, r array.RecordReader) []string {
	t.Helper()
	out := []string{}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			row := make([]any, b.NumCols())
			for j := range row {
				row[j] = database.JSONValue(b.Schema().Field(j), b.Column(j), i)
			}
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(line))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMain fails when a goroutine, such as a watch for a cancelled statement, outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
