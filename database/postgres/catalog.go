package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"sluice/sqlguard"
)

// relations is a catalogue with what else the engine knows of its relations.
type relations struct {
	catalog *sqlguard.Catalog
	guarded map[sqlguard.Relation]bool // they may hide rows or places: errors and plans of them are not shown
	stamp   string                     // what changesQuery said before it was read
}

// readCatalog reads the whole catalogue in one snapshot.
func (e *Engine) readCatalog(ctx context.Context, c *conn) (*relations, error) {
	schemas := textArray(e.cfg.Schemas)
	name, err := c.queryOne(ctx, databaseQuery, 1)
	if err != nil {
		return nil, err
	}
	out := &relations{guarded: map[sqlguard.Relation]bool{}, catalog: &sqlguard.Catalog{
		Engine: name[0], DefaultSchema: e.cfg.Schemas[0], Search: slices.Clone(e.cfg.Schemas), Extensions: map[string]string{}}}
	tables := map[string]*reading{}
	var order []*reading
	got, err := c.query(ctx, relationsQuery, 6, schemas)
	if err != nil {
		return nil, err
	}
	for _, r := range got {
		t := &reading{columns: map[int]string{}}
		t.Relation = sqlguard.Relation{Schema: r[1], Name: r[2]}
		t.Comment = r[4]
		// A foreign table is as close as a view: its plan has the other side's paths and names, and so have its errors.
		t.View = r[3] == "v" || r[3] == "f"
		if t.View || r[5] == "t" {
			out.guarded[t.Relation] = true
		}
		tables[r[0]], order = t, append(order, t)
	}
	if got, err = c.query(ctx, columnsQuery, 6, schemas); err != nil {
		return nil, err
	}
	for _, r := range got {
		t := tables[r[0]]
		if t == nil {
			continue
		}
		number, err := strconv.Atoi(r[1])
		if err != nil {
			return nil, fmt.Errorf("postgres: a column's number: %w", err)
		}
		t.columns[number] = r[2]
		t.Columns = append(t.Columns, sqlguard.Column{Name: r[2], Type: r[3], Nullable: r[4] == "t", Comment: r[5]})
	}
	if got, err = c.query(ctx, keysQuery, 5, schemas); err != nil {
		return nil, err
	}
	for _, r := range got {
		if err := addKey(tables, r); err != nil {
			return nil, err
		}
	}
	if got, err = c.query(ctx, extensionsQuery, 2); err != nil {
		return nil, err
	}
	for _, r := range got {
		out.catalog.Extensions[r[0]] = r[1]
	}
	for _, t := range order {
		out.catalog.Tables = append(out.catalog.Tables, t.Table)
	}
	return out, nil
}

// reading is a table while it is read.
type reading struct {
	sqlguard.Table
	columns map[int]string // by their number; those that the role may not read are not in it
}

func (t *reading) names(numbers string) ([]string, bool, error) {
	var list []int
	if err := json.Unmarshal([]byte(numbers), &list); err != nil {
		return nil, false, fmt.Errorf("postgres: a key's columns: %w", err)
	}
	var out []string
	for _, n := range list {
		name, ok := t.columns[n]
		if !ok {
			return nil, false, nil
		}
		out = append(out, name)
	}
	return out, true, nil
}

// addKey adds a primary or foreign key, if every column and both tables are seen.
func addKey(tables map[string]*reading, r []string) error {
	t := tables[r[0]]
	if t == nil {
		return nil
	}
	cols, ok, err := t.names(r[2])
	if err != nil || !ok {
		return err
	}
	if r[1] == "p" {
		t.PrimaryKey = cols
		return nil
	}
	other := tables[r[3]]
	if other == nil {
		return nil
	}
	referenced, ok, err := other.names(r[4])
	if err != nil || !ok {
		return err
	}
	t.Foreign = append(t.Foreign, sqlguard.ForeignKey{Columns: cols, References: other.Relation, Referenced: referenced})
	return nil
}
