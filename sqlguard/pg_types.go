package sqlguard

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// pgType is what the gate knows of a type where it decides something: which of two operators of one name is meant
// (pg_operators_vector.go), whether a cast may be a user's function, whether unnest gives one column, how large a row is as
// text. The zero value is any other type, or an unknown one.
type pgType struct {
	name string // of a vector, of what shares an operator with it, of a user's type, as in the catalogue without its size; "" otherwise
	user bool   // one that a user made, an array of it, or a row
	rows int    // how deep rows and arrays of rows may nest in it
}

func (t pgType) with(o pgType) pgType {
	if t.name == "" {
		t.name = o.name
	}
	return pgType{name: t.name, user: t.user || o.user, rows: max(t.rows, o.rows)}
}

// array gives the type of an array of it. An array of arrays is the same type as that array.
func (t pgType) array() pgType {
	if t.name != "" && !strings.HasSuffix(t.name, "[]") {
		t.name += "[]"
	}
	if t.rows > 0 {
		t.rows++
	}
	return t
}

func (t pgType) element() pgType {
	t.name = strings.TrimSuffix(t.name, "[]")
	return t
}

// know notes the type of a column.
func (c *columns) know(name string, t pgType) {
	if t == (pgType{}) {
		return
	}
	if c.types == nil {
		c.types = map[string]pgType{}
	}
	c.types[name] = c.types[name].with(t)
}

// add appends the columns of another relation.
func (c *columns) add(o columns) {
	c.names = append(c.names, o.names...)
	c.open = c.open || o.open
	for name, t := range o.types {
		c.know(name, t)
	}
}

// row gives the type of a row of the columns.
func (c columns) row() pgType {
	t := pgType{user: true, rows: 1}
	for _, col := range c.types {
		t.rows = max(t.rows, col.rows+1)
	}
	return t
}

// pgShown are the built-in types under the names that format_type gives them.
var pgShown = func() map[string]bool {
	out := map[string]bool{`"char"`: true}
	for name := range pgTypes {
		out[name] = true
	}
	for _, name := range pgLong {
		out[strings.Replace(name, "{}", "", 1)] = true
	}
	return out
}()

// columnType reads the type of a column of the catalogue. One that the catalogue does not tell is unknown.
func (w *pgWalker) columnType(text string) pgType {
	if text == "" || pgShown[text] && !pgNear[text] {
		return pgType{}
	}
	base, isArray := strings.CutSuffix(text, "[]")
	if open := strings.IndexByte(base, '('); open >= 0 {
		_, after, _ := strings.Cut(base[open:], ")")
		base = base[:open] + after
	}
	schema, name, qualified := strings.Cut(base, ".")
	if !qualified {
		schema, name = "", base
	}
	vector := w.req.Catalog.Extensions[pgVector]
	t := pgType{}
	switch {
	case vector != "" && (schema == vector || schema == "") && pgVectorTypes[name], schema == "" && pgNear[name]:
		t.name = name
	case schema == "" && (pgShown[name] || strings.HasPrefix(name, "interval ")):
	default:
		t.name, t.user = base, true
	}
	if isArray {
		return t.array()
	}
	return t
}

// pgMakers are functions that give a value of one of the types.
var pgMakers = map[string]string{
	"l2_normalize": "vector", "subvector": "vector", "to_tsquery": "tsquery", "plainto_tsquery": "tsquery", "phraseto_tsquery": "tsquery", "websearch_to_tsquery": "tsquery",
	"point": "point", "box": "box", "circle": "circle", "line": "line", "lseg": "lseg", "path": "path", "polygon": "polygon",
}

// typeOf tells the type of an expression.
func (w *pgWalker) typeOf(n *pg_query.Node, sc *scope) (t pgType) {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_TypeCast:
		// As a text a row keeps its quotes, which double in each row around it.
		return pgType{name: namedType(x.TypeCast.TypeName).name, rows: w.typeOf(x.TypeCast.Arg, sc).rows}
	case *pg_query.Node_ColumnRef:
		return sc.typed(x.ColumnRef.Fields)
	case *pg_query.Node_AIndirection:
		return w.partType(x.AIndirection, sc)
	case *pg_query.Node_FuncCall:
		return w.callType(x.FuncCall, sc)
	case *pg_query.Node_AExpr:
		return w.operationType(x.AExpr, sc)
	case *pg_query.Node_SubLink:
		if t = w.firsts[x.SubLink]; x.SubLink.SubLinkType == pg_query.SubLinkType_ARRAY_SUBLINK {
			return t.array()
		}
		return t
	case *pg_query.Node_CaseExpr:
		for _, a := range x.CaseExpr.Args {
			t = t.with(w.typeOf(a.GetCaseWhen().GetResult(), sc))
		}
		return t.with(w.typeOf(x.CaseExpr.Defresult, sc))
	case *pg_query.Node_CoalesceExpr:
		return w.typeOfAny(x.CoalesceExpr.Args, sc)
	case *pg_query.Node_MinMaxExpr:
		return w.typeOfAny(x.MinMaxExpr.Args, sc)
	case *pg_query.Node_AArrayExpr:
		return w.typeOfAny(x.AArrayExpr.Elements, sc).array()
	case *pg_query.Node_RowExpr:
		return pgType{user: true, rows: w.typeOfAny(x.RowExpr.Args, sc).rows + 1}
	case *pg_query.Node_CollateClause:
		return w.typeOf(x.CollateClause.Arg, sc)
	case *pg_query.Node_NamedArgExpr:
		return w.typeOf(x.NamedArgExpr.Arg, sc)
	case *pg_query.Node_SortBy:
		return w.typeOf(x.SortBy.Node, sc)
	}
	return pgType{}
}

// namedType tells the type that a cast or a column's definition names.
func namedType(n *pg_query.TypeName) (t pgType) {
	name, _ := lastName(n.GetNames())
	plain, isArray := strings.CutPrefix(name, "_")
	if !pgVectorTypes[plain] && !pgNear[plain] {
		return t
	}
	if t.name = plain; isArray || len(n.ArrayBounds) > 0 {
		return t.array()
	}
	return t
}

func (w *pgWalker) typeOfAny(list []*pg_query.Node, sc *scope) (t pgType) {
	for _, n := range list {
		t = t.with(w.typeOf(n, sc))
	}
	return t
}

// typed tells the type of a column reference: of a column, or of a relation's row.
func (s *scope) typed(fields []*pg_query.Node) (t pgType) {
	star := false
	if k := len(fields); k > 0 && fields[k-1].GetAStar() != nil {
		fields, star = fields[:k-1], true
	}
	names, err := pgNames(fields)
	if err != nil {
		return t
	}
	switch {
	case len(names) == 0:
		if s != nil {
			t = visible(s.sources).row()
		}
		return t
	case len(names) == 1 && !star:
		for q := s; q != nil; q = q.parent {
			found := false
			for _, src := range q.sources {
				if !src.merged && slices.Contains(src.cols.names, names[0]) {
					found, t = true, t.with(src.cols.types[names[0]])
				}
			}
			if found {
				return t
			}
		}
	case !star:
		if src := s.pgSource(names[:len(names)-1]); src != nil {
			return src.cols.types[names[len(names)-1]]
		}
		return t
	}
	if src := s.pgSource(names); src != nil {
		return src.cols.row()
	}
	return t
}

// partType tells the type of (x).field and x[1].
func (w *pgWalker) partType(m *pg_query.A_Indirection, sc *scope) pgType {
	t, arg := w.typeOf(m.Arg, sc), m.Arg
	for _, n := range m.Indirection {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_AIndices:
			if !x.AIndices.IsSlice {
				t = t.element()
			}
		case *pg_query.Node_String_:
			cols, _ := w.fieldsOf(arg, sc)
			t = cols.types[x.String_.Sval]
		}
		arg = nil // the fields of what is inside are not known
	}
	return t
}

func (w *pgWalker) callType(m *pg_query.FuncCall, sc *scope) pgType {
	name, _ := lastName(m.Funcname)
	givesArray, generic := pgGeneric[name]
	switch {
	case pgMakers[name] != "":
		return pgType{name: pgMakers[name]}
	case name == "avg" || name == "sum":
		return w.typeOfAny(m.Args, sc)
	case !generic:
		return pgType{}
	}
	t := w.typeOfAny(m.Args, sc).with(w.typeOfAny(m.AggOrder, sc))
	if givesArray {
		return t.array()
	}
	if name == "unnest" {
		return t.element()
	}
	return t
}

// operationType tells the type of what an operator makes: those of arithmetic and || make what they are given.
func (w *pgWalker) operationType(m *pg_query.A_Expr, sc *scope) pgType {
	name, _ := lastName(m.Name)
	switch {
	case m.Kind == pg_query.A_Expr_Kind_AEXPR_NULLIF:
		return w.typeOf(m.Lexpr, sc)
	case m.Kind != pg_query.A_Expr_Kind_AEXPR_OP || m.Lexpr == nil || pgVectorOverloads[name] == comparison:
		return pgType{}
	}
	t := w.typeOf(m.Lexpr, sc).with(w.typeOf(m.Rexpr, sc))
	switch {
	case pgVectorOverloads[name] == arithmetic, t.name == "tsquery" && (name == "<->" || name == "&&"):
		return t
	}
	return pgType{}
}

// castFrom refuses the cast of a value of a user's type to another type than a text: CREATE CAST may have made it a call of a
// user's function, which no search path prevents.
func (w *pgWalker) castFrom(m *pg_query.TypeCast, sc *scope) error {
	from := w.typeOf(m.Arg, sc)
	if to, _ := lastName(m.TypeName.GetNames()); !from.user || pgTextTypes[to] {
		return nil
	}
	what := "a row"
	if from.name != "" {
		what = "the type " + from.name
	}
	return refuse(pgPlace(m.ProtoReflect()), kindQuery, "cast it to text first, as in x::text::integer", "a cast of %s is not allowed: it may call a function", what)
}

var pgTextTypes = map[string]bool{"text": true, "varchar": true, "bpchar": true, "_text": true, "_varchar": true, "_bpchar": true}

// rowsDeep refuses rows that nest too deeply. The text of a row has quotes and backslashes around each field, which double in
// the row around it: at 40 levels, a text of 250 bytes, the server writes a gigabyte, and hears neither its timeout nor a cancel.
func rowsDeep(t pgType, at int) error {
	if t.rows > pgMaxRows {
		return refuse(at, kindQuery, "put the values beside one another, or use jsonb_build_object", "rows and arrays of rows may nest only %d levels deep", pgMaxRows)
	}
	return nil
}

// pgMaxRows is how deep rows and arrays of rows may nest.
const pgMaxRows = 6

// typesOf gives the types of renamed columns under their new names.
func (c columns) typesOf(names []string) map[string]pgType {
	if len(c.types) == 0 {
		return nil
	}
	out := columns{}
	for i, n := range c.names {
		out.know(names[i], c.types[n])
	}
	return out.types
}
