package sqlguard

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// DuckDB's sum of INTEGER is a HUGEINT, which no other program reads as an integer. Here it is a BIGINT, as in PostgreSQL,
// wherever it stands: sum(x) is written as CAST(sum(x) AS BIGINT), which fails when the sum is too large. The type of
// x is the engine's own answer: the arguments are marked in a copy of the statement, and the engine is asked to bind it.

// smallIntegers are the argument's types whose sum is a BIGINT.
var smallIntegers = []string{"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"}

// sumCall is one call of sum. Calls with the same argument in the same query have the same mark, because the engine
// compares expressions, as with DISTINCT and ORDER BY.
type sumCall struct {
	node node
	mark string
}

// sum notes a call of sum.
func (w *walker) sum(n node, sc *scope) {
	args := list(n, "children")
	if fold(str(n, "function_name")) != "sum" || len(args) != 1 {
		return
	}
	if arg, _ := args[0].(node); str(arg, "class") == "CONSTANT" && str(under(under(arg, "value"), "type"), "id") == "VARCHAR" {
		return // a literal text has a type of its own, which the mark would change
	}
	text, err := json.Marshal(normal(args[0]))
	if err != nil {
		return
	}
	key := fmt.Sprintf("%p %s", sc, text)
	if w.marks == nil {
		w.marks = map[string]string{}
	}
	if w.marks[key] == "" {
		w.marks[key] = strconv.Itoa(len(w.marks) + 1)
	}
	w.sums = append(w.sums, sumCall{node: n, mark: w.marks[key]})
}

// askSums finds the calls of sum that get a cast: it has the source bind the statement with marked arguments. In a part
// that the engine does not plan, such as WITH that nothing reads, the types stay unknown and do not matter.
func (w *walker) askSums(ctx context.Context, g *Gate, stmt node) error {
	calls := w.sums
	w.sums = nil
	if len(calls) == 0 || w.req.Types == nil {
		return nil
	}
	mark := "sum " + rand.Text() + " " // nobody's statement can have it
	unname, unmark := w.setNames(calls), markSums(calls, mark)
	probe, err := w.bindable(ctx, g, stmt)
	unmark()
	unname()
	if err != nil {
		return err
	}
	types, err := w.req.Types(ctx, probe, mark)
	if err != nil {
		return err
	}
	for _, s := range calls {
		found := types[s.mark]
		if len(found) > 0 && !slices.ContainsFunc(found, func(t string) bool { return !slices.Contains(smallIntegers, t) }) {
			w.sums = append(w.sums, s)
		}
	}
	return nil
}

// castSums writes the casts into the tree.
func (w *walker) castSums() {
	for _, s := range w.sums {
		if str(s.node, "class") == "CAST" {
			continue // walked twice
		}
		call := maps.Clone(s.node)
		call["alias"] = ""
		alias := str(s.node, "alias")
		clear(s.node)
		maps.Copy(s.node, node{"class": "CAST", "type": "OPERATOR_CAST", "alias": alias, "child": call,
			"cast_type": node{"id": "BIGINT", "type_info": nil}, "try_cast": false})
	}
}

// markSums writes CASE WHEN 'mark' IS NOT NULL THEN x END for each argument, which has the type of x.
func markSums(calls []sumCall, mark string) (restore func()) {
	seen := map[uintptr]bool{}
	var undo []func()
	for _, s := range calls {
		if p := reflect.ValueOf(s.node).Pointer(); seen[p] {
			continue // walked twice
		} else {
			seen[p] = true
		}
		was := s.node["children"]
		arg, _ := list(s.node, "children")[0].(node)
		alias := str(arg, "alias")
		undo = append(undo, func() { s.node["children"], arg["alias"] = was, alias })
		arg["alias"] = ""
		s.node["children"] = []any{node{"class": "CASE", "type": "CASE_EXPR", "alias": alias,
			"case_checks": []any{node{"then_expr": arg, "when_expr": node{"class": "OPERATOR", "type": "OPERATOR_IS_NOT_NULL", "alias": "",
				"children": []any{constant("VARCHAR", mark+s.mark)}}}},
			"else_expr": constant("NULL", nil)}}
	}
	return func() {
		for _, u := range slices.Backward(undo) {
			u()
		}
	}
}

// findNames notes the names of the columns that the gate may be about to change: the engine calls a column without an
// alias by its expression's text, which another query may use as a name.
func (w *walker) findNames(ctx context.Context, g *Gate) error {
	changes := w.changing(w.sums)
	w.names = make([]string, len(w.items))
	for i, item := range w.items {
		if len(changes) == 0 || !contains(item, changes) {
			continue
		}
		var err error
		if w.names[i], err = g.expression(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// setNames gives the columns that change, by these calls or by anything else, their names as aliases.
func (w *walker) setNames(calls []sumCall) (undo func()) {
	changes := w.changing(calls)
	var named []node
	for i, item := range w.items {
		if w.names[i] != "" && contains(item, changes) {
			named = append(named, item)
			item["alias"] = w.names[i]
		}
	}
	return func() {
		for _, item := range named {
			item["alias"] = ""
		}
	}
}

// changing gives the nodes that the gate rewrites.
func (w *walker) changing(calls []sumCall) map[uintptr]bool {
	out := map[uintptr]bool{}
	for _, s := range calls {
		out[reflect.ValueOf(s.node).Pointer()] = true
	}
	for _, x := range w.narrows {
		out[reflect.ValueOf(x.call).Pointer()] = true
	}
	for _, u := range w.externals {
		out[reflect.ValueOf(u.node).Pointer()] = true
	}
	return out
}

// expression writes one expression as text.
func (g *Gate) expression(ctx context.Context, item node) (string, error) {
	stmt := node{"named_param_map": []any{}, "node": node{"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": node{"map": []any{}},
		"select_list": []any{item}, "from_table": node{"type": "EMPTY", "alias": "", "sample": nil}, "where_clause": nil,
		"group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING", "having": nil, "sample": nil, "qualify": nil}}
	sql, err := g.write(ctx, stmt)
	return strings.TrimPrefix(sql, "SELECT "), err
}

// contains tells whether one of the nodes stands in a tree.
func contains(v any, nodes map[uintptr]bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return contains(e, nodes) })
	case node:
		if nodes[reflect.ValueOf(v).Pointer()] {
			return true
		}
		for _, e := range v {
			if contains(e, nodes) {
				return true
			}
		}
	}
	return false
}

// bindable writes a statement so that the engine can bind it alone: NULL stands for each parameter, an empty table for
// each external one.
func (w *walker) bindable(ctx context.Context, g *Gate, stmt node) (string, error) {
	restore, err := w.emptyExternals(ctx, g)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(stmt)
	restore()
	if err != nil {
		return "", err
	}
	plain, err := decode(raw)
	if err != nil {
		return "", err
	}
	plain["named_param_map"] = []any{}
	return g.write(ctx, withoutParameters(plain).(node))
}

func withoutParameters(v any) any {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			v[i] = withoutParameters(e)
		}
	case node:
		if str(v, "class") == "PARAMETER" {
			// A bare NULL cannot stand everywhere that a parameter can: $1[1].
			return node{"class": "OPERATOR", "type": "OPERATOR_COALESCE", "alias": v["alias"], "children": []any{constant("NULL", nil), constant("NULL", nil)}}
		}
		for k, e := range v {
			v[k] = withoutParameters(e)
		}
	}
	return v
}
