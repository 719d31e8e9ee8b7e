package database

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpillFoldersOfTheKilledGo opens a source where others left folders behind. Only what nobody holds, and is of
// ours, may go.
func TestSpillFoldersOfTheKilledGo(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "home", "tmp")
	live, err := newSpill(tmp)
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
	make("sluice-spill-1", spillLock, "duckdb_temp_storage_DEFAULT-0.tmp", "duckdb_temp_block-7.block")
	make("sluice-spill-2", spillLock, "duckdb_temp_storage_DEFAULT-0.tmp", "notes.txt")
	make("sluice-spill-3", "notes.txt") // no lock of ours: not ours
	make("other", spillLock, "duckdb_temp_storage_DEFAULT-0.tmp")
	make(filepath.Base(live.dir), "duckdb_temp_storage_DEFAULT-0.tmp")

	path := filepath.Join(t.TempDir(), "x.duckdb")
	if err := CreateFile(t.Context(), path, "CREATE TABLE t (a INTEGER)"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Name: "x", Path: path, TempDir: tmp, Threads: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := s.in.spill.dir
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
		filepath.Base(live.dir) + "/duckdb_temp_storage_DEFAULT-0.tmp": true, filepath.Base(own): true,
	} {
		if there(name) != want {
			t.Errorf("%s: there is %v", name, !want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := live.remove(); err != nil {
		t.Fatal(err)
	}
	if there(filepath.Base(own)) || there(filepath.Base(live.dir)) {
		t.Error("a folder stays after Close")
	}
}
