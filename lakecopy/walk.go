package lakecopy

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// Tables gives the external tables of a database. It makes Service a database.Externals. It touches no folder: the files
// are listed when a statement names the table, so that a folder which cannot be read, or a publication in progress, is
// no other statement's trouble. A table whose connection is no longer in the settings, whose folder became managed, or whose
// creator may not read that folder any more, is left out as if it did not exist.
func (s *Service) Tables(ctx context.Context, database string) ([]sqlguard.Table, error) {
	externals, err := s.journal.Externals(ctx, database)
	if err != nil {
		return nil, err
	}
	var tables []sqlguard.Table
	creators := map[string]access.Principal{}
	for _, e := range externals {
		lake := s.lakes[e.Connection]
		if lake == nil || lake.dir == nil || lake.unmanaged(e.Location) != nil {
			continue
		}
		creator, known := creators[e.Owner]
		if !known {
			if creator, err = s.ofUser(ctx, e.Owner); err != nil {
				return nil, err
			}
			creators[e.Owner] = creator
		}
		if access.MayReadLake(creator, access.Folder{Connection: e.Connection, Path: e.Location}) != nil {
			continue
		}
		tables = append(tables, s.table(lake, e))
	}
	return tables, nil
}

// ofUser gives what a user may do now: nothing when he is not there any more.
func (s *Service) ofUser(ctx context.Context, name string) (access.Principal, error) {
	if s.rights == nil {
		return access.Principal{}, nil
	}
	who, err := s.rights.OfUser(ctx, name)
	if fault.CodeOf(err) == fault.NotFound {
		return access.Principal{}, nil
	}
	return who, err
}

func (s *Service) table(lake *lake, e store.External) sqlguard.Table {
	found := &sqlguard.External{Files: func(ctx context.Context) ([]sqlguard.ExternalFile, error) { return s.files(ctx, lake, e) }}
	table := sqlguard.Table{Relation: sqlguard.Relation{Schema: e.Schema, Name: e.Name}, External: found}
	for _, c := range e.Columns {
		table.Columns = append(table.Columns, sqlguard.Column{Name: c.Name, Type: c.Type, Nullable: true})
	}
	for _, c := range e.PartitionBy {
		column := sqlguard.Column{Name: c.Name, Type: c.Type, Nullable: true}
		table.Columns = append(table.Columns, column)
		found.Partitions = append(found.Partitions, column)
	}
	return table
}

// files lists the data files of a table under the folder's publish lock, so that the list is that before or after a COPY,
// never one between. What does not lie where the table's partition columns say (files beside partition folders, deeper
// folders, hidden names, links) is no part of the table. A folder that became a link, or holds a name that an engine
// cannot open literally, is an error.
func (s *Service) files(ctx context.Context, lake *lake, e store.External) ([]sqlguard.ExternalFile, error) {
	release, err := s.locks.acquire(ctx, path.Join(lake.root, e.Location))
	if err != nil {
		return nil, fault.Wrap(err, fault.Canceled, "lakecopy.files", "the request was cancelled while the table %s was being published", e.Name)
	}
	defer release()
	exists, err := realPath(lake.dir, e.Location)
	var found []sqlguard.ExternalFile
	if err == nil && exists {
		found, err = walk(lake, e.Location, e.PartitionBy, nil, nil)
	}
	if err == nil {
		return found, nil
	}
	told := *fault.Public(diskError("list a folder", err)) // classified: its sentence is for the caller
	told.Op, told.Err = "lakecopy.files", err
	told.Msg = "the external table " + e.Name + " cannot be read: " + told.Msg
	return nil, &told
}

// walk adds the data files below a folder to found; values are those of the partition folders above it.
func walk(lake *lake, at string, partitions []store.Column, values []*string, found []sqlguard.ExternalFile) ([]sqlguard.ExternalFile, error) {
	entries, err := lake.dir.ReadDir(at)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case hidden(name):
		case len(partitions) == len(values) && isData(name) && entry.Type().IsRegular():
			if !literal(name) {
				return nil, fail(KindPath, "%s has a pattern character in its name, which the engine would take for other files", path.Join(at, name))
			}
			found = append(found, sqlguard.ExternalFile{Path: filepath.Join(lake.root, at, name), Values: values})
		case len(partitions) > len(values) && entry.IsDir():
			key, value, ok := hiveValue(name)
			if !ok || !strings.EqualFold(key, partitions[len(values)].Name) {
				continue
			}
			if !literal(name) {
				return nil, fail(KindPath, "%s has a pattern character in its name, which the engine would take for other files", path.Join(at, name))
			}
			if found, err = walk(lake, path.Join(at, name), partitions, append(values[:len(values):len(values)], value), found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// literal says whether an engine that expands patterns opens exactly the file of this name. COPY escapes these characters.
func literal(name string) bool { return !strings.ContainsAny(name, "*?[") }
