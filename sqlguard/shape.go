package sqlguard

import (
	"encoding/json"
	"slices"
	"strconv"
)

// node is one object of the parser's tree.
type node = map[string]any

// A field of a node is one of these. What has no kind here cannot stand in a statement.
type kind int

const (
	inert   kind = iota // only its default may stand: null, false, 0, "", [] or {}
	text                // any string; its meaning is the walk's business
	flag                // a boolean
	whole               // a number
	texts               // a list of strings
	one                 // one of a list of words
	expr                // an expression, or null
	exprs               // a list of expressions
	object              // an object or null, read by the code of its node
	objects             // a list of objects, read by the code of its node
	custom              // any value, read by the code of its node, which must check all of it
)

type field struct {
	name  string
	kind  kind
	words []string
}

type shape []field

func words(name string, w ...string) field { return field{name, one, w} }

// common are the fields of every expression.
func common(class string, types ...string) shape {
	return shape{words("class", class), words("type", types...), {"alias", text, nil}, {"query_location", whole, nil}}
}

// ref are the fields of every table reference.
func ref(typ string) shape {
	return shape{words("type", typ), {"alias", text, nil}, {"sample", object, nil}, {"query_location", whole, nil}}
}

func with(s shape, fields ...field) shape { return append(slices.Clone(s), fields...) }

// exprShapes lists every expression that may stand in a statement, by its class in DuckDB 1.5.5's tree. DEFAULT and
// whatever a later engine adds are refused because they are not here.
var exprShapes = map[string]shape{
	"BETWEEN": with(common("BETWEEN", "COMPARE_BETWEEN"), field{"input", expr, nil}, field{"lower", expr, nil}, field{"upper", expr, nil}),
	"CASE":    with(common("CASE", "CASE_EXPR"), field{"case_checks", objects, nil}, field{"else_expr", expr, nil}),
	"CAST":    with(common("CAST", "OPERATOR_CAST"), field{"child", expr, nil}, field{"cast_type", object, nil}, field{"try_cast", flag, nil}),
	"COLLATE": with(common("COLLATE", "COLLATE"), field{"child", expr, nil}, field{"collation", text, nil}),
	"COLUMN_REF": with(common("COLUMN_REF", "COLUMN_REF"),
		field{"column_names", texts, nil}),
	"COMPARISON": with(common("COMPARISON", "COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO",
		"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO", "COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"),
		field{"left", expr, nil}, field{"right", expr, nil}),
	"CONJUNCTION": with(common("CONJUNCTION", "CONJUNCTION_AND", "CONJUNCTION_OR"), field{"children", exprs, nil}),
	"CONSTANT":    with(common("CONSTANT", "VALUE_CONSTANT"), field{"value", custom, nil}),
	"FUNCTION": with(common("FUNCTION", "FUNCTION"), field{"function_name", text, nil}, field{"schema", text, nil},
		field{"catalog", text, nil}, field{"children", exprs, nil}, field{"filter", expr, nil}, field{"order_bys", object, nil},
		field{"distinct", flag, nil}, field{"is_operator", flag, nil}, field{"export_state", inert, nil}),
	"LAMBDA": with(common("LAMBDA", "LAMBDA"), field{"lhs", object, nil}, field{"expr", object, nil}),
	"OPERATOR": with(common("OPERATOR", "ARRAY_CONSTRUCTOR", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "COMPARE_IN", "COMPARE_NOT_IN",
		"GROUPING_FUNCTION", "OPERATOR_COALESCE", "OPERATOR_IS_NOT_NULL", "OPERATOR_IS_NULL", "OPERATOR_NOT", "OPERATOR_NULLIF",
		"OPERATOR_TRY", "OPERATOR_UNPACK"), field{"children", exprs, nil}),
	"PARAMETER":            with(common("PARAMETER", "VALUE_PARAMETER"), field{"identifier", text, nil}),
	"POSITIONAL_REFERENCE": with(common("POSITIONAL_REFERENCE", "POSITIONAL_REFERENCE"), field{"index", whole, nil}),
	"STAR": with(common("STAR", "STAR"), field{"relation_name", text, nil}, field{"exclude_list", texts, nil},
		field{"replace_list", objects, nil}, field{"columns", flag, nil}, field{"expr", expr, nil},
		field{"qualified_exclude_list", objects, nil}, field{"rename_list", objects, nil}),
	"SUBQUERY": with(common("SUBQUERY", "SUBQUERY"), words("subquery_type", "SCALAR", "EXISTS", "NOT_EXISTS", "ANY"),
		field{"subquery", object, nil}, field{"child", expr, nil}, field{"comparison_type", text, nil}),
	"WINDOW": with(common("WINDOW", "WINDOW_AGGREGATE", "WINDOW_CUME_DIST", "WINDOW_FIRST_VALUE", "WINDOW_LAG", "WINDOW_LAST_VALUE",
		"WINDOW_LEAD", "WINDOW_NTH_VALUE", "WINDOW_NTILE", "WINDOW_PERCENT_RANK", "WINDOW_RANK", "WINDOW_RANK_DENSE", "WINDOW_ROW_NUMBER", "WINDOW_FILL"),
		field{"function_name", text, nil}, field{"schema", text, nil}, field{"catalog", text, nil}, field{"children", exprs, nil},
		field{"partitions", exprs, nil}, field{"orders", objects, nil}, field{"start", text, nil}, field{"end", text, nil},
		field{"start_expr", expr, nil}, field{"end_expr", expr, nil}, field{"offset_expr", expr, nil}, field{"default_expr", expr, nil},
		field{"ignore_nulls", flag, nil}, field{"filter_expr", expr, nil}, field{"exclude_clause", text, nil}, field{"distinct", flag, nil},
		field{"arg_orders", objects, nil}),
}

// fromShapes lists every table reference. AT (time travel) must be absent.
var fromShapes = map[string]shape{
	"BASE_TABLE": with(ref("BASE_TABLE"), field{"schema_name", text, nil}, field{"table_name", text, nil}, field{"column_name_alias", texts, nil},
		field{"catalog_name", text, nil}, field{"at_clause", inert, nil}),
	"EMPTY": ref("EMPTY"),
	"EXPRESSION_LIST": with(ref("EXPRESSION_LIST"), field{"expected_names", inert, nil}, field{"expected_types", inert, nil},
		field{"values", custom, nil}),
	"JOIN": with(ref("JOIN"), field{"left", object, nil}, field{"right", object, nil}, field{"condition", expr, nil},
		words("join_type", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"), words("ref_type", "REGULAR", "CROSS", "NATURAL", "ASOF", "POSITIONAL"),
		field{"using_columns", texts, nil}, field{"delim_flipped", inert, nil}, field{"duplicate_eliminated_columns", inert, nil}),
	"PIVOT": with(ref("PIVOT"), field{"source", object, nil}, field{"aggregates", exprs, nil}, field{"unpivot_names", texts, nil},
		field{"pivots", objects, nil}, field{"groups", texts, nil}, field{"column_name_alias", texts, nil}, field{"include_nulls", flag, nil}),
	"SHOW_REF": with(ref("SHOW_REF"), field{"table_name", inert, nil}, field{"query", object, nil}, words("show_type", "DESCRIBE", "SUMMARY"),
		field{"catalog_name", inert, nil}, field{"schema_name", inert, nil}),
	"SUBQUERY": with(ref("SUBQUERY"), field{"subquery", object, nil}, field{"column_name_alias", texts, nil}),
	"TABLE_FUNCTION": with(ref("TABLE_FUNCTION"), field{"function", object, nil}, field{"column_name_alias", texts, nil},
		words("with_ordinality", "WITHOUT_ORDINALITY", "WITH_ORDINALITY")),
}

// queryShapes lists every query node. CTE_NODE does not come out of DuckDB 1.5.5's serializer; WITH is in cte_map.
var queryShapes = map[string]shape{
	"SELECT_NODE": {words("type", "SELECT_NODE"), {"modifiers", objects, nil}, {"cte_map", object, nil}, {"select_list", exprs, nil},
		{"from_table", object, nil}, {"where_clause", expr, nil}, {"group_expressions", exprs, nil}, {"group_sets", custom, nil},
		words("aggregate_handling", "STANDARD_HANDLING", "FORCE_AGGREGATES", "NO_AGGREGATES_ALLOWED"), {"having", expr, nil},
		{"sample", object, nil}, {"qualify", expr, nil}},
	"SET_OPERATION_NODE": {words("type", "SET_OPERATION_NODE"), {"modifiers", objects, nil}, {"cte_map", object, nil},
		words("setop_type", "UNION", "UNION_BY_NAME", "EXCEPT", "INTERSECT"), {"left", object, nil}, {"right", object, nil}, {"setop_all", flag, nil}},
	"RECURSIVE_CTE_NODE": {words("type", "RECURSIVE_CTE_NODE"), {"modifiers", objects, nil}, {"cte_map", object, nil}, {"cte_name", text, nil},
		{"union_all", flag, nil}, {"left", object, nil}, {"right", object, nil}, {"aliases", texts, nil}, {"key_targets", inert, nil}},
}

// modifierShapes lists what may follow a query. LIMIT n % is not among them: its deparsed text does not parse back.
var modifierShapes = map[string]shape{
	"ORDER_MODIFIER":    {words("type", "ORDER_MODIFIER"), {"orders", objects, nil}},
	"LIMIT_MODIFIER":    {words("type", "LIMIT_MODIFIER"), {"limit", expr, nil}, {"offset", expr, nil}},
	"DISTINCT_MODIFIER": {words("type", "DISTINCT_MODIFIER"), {"distinct_on_targets", exprs, nil}},
}

// The small objects without a class.
var (
	statementShape = shape{{"node", object, nil}, {"named_param_map", objects, nil}}
	subqueryShape  = shape{{"node", object, nil}, {"named_param_map", inert, nil}}
	paramShape     = shape{{"key", text, nil}, {"value", whole, nil}}
	cteMapShape    = shape{{"map", objects, nil}}
	pairShape      = shape{{"key", text, nil}, {"value", object, nil}}
	cteShape       = shape{{"aliases", texts, nil}, {"query", object, nil}, {"key_targets", inert, nil},
		words("materialized", "CTE_MATERIALIZE_DEFAULT", "CTE_MATERIALIZE_ALWAYS", "CTE_MATERIALIZE_NEVER")}
	orderShape = shape{words("type", "ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
		words("null_order", "ORDER_DEFAULT", "NULLS LAST", "NULLS FIRST"), {"expression", expr, nil}}
	caseShape   = shape{{"when_expr", expr, nil}, {"then_expr", expr, nil}}
	columnShape = shape{{"catalog", text, nil}, {"schema", text, nil}, {"table", text, nil}, {"column", text, nil}}
	renameShape = shape{{"key", object, nil}, {"value", text, nil}}
	sampleShape = shape{{"sample_size", object, nil}, {"is_percentage", flag, nil}, {"method", text, nil}, {"seed", whole, nil}}
	pivotShape  = shape{{"pivot_expressions", exprs, nil}, {"unpivot_names", texts, nil}, {"entries", objects, nil}, {"pivot_enum", inert, nil}}
	entryShape  = shape{{"values", custom, nil}, {"star_expr", expr, nil}, {"alias", text, nil}}
	valueShape  = shape{{"type", object, nil}, {"is_null", flag, nil}, {"value", custom, nil}}
	typeShape   = shape{{"id", text, nil}, {"type_info", object, nil}}
)

// fits checks that an object has no field but those of its shape, each of its kind.
func fits(what string, n node, s shape) error {
	if n == nil {
		return refuse(noPlace, kindQuery, "", "%s has a part that the gate cannot read", what)
	}
	for name, v := range n {
		i := slices.IndexFunc(s, func(f field) bool { return f.name == name })
		if i < 0 {
			return refuse(place(n), kindQuery, "leave it out", "%s has a part %q that the gate does not know", what, name)
		}
		if !s[i].holds(v) {
			return refuse(place(n), kindQuery, "leave it out", "%s with %s = %s is not allowed here", what, name, brief(v))
		}
	}
	return nil
}

func (f field) holds(v any) bool {
	switch f.kind {
	case inert:
		return isDefault(v)
	case text:
		_, ok := v.(string)
		return ok
	case flag:
		_, ok := v.(bool)
		return ok
	case whole:
		_, ok := v.(json.Number)
		return ok
	case texts:
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { _, ok := e.(string); return !ok })
	case one:
		s, ok := v.(string)
		return ok && slices.Contains(f.words, s)
	case expr:
		_, ok := v.(node)
		return ok || v == nil
	case object:
		_, ok := v.(node)
		return ok || v == nil
	case exprs, objects:
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { _, ok := e.(node); return !ok })
	case custom:
		return true
	}
	return false
}

func isDefault(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case node:
		return len(v) == 0
	}
	return false
}

// brief shows a part of the tree in a refusal.
func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil || len(b) > 40 {
		return "this"
	}
	return string(b)
}

// place gives the 0-based byte place of a node in the caller's text, or noPlace.
func place(n node) int {
	p, _ := n["query_location"].(json.Number)
	return number(p)
}

// number reads a place; DuckDB writes 2^64-1 for none.
func number(n json.Number) int {
	p, err := strconv.ParseInt(string(n), 10, 32)
	if err != nil {
		return noPlace
	}
	return int(p)
}

func str(n node, key string) string  { s, _ := n[key].(string); return s }
func list(n node, key string) []any  { l, _ := n[key].([]any); return l }
func under(n node, key string) node  { o, _ := n[key].(node); return o }
func isTrue(n node, key string) bool { b, _ := n[key].(bool); return b }
func strs(n node, key string) []string {
	var out []string
	for _, v := range list(n, key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
