package sqlguard

import (
	"regexp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

const pgCatalogSchema = "pg_catalog"

// call decides on a function call's name and its cost, once, and writes it with its schema. The arguments are walked by
// others.
func (w *pgWalker) call(m *pg_query.FuncCall) (pgFunc, error) {
	if f, done := w.calls[m]; done {
		return f, nil
	}
	f, err := w.decideCall(m)
	if err == nil {
		if w.calls == nil {
			w.calls = map[*pg_query.FuncCall]pgFunc{}
		}
		w.calls[m] = f
	}
	return f, err
}

func (w *pgWalker) decideCall(m *pg_query.FuncCall) (pgFunc, error) {
	at := int(m.Location)
	names, err := pgNames(m.Funcname)
	if err != nil {
		return pgFunc{}, err
	}
	if len(names) == 0 {
		return pgFunc{}, unreadable("a call without a name")
	}
	name := names[len(names)-1]
	if len(names) > 2 || len(names) == 2 && names[0] != pgCatalogSchema && !w.extensionSchema(names[0]) {
		return pgFunc{}, notPlain(strings.Join(names, "."), at)
	}
	args := len(m.Args)
	if m.AggWithinGroup {
		args += len(m.AggOrder)
	}
	several := name == "unnest" && args > 1 && w.unnests[m]
	if several {
		args = 1
	}
	f, err := w.callable(name, args, at)
	if err != nil {
		return pgFunc{}, err
	}
	if f.schema == "" {
		f.schema = pgCatalogSchema
	}
	switch {
	case len(names) == 2 && names[0] == w.req.Catalog.Extensions[pgVector] && (name == "avg" || name == "sum"):
		// vectorAggregate decides when the argument has been walked.
	case len(names) == 2 && names[0] != f.schema:
		return pgFunc{}, notPlain(strings.Join(names, "."), at)
	case !several:
		m.Funcname = pgStrings(f.schema, name)
	}
	if name == "overlay" && len(m.Args) == 4 && !slices.ContainsFunc(m.Args, func(a *pg_query.Node) bool { return a.GetNamedArgExpr() != nil }) {
		m.Funcformat = pg_query.CoercionForm_COERCE_SQL_SYNTAX // what the writer makes of it anyhow
	}
	return f, w.pgCost(m, name)
}

func notPlain(name string, at int) error {
	return refuse(at, kindQuery, "call a built-in function by its plain name", "the function %s is not allowed", name)
}

func (w *pgWalker) extensionSchema(name string) bool {
	for _, s := range w.req.Catalog.Extensions {
		if s == name {
			return true
		}
	}
	return false
}

// pgWords are the kinds of A_Expr whose name is a word of the grammar, not an operator.
var pgWords = map[pg_query.A_Expr_Kind]string{
	pg_query.A_Expr_Kind_AEXPR_BETWEEN:         "BETWEEN",
	pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN:     "NOT BETWEEN",
	pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM:     "BETWEEN SYMMETRIC",
	pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM: "NOT BETWEEN SYMMETRIC",
}

// pgWordOps are the kinds of A_Expr that are written with words and mean one of these operators.
var pgWordOps = map[pg_query.A_Expr_Kind][]string{
	pg_query.A_Expr_Kind_AEXPR_DISTINCT:     {"="},
	pg_query.A_Expr_Kind_AEXPR_NOT_DISTINCT: {"="},
	pg_query.A_Expr_Kind_AEXPR_NULLIF:       {"="},
	pg_query.A_Expr_Kind_AEXPR_IN:           {"=", "<>"},
	pg_query.A_Expr_Kind_AEXPR_LIKE:         {"~~", "!~~"},
	pg_query.A_Expr_Kind_AEXPR_ILIKE:        {"~~*", "!~~*"},
	pg_query.A_Expr_Kind_AEXPR_SIMILAR:      {"~", "!~"},
}

// operation decides on an operator. Those that are written with words are PostgreSQL's own, because nothing but
// pg_catalog is on the search path.
func (w *pgWalker) operation(m *pg_query.A_Expr) error {
	names, err := pgNames(m.Name)
	if err != nil {
		return err
	}
	word, isWord := pgWords[m.Kind]
	ops, isOp := pgWordOps[m.Kind]
	switch {
	case isWord && len(names) == 1 && names[0] == word, isOp && len(names) == 1 && slices.Contains(ops, names[0]):
		return nil
	case isWord, isOp:
		return unreadable("an operator under another name")
	}
	switch m.Kind {
	case pg_query.A_Expr_Kind_AEXPR_OP, pg_query.A_Expr_Kind_AEXPR_OP_ANY, pg_query.A_Expr_Kind_AEXPR_OP_ALL:
		m.Name, err = w.operatorName(m.Name, int(m.Location))
		return err
	}
	return refuse(int(m.Location), kindQuery, "leave it out", "an expression of the kind %s is not allowed here", m.Kind)
}

// operatorName decides on an operator and gives its name as it is to be written.
func (w *pgWalker) operatorName(nodes []*pg_query.Node, at int) ([]*pg_query.Node, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	names, err := pgNames(nodes)
	if err != nil {
		return nil, err
	}
	schema, err := w.operator(names, at)
	if err != nil {
		return nil, err
	}
	if schema == "" || schema == pgCatalogSchema {
		return nodes, nil
	}
	return pgStrings(schema, names[len(names)-1]), nil
}

func (w *pgWalker) subLink(m *pg_query.SubLink, sc *scope) error {
	switch m.SubLinkType {
	case pg_query.SubLinkType_EXISTS_SUBLINK, pg_query.SubLinkType_EXPR_SUBLINK, pg_query.SubLinkType_ARRAY_SUBLINK,
		pg_query.SubLinkType_ANY_SUBLINK, pg_query.SubLinkType_ALL_SUBLINK:
	default:
		return refuse(int(m.Location), kindQuery, "", "a subquery of the kind %s is not allowed here", m.SubLinkType)
	}
	var err error
	if m.OperName, err = w.operatorName(m.OperName, int(m.Location)); err != nil {
		return err
	}
	cols, err := w.subquery(m.Subselect, sc, int(m.Location))
	if err != nil || len(cols.names) == 0 {
		return err
	}
	if t, known := cols.types[cols.names[0]]; known {
		if w.firsts == nil {
			w.firsts = map[*pg_query.SubLink]pgType{}
		}
		w.firsts[m] = t
	}
	return nil
}

// after does what needs the types of an expression's parts, which have been walked.
func (w *pgWalker) after(m any, sc *scope) error {
	switch m := m.(type) {
	case *pg_query.FuncCall:
		return w.vectorAggregate(m, sc)
	case *pg_query.A_Expr:
		return w.vectorOperator(m, sc)
	case *pg_query.SubLink:
		return w.vectorSubLink(m, sc)
	case *pg_query.CaseExpr:
		if w.vectorial(m.Arg, sc) {
			return unqualified(int(m.Location))
		}
	case *pg_query.TypeCast:
		return w.castFrom(m, sc)
	case *pg_query.RowExpr:
		return rowsDeep(pgType{rows: w.typeOfAny(m.Args, sc).rows + 1}, int(m.Location))
	case *pg_query.A_ArrayExpr:
		return rowsDeep(w.typeOfAny(m.Elements, sc).array(), int(m.Location))
	}
	return nil
}

// typeName decides on a type and writes it with its schema.
func (w *pgWalker) typeName(m *pg_query.TypeName) error {
	at := int(m.Location)
	names, err := pgNames(m.Names)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return unreadable("a type without a name")
	}
	schema, err := w.castable(names, at)
	if err != nil {
		return err
	}
	if schema == "" {
		schema = pgCatalogSchema
	}
	if schema == pgCatalogSchema {
		if err := pgTypeSize(names[len(names)-1], m.Typmods, at); err != nil {
			return err
		}
	}
	for _, mod := range m.Typmods {
		c := mod.GetAConst()
		if c == nil || c.Isnull || c.GetIval() == nil {
			return refuse(at, kindQuery, "write numeric(10, 2)", "the size of a type must be a number")
		}
		if err := w.expr(mod, nil); err != nil {
			return err
		}
	}
	for _, b := range m.ArrayBounds {
		if b.GetInteger() == nil {
			return unreadable("an array without bounds")
		}
		if err := w.expr(b, nil); err != nil {
			return err
		}
	}
	m.Names = pgStrings(schema, names[len(names)-1])
	return nil
}

// mendBoolean changes 't'::boolean, which the writer prints as the word true, to 'true'::boolean.
func mendBoolean(m *pg_query.TypeCast) {
	words := map[string]string{"t": "true", "f": "false"}
	if s := m.Arg.GetAConst().GetSval(); s != nil && words[s.Sval] != "" && len(m.TypeName.GetArrayBounds()) == 0 {
		if name, _ := lastName(m.TypeName.GetNames()); name == "bool" {
			s.Sval = words[s.Sval]
		}
	}
}

// pgCollations are the collations of pg_catalog, by the forms of their names: libc's, ICU's and the standard ones.
var pgCollations = regexp.MustCompile(`^(C|POSIX|default|ucs_basic|unicode|pg_c_utf8|pg_unicode_fast|C\.[Uu][Tt][Ff]-?8|[a-z]{2,3}(_[A-Z][A-Za-z]{1,3})?(\.[A-Za-z0-9-]+)?(@[a-z]+)?|[a-z]{2,3}(-[A-Za-z0-9]{2,8})*-x-icu)$`)

func (w *pgWalker) collation(m *pg_query.CollateClause) error {
	names, err := pgNames(m.Collname)
	if err != nil {
		return err
	}
	if len(names) == 0 || len(names) > 2 || len(names) == 2 && names[0] != pgCatalogSchema || !pgCollations.MatchString(names[len(names)-1]) {
		return refuse(int(m.Location), kindQuery, `use a built-in one, such as "C", "en_US" or "de-x-icu"`, "the collation %q is not allowed", strings.Join(names, "."))
	}
	m.Collname = pgStrings(pgCatalogSchema, names[len(names)-1])
	return nil
}

// pgValueFunctions are the keywords that are calls, with the names of their columns.
var pgValueFunctions = map[pg_query.SQLValueFunctionOp]struct {
	name  string
	clock bool
}{
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_DATE:        {"current_date", true},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIME:        {"current_time", true},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:      {"current_time", true},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:   {"current_timestamp", true},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: {"current_timestamp", true},
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME:           {"localtime", true},
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME_N:         {"localtime", true},
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:      {"localtimestamp", true},
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:    {"localtimestamp", true},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_ROLE:        {"current_role", false},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_USER:        {"current_user", false},
	pg_query.SQLValueFunctionOp_SVFOP_USER:                {"user", false},
	pg_query.SQLValueFunctionOp_SVFOP_SESSION_USER:        {"session_user", false},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:     {"current_catalog", false},
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:      {"current_schema", false},
}

func (w *pgWalker) valueFunction(m *pg_query.SQLValueFunction) error {
	f := pgValueFunctions[m.Op]
	switch {
	case f.name == "current_date", f.clock && w.req.Profile != RestrictedRead:
		return nil
	case f.clock:
		return refuse(int(m.Location), kindQuery, restrictedHint, "%s is a clock, which a restricted reader may not read", f.name)
	case f.name == "":
		return unreadable("a keyword of no value")
	}
	return refuse(int(m.Location), kindQuery, "if it is a column, write it in double quotes with its table's name before it", "%s is not allowed", f.name)
}
