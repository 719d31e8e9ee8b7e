package rag

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/database"
	"sluice/sqlguard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient waits for whatever a slow machine takes.
var patient = Config{Wait: time.Minute, Statement: time.Minute}

func everyone(sqlguard.Relation) bool { return true }

// allBut may read every table but the named ones.
func allBut(names ...string) func(sqlguard.Relation) bool {
	return func(r sqlguard.Relation) bool { return !contains(names, r.Name) }
}

// duck makes a DuckDB database of scripts and opens it.
func duck(t testing.TB, scripts ...string) *database.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.duckdb")
	if err := database.CreateFile(t.Context(), path, scripts...); err != nil {
		t.Fatal(err)
	}
	src, err := database.Open(t.Context(), database.Config{Name: "shop", Path: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

// shopdesk is the project's own test database.
func shopdesk(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"schema.sql", "data.sql"} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "nl2sql", "shopdesk", name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func profiler(t testing.TB, cfg Config) *Profiler {
	p := NewProfiler(cfg)
	t.Cleanup(p.Close)
	return p
}

// know profiles a database whole.
func know(t testing.TB, src Source, may func(sqlguard.Relation) bool) *Knowledge {
	t.Helper()
	return learn(t, profiler(t, patient), src, may)
}

func learn(t testing.TB, p *Profiler, src Source, may func(sqlguard.Relation) bool) *Knowledge {
	t.Helper()
	k, err := p.Knowledge(context.Background(), src, may)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Complete() {
		t.Fatal("a table was not looked at")
	}
	return k
}

func inMain(name string) sqlguard.Relation { return sqlguard.Relation{Schema: "main", Name: name} }

func column(table, name string) ColumnRef { return ColumnRef{inMain(table), name} }
