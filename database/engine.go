package database

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/sqlguard"
)

// engine is what a kind of database does behind a Source, which has passed every statement through the gate before. A new
// kind of database is a new implementation, a folder of its own.
type engine interface {
	// Catalog lists the engine's own relations: the same pointer as long as nothing changed, which seen.go counts on. It
	// fails with Conflict after Close.
	Catalog(ctx context.Context) (*sqlguard.Catalog, error)
	// Check is the engine's second opinion on an approved statement, before it runs.
	Check(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error
	// Types is sqlguard.Request.Types. An engine whose sums need no help gives nil, nil.
	Types(ctx context.Context, sql, mark string) (map[string][]string, error)
	// Run executes a statement that is valid and for this database, in a read-only transaction, and streams its rows.
	// Cancelling ctx interrupts it. The values are nil, bool, int64, float64 or string.
	Run(ctx context.Context, a sqlguard.Approved, params []any) (array.RecordReader, error)
	// Close ends the engine after its running statements.
	Close() error
}

// A freshener is an engine that keeps its catalogue for a while.
type freshener interface {
	// Fresh gives the catalogue of now: old itself when nothing changed. It bounds how often it asks the database.
	Fresh(ctx context.Context, old *sqlguard.Catalog) (*sqlguard.Catalog, error)
}

// A writer is an engine that can run a statement of the profile Write.
type writer interface {
	// Writable says whether the database is open for writing.
	Writable() bool
	// Write runs one statement in a transaction of its own and tells how many rows it changed, where take did not get them.
	// take is called for a statement with RETURNING, reads the rows, and does not keep the reader. The transaction is committed
	// when take gave no error and ctx has not ended; else nothing of it stays. An error that says that the outcome is not known
	// has the code Internal. A statement that met another's is a Conflict.
	Write(ctx context.Context, a sqlguard.Approved, params []any, take func(array.RecordReader) error) (int64, error)
}
