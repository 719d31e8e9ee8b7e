package sqlguard

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

func (w *pgWriter) alterTable(n *pg_query.AlterTableStmt) error {
	w.schemaWrite("ALTER TABLE")
	if err := pgFits("ALTER TABLE", n.ProtoReflect(), pgAlterShape); err != nil {
		return err
	}
	if n.Objtype != pg_query.ObjectType_OBJECT_TABLE {
		return refuse(noPlace, kindQuery, "ALTER TABLE is", "only tables can be altered")
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	if len(n.Cmds) > 1 && w.duck != nil {
		return refuse(noPlace, kindQuery, "send them one by one", "DuckDB alters one thing at a time")
	}
	for _, c := range n.Cmds {
		if err := w.alter(c.GetAlterTableCmd(), n.Relation, src); err != nil {
			return err
		}
	}
	return nil
}

func (w *pgWriter) alter(c *pg_query.AlterTableCmd, r *pg_query.RangeVar, src *source) (err error) {
	if c == nil {
		return unreadable("ALTER TABLE without a change")
	}
	if err := pgFits("ALTER TABLE", c.ProtoReflect(), pgAlterCmdShape); err != nil {
		return err
	}
	if err := restrict(c.Behavior); err != nil {
		return err
	}
	switch c.Subtype {
	case pg_query.AlterTableType_AT_AddColumn:
		d := c.Def.GetColumnDef()
		if d == nil || c.Name != "" {
			return unreadable("ADD COLUMN without a column")
		}
		if err := newName(d.Colname, int(d.Location)); err != nil {
			return err
		}
		with := *src
		with.cols.names = append(slices.Clone(src.cols.names), d.Colname)
		return w.newColumn(d, &tableForm{src: &with, altered: true, from: append([]*pg_query.Node{relationNode(r)}, w.columnsQuery("new column", []*pg_query.ColumnDef{d})...)})
	case pg_query.AlterTableType_AT_DropColumn:
		if c.Def != nil {
			return unreadable("DROP COLUMN with a definition")
		}
		name, err := w.columnOf(src, c.Name, noPlace)
		if err == nil {
			c.Name = name
		} else if c.MissingOk {
			return newName(c.Name, noPlace)
		}
		return err
	}
	return refuse(noPlace, kindQuery, "ADD COLUMN, DROP COLUMN and RENAME COLUMN are", "this change of a table is not allowed")
}

func (w *pgWriter) rename(n *pg_query.RenameStmt) error {
	w.schemaWrite("ALTER TABLE")
	if err := pgFits("RENAME", n.ProtoReflect(), pgRenameShape); err != nil {
		return err
	}
	if n.RenameType != pg_query.ObjectType_OBJECT_COLUMN || n.RelationType != pg_query.ObjectType_OBJECT_TABLE {
		return refuse(noPlace, kindQuery, "ALTER TABLE t RENAME COLUMN a TO b", "only columns of tables can be renamed")
	}
	if err := restrict(n.Behavior); err != nil {
		return err
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	if n.Subname, err = w.columnOf(src, n.Subname, noPlace); err != nil {
		return err
	}
	return newName(n.Newname, noPlace)
}

var dropped = map[pg_query.ObjectType]string{
	pg_query.ObjectType_OBJECT_TABLE: "DROP TABLE", pg_query.ObjectType_OBJECT_VIEW: "DROP VIEW", pg_query.ObjectType_OBJECT_INDEX: "DROP INDEX",
}

func (w *pgWriter) drop(n *pg_query.DropStmt) error {
	if err := pgFits("DROP", n.ProtoReflect(), pgDropShape); err != nil {
		return err
	}
	command := dropped[n.RemoveType]
	if command == "" {
		return refuse(noPlace, kindQuery, "DROP TABLE, DROP VIEW and DROP INDEX are", "dropping this is not allowed")
	}
	w.schemaWrite(command)
	if err := restrict(n.Behavior); err != nil {
		return err
	}
	if len(n.Objects) > 1 && w.duck != nil {
		return refuse(noPlace, kindQuery, "send them one by one", "DuckDB drops one thing at a time")
	}
	for _, o := range n.Objects {
		names, err := pgNames(o.GetList().GetItems())
		if err != nil || len(names) == 0 || len(names) > 3 {
			return unreadable("DROP without a name")
		}
		if err := pgFits("DROP", o.GetList().ProtoReflect(), pgFields("", "", "items")); err != nil {
			return err
		}
		for len(names) < 3 {
			names = slices.Insert(names, 0, "")
		}
		found, err := w.droppable(n, names)
		if err != nil {
			return err
		}
		path := []string{found.Schema, found.Name}
		if c := w.catalog(); c != "" {
			path = slices.Insert(path, 0, c)
		}
		o.GetList().Items = pgStrings(path...)
	}
	return nil
}

// droppable resolves what is dropped. Indexes are not in the catalogue: one is looked for in the schema that it names, or in
// the default one.
func (w *pgWriter) droppable(n *pg_query.DropStmt, names []string) (Relation, error) {
	if n.RemoveType != pg_query.ObjectType_OBJECT_INDEX {
		t, err := w.req.table(noPlace, names[0], names[1], names[2], w.same())
		switch {
		case err != nil && !n.MissingOk, err != nil && w.req.Catalog.find(names[0], names[1], names[2], w.same()) != nil: // it is there and not to be seen
			return Relation{}, err
		case err != nil:
		case t.View && n.RemoveType == pg_query.ObjectType_OBJECT_VIEW && t.External == nil:
			w.changes(t.Relation)
			return t.Relation, nil
		case n.RemoveType == pg_query.ObjectType_OBJECT_VIEW:
			return Relation{}, refuse(noPlace, kindQuery, "", "%s is no view", t.Name)
		case t.External != nil:
			return Relation{}, refuse(noPlace, kindQuery, "write DROP EXTERNAL TABLE", "%s is an external table", t.Name)
		default:
			if err := own(t, noPlace); err != nil {
				return Relation{}, err
			}
			w.changes(t.Relation)
			return t.Relation, nil
		}
	}
	schema, err := w.schema(names[0], names[1], noPlace)
	if err != nil {
		return Relation{}, err
	}
	return Relation{Schema: schema, Name: names[2]}, newName(names[2], noPlace)
}
