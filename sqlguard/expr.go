package sqlguard

import (
	"encoding/json"
	"slices"
	"strings"
)

// walker decides on one statement. It changes the tree where the text that runs must differ from the caller's: relations
// get their full names and external tables their files.
type walker struct {
	req Request
	reading
	externals []*externalUse
	sampled   int // samples around what is being walked

	growth     growth
	backtracks bool // a pattern takes more than linear time
	patterns   []Pattern
	narrows    []narrowing
	raises     node // the first call of error(…)

	sums  []sumCall         // the calls of sum; after askSums those that get a cast
	marks map[string]string // of each argument of sum in each query
	items []node            // what stands in select lists without an alias
	names []string          // of those of the items that may change
	empty map[*Table][]any  // the types of an external table's columns
}

// expr decides on an expression and all below it.
func (w *walker) expr(v any, sc *scope) error {
	if v == nil {
		return nil
	}
	n, ok := v.(node)
	if !ok {
		return refuse(noPlace, kindQuery, "", "the statement has an expression that the gate cannot read")
	}
	if err := w.enter(place(n)); err != nil {
		return err
	}
	defer w.leave()
	class := str(n, "class")
	s, ok := exprShapes[class]
	if !ok {
		return refuse(place(n), kindQuery, "leave it out", "an expression of the class %q is not allowed here", class)
	}
	if err := fits("the expression "+class, n, s); err != nil {
		return err
	}
	if err := w.special(class, n, sc); err != nil {
		return err
	}
	return w.below(n, s, sc)
}

// below walks the fields of a shape that hold expressions.
func (w *walker) below(n node, s shape, sc *scope) error {
	for _, f := range s {
		switch f.kind {
		case expr:
			if err := w.expr(n[f.name], sc); err != nil {
				return err
			}
		case exprs:
			if err := w.each(list(n, f.name), sc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) each(l []any, sc *scope) error {
	for _, e := range l {
		if err := w.expr(e, sc); err != nil {
			return err
		}
	}
	return nil
}

// special does what an expression needs beyond walking its children. Every custom field of exprShapes is read here.
func (w *walker) special(class string, n node, sc *scope) error {
	switch class {
	case "COLUMN_REF":
		return w.column(n, sc)
	case "FUNCTION":
		if err := w.function(n); err != nil {
			return err
		}
		if err := w.cost(n, sc); err != nil {
			return err
		}
		w.sum(n, sc)
		if w.raises == nil && fold(str(n, "function_name")) == "error" {
			w.raises = n
		}
		if o := under(n, "order_bys"); o != nil {
			return w.modifier(o, sc)
		}
	case "WINDOW":
		if err := w.function(n); err != nil {
			return err
		}
		if err := w.cost(n, sc); err != nil {
			return err
		}
		w.sum(n, sc)
		if err := w.orders(list(n, "orders"), sc); err != nil {
			return err
		}
		return w.orders(list(n, "arg_orders"), sc)
	case "CAST":
		return w.typ(n["cast_type"], place(n))
	case "CONSTANT":
		if err := w.literalSize(n); err != nil {
			return err
		}
		return w.value(n["value"], place(n))
	case "COLLATE":
		c := str(n, "collation")
		if slices.ContainsFunc(strings.Split(c, "."), func(part string) bool { return !duckCollations[fold(part)] }) {
			return refuse(place(n), kindQuery, "use NOCASE, NOACCENT or a language code", "the collation %q is not allowed", c)
		}
	case "CASE":
		for _, c := range list(n, "case_checks") {
			check, _ := c.(node)
			if err := fits("CASE", check, caseShape); err != nil {
				return err
			}
			if err := w.below(check, caseShape, sc); err != nil {
				return err
			}
		}
	case "LAMBDA":
		return w.lambda(n, sc)
	case "PARAMETER":
		if w.req.Profile == CopySource {
			return refuse(place(n), kindQuery, "write the value into the statement", "a copied query cannot have parameters")
		}
	case "STAR":
		return w.star(n, sc)
	case "SUBQUERY":
		_, err := w.subquery(n["subquery"], sc, place(n))
		return err
	}
	return nil
}

// orders walks ORDER BY items.
func (w *walker) orders(l []any, sc *scope) error {
	for _, o := range l {
		item, _ := o.(node)
		if err := fits("ORDER BY", item, orderShape); err != nil {
			return err
		}
		if err := w.expr(item["expression"], sc); err != nil {
			return err
		}
	}
	return nil
}

// lambda walks x -> expr. The same node is JSON's arrow operator, so its left side may be any expression; names on the
// left are taken for parameters where they could be.
func (w *walker) lambda(n node, sc *scope) error {
	inner := &scope{parent: sc, ctes: sc.ctes}
	lhs, _ := n["lhs"].(node)
	params := []any{n["lhs"]}
	if str(lhs, "class") == "FUNCTION" && fold(str(lhs, "function_name")) == "row" {
		params = list(lhs, "children")
	}
	for _, p := range params {
		c, _ := p.(node)
		if names := strs(c, "column_names"); str(c, "class") == "COLUMN_REF" && len(names) == 1 && !slices.Contains(valueFunctions, fold(names[0])) {
			inner.lambda = append(inner.lambda, names[0])
		}
	}
	if err := w.expr(n["lhs"], inner); err != nil {
		return err
	}
	return w.expr(n["expr"], inner)
}

// star walks *, t.*, COLUMNS(…) with EXCLUDE, REPLACE and RENAME.
func (w *walker) star(n node, sc *scope) error {
	for _, r := range list(n, "replace_list") {
		pair, _ := r.(node)
		if err := fits("REPLACE", pair, pairShape); err != nil {
			return err
		}
		if err := w.expr(pair["value"], sc); err != nil {
			return err
		}
	}
	for _, c := range list(n, "qualified_exclude_list") {
		o, _ := c.(node)
		if err := fits("EXCLUDE", o, columnShape); err != nil {
			return at1(err, place(n))
		}
	}
	for _, c := range list(n, "rename_list") {
		o, _ := c.(node)
		if err := fits("RENAME", o, renameShape); err != nil {
			return at1(err, place(n))
		}
		if err := fits("RENAME", under(o, "key"), columnShape); err != nil {
			return at1(err, place(n))
		}
	}
	if rel := str(n, "relation_name"); rel != "" && !sc.hasSource(rel) {
		return refuse(place(n), kindQuery, "", "there is no table %q in FROM", rel)
	}
	return nil
}

// types are the type ids that a cast or literal may name, besides lists, structs and such of them.
var types = []string{"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
	"FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "BLOB", "BIT", "UUID", "DATE", "TIME", "TIME WITH TIME ZONE", "TIME_NS", "TIMESTAMP", "TIMESTAMP_S",
	"TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "BIGNUM", "NULL", "LIST", "ARRAY", "STRUCT", "MAP", "UNION", "UNBOUND"}

// namedTypes are the types that DuckDB finds by name. An enum is spelled out in the cast; a type that the source
// defines is not among them.
var namedTypes = []string{"json", "enum"}

var typeInfos = map[string]shape{
	"GENERIC_TYPE_INFO": {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}},
	"DECIMAL_TYPE_INFO": {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"width", whole, nil}, {"scale", whole, nil}},
	"STRING_TYPE_INFO":  {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"collation", inert, nil}},
	"LIST_TYPE_INFO":    {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"child_type", object, nil}},
	"ARRAY_TYPE_INFO":   {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"child_type", object, nil}, {"size", whole, nil}},
	"STRUCT_TYPE_INFO":  {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"child_types", objects, nil}},
	"UNBOUND_TYPE_INFO": {{"type", text, nil}, {"alias", inert, nil}, {"extension_info", inert, nil}, {"name", text, nil}, {"catalog", inert, nil},
		{"schema", inert, nil}, {"user_type_modifiers", objects, nil}},
}

var memberShape = shape{{"first", text, nil}, {"second", object, nil}}

// typ decides on a type.
func (w *walker) typ(v any, at int) error {
	if err := w.enter(at); err != nil {
		return err
	}
	defer w.leave()
	t, _ := v.(node)
	if err := fits("a type", t, typeShape); err != nil {
		return at1(err, at)
	}
	if !slices.Contains(types, str(t, "id")) {
		return refuse(at, kindQuery, "cast to a built-in SQL type", "the type %s is not allowed", str(t, "id"))
	}
	if t["type_info"] == nil {
		return nil
	}
	info := under(t, "type_info")
	s, ok := typeInfos[str(info, "type")]
	if !ok {
		return refuse(at, kindQuery, "cast to a built-in SQL type", "a type of the kind %q is not allowed", str(info, "type"))
	}
	if err := fits("a type", info, s); err != nil {
		return at1(err, at)
	}
	if str(info, "type") == "UNBOUND_TYPE_INFO" && !slices.Contains(namedTypes, fold(str(info, "name"))) {
		return refuse(at, kindQuery, "cast to a built-in SQL type", "the type %q is not allowed", str(info, "name"))
	}
	for _, m := range list(info, "user_type_modifiers") {
		if err := w.value(m, at); err != nil {
			return err
		}
	}
	if c, ok := info["child_type"]; ok {
		return w.typ(c, at)
	}
	for _, m := range list(info, "child_types") {
		member, _ := m.(node)
		if err := fits("a type", member, memberShape); err != nil {
			return at1(err, at)
		}
		if err := w.typ(member["second"], at); err != nil {
			return err
		}
	}
	return nil
}

// value decides on a literal: its type is known and it is made of plain values only.
func (w *walker) value(v any, at int) error {
	n, _ := v.(node)
	if err := fits("a literal", n, valueShape); err != nil {
		return at1(err, at)
	}
	if err := w.typ(n["type"], at); err != nil {
		return err
	}
	switch x := n["value"].(type) {
	case nil, bool, string, json.Number:
		return nil
	case node:
		return w.wideValue(x, at)
	}
	return refuse(at, kindQuery, "", "the statement has a literal that the gate cannot read")
}

// wideValue decides on the parts of a 128-bit integer, or the members of a list.
func (w *walker) wideValue(x node, at int) error {
	for k, v := range x {
		switch _, isNumber := v.(json.Number); {
		case (k == "upper" || k == "lower") && isNumber:
		case k == "children":
			for _, c := range list(x, k) {
				if err := w.value(c, at); err != nil {
					return err
				}
			}
		default:
			return refuse(at, kindQuery, "", "the statement has a literal that the gate cannot read")
		}
	}
	return nil
}

// fold gives a name as DuckDB compares it: ASCII letters without case, all else exactly. Folding more than the engine
// does would let one name stand for two.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
