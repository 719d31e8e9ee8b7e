package sqlguard

import "context"

// Relation names a table or view of a source. Schema is never empty: an unqualified name is resolved before it
// becomes a Relation ("main" in DuckDB, "public" in PostgreSQL).
type Relation struct {
	Schema string
	Name   string
}

// Column is one column of a table, as the source's catalogue has it.
type Column struct {
	Name     string
	Type     string // the SQL name in the source's dialect: BIGINT, DECIMAL(18,2), VARCHAR, ...
	Nullable bool
	Comment  string
}

// Table is a relation with its columns and keys.
type Table struct {
	Relation
	Comment    string
	Columns    []Column
	PrimaryKey []string
	Foreign    []ForeignKey
	External   *External // nil for a table of the source itself
	View       bool      // a view: what it hides must not show in an error
}

// ForeignKey is a declared reference from columns of one table to those of another.
type ForeignKey struct {
	Columns    []string
	References Relation
	Referenced []string
}

// External is a table whose rows are Parquet files in a lake. The gate replaces its node in the statement by a scan
// of exactly the files that the WHERE clause does not rule out.
type External struct {
	Partitions []Column // partition columns, in path order; their values come from the path, not from the file

	// Files lists the table's data files of now. The gate calls it once for a statement that names the table and passed
	// every other check, so what is wrong with a lake is no other statement's trouble. Its error refuses the statement;
	// a *fault.Error is for the caller.
	Files func(ctx context.Context) ([]ExternalFile, error)
}

// ExternalFile is one data file of an external table.
type ExternalFile struct {
	Path   string    // what the engine opens
	Values []*string // one value for each partition column, nil for NULL
}

// Catalog is what a source holds. The gate resolves every relation and column against it; what is not in it is refused.
type Catalog struct {
	Engine        string // the engine's own name of the catalogue, which may stand before a relation
	DefaultSchema string
	Search        []string // the schemas that a name without one is looked for in, in this order; none: DefaultSchema alone
	Tables        []Table

	// Extensions are the installed extensions whose functions, operators and types the gate knows, with the schemas that
	// they are in: "vector" → "public". PostgreSQL only.
	Extensions map[string]string
	// Functions are the names of functions and macros that the source defines itself. None may be called, and one that
	// has the name of a built-in function would take its place: then every statement is refused.
	Functions []string
}
