package database

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/sqlguard"
)

// open makes a database from scripts and opens it. The front's tests use DuckDB: what is shown of it here holds for every
// engine.
func open(t testing.TB, scripts ...string) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.duckdb")
	if err := CreateFile(t.Context(), path, scripts...); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Name: "test", Path: path, MemoryLimit: "1GB", Threads: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func approve(t *testing.T, s *Source, sql string) sqlguard.Approved {
	t.Helper()
	a, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func everything(sqlguard.Relation) bool { return true }

// TestMain fails when a goroutine, such as a watch for a cancelled statement, outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are external tables, which every database would be offered.
type files struct{}

func (files) Tables(context.Context, string) ([]sqlguard.Table, error) {
	return []sqlguard.Table{{Relation: sqlguard.Relation{Name: "events"}, Columns: []sqlguard.Column{{Name: "id", Type: "BIGINT"}}, External: &sqlguard.External{}}}, nil
}

// within waits until something holds that must hold soon.
func within(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not happen in 10 s")
		}
	}
}
