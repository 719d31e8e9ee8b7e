package sqlguard

import (
	"context"
	"encoding/json"
	"reflect"

	"sluice/fault"
)

// deparse writes the checked tree as text, parses that text again and compares. What the engine's writer loses or turns
// around (it does not put nested joins in parentheses, for one) would run unchecked otherwise.
func (g *Gate) deparse(ctx context.Context, stmt node) (string, error) {
	mend(stmt)
	sql, err := g.write(ctx, stmt)
	if err != nil {
		return "", err
	}
	again, err := g.parse(ctx, sql)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", refuse(noPlace, kindQuery, "write it in a simpler way, with subqueries in place of nested joins",
			"the statement cannot be written back by the engine without a change")
	}
	if !reflect.DeepEqual(normal(stmt), normal(again)) {
		return "", refuse(noPlace, kindQuery, "write it in a simpler way, with subqueries in place of nested joins",
			"the statement cannot be written back by the engine without a change")
	}
	return sql, nil
}

// write gives the engine's text of a tree, which is not compared with it.
func (g *Gate) write(ctx context.Context, stmt node) (string, error) {
	raw, err := json.Marshal(node{"error": false, "statements": []any{stmt}})
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "sqlguard.deparse", "the tree cannot be written")
	}
	sql, err := g.parser.Deparse(ctx, raw)
	if err != nil && ctx.Err() == nil {
		return "", refuse(noPlace, kindQuery, "write it in a simpler way", "the statement cannot be written back by the engine")
	}
	return sql, err
}

// mend changes what the writer would print as something else into what it prints right, with the same meaning, and
// gives the changed value.
//
// It prints a cross join as a comma, which binds less tightly than JOIN; inside another join it becomes an inner join
// ON 1=1. It prints the DOUBLE 1.5e3 as 1500.0, which reads back as a DECIMAL, and a boolean as a word that reads back as
// a cast; both become casts of text.
func mend(v any) any {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			v[i] = mend(e)
		}
	case node:
		if str(v, "type") == "JOIN" && str(v, "ref_type") != "CROSS" {
			mendCross(under(v, "left"))
			mendCross(under(v, "right"))
		}
		if str(v, "class") == "CONSTANT" {
			return mendConstant(v)
		}
		for k, e := range v {
			v[k] = mend(e)
		}
	}
	return v
}

func mendCross(n node) {
	if str(n, "type") == "JOIN" && str(n, "ref_type") == "CROSS" {
		one := func() node { return constant("INTEGER", json.Number("1")) }
		n["ref_type"] = "REGULAR"
		n["condition"] = node{"class": "COMPARISON", "type": "COMPARE_EQUAL", "alias": "", "left": one(), "right": one()}
	}
}

func mendConstant(n node) node {
	var out node
	value := under(n, "value")
	switch x := value["value"].(type) {
	case bool:
		out = boolean(x)
	case json.Number:
		if id := str(under(value, "type"), "id"); id == "DOUBLE" || id == "FLOAT" {
			out = node{"class": "CAST", "type": "OPERATOR_CAST", "child": constant("VARCHAR", string(x)),
				"cast_type": node{"id": id, "type_info": nil}, "try_cast": false}
		}
	}
	if out == nil {
		return n
	}
	out["alias"] = str(n, "alias")
	return out
}

// normal gives a tree without what the text cannot or need not carry: places, hints, and the schema that the engine's
// own parser writes before some built-in functions.
func normal(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normal(e)
		}
		return out
	case node:
		out := node{}
		for k, e := range v {
			if k == "query_location" || k == "materialized" || isDefault(e) {
				continue
			}
			if s, ok := e.(string); ok && (s == "main" && k == "schema" || s == "system" && k == "catalog") && v["function_name"] != nil {
				continue
			}
			out[k] = normal(e)
		}
		return bareValues(out)
	}
	return v
}

// bareValues takes a VALUES list out of the subquery that the writer puts around it.
func bareValues(n node) node {
	if n["type"] != "SUBQUERY" || n["class"] != nil {
		return n
	}
	inner := under(under(n, "subquery"), "node")
	values := under(inner, "from_table")
	if values["type"] != "EXPRESSION_LIST" || values["alias"] != n["alias"] {
		return n
	}
	around := node{"type": "SUBQUERY", "subquery": node{"node": node{"type": "SELECT_NODE", "cte_map": node{}, "aggregate_handling": "STANDARD_HANDLING",
		"select_list": []any{node{"class": "STAR", "type": "STAR"}}, "from_table": values}}}
	if a, ok := n["alias"]; ok {
		around["alias"] = a
	}
	if !reflect.DeepEqual(n, around) {
		return n
	}
	return values
}
