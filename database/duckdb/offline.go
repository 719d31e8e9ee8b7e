package duckdb

import (
	"context"
	"slices"
	"strings"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// Offline is the gate against a schema that nobody serves (database.Offline).
type Offline struct {
	gate *sqlguard.Gate
	in   *instance         // the schema without rows, locked
	cat  *sqlguard.Catalog // nil: without a schema no relation resolves
}

// OfflineGate loads a schema into a database in memory and reads its catalogue. The file may be written for PostgreSQL:
// public in it is main here, JSONB is JSON, and only the statements that make relations are run. An empty schema has no
// relation.
func OfflineGate(ctx context.Context, schemaSQL string) (*Offline, error) {
	p, err := sharedParser()
	if err != nil {
		return nil, err
	}
	db, err := openInstance("", closedSettings("512MB", "1"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "database.OfflineGate", "no database in memory")
	}
	o := &Offline{gate: sqlguard.New(sqlguard.DuckDB, p), in: &instance{db: db}}
	if err := o.load(ctx, schemaSQL); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

func (o *Offline) load(ctx context.Context, schemaSQL string) error {
	if err := runScripts(ctx, o.in.db, append(translateSchema(schemaSQL), "SET lock_configuration = true")); err != nil {
		return err
	}
	var err error
	if o.cat, err = readCatalog(ctx, o.in); err != nil {
		return fault.Wrap(err, fault.Internal, "database.OfflineGate", "the schema cannot be read back")
	}
	return nil
}

// Close gives the memory back.
func (o *Offline) Close() { duck.Close(&o.in.db) }

// Check passes one statement through the gate, for a caller who may read what may says.
func (o *Offline) Check(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	a, err := o.gate.Check(ctx, sqlguard.Request{SQL: sql, Database: "offline", Profile: profile, Catalog: o.cat, May: may, Types: o.in.types})
	if err != nil {
		return sqlguard.Approved{}, err
	}
	if profile == sqlguard.Write {
		for _, p := range a.Parts() {
			if err := o.in.agrees(ctx, o.cat, p); err != nil {
				return sqlguard.Approved{}, err
			}
		}
		return a, nil
	}
	return a, o.in.agrees(ctx, o.cat, a)
}

// Catalog is what the schema made.
func (o *Offline) Catalog() *sqlguard.Catalog { return o.cat }

// translateSchema gives the statements of a schema file that make relations, in DuckDB's words. It is for files of the
// operator, not for SQL of a caller. Rows, functions and rights do not change what resolves, so they are left out.
func translateSchema(sql string) []string {
	words := strings.NewReplacer("public.", "main.", "jsonb", "json", "JSONB", "JSON")
	var out []string
	for _, s := range splitStatements(sql) {
		upper := strings.ToUpper(s)
		makes := slices.ContainsFunc([]string{"CREATE TABLE", "CREATE VIEW", "CREATE OR REPLACE VIEW", "CREATE SCHEMA", "COMMENT ON TABLE", "COMMENT ON COLUMN", "COMMENT ON VIEW"},
			func(p string) bool { return strings.HasPrefix(upper, p) })
		if makes && upper != "CREATE SCHEMA PUBLIC" {
			out = append(out, words.Replace(s))
		}
	}
	return out
}

// splitStatements cuts a script at the semicolons outside quotes and comments.
func splitStatements(sql string) []string {
	var out []string
	start := 0
	flush := func(end int) {
		if s := strings.TrimSpace(withoutComments(sql[start:end])); s != "" {
			out = append(out, s)
		}
	}
	for i := 0; i < len(sql); {
		if end := sqlguard.SkipQuoted(sql, i); end > i {
			i = end
			continue
		}
		if sql[i] == ';' {
			flush(i)
			start = i + 1
		}
		i++
	}
	flush(len(sql))
	return out
}

// withoutComments drops the lines of a statement that are comments only.
func withoutComments(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
