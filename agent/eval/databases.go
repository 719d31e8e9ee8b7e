package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice/agent"
	"sluice/database"
	"sluice/fault"
)

type source = agent.Source

// builder makes a database of a set's two scripts and opens it for reading.
type builder interface {
	build(ctx context.Context, name, schema, data string) (*database.Source, error)
	close() error // removes what was built; the sources are closed before
}

// databases are the databases of a set, each built from its scripts when it is first asked for, and then opened read-only.
type databases struct {
	set  string
	on   builder
	open map[string]*database.Source
}

func newDatabases(set string, on builder) *databases {
	return &databases{set: set, on: on, open: map[string]*database.Source{}}
}

// script reads one of a database's files, schema.sql or data.sql, as it is.
func (d *databases) script(db, name string) (string, error) {
	path := filepath.Join(d.set, db, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "eval.databases", "cannot read %s", path)
	}
	return string(data), nil
}

func (d *databases) source(ctx context.Context, db string) (source, error) {
	if src, ok := d.open[db]; ok {
		return src, nil
	}
	schema, err := d.script(db, "schema.sql")
	if err != nil {
		return nil, err
	}
	data, err := d.script(db, "data.sql")
	if err != nil {
		return nil, err
	}
	src, err := d.on.build(ctx, db, schema, data)
	if err != nil {
		return nil, err
	}
	d.open[db] = src
	return src, nil
}

func (d *databases) close() error {
	var errs []error
	for _, src := range d.open {
		errs = append(errs, src.Close())
	}
	return errors.Join(append(errs, d.on.close())...)
}

// files builds DuckDB files in a folder of its own.
type files struct{ work string }

func newFiles(workDir string) (*files, error) {
	work, err := os.MkdirTemp(workDir, "nl2sql-")
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.databases", "cannot make a folder for the databases in %s", workDir)
	}
	return &files{work: work}, nil
}

func (f *files) build(ctx context.Context, name, schema, data string) (*database.Source, error) {
	path := filepath.Join(f.work, name+".duckdb")
	if err := database.CreateFile(ctx, path, schema, data); err != nil {
		return nil, fmt.Errorf("eval: build %s: %w", name, err)
	}
	src, err := database.Open(ctx, database.Config{Name: name, Kind: database.KindDuckDB, Path: path}, nil)
	if err != nil {
		return nil, fmt.Errorf("eval: open %s: %w", name, err)
	}
	return src, nil
}

func (f *files) close() error { return os.RemoveAll(f.work) }
