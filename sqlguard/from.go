package sqlguard

import (
	"slices"
	"strconv"
)

// tableFunctions are the only functions that may stand in FROM. All others read files, settings, the catalogue, or run
// SQL text.
var tableFunctions = []string{"generate_series", "range", "unnest"}

// from decides on a table reference and adds what it brings to the scope. safe tells that dropping rows of it that
// WHERE would drop anyway cannot change the result: the table is not on the side of an outer join that is filled with
// NULLs, nor where its neighbours choose among its rows. Below a sample nothing is dropped either: a sample is taken of
// all rows, before WHERE.
func (w *walker) from(v any, sc *scope, safe bool) error {
	if v == nil {
		return nil
	}
	if err := w.enter(noPlace); err != nil {
		return err
	}
	defer w.leave()
	n, _ := v.(node)
	typ := str(n, "type")
	s, ok := fromShapes[typ]
	if !ok {
		return refuse(place(n), kindQuery, "read tables, views and subqueries", "%q is not allowed in FROM", typ)
	}
	if typ == "SHOW_REF" && n["query"] == nil {
		return refuse(place(n), kindQuery, "GET /v1/schema/tables lists the tables that you may read", "SHOW is not allowed here")
	}
	if err := fits("FROM", n, s); err != nil {
		return err
	}
	if err := w.sample(n["sample"]); err != nil {
		return err
	}
	if n["sample"] != nil {
		w.sampled++
		defer func() { w.sampled-- }()
	}
	alias := str(n, "alias")
	switch typ {
	case "BASE_TABLE":
		return w.table(n, sc, safe && w.sampled == 0)
	case "EXPRESSION_LIST":
		return w.values(n, sc)
	case "JOIN":
		return w.join(n, sc, safe)
	case "PIVOT":
		return w.pivot(n, sc)
	case "SHOW_REF":
		if w.req.Profile == CopySource {
			return refuse(place(n), kindQuery, "copy a SELECT", "DESCRIBE and SUMMARIZE cannot be copied")
		}
		if _, err := w.query(n["query"], sc, sc.ctes); err != nil {
			return err
		}
		sc.add(&source{name: alias, cols: columns{open: true}})
	case "SUBQUERY":
		cols, err := w.subquery(n["subquery"], sc, place(n))
		if err != nil {
			return err
		}
		sc.add(&source{name: alias, cols: cols.renamed(strs(n, "column_name_alias"))})
	case "TABLE_FUNCTION":
		return w.tableFunction(n, sc)
	}
	return nil
}

// table resolves a table name: a common table expression in scope, else a relation of the catalogue that the caller may
// read. DuckDB would take any other name for a file.
func (w *walker) table(n node, sc *scope, safe bool) error {
	catalog, schema, name := str(n, "catalog_name"), str(n, "schema_name"), str(n, "table_name")
	alias := str(n, "alias")
	if alias == "" {
		alias = name
	}
	renames := strs(n, "column_name_alias")
	if catalog == "" && schema == "" {
		if cte := sc.ctes.find(name, folded); cte != nil {
			// The engine must find the same one, so it gets the name as WITH wrote it.
			n["table_name"], n["alias"] = cte.name, alias
			sc.add(&source{name: alias, cols: cte.cols.renamed(renames)})
			return nil
		}
	}
	t, err := w.req.table(place(n), catalog, schema, name, folded)
	if err != nil {
		return err
	}
	w.reads(t.Relation)
	cols := columns{}
	for _, c := range t.Columns {
		cols.names = append(cols.names, c.Name)
	}
	cols = cols.renamed(renames)
	src := &source{name: alias, schema: t.Schema, catalog: w.req.Catalog.Engine, cols: cols, table: t}
	sc.add(src)
	if t.External == nil {
		n["catalog_name"], n["schema_name"], n["table_name"] = w.req.Catalog.Engine, t.Schema, t.Name
		return nil
	}
	// Renamed columns are not matched with partition columns: nothing is pruned then.
	use := &externalUse{node: n, alias: alias, table: t, source: src, safe: safe && len(renames) == 0}
	w.externals = append(w.externals, use)
	sc.externals = append(sc.externals, use)
	return nil
}

func (w *walker) values(n node, sc *scope) error {
	rows, ok := n["values"].([]any)
	if !ok || len(rows) == 0 {
		return refuse(place(n), kindQuery, "", "VALUES has a row that the gate cannot read")
	}
	for _, r := range rows {
		if !(field{kind: exprs}).holds(r) {
			return refuse(place(n), kindQuery, "", "VALUES has a row that the gate cannot read")
		}
		if err := w.each(r.([]any), sc); err != nil {
			return err
		}
	}
	cols := columns{}
	for i := range rows[0].([]any) {
		cols.names = append(cols.names, "col"+strconv.Itoa(i))
	}
	sc.add(&source{name: str(n, "alias"), cols: cols})
	return nil
}

func (w *walker) join(n node, sc *scope, safe bool) error {
	kind, how := str(n, "join_type"), str(n, "ref_type")
	left := safe && how != "POSITIONAL" && (kind == "INNER" || kind == "LEFT" || kind == "SEMI" || kind == "ANTI")
	right := safe && how != "POSITIONAL" && how != "ASOF" && (kind == "INNER" || kind == "RIGHT")
	if err := w.from(n["left"], sc, left); err != nil {
		return err
	}
	if err := w.from(n["right"], sc, right); err != nil {
		return err
	}
	return w.expr(n["condition"], sc)
}

// tableFunction decides on a function in FROM.
func (w *walker) tableFunction(n node, sc *scope) error {
	f := under(n, "function")
	if str(f, "class") != "FUNCTION" {
		return refuse(place(n), kindQuery, "", "FROM has a function that the gate cannot read")
	}
	if err := fits("the function", f, exprShapes["FUNCTION"]); err != nil {
		return err
	}
	name := str(f, "function_name")
	if !slices.Contains(tableFunctions, fold(name)) || !builtinSchema(f) {
		return refuse(place(f), kindQuery, "read tables and views; of functions, only generate_series, range and unnest",
			"the table function %s is not allowed", name)
	}
	if !isDefault(f["filter"]) || isTrue(f, "distinct") || len(list(under(f, "order_bys"), "orders")) > 0 {
		return refuse(place(f), kindQuery, "", "the table function %s is written in a way that is not allowed", name)
	}
	if err := w.each(list(f, "children"), sc); err != nil {
		return err
	}
	alias := str(n, "alias")
	if alias == "" {
		alias = name
	}
	cols := columns{names: []string{fold(name)}}
	if str(n, "with_ordinality") == "WITH_ORDINALITY" {
		cols.names = append(cols.names, "ordinality")
	}
	sc.add(&source{name: alias, cols: cols.renamed(strs(n, "column_name_alias"))})
	return nil
}

// pivot decides on PIVOT and UNPIVOT in FROM. Its columns depend on the data, so they stay unknown.
func (w *walker) pivot(n node, sc *scope) error {
	inner := &scope{parent: sc, ctes: sc.ctes}
	if err := w.from(n["source"], inner, false); err != nil {
		return err
	}
	aggregates := list(n, "aggregates")
	if err := w.each(aggregates, inner); err != nil {
		return err
	}
	for _, a := range aggregates {
		// The text of one among several is part of a column's name; that of a single one is not.
		if item, _ := a.(node); len(aggregates) > 1 && str(item, "alias") == "" {
			w.items = append(w.items, item)
		}
	}
	for _, p := range list(n, "pivots") {
		pv, _ := p.(node)
		if err := fits("PIVOT", pv, pivotShape); err != nil {
			return at1(err, place(n))
		}
		if err := w.below(pv, pivotShape, inner); err != nil {
			return err
		}
		for _, e := range list(pv, "entries") {
			entry, _ := e.(node)
			if err := fits("PIVOT", entry, entryShape); err != nil {
				return at1(err, place(n))
			}
			if err := w.below(entry, entryShape, inner); err != nil {
				return err
			}
			values, ok := entry["values"].([]any)
			if !ok && entry["values"] != nil {
				return refuse(place(n), kindQuery, "", "PIVOT has a value that the gate cannot read")
			}
			for _, v := range values {
				if err := w.value(v, place(n)); err != nil {
					return err
				}
			}
		}
	}
	sc.add(&source{name: str(n, "alias"), cols: columns{open: true}})
	return nil
}
