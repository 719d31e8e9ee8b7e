package duckdb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sluice/fault"
)

const ownSchema = "CREATE TABLE IF NOT EXISTS t (a VARCHAR)"

// A file of ours is open once, is never a source at the same time, and keeps what was committed, and only that.
func TestOwnFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.duckdb")
	o, err := OpenOwn(t.Context(), path, t.TempDir(), ownSchema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOwn(t.Context(), path, t.TempDir(), ownSchema); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second time: %v", err)
	}
	if _, err := Open(t.Context(), Config{Name: "x", Path: path}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("as a source: %v", err)
	}
	insert := func(tx Tx) error { _, err := tx.Exec("INSERT INTO t VALUES (?)", "'; DROP TABLE t; --"); return err }
	if err := o.Change(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := o.Change(t.Context(), func(tx Tx) error { return errors.Join(insert(tx), stop) }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := o.Change(ctx, func(tx Tx) error { err := insert(tx); cancel(); return err }); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if err := o.Read(t.Context(), insert); err == nil {
		t.Error("a read wrote")
	}
	for what, sql := range map[string]constant{"a number": "SELECT 1", "a file": "SELECT content FROM read_text('/etc/passwd')", "a setting": "SET memory_limit = '1TB'"} {
		if err := o.Read(t.Context(), func(tx Tx) error { _, err := tx.Query(sql); return err }); err == nil {
			t.Errorf("%s was given", what)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if o, err = OpenOwn(t.Context(), path, t.TempDir(), ownSchema); err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	err = o.Read(t.Context(), func(tx Tx) error {
		rows, err := tx.Query("SELECT a FROM t")
		if err == nil && (len(rows) != 1 || !strings.HasPrefix(*rows[0][0], "';")) {
			t.Errorf("%d rows", len(rows))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
