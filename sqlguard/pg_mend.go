package sqlguard

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// libpg_query's writer forgets the parentheses around some conditions that are operands: (NOT a) IS NULL, (a IN (1)) = b. The
// text is another statement then, or none, and is refused. In a tree that came out so, such a condition is written as
// what it is the only choice of: COALESCE(NOT a) IS NULL. So does an array before a
// subscript lose them, (COALESCE(a, b))[1], which the writer leaves to NULLIF(COALESCE(a, b), NULL).

// pgOperands are the messages whose operands the writer may leave bare. A List is IN's or BETWEEN's.
var pgOperands = map[protoreflect.Name]bool{"NullTest": true, "BooleanTest": true, "A_Expr": true, "CollateClause": true, "A_Indirection": true, "SubLink": true,
	"JsonIsPredicate": true, "JsonValueExpr": true, "XmlExpr": true, "List": true, "FuncCall": true}

// mendOperands mends what is below a message and tells whether there was anything to mend.
func mendOperands(m protoreflect.Message) (mended bool) {
	switch x := m.Interface().(type) {
	case *pg_query.ResTarget: // its column keeps its name
		before, _ := figureName(x.Val)
		defer func() {
			if after, _ := figureName(x.Val); x.Name == "" && after != before {
				x.Name = before
			}
		}()
	case *pg_query.A_Indirection:
		if isArray(x.Arg) {
			mended = true
			null := &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Isnull: true, Location: -1}}}
			x.Arg = &pg_query.Node{Node: &pg_query.Node_AExpr{AExpr: &pg_query.A_Expr{Kind: pg_query.A_Expr_Kind_AEXPR_NULLIF, Name: pgStrings("="), Lexpr: x.Arg, Rexpr: null, Location: -1}}}
		}
	}
	inside := pgOperands[m.Descriptor().Name()]
	table := m.Descriptor().Name() == "RangeTableFunc" // XMLTABLE, which has parentheses around nothing
	each := func(f protoreflect.FieldDescriptor, v protoreflect.Message) {
		if n, ok := v.Interface().(*pg_query.Node); ok && (inside && isCondition(n) || table && (f.Name() == "docexpr" || f.Name() == "rowexpr")) {
			mended = true
			mendOperands(v)
			n.Node = &pg_query.Node_CoalesceExpr{CoalesceExpr: &pg_query.CoalesceExpr{Args: []*pg_query.Node{{Node: n.Node}}}}
			return
		}
		mended = mendOperands(v) || mended
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				each(f, v.List().Get(i).Message())
			}
		default:
			each(f, v.Message())
		}
		return true
	})
	return mended
}

// isArray tells of an expression that may be an array and stands without parentheses before a subscript.
func isArray(n *pg_query.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_CaseExpr, *pg_query.Node_CoalesceExpr, *pg_query.Node_MinMaxExpr:
		return true
	case *pg_query.Node_SubLink:
		return x.SubLink.SubLinkType == pg_query.SubLinkType_ARRAY_SUBLINK
	}
	return false
}

// isCondition tells of an expression whose value is surely a boolean that the writer does not put in parentheses everywhere.
func isCondition(n *pg_query.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_BoolExpr, *pg_query.Node_NullTest, *pg_query.Node_BooleanTest, *pg_query.Node_JsonIsPredicate:
		return true
	case *pg_query.Node_SubLink:
		return x.SubLink.Testexpr != nil
	case *pg_query.Node_XmlExpr:
		return x.XmlExpr.Op == pg_query.XmlExprOp_IS_DOCUMENT
	case *pg_query.Node_FuncCall:
		name, _ := lastName(x.FuncCall.Funcname)
		return name == "is_normalized" || name == "overlaps"
	case *pg_query.Node_AExpr:
		switch x.AExpr.Kind {
		case pg_query.A_Expr_Kind_AEXPR_OP:
			name, _ := lastName(x.AExpr.Name)
			return pgVectorOverloads[name] == comparison && x.AExpr.Lexpr != nil
		case pg_query.A_Expr_Kind_AEXPR_NULLIF:
			return false
		}
		return true
	}
	return false
}
