package duckdb_test

import (
	"os"
	"path/filepath"
	"testing"

	"sluice/database"
	"sluice/database/duckdb"
)

// TestSpillFoldersOfTheKilledGo opens a source where others left folders behind. Only what nobody holds, and is of
// ours, may go.
func TestSpillFoldersOfTheKilledGo(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "home", "tmp")
	live, err := duckdb.NewSpill(tmp)
	if err != nil {
		t.Fatal(err)
	}
	make := func(folder string, files ...string) {
		for _, f := range files {
			path := filepath.Join(tmp, folder, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	make("sluice-spill-1", duckdb.SpillLock, "duckdb_temp_storage_DEFAULT-0.tmp", "duckdb_temp_block-7.block")
	make("sluice-spill-2", duckdb.SpillLock, "duckdb_temp_storage_DEFAULT-0.tmp", "notes.txt")
	make("sluice-spill-3", "notes.txt") // no lock of ours: not ours
	make("other", duckdb.SpillLock, "duckdb_temp_storage_DEFAULT-0.tmp")
	make(filepath.Base(live.Dir()), "duckdb_temp_storage_DEFAULT-0.tmp")

	s := openAs(t, database.Config{Name: "x", Path: filepath.Join(t.TempDir(), "x.duckdb"), TempDir: tmp, Threads: 1}, nil, "CREATE TABLE t (a INTEGER)")
	own := s.engine.SpillDir()
	if filepath.Dir(own) != tmp {
		t.Errorf("it spills to %s", own)
	}
	there := func(names ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{tmp}, names...)...))
		return err == nil
	}
	for name, want := range map[string]bool{
		"sluice-spill-1": false, "sluice-spill-2/duckdb_temp_storage_DEFAULT-0.tmp": false, "sluice-spill-2/notes.txt": true,
		"sluice-spill-3/notes.txt": true, "other/duckdb_temp_storage_DEFAULT-0.tmp": true,
		filepath.Base(live.Dir()) + "/duckdb_temp_storage_DEFAULT-0.tmp": true, filepath.Base(own): true,
	} {
		if there(name) != want {
			t.Errorf("%s: there is %v", name, !want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := live.Remove(); err != nil {
		t.Fatal(err)
	}
	if there(filepath.Base(own)) || there(filepath.Base(live.Dir())) {
		t.Error("a folder stays after Close")
	}
}
