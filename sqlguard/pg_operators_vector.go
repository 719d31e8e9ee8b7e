package sqlguard

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL chooses among functions and operators of one name by the types of their arguments. With pgvector on the search
// path avg(embedding) and a <-> b are its own or PostgreSQL's by their types; the gate writes schemas, so it must choose, and
// it goes by what stands there: casts, columns of the catalogue, calls. Both choices are harmless: after a wrong one the
// server says that there is no such function.

// vectorAggregate gives avg and sum of vectors the extension's schema.
func (w *pgWalker) vectorAggregate(call *pg_query.FuncCall, name string) {
	if schema := w.req.Catalog.Extensions[pgVector]; schema != "" && (name == "avg" || name == "sum") && len(call.Args) == 1 && w.vectorial(call.Args[0]) {
		call.Funcname = pgStrings(schema, name)
	}
}

// vectorOperator gives the operator of an allowed expression, whose schema is PostgreSQL's or the extension's, the other one
// of the two when its operands say so: + of vectors, <-> of points.
func (w *pgWalker) vectorOperator(m *pg_query.A_Expr) {
	schema := w.req.Catalog.Extensions[pgVector]
	if schema == "" || len(m.Name) == 0 || m.Kind != pg_query.A_Expr_Kind_AEXPR_OP || m.Lexpr == nil {
		return
	}
	name := m.Name[len(m.Name)-1].GetString_().GetSval()
	switch {
	case len(m.Name) == 1 && (slices.Contains(pgVectorArithmetic, name) || slices.Contains(pgVectorComparisons, name)) && (w.vectorial(m.Lexpr) || w.vectorial(m.Rexpr)):
		m.Name = pgStrings(schema, name)
	case len(m.Name) == 2 && name == "<->" && (w.near(m.Lexpr) || w.near(m.Rexpr)):
		m.Name = pgStrings(name)
	}
}

// pgVectorArithmetic and pgVectorComparisons are the operators that pgvector adds to those of the same name. PostgreSQL has none
// of its own for two vectors: only for arrays, which a vector becomes where both sides are surely one.
var (
	pgVectorArithmetic  = []string{"+", "-", "*", "||"}
	pgVectorComparisons = []string{"=", "<>", "<", "<=", ">", ">="}
)

// vectorial tells of an expression that it is a vector.
func (w *pgWalker) vectorial(n *pg_query.Node) bool {
	return w.looks(n, pgVectorTypes, []string{"l2_normalize", "subvector", "avg", "sum"}, pgVectorArithmetic)
}

// near tells of an expression that it is one of the values that PostgreSQL's own <-> is for.
func (w *pgWalker) near(n *pg_query.Node) bool {
	return w.looks(n, pgNear, []string{"point", "box", "circle", "line", "lseg", "path", "polygon", "to_tsquery", "plainto_tsquery", "phraseto_tsquery",
		"websearch_to_tsquery"}, []string{"<->", "&&", "||"})
}

var pgNear = map[string]bool{"point": true, "box": true, "circle": true, "line": true, "lseg": true, "path": true, "polygon": true, "tsquery": true}

// looks tells whether an expression is of one of some types, going by casts, columns, and the functions and operators that
// make one. avg and sum, and operators, make what they are given.
func (w *pgWalker) looks(n *pg_query.Node, types map[string]bool, makers, keepers []string) bool {
	switch {
	case n.GetTypeCast() != nil:
		t := n.GetTypeCast().TypeName
		return len(t.GetNames()) > 0 && len(t.ArrayBounds) == 0 && types[t.Names[len(t.Names)-1].GetString_().GetSval()]
	case n.GetFuncCall() != nil:
		f := n.GetFuncCall()
		name := f.Funcname[len(f.Funcname)-1].GetString_().GetSval()
		if name == "avg" || name == "sum" {
			return slices.Contains(makers, name) && len(f.Args) == 1 && w.looks(f.Args[0], types, makers, keepers)
		}
		return slices.Contains(makers, name)
	case n.GetAExpr() != nil && len(n.GetAExpr().Name) > 0:
		x := n.GetAExpr()
		return slices.Contains(keepers, x.Name[len(x.Name)-1].GetString_().GetSval()) && x.Lexpr != nil &&
			(w.looks(x.Lexpr, types, makers, keepers) || w.looks(x.Rexpr, types, makers, keepers))
	case n.GetColumnRef() != nil:
		fields := n.GetColumnRef().Fields
		return w.columnOf(fields[len(fields)-1].GetString_().GetSval(), types)
	}
	return false
}

// columnOf tells whether the columns of a name that the caller may read are all of some types.
func (w *pgWalker) columnOf(name string, types map[string]bool) bool {
	found := false
	for _, t := range w.req.Catalog.Tables {
		if w.req.May == nil || !w.req.May(t.Relation) {
			continue
		}
		for _, c := range t.Columns {
			if c.Name != name {
				continue
			}
			typ, _, _ := strings.Cut(c.Type, "(")
			if strings.HasSuffix(c.Type, "[]") || !types[typ[strings.LastIndex(typ, ".")+1:]] {
				return false
			}
			found = true
		}
	}
	return found
}
