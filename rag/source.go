package rag

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/sqlguard"
)

// Source is all that is needed of a database to know it: its catalogue, its gate and the way to run what passed.
// *database.Source is one.
type Source interface {
	Name() string
	Dialect() sqlguard.Dialect
	Catalog(ctx context.Context) (*sqlguard.Catalog, error)
	Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error)
	Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error)
}
