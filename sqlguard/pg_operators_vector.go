package sqlguard

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL chooses among functions and operators of one name by the types of their arguments. With pgvector on the search
// path avg(embedding) and a <-> b are its own or PostgreSQL's by their types; the gate writes schemas, so it must choose, and
// it goes by what stands there: casts, columns of the catalogue, calls (pg_types.go). Both choices are harmless: after a wrong
// one the server says that there is no such function.

// overload is what an operator that pgvector adds to those of the same name does.
type overload int

const (
	arithmetic overload = iota + 1
	comparison
)

// pgVectorOverloads are the operators that pgvector adds to PostgreSQL's. There is no way from a vector to PostgreSQL's own.
var pgVectorOverloads = map[string]overload{
	"+": arithmetic, "-": arithmetic, "*": arithmetic, "||": arithmetic,
	"=": comparison, "<>": comparison, "<": comparison, "<=": comparison, ">": comparison, ">=": comparison,
}

// pgNear are the types that PostgreSQL's own <-> is for.
var pgNear = map[string]bool{"point": true, "box": true, "circle": true, "line": true, "lseg": true, "path": true, "polygon": true, "tsquery": true}

// vectorial tells of an expression that it is a vector.
func (w *pgWalker) vectorial(n *pg_query.Node, sc *scope) bool {
	return pgVectorTypes[w.typeOf(n, sc).name]
}

// vectorials tells of two operands that one is a vector and none an array of vectors, for which PostgreSQL has operators.
func (w *pgWalker) vectorials(l, r *pg_query.Node, sc *scope) bool {
	a, b := w.typeOf(l, sc).name, w.typeOf(r, sc).name
	return !strings.HasSuffix(a, "[]") && !strings.HasSuffix(b, "[]") && (pgVectorTypes[a] || pgVectorTypes[b])
}

func (w *pgWalker) near(n *pg_query.Node, sc *scope) bool { return pgNear[w.typeOf(n, sc).name] }

// vectorAggregate gives avg and sum of vectors the extension's schema, and refuses those of numbers with that schema.
func (w *pgWalker) vectorAggregate(m *pg_query.FuncCall, sc *scope) error {
	schema, name := w.req.Catalog.Extensions[pgVector], m.Funcname[len(m.Funcname)-1].GetString_().GetSval()
	if schema == "" || name != "avg" && name != "sum" || len(m.Args) != 1 {
		return nil
	}
	if w.vectorial(m.Args[0], sc) {
		m.Funcname = pgStrings(schema, name)
	} else if m.Funcname[0].GetString_().GetSval() == schema {
		return notPlain(schema+"."+name, int(m.Location))
	}
	return nil
}

// vectorOperator gives the operator of an allowed expression, whose schema is PostgreSQL's or the extension's, the other one
// of the two when its operands say so: + and = of vectors, <-> of points.
func (w *pgWalker) vectorOperator(m *pg_query.A_Expr, sc *scope) error {
	schema := w.req.Catalog.Extensions[pgVector]
	if schema == "" || len(m.Name) == 0 || m.Lexpr == nil {
		return nil
	}
	name, _ := lastName(m.Name)
	switch m.Kind {
	case pg_query.A_Expr_Kind_AEXPR_OP, pg_query.A_Expr_Kind_AEXPR_OP_ANY, pg_query.A_Expr_Kind_AEXPR_OP_ALL:
		vectors := false
		if m.Kind == pg_query.A_Expr_Kind_AEXPR_OP {
			vectors = w.vectorials(m.Lexpr, m.Rexpr, sc)
		} else {
			vectors = w.vectorial(m.Lexpr, sc) || pgVectorTypes[w.typeOf(m.Rexpr, sc).element().name]
		}
		switch {
		case pgVectorOverloads[name] != 0 && vectors && !ofSchema(m.Name, pgCatalogSchema):
			m.Name = pgStrings(schema, name)
		case pgVectorOverloads[name] != 0 && ofSchema(m.Name, schema):
			return noVectors(name, int(m.Location))
		case len(m.Name) == 2 && name == "<->" && (w.near(m.Lexpr, sc) || w.near(m.Rexpr, sc)):
			m.Name = pgStrings(name)
		case pgVectorOverloads[name] == comparison && (w.vectorsIn(m.Lexpr, sc) || w.vectorsIn(m.Rexpr, sc)):
			return unqualified(int(m.Location))
		}
		return nil
	}
	if w.vectorial(m.Lexpr, sc) || w.vectorsIn(m.Lexpr, sc) || w.vectorsIn(m.Rexpr, sc) {
		return unqualified(int(m.Location))
	}
	return nil
}

// vectorSubLink gives the operator before ANY and ALL of a query its schema, and IN one.
func (w *pgWalker) vectorSubLink(m *pg_query.SubLink, sc *scope) error {
	schema := w.req.Catalog.Extensions[pgVector]
	if schema == "" || m.Testexpr == nil {
		return nil
	}
	name := "="
	if len(m.OperName) > 0 {
		name, _ = lastName(m.OperName)
	}
	switch {
	case w.vectorsIn(m.Testexpr, sc):
		return unqualified(int(m.Location))
	case pgVectorOverloads[name] != 0 && !ofSchema(m.OperName, pgCatalogSchema) && (w.vectorial(m.Testexpr, sc) || pgVectorTypes[w.firsts[m].name]):
		m.OperName = pgStrings(schema, name)
	case pgVectorOverloads[name] != 0 && ofSchema(m.OperName, schema):
		return noVectors(name, int(m.Location))
	}
	return nil
}

// ofSchema tells of an operator's name that it begins with a schema.
func ofSchema(name []*pg_query.Node, schema string) bool {
	return len(name) == 2 && name[0].GetString_().GetSval() == schema
}

// noVectors refuses an operator of the extension's schema where no operand is known to be a vector: a user's could be there.
func noVectors(name string, at int) error {
	return refuse(at, kindQuery, "cast an operand to vector, or leave the schema out", "the operator %s of the extension's schema is allowed on vectors alone", name)
}

// vectorsIn tells of a row or a list that a vector is in it.
func (w *pgWalker) vectorsIn(n *pg_query.Node, sc *scope) bool {
	for _, list := range [][]*pg_query.Node{n.GetRowExpr().GetArgs(), n.GetList().GetItems()} {
		for _, x := range list {
			if w.vectorial(x, sc) || w.vectorsIn(x, sc) {
				return true
			}
		}
	}
	return false
}

// unqualified refuses a comparison of vectors that the grammar gives no place for the operator's schema.
func unqualified(at int) error {
	return refuse(at, kindQuery, "compare vectors with = <> < <= > >= alone, as in a = b OR a = c", "vectors cannot be compared in this form here")
}
