package lakecopy

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"sluice/sqlguard"
	"sluice/store"
)

// Tables gives the external tables of a database with their files of now. It makes Service a database.Externals.
//
// A folder is listed under its publish lock, so that the list is that before or after a COPY, never one between. What
// does not lie where the table's partition columns say (files beside partition folders, deeper folders, hidden names,
// links) is no part of the table. A table whose connection is no longer in the settings, whose folder became managed or a
// link, or holds a name that an engine cannot open literally, is left out as if it did not exist: the database's other
// tables stay readable.
func (s *Service) Tables(ctx context.Context, database string) ([]sqlguard.Table, error) {
	externals, err := s.journal.Externals(ctx, database)
	if err != nil {
		return nil, err
	}
	var tables []sqlguard.Table
	for _, e := range externals {
		lake := s.lakes[e.Connection]
		if lake == nil || lake.dir == nil || lake.unmanaged(e.Location) != nil {
			continue
		}
		table, err := s.table(ctx, lake, e)
		if kindOf(err) == string(KindPath) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, nil
}

func (s *Service) table(ctx context.Context, lake *lake, e store.External) (sqlguard.Table, error) {
	release, err := s.locks.acquire(ctx, path.Join(lake.root, e.Location))
	if err != nil {
		return sqlguard.Table{}, err
	}
	defer release()
	found := &sqlguard.External{}
	table := sqlguard.Table{Relation: sqlguard.Relation{Schema: e.Schema, Name: e.Name}, External: found}
	for _, c := range e.Columns {
		table.Columns = append(table.Columns, sqlguard.Column{Name: c.Name, Type: c.Type, Nullable: true})
	}
	for _, c := range e.PartitionBy {
		column := sqlguard.Column{Name: c.Name, Type: c.Type, Nullable: true}
		table.Columns = append(table.Columns, column)
		found.Partitions = append(found.Partitions, column)
	}
	exists, err := realPath(lake.dir, e.Location)
	if err != nil {
		return sqlguard.Table{}, diskError("look at a folder", err)
	}
	if exists {
		err = walk(lake, e.Location, e.PartitionBy, nil, found)
	}
	return table, err
}

// walk adds the data files below a folder; values are those of the partition folders above it.
func walk(lake *lake, at string, partitions []store.Column, values []*string, found *sqlguard.External) error {
	entries, err := lake.dir.ReadDir(at)
	if err != nil {
		return diskError("list a folder", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case hidden(name):
		case len(partitions) == len(values) && isData(name) && entry.Type().IsRegular():
			if !literal(name) {
				return fail(KindPath, "%s has a pattern character in its name, which the engine would take for other files", path.Join(at, name))
			}
			found.Files = append(found.Files, sqlguard.ExternalFile{Path: filepath.Join(lake.root, at, name), Values: values})
		case len(partitions) > len(values) && entry.IsDir():
			key, value, ok := hiveValue(name)
			if !ok || !strings.EqualFold(key, partitions[len(values)].Name) {
				continue
			}
			if !literal(name) {
				return fail(KindPath, "%s has a pattern character in its name, which the engine would take for other files", path.Join(at, name))
			}
			if err := walk(lake, path.Join(at, name), partitions, append(values[:len(values):len(values)], value), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// literal says whether an engine that expands patterns opens exactly the file of this name. COPY escapes these characters.
func literal(name string) bool { return !strings.ContainsAny(name, "*?[") }
