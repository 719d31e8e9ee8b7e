package sqlguard

import (
	"reflect"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A populated field of a message of the parser's tree is one of these. A field that has no rule here must be empty, and a
// message that is not here cannot stand in a statement: what a later grammar adds is refused until somebody adds it.
type pgRule int

const (
	pgPlain pgRule = iota // a flag, a number, a known word of an enumeration, or a name that reaches nothing by itself
	pgWalk                // one or more messages of pgExprs, walked in the scope of their parent
	pgOwn                 // read by the code of its message, which must check all of it
)

type pgShape map[string]pgRule

// pgFields makes a shape of the names of its fields. Places are in each.
func pgFields(plain, walk, own string) pgShape {
	s := pgShape{"location": pgPlain}
	for rule, names := range []string{pgPlain: plain, pgWalk: walk, pgOwn: own} {
		for _, f := range strings.Fields(names) {
			s[f] = pgRule(rule)
		}
	}
	return s
}

// pgExprs are the messages that may stand in an expression. SetToDefault, CurrentOfExpr, MergeSupportFunc and the nodes
// that only the server's analysis makes are not among them.
var pgExprs = map[string]pgShape{
	"A_ArrayExpr":      pgFields("", "elements", ""),
	"A_Const":          pgFields("isnull", "ival fval boolval sval bsval", ""),
	"A_Expr":           pgFields("kind", "lexpr rexpr", "name"),
	"A_Indices":        pgFields("is_slice", "lidx uidx", ""),
	"A_Indirection":    pgFields("", "arg", "indirection"),
	"BitString":        pgFields("bsval", "", ""),
	"BoolExpr":         pgFields("boolop", "args", ""),
	"Boolean":          pgFields("boolval", "", ""),
	"BooleanTest":      pgFields("booltesttype", "arg", ""),
	"CaseExpr":         pgFields("", "arg args defresult", ""),
	"CaseWhen":         pgFields("", "expr result", ""),
	"CoalesceExpr":     pgFields("", "args", ""),
	"CollateClause":    pgFields("", "arg", "collname"),
	"ColumnRef":        pgFields("", "", "fields"),
	"Float":            pgFields("fval", "", ""),
	"FuncCall":         pgFields("agg_within_group agg_star agg_distinct func_variadic funcformat", "args agg_order agg_filter over", "funcname"),
	"GroupingFunc":     pgFields("", "args", ""),
	"Integer":          pgFields("ival", "", ""),
	"List":             pgFields("", "items", ""),
	"MinMaxExpr":       pgFields("op", "args", ""),
	"NamedArgExpr":     pgFields("name argnumber", "arg", ""),
	"NullTest":         pgFields("nulltesttype", "arg", ""),
	"ParamRef":         pgFields("", "", "number"),
	"RowExpr":          pgFields("row_format", "args", ""),
	"SQLValueFunction": pgFields("typmod", "", "op"),
	"SortBy":           pgFields("sortby_dir sortby_nulls", "node", "use_op"),
	"String":           pgFields("sval", "", ""),
	"SubLink":          pgFields("sub_link_type", "testexpr", "oper_name subselect"),
	"TypeCast":         pgFields("", "arg type_name", ""),
	"TypeName":         pgFields("typemod", "", "names typmods array_bounds"),
	"WindowDef":        pgFields("name refname frame_options", "partition_clause order_clause start_offset end_offset", ""),

	"XmlExpr":      pgFields("op name xmloption indent", "args", "named_args"),
	"XmlSerialize": pgFields("xmloption indent", "expr type_name", ""),

	"JsonAggConstructor":        pgFields("", "output agg_filter agg_order over", ""),
	"JsonArgument":              pgFields("name", "val", ""),
	"JsonArrayAgg":              pgFields("absent_on_null", "constructor arg", ""),
	"JsonArrayConstructor":      pgFields("absent_on_null", "exprs output", ""),
	"JsonArrayQueryConstructor": pgFields("absent_on_null", "output format", "query"),
	"JsonBehavior":              pgFields("btype coerce", "expr", ""),
	"JsonFormat":                pgFields("format_type encoding", "", ""),
	"JsonFuncExpr":              pgFields("op column_name wrapper quotes", "context_item pathspec passing output on_empty on_error", ""),
	"JsonIsPredicate":           pgFields("item_type unique_keys", "expr format", ""),
	"JsonKeyValue":              pgFields("", "key value", ""),
	"JsonObjectAgg":             pgFields("absent_on_null unique", "constructor arg", ""),
	"JsonObjectConstructor":     pgFields("absent_on_null unique", "exprs output", ""),
	"JsonOutput":                pgFields("", "type_name returning", ""),
	"JsonParseExpr":             pgFields("unique_keys", "expr output", ""),
	"JsonReturning":             pgFields("typmod", "format", ""),
	"JsonScalarExpr":            pgFields("", "expr output", ""),
	"JsonSerializeExpr":         pgFields("", "expr output", ""),
	"JsonValueExpr":             pgFields("", "raw_expr formatted_expr format", ""),
}

// pgFroms are the messages that may stand in FROM.
var pgFroms = map[string]pgShape{
	"JoinExpr":         pgFields("jointype is_natural", "", "larg rarg using_clause join_using_alias quals alias"),
	"JsonTable":        pgFields("lateral", "context_item passing on_error", "pathspec columns alias"),
	"RangeFunction":    pgFields("lateral ordinality is_rowsfrom", "", "functions alias coldeflist"),
	"RangeSubselect":   pgFields("lateral", "", "subquery alias"),
	"RangeTableFunc":   pgFields("lateral", "docexpr rowexpr", "namespaces columns alias"),
	"RangeTableSample": pgFields("", "args repeatable", "relation method"),
	"RangeVar":         pgFields("inh relpersistence", "", "catalogname schemaname relname alias"),
}

// The messages whose place in the tree is fixed.
var (
	pgStatementShape = pgFields("stmt_location stmt_len", "", "stmt")
	pgExplainShape   = pgFields("", "", "query")
	pgSelectShape    = pgFields("group_distinct limit_option op all", "", "distinct_clause target_list from_clause where_clause group_clause having_clause window_clause "+
		"values_lists sort_clause limit_offset limit_count with_clause larg rarg")
	pgTargetShape     = pgFields("name", "val", "")
	pgAliasShape      = pgFields("aliasname", "", "colnames")
	pgWithShape       = pgFields("recursive", "", "ctes")
	pgCTEShape        = pgFields("ctename ctematerialized", "", "aliascolnames ctequery search_clause cycle_clause")
	pgSearchShape     = pgFields("search_breadth_first search_seq_column", "", "search_col_list")
	pgCycleShape      = pgFields("cycle_mark_column cycle_path_column", "cycle_mark_value cycle_mark_default", "cycle_col_list")
	pgGroupingShape   = pgFields("kind", "", "content")
	pgColumnDefShape  = pgFields("colname is_local", "type_name coll_clause", "")
	pgXMLColumnShape  = pgFields("colname for_ordinality is_not_null", "type_name colexpr coldefexpr", "")
	pgJSONColumnShape = pgFields("coltype name wrapper quotes", "type_name format on_empty on_error", "pathspec columns")
	pgJSONPathShape   = pgFields("name name_location", "string", "")
)

// pgFits checks that a message has no populated field without a rule, and no word that its enumeration does not have.
func pgFits(what string, m protoreflect.Message, s pgShape) error {
	if !m.IsValid() || s == nil {
		return refuse(pgPlace(m), kindQuery, "", "%s has a part that the gate cannot read", what)
	}
	l, v := pgLayoutOf(m)
	if l == nil || v.Field(l.unknown).Len() > 0 {
		return refuse(pgPlace(m), kindQuery, "", "%s has a part that the gate cannot read", what)
	}
	for i := range l.fields {
		f := &l.fields[i]
		if !f.has(v) {
			continue
		}
		in := f
		if f.kind == pgOneof {
			in, _ = f.member(v)
		}
		rule, ok := s[in.name]
		switch {
		case !ok:
			return refuse(pgPlace(m), kindQuery, "leave it out", "%s with %s is not allowed here", what, in.name)
		case rule == pgPlain && (in.kind == pgMessage || in.kind == pgList || in.kind == pgOther):
			return unreadable("a message where a plain value stands")
		case in.kind == pgEnum && in.word(v) == "":
			return refuse(pgPlace(m), kindQuery, "leave it out", "%s has a %s that the gate does not know", what, in.name)
		}
	}
	return nil
}

// pgInner gives what a Node holds, or the message itself when it is no Node. ok is false for an empty Node.
func pgInner(m protoreflect.Message) (inner protoreflect.Message, ok bool) {
	n, isNode := m.Interface().(*pg_query.Node)
	switch {
	case !isNode || n == nil:
		return m, m.IsValid()
	case n.Node == nil:
		return m, false
	}
	return pgReflect(reflect.ValueOf(n.Node).Elem().Field(0)), true
}

// nodePlace gives the place of what a Node holds, or noPlace.
func nodePlace(n *pg_query.Node) int {
	m, ok := pgInner(n.ProtoReflect())
	if !ok {
		return noPlace
	}
	return pgPlace(m)
}

// pgPlace gives the 0-based byte place of a message in the caller's text, or noPlace.
func pgPlace(m protoreflect.Message) int {
	if m.IsValid() {
		if l, v := pgLayoutOf(m); l != nil && l.at >= 0 {
			if at := v.Field(l.at).Int(); at >= 0 {
				return int(at)
			}
		}
	}
	return noPlace
}
