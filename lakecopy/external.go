package lakecopy

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// CreateExternal makes an external table. Columns that are not declared are read from a file; those that are must be in
// the files, with the types declared. Errors are *fault.Error: Denied for who may not, Conflict for a name that is taken,
// and otherwise with a kind as for COPY.
func (s *Service) CreateExternal(ctx context.Context, who access.Principal, src Source, stmt sqlguard.CreateExternal) error {
	if err := access.MayExternal(who, src.Name(), s.moment()); err != nil {
		return err
	}
	location, err := access.Path(stmt.Location)
	if err != nil {
		return err
	}
	// Before the connection is looked for: whoever has no grant there does not learn whether it exists.
	if err := access.MayReadLake(who, access.Folder{Connection: stmt.Connection, Path: location}); err != nil {
		return err
	}
	lake, err := s.lake(stmt.Connection)
	if err != nil {
		return err
	}
	if err := lake.unmanaged(location); err != nil {
		return err
	}
	catalog, err := src.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, table := range catalog.Tables {
		if table.Schema == catalog.DefaultSchema && strings.EqualFold(table.Name, stmt.Name) {
			if stmt.IfNotExists {
				return nil
			}
			return fault.New(fault.Conflict, "lakecopy.CreateExternal", "a table of the name %s exists already in %s", stmt.Name, src.Name())
		}
	}
	table := store.External{
		Database: src.Name(), Schema: catalog.DefaultSchema, Name: stmt.Name, Connection: lake.Name, Location: location,
		CreatedBy: who.KeyID, Owner: who.Owner, CreatedAt: s.now(),
	}
	if table.Columns, table.PartitionBy, err = describe(lake.dir, location, stmt); err != nil {
		return err
	}
	return s.journal.InsertExternal(ctx, table)
}

// DropExternal removes an external table; its files stay.
func (s *Service) DropExternal(ctx context.Context, who access.Principal, database string, stmt sqlguard.DropExternal) error {
	if err := access.MayExternal(who, database, s.moment()); err != nil {
		return err
	}
	if err := s.mayDrop(ctx, who, database, stmt.Name); err != nil {
		return err
	}
	gone, err := s.journal.DeleteExternal(ctx, database, stmt.Name)
	if err != nil || gone || stmt.IfExists {
		return err
	}
	return fault.New(fault.NotFound, "lakecopy.DropExternal", "there is no external table %s in %s", stmt.Name, database)
}

// mayDrop refuses who may not read the table's folder. A table that is not there is not refused here.
func (s *Service) mayDrop(ctx context.Context, who access.Principal, database, name string) error {
	tables, err := s.journal.Externals(ctx, database)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if strings.EqualFold(table.Name, name) {
			return access.MayReadLake(who, access.Folder{Connection: table.Connection, Path: table.Location})
		}
	}
	return nil
}

// describe finds the columns of a table on a folder.
func describe(dir folder, location string, stmt sqlguard.CreateExternal) (columns, partitions []store.Column, err error) {
	name, keys, err := sampleFile(dir, location)
	if err != nil {
		return nil, nil, diskError("list a folder", err)
	}
	partitions = declared(stmt.PartitionBy)
	if name == "" {
		if len(stmt.Columns) == 0 {
			return nil, nil, hinted(fail(KindSchema, "there is no data file in %s to take the columns from", location), "declare the columns, or copy data there first")
		}
		columns = declared(stmt.Columns)
		return columns, partitions, distinct(columns, partitions)
	}
	if len(partitions) == 0 {
		for _, key := range keys {
			partitions = append(partitions, store.Column{Name: key, Type: "VARCHAR"})
		}
	}
	if len(partitions) != len(keys) {
		return nil, nil, fail(KindSchema, "the folders of %s are partitioned by (%s)", location, strings.Join(keys, ", "))
	}
	for i, key := range keys {
		if !strings.EqualFold(partitions[i].Name, key) {
			return nil, nil, fail(KindSchema, "the folders of %s are partitioned by (%s), in this order", location, strings.Join(keys, ", "))
		}
	}
	found, err := footerColumns(dir, name)
	if err != nil {
		return nil, nil, err
	}
	columns = found
	if len(stmt.Columns) > 0 {
		columns = declared(stmt.Columns)
		if err := agree(location, columns, found); err != nil {
			return nil, nil, err
		}
	}
	return columns, partitions, distinct(columns, partitions)
}

func declared(columns []sqlguard.Column) []store.Column {
	var out []store.Column
	for _, c := range columns {
		out = append(out, store.Column{Name: c.Name, Type: c.Type})
	}
	return out
}

// distinct refuses two columns of one name: a partition column that is in the file too would be shadowed.
func distinct(columns, partitions []store.Column) error {
	seen := map[string]bool{}
	for _, list := range [][]store.Column{columns, partitions} {
		for _, c := range list {
			if seen[strings.ToLower(c.Name)] {
				return fail(KindColumns, "column %s is there twice, once in the files or declarations and once more", c.Name)
			}
			seen[strings.ToLower(c.Name)] = true
		}
	}
	return nil
}

// agree checks declared columns against those of a file.
func agree(location string, declared, found []store.Column) error {
	types := map[string]string{}
	for _, c := range found {
		types[strings.ToLower(c.Name)] = c.Type
	}
	for _, c := range declared {
		read, ok := types[strings.ToLower(c.Name)]
		if !ok {
			return fail(KindSchema, "the files in %s have no column %s", location, c.Name)
		}
		if !sameType(c.Type, read) {
			return fail(KindSchema, "column %s is %s in the files of %s, not %s", c.Name, read, location, c.Type)
		}
	}
	return nil
}

// footerColumns reads the columns of a file, with the types that DuckDB reads them as.
func footerColumns(dir folder, name string) (columns []store.Column, err error) {
	err = withFooter(dir, name, func(r *file.Reader, _ int64) error {
		schema, err := pqarrow.FromParquet(r.MetaData().Schema, nil, nil)
		if err != nil {
			out := fail(KindSchema, "the schema of %s cannot be read", name)
			out.Err = err
			return out
		}
		columns, err = duckColumns(schema)
		return err
	})
	return columns, err
}

func duckColumns(schema *arrow.Schema) ([]store.Column, error) {
	var columns []store.Column
	for _, field := range schema.Fields() {
		text, err := duckName(field.Name, field.Type)
		if err != nil {
			return nil, err
		}
		columns = append(columns, store.Column{Name: field.Name, Type: text})
	}
	return columns, nil
}
