package sqlguard

import (
	"context"
	"errors"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice/fault"
)

// A write of either dialect is read by PostgreSQL's grammar, and its form is decided on here: which statement it is, what it
// changes, every field that it may have. What it reads is decided on by the gate of the source's own dialect: for PostgreSQL
// by the walker, in place; for DuckDB by write_duckdb.go, which has DuckDB's own parser read each part.

// pgWriter decides on one statement that writes.
type pgWriter struct {
	*pgWalker
	duck    *duckParts // nil for PostgreSQL
	writing Writing
	ctes    *cteScope // of WITH before the statement
}

// checkWrite is Check for the profile Write, after the checks of the bytes.
func (g *Gate) checkWrite(ctx context.Context, req Request) (Approved, error) {
	if err := ctx.Err(); err != nil {
		return Approved{}, err
	}
	tree, err := g.writeTree(req.SQL)
	if err != nil {
		return Approved{}, err
	}
	w, shown := &pgWriter{pgWalker: &pgWalker{req: req}}, ""
	if g.dialect == DuckDB {
		if shown, err = pgDeparse(tree, nil); err != nil {
			return Approved{}, err
		}
		w.duck = newDuckParts(ctx, g, req, tree.Version)
	}
	if err := w.statement(tree.Stmts[0].Stmt, req.SQL); err != nil {
		return Approved{}, err
	}
	a := Approved{database: req.Database, profile: req.Profile, shown: shown, writing: w.writing}
	if w.duck != nil {
		w.duck.marks.quote(tree.Stmts[0].Stmt.ProtoReflect(), formNames)
	}
	if a.sql, err = pgDeparse(tree, w.bare); err != nil {
		return Approved{}, err
	}
	if w.duck == nil {
		a.shown = a.sql
	} else {
		if err := g.oneStatement(req.SQL, w.writing.Command); err != nil {
			return Approved{}, err
		}
		if a.sql, err = w.duck.marks.splice(a.sql); err != nil {
			return Approved{}, err
		}
		if err := g.oneStatement(a.sql, w.writing.Command); err != nil {
			return Approved{}, changed()
		}
		a.parts, a.patterns = w.duck.approved, w.duck.patterns
		for _, r := range w.duck.relations {
			w.reads(r)
		}
	}
	a.relations = w.relations
	return a, nil
}

const oneWrite = "send one INSERT, UPDATE, DELETE, TRUNCATE, CREATE TABLE, CREATE INDEX, ALTER TABLE or DROP"

// writeTree gives the tree of a text that is one statement.
func (g *Gate) writeTree(sql string) (*pg_query.ParseResult, error) {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		err = pgNotParsed(sql, err)
		var f *fault.Error
		if errors.As(err, &f) && g.dialect == DuckDB && f.Kind == kindSyntax && f.Hint == "" {
			f.Hint = "a write must be readable by the grammar of PostgreSQL too: no INSERT OR REPLACE, BY NAME, FROM-first queries, structs or lambdas; INSERT … ON CONFLICT is"
		}
		return nil, err
	}
	switch len(tree.Stmts) {
	case 1:
	case 0:
		return nil, refuse(noPlace, kindSyntax, oneWrite, "there is no statement")
	default:
		return nil, notQuery(int(tree.Stmts[1].StmtLocation), "send them one by one: each is a transaction of its own", "there are %d statements; only one may be sent", len(tree.Stmts))
	}
	raw := tree.Stmts[0]
	if err := pgFits("the statement", raw.ProtoReflect(), pgStatementShape); err != nil {
		return nil, err
	}
	return tree, nil
}

// oneStatement has DuckDB itself count the statements of a text, of which the other grammar found one.
func (g *Gate) oneStatement(sql, command string) error {
	c, ok := g.parser.(StatementCounter)
	if !ok {
		return refuse(noPlace, kindQuery, "", "this version cannot decide on writes of %s", g.dialect)
	}
	n, err := c.Statements(sql)
	switch {
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), "\n")
		if len(text) > maxSyntaxText {
			text = strings.ToValidUTF8(text[:maxSyntaxText], "") + "…"
		}
		return refuse(noPlace, kindSyntax, "a name that is a word of DuckDB's grammar needs double quotes", "DuckDB cannot read the statement: %s", strings.TrimPrefix(text, "Parser Error: "))
	case n != 1 && command == "ALTER TABLE": // it adds the column, updates the rows and sets the default, between BEGIN and COMMIT
		return refuse(noPlace, kindQuery, "add the column without DEFAULT and UPDATE it, or write DEFAULT as a number or a text", "DuckDB makes several statements of this one")
	case n != 1:
		return notQuery(noPlace, "send them one by one: each is a transaction of its own", "there are %d statements; only one may be sent", n)
	}
	return nil
}

// statement decides on the whole.
func (w *pgWriter) statement(n *pg_query.Node, sql string) error {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_InsertStmt:
		return w.insert(x.InsertStmt)
	case *pg_query.Node_UpdateStmt:
		return w.update(x.UpdateStmt)
	case *pg_query.Node_DeleteStmt:
		return w.delete(x.DeleteStmt)
	case *pg_query.Node_TruncateStmt:
		return w.truncate(x.TruncateStmt)
	case *pg_query.Node_CreateStmt:
		return w.createTable(x.CreateStmt)
	case *pg_query.Node_CreateTableAsStmt:
		return w.createTableAs(x.CreateTableAsStmt)
	case *pg_query.Node_IndexStmt:
		return w.createIndex(x.IndexStmt)
	case *pg_query.Node_AlterTableStmt:
		return w.alterTable(x.AlterTableStmt)
	case *pg_query.Node_RenameStmt:
		return w.rename(x.RenameStmt)
	case *pg_query.Node_DropStmt:
		return w.drop(x.DropStmt)
	case *pg_query.Node_TransactionStmt:
		return notQuery(0, "leave BEGIN, COMMIT and ROLLBACK out", "each statement is a transaction of its own: it happens whole or not at all")
	case *pg_query.Node_MergeStmt:
		return notQuery(0, "INSERT … ON CONFLICT … DO UPDATE, or an UPDATE and an INSERT", "MERGE is not allowed")
	case *pg_query.Node_ViewStmt:
		return notQuery(0, "CREATE TABLE … AS keeps the rows of a query", "CREATE VIEW is not allowed: who may read a view reads what is behind it")
	}
	word := firstWord(sql)
	if toks := scan(sql); len(toks) > 1 && slices.Contains([]string{"CREATE", "ALTER", "DROP"}, word) && toks[1].word() {
		word += " " + strings.ToUpper(toks[1].text)
	}
	return notQuery(0, oneWrite, "%s is not allowed here", word)
}

// same is how the source compares names.
func (w *pgWriter) same() sameness {
	if w.duck != nil {
		return folded
	}
	return exactly
}

// target resolves what a statement changes: a table of the source itself that the caller may read.
func (w *pgWriter) target(r *pg_query.RangeVar) (*source, error) {
	if r == nil {
		return nil, unreadable("no table that it changes")
	}
	if err := pgFits("the table", r.ProtoReflect(), pgFroms["RangeVar"]); err != nil {
		return nil, err
	}
	at := int(r.Location)
	t, err := w.req.table(at, r.Catalogname, r.Schemaname, r.Relname, w.same())
	if err != nil {
		return nil, err
	}
	if err := own(t, at); err != nil {
		return nil, err
	}
	cols := columns{}
	for _, c := range t.Columns {
		cols.names = append(cols.names, c.Name)
	}
	name, renames, err := alias(r.Alias)
	if err != nil {
		return nil, err
	}
	if len(renames) > 0 {
		return nil, unreadable("new names for the columns of the table that it changes")
	}
	src := &source{name: name, cols: cols, table: t}
	if name == "" {
		src.name, src.schema = t.Name, t.Schema
	}
	r.Catalogname, r.Schemaname, r.Relname = w.catalog(), t.Schema, t.Name
	w.changes(t.Relation)
	return src, nil
}

// catalog is what stands before the schema in the text that runs: DuckDB could take the schema's name for a catalogue's.
func (w *pgWriter) catalog() string {
	if w.duck == nil {
		return ""
	}
	return w.req.Catalog.Engine
}

// own refuses what is no table of the source itself.
func own(t *Table, at int) error {
	switch {
	case t.External != nil:
		return refuse(at, kindQuery, "COPY … TO LAKE writes files", "%s is an external table, which is only read", t.Name)
	case t.View:
		return refuse(at, kindQuery, "change the tables behind it", "%s is a view or a foreign table, which is only read", t.Name)
	}
	return nil
}

func (w *pgWriter) changes(r Relation) {
	w.reads(r)
	if !slices.Contains(w.writing.Targets, r) {
		w.writing.Targets = append(w.writing.Targets, r)
	}
}

// columnOf gives a column of a table as the catalogue spells it.
func (w *pgWriter) columnOf(src *source, name string, at int) (string, error) {
	same := w.same()
	for _, c := range src.cols.names {
		if same(c, name) {
			return c, nil
		}
	}
	return "", refuse(at, kindQuery, columnHint(name, src.cols.names), "there is no column %q in %q", name, src.table.Name)
}

// newRelation decides on the name of what a statement makes, and gives it its schema.
func (w *pgWriter) newRelation(r *pg_query.RangeVar) (Relation, error) {
	if r == nil {
		return Relation{}, unreadable("nothing that it makes")
	}
	at := int(r.Location)
	if err := pgFits("the new table", r.ProtoReflect(), pgFroms["RangeVar"]); err != nil {
		return Relation{}, err
	}
	if r.Relpersistence != "p" || r.Alias != nil || !r.Inh {
		return Relation{}, refuse(at, kindQuery, "write CREATE TABLE", "temporary and unlogged tables are not allowed")
	}
	schema, err := w.schema(r.Catalogname, r.Schemaname, at)
	if err != nil {
		return Relation{}, err
	}
	if err := newName(r.Relname, at); err != nil {
		return Relation{}, err
	}
	if t := w.req.Catalog.find("", schema, r.Relname, w.same()); t != nil && t.External != nil {
		return Relation{}, refuse(at, kindQuery, "choose another name", "there is an external table %s", t.Name)
	}
	r.Catalogname, r.Schemaname = w.catalog(), schema
	return Relation{Schema: schema, Name: r.Relname}, nil
}

// schema decides on a schema in which something is made or dropped: one that the source shows.
func (w *pgWriter) schema(catalog, schema string, at int) (string, error) {
	cat, same := w.req.Catalog, w.same()
	known := slices.Clone(cat.search())
	if w.duck != nil {
		for _, t := range cat.Tables {
			if t.External == nil {
				known = append(known, t.Schema)
			}
		}
	}
	if catalog == "" || cat.Engine != "" && same(catalog, cat.Engine) {
		if schema == "" {
			return known[0], nil
		}
		for _, s := range known {
			if same(s, schema) {
				return s, nil
			}
		}
	}
	return "", refuse(at, kindQuery, "the schema "+known[0]+" is there", "nothing can be made or dropped in %q", strings.TrimPrefix(catalog+"."+schema, "."))
}

// newName refuses names that could be taken for something else: a file, or a table with its schema.
func newName(name string, at int) error {
	if name == "" || len(name) > 63 || strings.ContainsAny(name, `./\"'`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return refuse(at, kindQuery, "choose letters, digits and _", "the name %q is not allowed: it has from 1 to 63 bytes and no dots, slashes, quotes or control characters", name)
	}
	return nil
}

// holds tells whether a message has one of some kinds in it.
func holds(m protoreflect.Message, kinds ...string) (found bool) {
	if slices.Contains(kinds, string(m.Descriptor().Name())) {
		return true
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				found = found || holds(v.List().Get(i).Message(), kinds...)
			}
		default:
			found = holds(v.Message(), kinds...)
		}
		return !found
	})
	return found
}
