package sqlguard

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"

	"sluice/fault"
)

// PostgresSchema reads the relations that a file of PostgreSQL's statements makes, in their order: CREATE SCHEMA, TABLE,
// VIEW, MATERIALIZED VIEW and EXTENSION, ALTER TABLE with columns and keys, COMMENT, DROP TABLE, VIEW. What changes no
// relation is passed over. A view's columns come from its query; those of which PostgreSQL alone knows the types have none.
// The file is the operator's own: it is not bounded as a caller's statement is. An error has the code Invalid.
func PostgresSchema(sql string) (*Catalog, error) {
	if strings.ContainsRune(sql, 0) {
		return nil, fault.New(fault.Invalid, "sqlguard.PostgresSchema", "the schema has a zero byte")
	}
	tree, err := pg_query.Parse(sql)
	if err != nil {
		f := fault.New(fault.Invalid, "sqlguard.PostgresSchema", "the schema cannot be read: %s", err)
		if p := (*parser.Error)(nil); errors.As(err, &p) && p.Cursorpos > 0 {
			f.Position = bytePlace(sql, p.Cursorpos) + 1
		}
		return nil, f
	}
	s := &schemaFile{cat: &Catalog{Engine: "postgres", DefaultSchema: "public", Search: []string{"public"}, Extensions: map[string]string{}}}
	for _, stmt := range tree.Stmts {
		if err := s.statement(stmt.Stmt, "public"); err != nil {
			f := fault.New(fault.Invalid, "sqlguard.PostgresSchema", "%s", err)
			var inner *fault.Error
			if f.Position = int(stmt.StmtLocation) + 1; errors.As(err, &inner) {
				f.Msg, f.Hint = inner.Msg, inner.Hint
			}
			return nil, f
		}
	}
	s.references()
	return s.cat, nil
}

// schemaFile is a schema while it is read.
type schemaFile struct{ cat *Catalog }

func (s *schemaFile) statement(n *pg_query.Node, schema string) error {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_CreateSchemaStmt:
		for _, e := range x.CreateSchemaStmt.SchemaElts {
			if err := s.statement(e, x.CreateSchemaStmt.Schemaname); err != nil {
				return err
			}
		}
	case *pg_query.Node_CreateStmt:
		return s.createTable(x.CreateStmt, schema)
	case *pg_query.Node_CreateForeignTableStmt:
		return s.createTable(x.CreateForeignTableStmt.BaseStmt, schema)
	case *pg_query.Node_ViewStmt:
		return s.createView(x.ViewStmt.View, x.ViewStmt.Query, pgNameTexts(x.ViewStmt.Aliases), x.ViewStmt.Replace, schema, true)
	case *pg_query.Node_CreateTableAsStmt:
		into := x.CreateTableAsStmt.Into
		return s.createView(into.GetRel(), x.CreateTableAsStmt.Query, pgNameTexts(into.GetColNames()), false, schema,
			x.CreateTableAsStmt.Objtype == pg_query.ObjectType_OBJECT_MATVIEW)
	case *pg_query.Node_AlterTableStmt:
		return s.alterTable(x.AlterTableStmt, schema)
	case *pg_query.Node_RenameStmt:
		if t := x.RenameStmt.RenameType; t == pg_query.ObjectType_OBJECT_TABLE || t == pg_query.ObjectType_OBJECT_VIEW ||
			t == pg_query.ObjectType_OBJECT_MATVIEW || t == pg_query.ObjectType_OBJECT_COLUMN || t == pg_query.ObjectType_OBJECT_SCHEMA {
			return errors.New("RENAME is not read: write the relation under its last name")
		}
	case *pg_query.Node_AlterObjectSchemaStmt:
		return errors.New("SET SCHEMA is not read: write the object in its last schema")
	case *pg_query.Node_DropStmt:
		s.drop(x.DropStmt, schema)
	case *pg_query.Node_CommentStmt:
		s.comment(x.CommentStmt, schema)
	case *pg_query.Node_CreateExtensionStmt:
		s.cat.Extensions[x.CreateExtensionStmt.Extname] = "public"
		for _, o := range x.CreateExtensionStmt.Options {
			if d := o.GetDefElem(); d.GetDefname() == "schema" {
				s.cat.Extensions[x.CreateExtensionStmt.Extname] = d.Arg.GetString_().GetSval()
			}
		}
	case *pg_query.Node_CreateFunctionStmt:
		names := pgNameTexts(x.CreateFunctionStmt.Funcname)
		if name := names[len(names)-1]; !slices.Contains(s.cat.Functions, name) {
			s.cat.Functions = append(s.cat.Functions, name)
		}
	}
	return nil
}

// relation names what a statement makes or changes.
func relation(r *pg_query.RangeVar, schema string) Relation {
	if r.GetSchemaname() != "" {
		schema = r.Schemaname
	}
	return Relation{Schema: schema, Name: r.GetRelname()}
}

func (s *schemaFile) table(r Relation) *Table {
	i := slices.IndexFunc(s.cat.Tables, func(t Table) bool { return t.Relation == r })
	if i < 0 {
		return nil
	}
	return &s.cat.Tables[i]
}

func (s *schemaFile) add(t Table, replace bool) error {
	if old := s.table(t.Relation); old != nil {
		if !replace {
			return errors.New("the relation " + t.Schema + "." + t.Name + " is made twice")
		}
		*old = t
		return nil
	}
	s.cat.Tables = append(s.cat.Tables, t)
	return nil
}

func (s *schemaFile) createTable(c *pg_query.CreateStmt, schema string) error {
	t := Table{Relation: relation(c.Relation, schema)}
	if s.table(t.Relation) != nil && c.IfNotExists {
		return nil
	}
	if c.OfTypename != nil {
		return errors.New("CREATE TABLE … OF a type is not read: write the columns")
	}
	// A table has the columns of those that it inherits from or is a partition of, and they come first.
	for _, n := range c.InhRelations {
		if err := s.copyColumns(&t, n.GetRangeVar(), schema); err != nil {
			return err
		}
	}
	for _, n := range c.TableElts {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_ColumnDef:
			t.column(x.ColumnDef, schema)
		case *pg_query.Node_TableLikeClause:
			if err := s.copyColumns(&t, x.TableLikeClause.Relation, schema); err != nil {
				return err
			}
		case *pg_query.Node_Constraint:
			t.constraint(x.Constraint, nil, schema)
		}
	}
	return s.add(t, false)
}

func (s *schemaFile) copyColumns(t *Table, from *pg_query.RangeVar, schema string) error {
	other := s.table(relation(from, schema))
	if other == nil {
		return errors.New("the table " + from.GetRelname() + " is not made before " + t.Name)
	}
	t.Columns = append(t.Columns, other.Columns...)
	return nil
}

// column adds a column, or changes the one that the table has inherited.
func (t *Table) column(d *pg_query.ColumnDef, schema string) {
	typ, notNull := pgTypeText(d.TypeName)
	c := Column{Name: d.Colname, Type: typ, Nullable: !notNull && !d.IsNotNull}
	if i := t.columnIndex(c.Name); i >= 0 {
		t.Columns[i] = c
	} else {
		t.Columns = append(t.Columns, c)
	}
	for _, n := range d.Constraints {
		t.constraint(n.GetConstraint(), []string{d.Colname}, schema)
	}
}

func (t *Table) columnIndex(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// constraint notes a key; columns are those of the column that it stands at.
func (t *Table) constraint(c *pg_query.Constraint, columns []string, schema string) {
	switch c.GetContype() {
	case pg_query.ConstrType_CONSTR_NOTNULL:
		t.notNull(append(columns, pgNameTexts(c.Keys)...), true)
	case pg_query.ConstrType_CONSTR_PRIMARY:
		t.PrimaryKey = append(columns, pgNameTexts(c.Keys)...)
		t.notNull(t.PrimaryKey, true)
	case pg_query.ConstrType_CONSTR_IDENTITY:
		t.notNull(columns, true)
	case pg_query.ConstrType_CONSTR_FOREIGN:
		t.Foreign = append(t.Foreign, ForeignKey{Columns: append(columns, pgNameTexts(c.FkAttrs)...), References: relation(c.Pktable, schema), Referenced: pgNameTexts(c.PkAttrs)})
	}
}

func (t *Table) notNull(columns []string, is bool) {
	for _, name := range columns {
		if i := t.columnIndex(name); i >= 0 {
			t.Columns[i].Nullable = !is
		}
	}
}

// createView walks the query of a view or a table for its columns.
func (s *schemaFile) createView(rel *pg_query.RangeVar, query *pg_query.Node, aliases []string, replace bool, schema string, view bool) error {
	t := Table{Relation: relation(rel, schema), View: view}
	w := &pgWalker{req: Request{Profile: ReadOnly, Catalog: s.cat, May: func(Relation) bool { return true }}}
	cols, err := w.subquery(query, nil, noPlace)
	if err == nil {
		cols = cols.renamed(aliases)
	}
	if len(aliases) > 0 && (err != nil || cols.open) {
		cols, err = columns{names: aliases}, nil // a view's list may be shorter than its query, which then stays unknown
	}
	switch {
	case err != nil:
		var f *fault.Error
		if errors.As(err, &f) && f.Hint == "" {
			f.Hint = "name its columns: CREATE VIEW v (a, b) AS …"
		}
		return err
	case cols.open:
		return errors.New("the columns of the view " + t.Name + " cannot be known: name them, CREATE VIEW v (a, b) AS …")
	}
	for _, name := range cols.names {
		t.Columns = append(t.Columns, Column{Name: name, Nullable: true})
	}
	return s.add(t, replace)
}

func (s *schemaFile) alterTable(a *pg_query.AlterTableStmt, schema string) error {
	t := s.table(relation(a.Relation, schema))
	if t == nil {
		return nil // an index, a sequence, or what a later version makes
	}
	for _, n := range a.Cmds {
		switch c := n.GetAlterTableCmd(); c.GetSubtype() {
		case pg_query.AlterTableType_AT_AddColumn:
			if c.MissingOk && t.columnIndex(c.Def.GetColumnDef().GetColname()) >= 0 {
				continue
			}
			t.column(c.Def.GetColumnDef(), schema)
		case pg_query.AlterTableType_AT_DropColumn:
			t.Columns = slices.DeleteFunc(t.Columns, func(col Column) bool { return col.Name == c.Name })
		case pg_query.AlterTableType_AT_AlterColumnType:
			if i := t.columnIndex(c.Name); i >= 0 {
				t.Columns[i].Type, _ = pgTypeText(c.Def.GetColumnDef().GetTypeName())
			}
		case pg_query.AlterTableType_AT_SetNotNull:
			t.notNull([]string{c.Name}, true)
		case pg_query.AlterTableType_AT_DropNotNull:
			t.notNull([]string{c.Name}, false)
		case pg_query.AlterTableType_AT_AddConstraint:
			t.constraint(c.Def.GetConstraint(), nil, schema)
		case pg_query.AlterTableType_AT_AddInherit, pg_query.AlterTableType_AT_DropInherit, pg_query.AlterTableType_AT_AddOf:
			return errors.New("ALTER TABLE " + t.Name + " with INHERIT or OF is not read: write the columns in CREATE TABLE")
		}
	}
	return nil
}

func (s *schemaFile) drop(d *pg_query.DropStmt, schema string) {
	switch d.RemoveType {
	case pg_query.ObjectType_OBJECT_TABLE, pg_query.ObjectType_OBJECT_VIEW, pg_query.ObjectType_OBJECT_MATVIEW, pg_query.ObjectType_OBJECT_FOREIGN_TABLE:
		for _, o := range d.Objects {
			r := relationOf(pgNameTexts(o.GetList().GetItems()), schema)
			s.cat.Tables = slices.DeleteFunc(s.cat.Tables, func(t Table) bool { return t.Relation == r })
		}
	}
}

// relationOf makes a relation of the parts of its name.
func relationOf(names []string, schema string) Relation {
	if len(names) == 0 {
		return Relation{}
	}
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	return Relation{Schema: schema, Name: names[len(names)-1]}
}

func (s *schemaFile) comment(c *pg_query.CommentStmt, schema string) {
	names := pgNameTexts(c.Object.GetList().GetItems())
	switch c.Objtype {
	case pg_query.ObjectType_OBJECT_COLUMN:
		if len(names) < 2 {
			return
		}
		if t := s.table(relationOf(names[:len(names)-1], schema)); t != nil {
			if i := t.columnIndex(names[len(names)-1]); i >= 0 {
				t.Columns[i].Comment = c.Comment
			}
		}
	case pg_query.ObjectType_OBJECT_TABLE, pg_query.ObjectType_OBJECT_VIEW, pg_query.ObjectType_OBJECT_MATVIEW, pg_query.ObjectType_OBJECT_FOREIGN_TABLE:
		if t := s.table(relationOf(names, schema)); t != nil {
			t.Comment = c.Comment
		}
	}
}

// references gives the foreign keys without columns those of the primary key that they refer to.
func (s *schemaFile) references() {
	for i := range s.cat.Tables {
		for j := range s.cat.Tables[i].Foreign {
			if f := &s.cat.Tables[i].Foreign[j]; len(f.Referenced) == 0 {
				if other := s.table(f.References); other != nil {
					f.Referenced = slices.Clone(other.PrimaryKey)
				}
			}
		}
	}
}

// pgNameTexts gives the strings of a list.
func pgNameTexts(list []*pg_query.Node) (out []string) {
	for _, n := range list {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

// pgLong are the names that PostgreSQL shows for types, by those that its grammar gives; {} is the place of the size.
var pgLong = map[string]string{
	"int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision", "bool": "boolean",
	"varchar": "character varying{}", "bpchar": "character{}", "varbit": "bit varying{}", "timestamp": "timestamp{} without time zone",
	"timestamptz": "timestamp{} with time zone", "time": "time{} without time zone", "timetz": "time{} with time zone",
	"serial": "integer", "serial4": "integer", "bigserial": "bigint", "serial8": "bigint", "smallserial": "smallint", "serial2": "smallint",
}

// pgTypeText writes a type as PostgreSQL's format_type does, and tells of the serial ones that they are NOT NULL.
func pgTypeText(t *pg_query.TypeName) (text string, notNull bool) {
	names := pgNameTexts(t.GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) == 0 {
		return "", false
	}
	name := strings.Join(names, ".")
	long, ok := pgLong[name]
	if !ok {
		long = name + "{}"
	}
	var sizes []string
	for _, m := range t.Typmods {
		if c := m.GetAConst(); c.GetIval() != nil {
			sizes = append(sizes, strconv.Itoa(int(c.GetIval().GetIval())))
		}
	}
	size := ""
	if len(sizes) > 0 && name != "interval" { // those of an interval are its fields
		size = "(" + strings.Join(sizes, ",") + ")"
	}
	text = strings.Replace(long, "{}", size, 1)
	if len(t.ArrayBounds) > 0 {
		text += "[]"
	}
	return text, strings.Contains(name, "serial")
}
