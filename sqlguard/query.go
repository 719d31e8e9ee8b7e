package sqlguard

import (
	"encoding/json"
	"errors"
	"strings"

	"sluice/fault"
)

// at1 puts a place into a refusal that has none.
func at1(err error, at int) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Position == 0 && at >= 0 {
		f.Position = at + 1
	}
	return err
}

// cteScope is the chain of common table expressions that a query sees, nearest first.
type cteScope struct {
	parent *cteScope
	name   string // as written in its WITH
	cols   columns
	later  func() (columns, error) // its columns when they must be found first, with WITH RECURSIVE of PostgreSQL
}

func (c *cteScope) find(name string, same sameness) *cteScope {
	for ; c != nil; c = c.parent {
		if same(c.name, name) {
			return c
		}
	}
	return nil
}

// statement decides on the whole statement.
func (w *walker) statement(stmt node) error {
	if err := fits("the statement", stmt, statementShape); err != nil {
		return err
	}
	for _, p := range list(stmt, "named_param_map") {
		param, _ := p.(node)
		if err := fits("a parameter", param, paramShape); err != nil {
			return err
		}
	}
	for _, name := range w.req.Catalog.Functions {
		if builtin(name) {
			return refuse(noPlace, kindQuery, "drop that function or macro in the database",
				"the database %s redefines the built-in function %s, so no statement can be trusted", w.req.Database, name)
		}
	}
	_, err := w.query(stmt["node"], nil, nil)
	return err
}

// subquery decides on a nested query, which sees the columns of sc.
func (w *walker) subquery(v any, sc *scope, at int) (columns, error) {
	n, _ := v.(node)
	if err := fits("a subquery", n, subqueryShape); err != nil {
		return columns{}, at1(err, at)
	}
	return w.query(n["node"], sc, sc.ctes)
}

// query decides on a query node and tells its output columns.
func (w *walker) query(v any, outer *scope, ctes *cteScope) (columns, error) {
	if err := w.enter(noPlace); err != nil {
		return columns{}, err
	}
	defer w.leave()
	n, _ := v.(node)
	typ := str(n, "type")
	s, ok := queryShapes[typ]
	if !ok {
		return columns{}, refuse(noPlace, kindQuery, "", "a query of the kind %q is not allowed here", typ)
	}
	if err := fits("the query", n, s); err != nil {
		return columns{}, err
	}
	ctes, err := w.with(n["cte_map"], outer, ctes)
	if err != nil {
		return columns{}, err
	}
	switch typ {
	case "SELECT_NODE":
		return w.selectNode(n, outer, ctes)
	case "SET_OPERATION_NODE":
		return w.setOperation(n, outer, ctes)
	default:
		return w.recursive(n, outer, ctes)
	}
}

// with walks WITH. A common table expression sees its earlier siblings and the enclosing ones, never itself: only the
// second arm of a recursive one does (recursive). Every one is checked, read or not.
func (w *walker) with(v any, outer *scope, ctes *cteScope) (*cteScope, error) {
	m, _ := v.(node)
	if err := fits("WITH", m, cteMapShape); err != nil {
		return nil, err
	}
	for _, e := range list(m, "map") {
		pair, _ := e.(node)
		if err := fits("WITH", pair, pairShape); err != nil {
			return nil, err
		}
		cte := under(pair, "value")
		if err := fits("WITH", cte, cteShape); err != nil {
			return nil, err
		}
		inner := &scope{parent: outer, ctes: ctes}
		cols, err := w.subquery(cte["query"], inner, noPlace)
		if err != nil {
			return nil, err
		}
		ctes = &cteScope{parent: ctes, name: str(pair, "key"), cols: cols.renamed(strs(cte, "aliases"))}
	}
	return ctes, nil
}

func (w *walker) selectNode(n node, outer *scope, ctes *cteScope) (columns, error) {
	sc := &scope{parent: outer, ctes: ctes}
	if n["sample"] != nil {
		w.sampled++
	}
	err := w.from(n["from_table"], sc, true)
	if n["sample"] != nil {
		w.sampled--
	}
	if err != nil {
		return columns{}, err
	}
	for _, e := range list(n, "select_list") {
		switch item, _ := e.(node); {
		case str(item, "alias") != "":
			sc.aliases = append(sc.aliases, str(item, "alias"))
		case str(item, "class") != "STAR" && str(item, "class") != "COLUMN_REF":
			w.items = append(w.items, item)
		}
	}
	// Inside the statement a refusal of the caller's select list reads better than one of its WHERE clause, so the
	// shape's order, which is the text's, is the walk's.
	if err := w.below(n, queryShapes["SELECT_NODE"], sc); err != nil {
		return columns{}, err
	}
	if err := groupSets(n); err != nil {
		return columns{}, err
	}
	if err := w.sample(n["sample"]); err != nil {
		return columns{}, err
	}
	if err := w.modifiers(n, sc); err != nil {
		return columns{}, err
	}
	for _, use := range sc.externals {
		use.conjuncts = use.partitionConjuncts(n["where_clause"], sc)
	}
	return sc.output(list(n, "select_list")), nil
}

// groupSets checks that grouping sets are lists of numbers.
func groupSets(n node) error {
	for _, set := range list(n, "group_sets") {
		members, ok := set.([]any)
		for _, m := range members {
			ok = ok && field{kind: whole}.holds(m)
		}
		if !ok {
			return refuse(noPlace, kindQuery, "", "the statement has grouping sets that the gate cannot read")
		}
	}
	return nil
}

func (w *walker) setOperation(n node, outer *scope, ctes *cteScope) (columns, error) {
	left, err := w.query(n["left"], outer, ctes)
	if err != nil {
		return columns{}, err
	}
	right, err := w.query(n["right"], outer, ctes)
	if err != nil {
		return columns{}, err
	}
	cols := left
	if str(n, "setop_type") == "UNION_BY_NAME" {
		cols = columns{names: append(append([]string{}, left.names...), right.names...), open: left.open || right.open}.capped()
	}
	// ORDER BY after a set operation sees the names of both arms.
	sc := &scope{parent: outer, ctes: ctes, sources: []*source{{cols: left}, {cols: right}}}
	return cols, w.modifiers(n, sc)
}

func (w *walker) recursive(n node, outer *scope, ctes *cteScope) (columns, error) {
	left, err := w.query(n["left"], outer, ctes)
	if err != nil {
		return columns{}, err
	}
	cols := left.renamed(strs(n, "aliases"))
	self := &cteScope{parent: ctes, name: str(n, "cte_name"), cols: cols}
	if _, err := w.query(n["right"], outer, self); err != nil {
		return columns{}, err
	}
	return cols, w.modifiers(n, &scope{parent: outer, ctes: self, sources: []*source{{cols: cols}}})
}

// modifiers walks ORDER BY, LIMIT and DISTINCT.
func (w *walker) modifiers(n node, sc *scope) error {
	for _, m := range list(n, "modifiers") {
		mod, _ := m.(node)
		if err := w.modifier(mod, sc); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) modifier(mod node, sc *scope) error {
	s, ok := modifierShapes[str(mod, "type")]
	switch {
	case str(mod, "type") == "LIMIT_PERCENT_MODIFIER":
		return refuse(noPlace, kindQuery, "use LIMIT with a number of rows", "LIMIT with a percentage is not allowed")
	case !ok:
		return refuse(noPlace, kindQuery, "", "a part of the kind %q is not allowed after a query", str(mod, "type"))
	}
	if err := fits("the query", mod, s); err != nil {
		return err
	}
	if err := w.orders(list(mod, "orders"), sc); err != nil {
		return err
	}
	return w.below(mod, s, sc)
}

// sample checks TABLESAMPLE and USING SAMPLE, which hold plain numbers only.
func (w *walker) sample(v any) error {
	if v == nil {
		return nil
	}
	n, _ := v.(node)
	if err := fits("SAMPLE", n, sampleShape); err != nil {
		return err
	}
	if seed, _ := n["seed"].(json.Number); w.req.Profile == RestrictedRead && strings.HasPrefix(string(seed), "-") {
		return refuse(noPlace, kindQuery, "add REPEATABLE (1), or use ORDER BY and LIMIT", "a sample without a seed is random, which a restricted reader may not use")
	}
	return w.value(n["sample_size"], noPlace)
}
