package duckdb

import (
	"context"
	"encoding/json"

	"sluice/sqlguard"
)

// The catalogue's queries are constants; they see what is in the file itself, no system schema, no other catalogue.
const (
	tablesQuery = `SELECT schema_name, table_name, coalesce(comment, ''), 'table' FROM duckdb_tables()
		WHERE database_name = current_database() AND NOT internal AND NOT temporary
		UNION ALL SELECT schema_name, view_name, coalesce(comment, ''), 'view' FROM duckdb_views()
		WHERE database_name = current_database() AND NOT internal AND NOT temporary
		ORDER BY 1, 2`
	columnsQuery = `SELECT schema_name, table_name, column_name, data_type, CAST(is_nullable AS VARCHAR), coalesce(comment, '') FROM duckdb_columns()
		WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index`
	constraintsQuery = `SELECT schema_name, table_name, constraint_type, CAST(to_json(constraint_column_names) AS VARCHAR),
		coalesce(referenced_table, ''), CAST(to_json(referenced_column_names) AS VARCHAR) FROM duckdb_constraints()
		WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
		ORDER BY schema_name, table_name, constraint_index`
	functionsQuery = `SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1`
	engineQuery    = `SELECT current_database(), current_schema()`
)

// readCatalog lists what the file holds.
func readCatalog(ctx context.Context, in *instance) (*sqlguard.Catalog, error) {
	c, err := connect(in.db)
	if err != nil {
		return nil, err
	}
	defer c.close()
	stop := c.watch(ctx)
	defer stop()
	cat := &sqlguard.Catalog{}
	if err := each(c, engineQuery, func(r []string) error {
		cat.Engine, cat.DefaultSchema = r[0], r[1]
		return nil
	}); err != nil {
		return nil, err
	}
	if err := each(c, tablesQuery, func(r []string) error {
		cat.Tables = append(cat.Tables, sqlguard.Table{Relation: sqlguard.Relation{Schema: r[0], Name: r[1]}, Comment: r[2], View: r[3] == "view"})
		return nil
	}); err != nil {
		return nil, err
	}
	tables := map[sqlguard.Relation]*sqlguard.Table{}
	for i := range cat.Tables {
		tables[cat.Tables[i].Relation] = &cat.Tables[i]
	}
	if err := each(c, columnsQuery, func(r []string) error {
		if t := tables[sqlguard.Relation{Schema: r[0], Name: r[1]}]; t != nil {
			t.Columns = append(t.Columns, sqlguard.Column{Name: r[2], Type: r[3], Nullable: r[4] == "true", Comment: r[5]})
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := each(c, constraintsQuery, func(r []string) error {
		t := tables[sqlguard.Relation{Schema: r[0], Name: r[1]}]
		if t == nil {
			return nil
		}
		cols, err := names(r[3])
		if err != nil {
			return err
		}
		if r[2] == "PRIMARY KEY" {
			t.PrimaryKey = cols
			return nil
		}
		referenced, err := names(r[5])
		// DuckDB keeps a reference inside its schema.
		t.Foreign = append(t.Foreign, sqlguard.ForeignKey{Columns: cols, References: sqlguard.Relation{Schema: r[0], Name: r[4]}, Referenced: referenced})
		return err
	}); err != nil {
		return nil, err
	}
	return cat, each(c, functionsQuery, func(r []string) error {
		cat.Functions = append(cat.Functions, r[0])
		return nil
	})
}

// each runs a constant query and calls do for each row, with NULL as "".
func each(c *conn, query string, do func(row []string) error) error {
	rows, err := c.strings(query)
	if err != nil {
		return err
	}
	for _, r := range rows {
		row := make([]string, len(r))
		for i, v := range r {
			if v != nil {
				row[i] = *v
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return nil
}

// names reads a JSON list of names, or null.
func names(list string) ([]string, error) {
	var out []string
	if list == "" {
		return nil, nil
	}
	err := json.Unmarshal([]byte(list), &out)
	return out, err
}
