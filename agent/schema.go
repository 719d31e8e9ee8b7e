package agent

import (
	"sluice/rag"
	"sluice/sqlguard"
)

// readable turns the tables that the asker may read into what the schema card is made of. References to other tables
// are dropped with them: a name in a REFERENCES clause is a name told.
func readable(catalog *sqlguard.Catalog, may func(sqlguard.Relation) bool) []rag.Table {
	schema := func(r sqlguard.Relation) string {
		if r.Schema == catalog.DefaultSchema {
			return ""
		}
		return r.Schema
	}
	known := map[sqlguard.Relation]bool{}
	for _, t := range catalog.Tables {
		known[t.Relation] = may(t.Relation)
	}
	var tables []rag.Table
	for _, t := range catalog.Tables {
		if !known[t.Relation] {
			continue
		}
		card := rag.Table{Schema: schema(t.Relation), Name: t.Name, Comment: t.Comment, PrimaryKey: t.PrimaryKey}
		for _, c := range t.Columns {
			card.Columns = append(card.Columns, rag.Column{Name: c.Name, Type: c.Type, NotNull: !c.Nullable, Comment: c.Comment})
		}
		for _, f := range t.Foreign {
			if known[f.References] {
				card.Foreign = append(card.Foreign, rag.ForeignKey{
					Columns: f.Columns, Schema: schema(f.References), Table: f.References.Name, Referenced: f.Referenced,
				})
			}
		}
		tables = append(tables, card)
	}
	return tables
}
