package sqlguard

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

func (w *pgWriter) schemaWrite(command string) { w.writing.Command, w.writing.Schema = command, true }

// tableForm is a table that a statement makes or changes: what its expressions see.
type tableForm struct {
	src     *source
	from    []*pg_query.Node // the table, and its new columns, as a query has them
	made    Relation         // what is made, which may refer to itself; zero: nothing
	altered bool             // the table is there, and gets a column
}

func (w *pgWriter) createTable(n *pg_query.CreateStmt) error {
	w.schemaWrite("CREATE TABLE")
	if err := pgFits("CREATE TABLE", n.ProtoReflect(), pgCreateShape); err != nil {
		return err
	}
	if n.Oncommit != pg_query.OnCommitAction_ONCOMMIT_NOOP {
		return refuse(noPlace, kindQuery, "leave ON COMMIT out", "temporary tables are not allowed")
	}
	made, err := w.newRelation(n.Relation)
	if err != nil {
		return err
	}
	form := &tableForm{made: made, src: &source{name: made.Name, schema: made.Schema, table: &Table{Relation: made}}}
	var defs []*pg_query.ColumnDef
	for _, e := range n.TableElts {
		if d := e.GetColumnDef(); d != nil {
			if err := newName(d.Colname, int(d.Location)); err != nil {
				return err
			}
			defs = append(defs, d)
			form.src.cols.names = append(form.src.cols.names, d.Colname)
		}
	}
	if len(defs) == 0 {
		return refuse(noPlace, kindQuery, "write CREATE TABLE t (id bigint PRIMARY KEY)", "a table needs a column")
	}
	form.from = w.columnsQuery(made.Name, defs)
	for _, e := range n.TableElts {
		switch {
		case e.GetColumnDef() != nil:
			err = w.newColumn(e.GetColumnDef(), form)
		case e.GetConstraint() != nil:
			err = w.constraint(e.GetConstraint(), form)
		default:
			err = refuse(noPlace, kindQuery, "write its columns", "a table like another one is not allowed")
		}
		if err != nil {
			return err
		}
	}
	w.writing.Targets = append(w.writing.Targets, made)
	return nil
}

// columnsQuery is a query with columns of the types of new ones, for DuckDB to read expressions over them.
func (w *pgWriter) columnsQuery(name string, defs []*pg_query.ColumnDef) []*pg_query.Node {
	if w.duck == nil {
		return nil
	}
	sel := &pg_query.SelectStmt{LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}
	for _, d := range defs {
		null := &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Isnull: true}}}
		cast := &pg_query.TypeCast{Arg: null, TypeName: proto.Clone(d.TypeName).(*pg_query.TypeName)}
		sel.TargetList = append(sel.TargetList, target(&pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: cast}}, d.Colname))
	}
	return []*pg_query.Node{{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Subquery: selectNode(sel), Alias: &pg_query.Alias{Aliasname: name}}}}}
}

// serials are the types of PostgreSQL that make a sequence with the column.
var serials = []string{"serial", "serial2", "serial4", "serial8", "smallserial", "bigserial"}

func (w *pgWriter) newColumn(d *pg_query.ColumnDef, form *tableForm) error {
	if err := pgFits("a column", d.ProtoReflect(), pgNewColumnShape); err != nil {
		return err
	}
	if d.TypeName == nil {
		return unreadable("a column without a type")
	}
	for _, n := range d.Constraints {
		c := n.GetConstraint()
		if c == nil {
			return unreadable("a column with something that is no constraint")
		}
		if err := w.constraint(c, form); err != nil {
			return err
		}
	}
	t := d.TypeName
	if w.duck != nil {
		return w.duck.typeName(t)
	}
	names, err := pgNames(t.Names)
	if err != nil {
		return err
	}
	if len(names) == 1 && slices.Contains(serials, names[0]) && len(t.Typmods) == 0 && len(t.ArrayBounds) == 0 {
		return pgFits("a type", t.ProtoReflect(), pgExprs["TypeName"])
	}
	return w.expr(&pg_query.Node{Node: &pg_query.Node_TypeName{TypeName: t}}, nil)
}

// constraint decides on a constraint of a column or a table.
func (w *pgWriter) constraint(c *pg_query.Constraint, form *tableForm) error {
	at := int(c.Location)
	if err := pgFits("a constraint", c.ProtoReflect(), pgConstraintShape); err != nil {
		return err
	}
	for _, list := range [][]*pg_query.Node{c.Keys, c.FkAttrs} {
		for _, n := range list {
			if n.GetString_() == nil {
				return unreadable("a key without columns")
			}
			name, err := w.columnOf(form.src, n.GetString_().Sval, at)
			if err != nil {
				return err
			}
			n.GetString_().Sval = name
		}
	}
	if c.RawExpr != nil && c.Contype != pg_query.ConstrType_CONSTR_DEFAULT && c.Contype != pg_query.ConstrType_CONSTR_CHECK {
		return unreadable("a constraint with an expression")
	}
	switch c.Contype {
	case pg_query.ConstrType_CONSTR_NULL, pg_query.ConstrType_CONSTR_NOTNULL, pg_query.ConstrType_CONSTR_PRIMARY, pg_query.ConstrType_CONSTR_UNIQUE:
		return nil
	case pg_query.ConstrType_CONSTR_IDENTITY:
		if w.duck != nil {
			return refuse(at, kindQuery, "leave it out", "DuckDB has no IDENTITY")
		}
		return nil
	case pg_query.ConstrType_CONSTR_DEFAULT:
		return w.constant(c.RawExpr, at)
	case pg_query.ConstrType_CONSTR_CHECK:
		if form.altered && w.duck != nil {
			return refuse(at, kindQuery, "leave CHECK out", "DuckDB adds no column with CHECK")
		}
		return w.ownColumns(c.RawExpr, form, at)
	case pg_query.ConstrType_CONSTR_FOREIGN:
		return w.references(c, form)
	}
	return refuse(at, kindQuery, "PRIMARY KEY, UNIQUE, NOT NULL, CHECK, DEFAULT and REFERENCES are", "this constraint is not allowed")
}

// constant decides on a DEFAULT: a value of literals and allowed functions, without columns.
func (w *pgWriter) constant(n *pg_query.Node, at int) error {
	if n == nil || holds(n.ProtoReflect(), "ColumnRef", "SubLink", "ParamRef") {
		return refuse(at, kindQuery, "a literal, or a function such as now()", "DEFAULT is a value without columns, queries or parameters")
	}
	return at1(w.expressions(nil, &scope{}, []*pg_query.Node{n}), at)
}

// ownColumns decides on an expression over the columns of one table.
func (w *pgWriter) ownColumns(n *pg_query.Node, form *tableForm, at int) error {
	if n == nil || holds(n.ProtoReflect(), "SubLink", "ParamRef") {
		return refuse(at, kindQuery, "compare columns of the table itself", "an expression of a table has no queries and no parameters")
	}
	return at1(w.expressions(form.from, &scope{sources: []*source{form.src}}, []*pg_query.Node{n}), at)
}

func (w *pgWriter) references(c *pg_query.Constraint, form *tableForm) error {
	r := c.Pktable
	if r == nil {
		return unreadable("REFERENCES without a table")
	}
	same := w.same()
	to := form.src
	if form.made.Name != "" && r.Catalogname == "" && same(r.Relname, form.made.Name) && (r.Schemaname == "" || same(r.Schemaname, form.made.Schema)) {
		if err := pgFits("REFERENCES", r.ProtoReflect(), pgFroms["RangeVar"]); err != nil {
			return err
		}
		r.Schemaname, r.Relname = form.made.Schema, form.made.Name
	} else {
		targets := w.writing.Targets
		src, err := w.target(r)
		if err != nil {
			return err
		}
		to, w.writing.Targets = src, targets // it is read
		r.Catalogname = ""                   // DuckDB takes one with it for another database
	}
	for _, n := range c.PkAttrs {
		if n.GetString_() == nil {
			return unreadable("REFERENCES without columns")
		}
		name, err := w.columnOf(to, n.GetString_().Sval, int(c.Location))
		if err != nil {
			return err
		}
		n.GetString_().Sval = name
	}
	return nil
}

func (w *pgWriter) createTableAs(n *pg_query.CreateTableAsStmt) error {
	w.schemaWrite("CREATE TABLE AS")
	if err := pgFits("CREATE TABLE AS", n.ProtoReflect(), pgCreateAsShape); err != nil {
		return err
	}
	if n.Objtype != pg_query.ObjectType_OBJECT_TABLE || n.Into == nil {
		return refuse(noPlace, kindQuery, "write CREATE TABLE … AS", "materialized views are not allowed")
	}
	if err := pgFits("CREATE TABLE AS", n.Into.ProtoReflect(), pgIntoShape); err != nil {
		return err
	}
	if n.Into.OnCommit != pg_query.OnCommitAction_ONCOMMIT_NOOP {
		return refuse(noPlace, kindQuery, "leave ON COMMIT out", "temporary tables are not allowed")
	}
	made, err := w.newRelation(n.Into.Rel)
	if err != nil {
		return err
	}
	if len(n.Into.ColNames) > 0 && w.duck != nil {
		return refuse(noPlace, kindQuery, "name them in the query: SELECT x AS a", "the columns have no names of their own here")
	}
	names, err := pgNames(n.Into.ColNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := newName(name, noPlace); err != nil {
			return err
		}
	}
	if n.Query != nil && holds(n.Query.ProtoReflect(), "ParamRef") {
		return refuse(noPlace, kindQuery, "write the value into the statement", "CREATE TABLE … AS has no parameters")
	}
	w.writing.Targets = append(w.writing.Targets, made)
	return w.source(n.Query)
}

// pgIndexes are PostgreSQL's kinds of indexes.
var pgIndexes = []string{"btree", "hash", "gin", "gist", "spgist", "brin"}

func (w *pgWriter) createIndex(n *pg_query.IndexStmt) error {
	w.schemaWrite("CREATE INDEX")
	if err := pgFits("CREATE INDEX", n.ProtoReflect(), pgIndexShape); err != nil {
		return err
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	if n.Idxname != "" || w.duck != nil {
		if err := newName(n.Idxname, noPlace); err != nil {
			return err
		}
	}
	switch {
	case w.duck != nil && n.AccessMethod == "btree":
		n.AccessMethod = "art" // its own kind, and the only one
	case w.duck != nil || !slices.Contains(pgIndexes, n.AccessMethod):
		return refuse(noPlace, kindQuery, "leave USING out", "an index of the kind %s is not allowed", n.AccessMethod)
	}
	form := &tableForm{src: src, from: []*pg_query.Node{relationNode(n.Relation)}}
	for _, p := range n.IndexParams {
		e := p.GetIndexElem()
		if e == nil {
			return unreadable("an index without columns")
		}
		if err := pgFits("an index", e.ProtoReflect(), pgIndexElemShape); err != nil {
			return err
		}
		if e.Name != "" {
			if e.Name, err = w.columnOf(src, e.Name, noPlace); err != nil {
				return err
			}
			continue
		}
		if err := w.ownColumns(e.Expr, form, noPlace); err != nil {
			return err
		}
	}
	if n.WhereClause != nil {
		return w.ownColumns(n.WhereClause, form, noPlace)
	}
	return nil
}
