package database

import (
	"context"
	"slices"

	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/sqlguard"
)

// Offline is the gate of one dialect against a schema that nobody serves: `sluice gate`.
type Offline struct {
	catalog *sqlguard.Catalog
	check   func(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error)
	close   func()
}

// OfflineGate makes the gate of a dialect for a schema file. The file may be written for PostgreSQL whatever the dialect.
// An empty schema has no relation. The caller must Close it.
func OfflineGate(ctx context.Context, dialect sqlguard.Dialect, schemaSQL string) (*Offline, error) {
	switch dialect {
	case sqlguard.DuckDB:
		o, err := duckdb.OfflineGate(ctx, schemaSQL)
		if err != nil {
			return nil, err
		}
		return &Offline{catalog: o.Catalog(), check: o.Check, close: o.Close}, nil
	case sqlguard.Postgres:
		return offlinePostgres(schemaSQL)
	}
	return nil, fault.New(fault.Invalid, "database.OfflineGate", "there is no gate for the dialect %q", dialect)
}

// offlinePostgres needs no engine: the schema is read by the gate's own parser.
func offlinePostgres(schemaSQL string) (*Offline, error) {
	cat, err := sqlguard.PostgresSchema(schemaSQL)
	if err != nil {
		return nil, err
	}
	gate := sqlguard.New(sqlguard.Postgres, nil)
	check := func(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
		return gate.Check(ctx, sqlguard.Request{SQL: sql, Database: "offline", Profile: profile, Catalog: cat, May: may})
	}
	return &Offline{catalog: cat, check: check, close: func() {}}, nil
}

// Check passes one statement through the gate. grants nil means that every relation may be read; a list is exact, and a
// name without a schema means the dialect's own: main, or public.
func (o *Offline) Check(ctx context.Context, sql string, profile sqlguard.Profile, grants []string) (sqlguard.Approved, error) {
	may := func(r sqlguard.Relation) bool {
		return grants == nil || slices.Contains(grants, r.Schema+"."+r.Name) || r.Schema == o.catalog.DefaultSchema && slices.Contains(grants, r.Name)
	}
	return o.check(ctx, sql, profile, may)
}

// Catalog is what the schema made.
func (o *Offline) Catalog() *sqlguard.Catalog { return o.catalog }

// Close gives what it needs back.
func (o *Offline) Close() { o.close() }
