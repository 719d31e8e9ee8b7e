package duckdb

import (
	"context"
	"errors"
	"os"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
)

// CreateFile makes a new DuckDB file from scripts, such as schema.sql and data.sql of a sample. It refuses a path that
// exists, and leaves nothing behind when it fails.
//
// It runs SQL that did not pass the gate, and no rule is broken by it: the scripts are the operator's own files, named on
// a command line, and the file is new, so there is nobody's data in it. It can never touch a source that is served.
func CreateFile(ctx context.Context, path string, scripts ...string) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.Conflict, "database.CreateFile", "%s exists already", path)
	}
	db, err := openInstance(path, closedSettings("1GB", "2"))
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "database.CreateFile", "%s cannot be created", path)
	}
	defer func() {
		duck.Close(&db)
		if err != nil {
			err = errors.Join(err, os.Remove(path), removeIfThere(path+".wal"))
		}
	}()
	return runScripts(ctx, db, scripts)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// closedSettings are those of an instance that may fetch no extension.
func closedSettings(memory, threads string) map[string]string {
	return map[string]string{"allow_unsigned_extensions": "false", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
		"memory_limit": memory, "threads": threads}
}

func runScripts(ctx context.Context, db duck.Database, scripts []string) error {
	c, err := connect(db)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "database.CreateFile", "the new database cannot be reached")
	}
	defer c.close()
	for _, s := range append([]string{"SET GLOBAL TimeZone = 'UTC'", "SET enable_external_access = false"}, scripts...) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stop := c.watch(ctx)
		err := c.exec(s)
		stop()
		if err != nil {
			return fault.New(fault.Invalid, "database.CreateFile", "the script failed: %v", err)
		}
	}
	return nil
}
