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

// databases are the databases of a set, each built from its scripts when it is first asked for, and then opened read-only.
type databases struct {
	set, work string
	open      map[string]*database.Source
}

func newDatabases(set, workDir string) (*databases, error) {
	work, err := os.MkdirTemp(workDir, "nl2sql-")
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.databases", "cannot make a folder for the databases in %s", workDir)
	}
	return &databases{set: set, work: work, open: map[string]*database.Source{}}, nil
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
	path := filepath.Join(d.work, db+".duckdb")
	if err := database.CreateFile(ctx, path, schema, data); err != nil {
		return nil, fmt.Errorf("eval: build %s: %w", db, err)
	}
	src, err := database.Open(ctx, database.Config{Name: db, Kind: "duckdb", Path: path}, nil)
	if err != nil {
		return nil, fmt.Errorf("eval: open %s: %w", db, err)
	}
	d.open[db] = src
	return src, nil
}

func (d *databases) close() error {
	var errs []error
	for _, src := range d.open {
		errs = append(errs, src.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(d.work))...)
}
