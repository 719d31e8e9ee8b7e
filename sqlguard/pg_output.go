package sqlguard

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL's own bounds, which a star over WITH queries that read one another twice would soon pass. That of joins is
// lower here than there (32,767).
const (
	pgMaxColumns     = 1664
	pgMaxJoinColumns = 10_000
)

// output tells the columns that a select list makes.
func (w *pgWalker) output(list []*pg_query.Node, sc *scope) (out columns, err error) {
	for _, n := range list {
		t := n.GetResTarget()
		if len(out.names) > pgMaxColumns {
			break
		}
		if cols, star := w.starred(t.GetVal(), sc); star {
			out.add(cols) // an alias of a star means nothing
			continue
		}
		if t.GetName() != "" {
			out.names = append(out.names, t.Name)
			out.know(t.Name, w.typeOf(t.Val, sc))
			continue
		}
		name, _ := figureName(t.GetVal())
		if name == "" {
			name = "?column?"
		}
		out.names = append(out.names, name)
		out.know(name, w.typeOf(t.GetVal(), sc))
	}
	for _, t := range out.types {
		if err := rowsDeep(t, noPlace); err != nil {
			return columns{}, err
		}
	}
	if len(out.names) > pgMaxColumns {
		return columns{}, refuse(noPlace, kindQuery, "name the columns that you need", "a query may have no more than %d columns", pgMaxColumns)
	}
	return out, nil
}

// starred tells the columns of *, t.* and (x).*.
func (w *pgWalker) starred(n *pg_query.Node, sc *scope) (columns, bool) {
	if a := n.GetAIndirection(); a != nil {
		if k := len(a.Indirection); k > 0 && a.Indirection[k-1].GetAStar() != nil {
			cols, known := w.fieldsOf(a.Arg, sc)
			if !known || k > 1 {
				return columns{open: true}, true
			}
			return cols, true
		}
		return columns{}, false
	}
	fields := n.GetColumnRef().GetFields()
	k := len(fields)
	if k == 0 || fields[k-1].GetAStar() == nil {
		return columns{}, false
	}
	if k == 1 {
		return visible(sc.sources), true
	}
	names, err := pgNames(fields[:k-1])
	if src := sc.pgSource(names); err == nil && src != nil {
		return src.cols, true
	}
	return columns{open: true}, true
}

// figureName gives the name that PostgreSQL gives to a column without an alias, "" when it has none, and whether that is
// the expression's own name rather than that of a type or keyword around it. It follows FigureColnameInternal of
// PostgreSQL 17's parse_target.c.
func figureName(n *pg_query.Node) (name string, own bool) {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		return lastName(x.ColumnRef.Fields)
	case *pg_query.Node_AIndirection:
		if name, ok := lastName(x.AIndirection.Indirection); ok {
			return name, true
		}
		return figureName(x.AIndirection.Arg)
	case *pg_query.Node_FuncCall:
		return lastName(x.FuncCall.Funcname)
	case *pg_query.Node_AExpr:
		if x.AExpr.Kind == pg_query.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", true
		}
	case *pg_query.Node_TypeCast:
		if name, own := figureName(x.TypeCast.Arg); own {
			return name, true
		}
		name, _ := lastName(x.TypeCast.TypeName.GetNames())
		return name, false
	case *pg_query.Node_CollateClause:
		return figureName(x.CollateClause.Arg)
	case *pg_query.Node_GroupingFunc:
		return "grouping", true
	case *pg_query.Node_SubLink:
		return subLinkName(x.SubLink)
	case *pg_query.Node_CaseExpr:
		if name, own := figureName(x.CaseExpr.Defresult); own {
			return name, true
		}
		return "case", false
	case *pg_query.Node_AArrayExpr:
		return "array", true
	case *pg_query.Node_RowExpr:
		return "row", true
	case *pg_query.Node_CoalesceExpr:
		return "coalesce", true
	case *pg_query.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == pg_query.MinMaxOp_IS_LEAST {
			return "least", true
		}
		return "greatest", true
	case *pg_query.Node_SqlvalueFunction:
		return pgValueFunctions[x.SqlvalueFunction.Op].name, true
	case *pg_query.Node_XmlExpr:
		name := pgXMLNames[x.XmlExpr.Op]
		return name, name != ""
	case *pg_query.Node_XmlSerialize:
		return "xmlserialize", true
	case *pg_query.Node_JsonParseExpr:
		return "json", true
	case *pg_query.Node_JsonScalarExpr:
		return "json_scalar", true
	case *pg_query.Node_JsonSerializeExpr:
		return "json_serialize", true
	case *pg_query.Node_JsonObjectConstructor:
		return "json_object", true
	case *pg_query.Node_JsonArrayConstructor, *pg_query.Node_JsonArrayQueryConstructor:
		return "json_array", true
	case *pg_query.Node_JsonObjectAgg:
		return "json_objectagg", true
	case *pg_query.Node_JsonArrayAgg:
		return "json_arrayagg", true
	case *pg_query.Node_JsonFuncExpr:
		name := pgJSONNames[x.JsonFuncExpr.Op]
		return name, name != ""
	}
	return "", false
}

var pgXMLNames = map[pg_query.XmlExprOp]string{
	pg_query.XmlExprOp_IS_XMLCONCAT: "xmlconcat", pg_query.XmlExprOp_IS_XMLELEMENT: "xmlelement", pg_query.XmlExprOp_IS_XMLFOREST: "xmlforest",
	pg_query.XmlExprOp_IS_XMLPARSE: "xmlparse", pg_query.XmlExprOp_IS_XMLPI: "xmlpi", pg_query.XmlExprOp_IS_XMLROOT: "xmlroot",
}

var pgJSONNames = map[pg_query.JsonExprOp]string{
	pg_query.JsonExprOp_JSON_EXISTS_OP: "json_exists", pg_query.JsonExprOp_JSON_QUERY_OP: "json_query", pg_query.JsonExprOp_JSON_VALUE_OP: "json_value",
}

// lastName gives the last name of a list, which may end in a star or subscripts.
func lastName(nodes []*pg_query.Node) (string, bool) {
	for i := len(nodes) - 1; i >= 0; i-- {
		if s, ok := nodes[i].GetNode().(*pg_query.Node_String_); ok {
			return s.String_.Sval, true
		}
	}
	return "", false
}

func subLinkName(x *pg_query.SubLink) (string, bool) {
	switch x.SubLinkType {
	case pg_query.SubLinkType_EXISTS_SUBLINK:
		return "exists", true
	case pg_query.SubLinkType_ARRAY_SUBLINK:
		return "array", true
	case pg_query.SubLinkType_EXPR_SUBLINK:
		// The name of its one column; of VALUES it is column1.
		sel := x.Subselect.GetSelectStmt()
		for sel.GetLarg() != nil {
			sel = sel.Larg
		}
		if len(sel.GetValuesLists()) > 0 {
			return "column1", true
		}
		if list := sel.GetTargetList(); len(list) > 0 {
			t := list[0].GetResTarget()
			if t.GetName() != "" {
				return t.Name, true
			}
			if name, _ := figureName(t.GetVal()); name != "" {
				return name, true
			}
			return "?column?", true
		}
	}
	return "", false
}
