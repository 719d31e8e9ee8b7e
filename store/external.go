package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/fault"
	"sluice/store/db"
)

// Column is a column of an external table, with its type as the database's dialect spells it.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// External is a Parquet folder of a lake that is readable as a table of a database.
type External struct {
	Database    string
	Schema      string // the database's default schema
	Name        string // unique in its database, whatever the case
	Connection  string
	Location    string
	Columns     []Column // declared, or as found in a file when created; without the partition columns
	PartitionBy []Column
	CreatedBy   string // id of the key or login
	Owner       string // the user who made it: while he may not read the folder, nobody reads the table
	CreatedAt   time.Time
}

// InsertExternal stores an external table. A second one of the name in a database is a Conflict.
func (s *Store) InsertExternal(ctx context.Context, e External) error {
	columns, err := json.Marshal(e.Columns)
	partitions, err2 := json.Marshal(e.PartitionBy)
	if err := errors.Join(err, err2); err != nil {
		return wrap("insert an external table", err)
	}
	err = s.writer.InsertExternal(ctx, db.InsertExternalParams{
		Database: e.Database, Schema: e.Schema, Name: e.Name, Connection: e.Connection, Location: e.Location,
		Columns: string(columns), PartitionBy: string(partitions), CreatedBy: e.CreatedBy, CreatedAt: micros(e.CreatedAt),
		Owner: e.Owner,
	})
	if conflict(err) {
		return fault.New(fault.Conflict, "store.InsertExternal", "a table of the name %s exists already", e.Name)
	}
	return wrap("insert an external table", err)
}

// DeleteExternal removes an external table; false when there was none.
func (s *Store) DeleteExternal(ctx context.Context, database, name string) (bool, error) {
	n, err := s.writer.DeleteExternal(ctx, db.DeleteExternalParams{Database: database, Name: name})
	return n > 0, wrap("delete an external table", err)
}

// Externals lists the external tables of a database by name.
func (s *Store) Externals(ctx context.Context, database string) ([]External, error) {
	rows, err := s.reader.Externals(ctx, database)
	if err != nil {
		return nil, wrap("list external tables", err)
	}
	return each(rows, external)
}

func external(row db.ExternalTable) (External, error) {
	e := External{
		Database: row.Database, Schema: row.Schema, Name: row.Name, Connection: row.Connection, Location: row.Location,
		CreatedBy: row.CreatedBy, Owner: row.Owner, CreatedAt: moment(row.CreatedAt),
	}
	err := errors.Join(json.Unmarshal([]byte(row.Columns), &e.Columns), json.Unmarshal([]byte(row.PartitionBy), &e.PartitionBy))
	if err != nil {
		return External{}, fmt.Errorf("store: external table %s is damaged: %w", row.Name, err)
	}
	return e, nil
}
