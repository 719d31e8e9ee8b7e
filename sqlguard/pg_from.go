package sqlguard

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// from decides on an item of FROM and tells what it brings: relations with names, and the columns of joins. sc holds what
// stands to the left of it, which LATERAL and functions see.
func (w *pgWalker) from(n *pg_query.Node, sc *scope) ([]*source, error) {
	m, ok := pgInner(n.ProtoReflect())
	at := pgPlace(m)
	if err := w.enter(at); err != nil {
		return nil, err
	}
	defer w.leave()
	name := string(m.Descriptor().Name())
	shape, known := pgFroms[name]
	if !ok || !known {
		return nil, refuse(at, kindQuery, "read tables, views and subqueries", "%s is not allowed in FROM", name)
	}
	if err := pgFits("FROM", m, shape); err != nil {
		return nil, err
	}
	if err := w.below(m, shape, sc); err != nil {
		return nil, at1(err, at)
	}
	var src *source
	var err error
	switch m := m.Interface().(type) {
	case *pg_query.JoinExpr:
		return w.join(m, sc)
	case *pg_query.RangeVar:
		src, err = w.table(m, sc)
	case *pg_query.RangeSubselect:
		src, err = w.fromQuery(m, sc)
	case *pg_query.RangeFunction:
		src, err = w.fromFunction(m, sc)
	case *pg_query.RangeTableSample:
		src, err = w.sample(m, sc)
	case *pg_query.RangeTableFunc:
		src, err = w.xmlTable(m, sc)
	case *pg_query.JsonTable:
		src, err = w.jsonTable(m, sc)
	default:
		err = unreadable("a thing in FROM that has a rule and no code")
	}
	return []*source{src}, at1(err, at)
}

// alias reads an alias and the names that it gives to columns.
func alias(a *pg_query.Alias) (name string, cols []string, err error) {
	if a == nil {
		return "", nil, nil
	}
	if err := pgFits("an alias", a.ProtoReflect(), pgAliasShape); err != nil {
		return "", nil, err
	}
	cols, err = pgNames(a.Colnames)
	return a.Aliasname, cols, err
}

// aliased makes a source with its alias, or the name that it has without one.
func aliased(a *pg_query.Alias, without string, cols columns) (*source, error) {
	name, renames, err := alias(a)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = without
	}
	return &source{name: name, cols: cols.renamed(renames)}, nil
}

// table resolves a name: a common table expression in scope, else a relation of the catalogue that the caller may read.
func (w *pgWalker) table(n *pg_query.RangeVar, sc *scope) (*source, error) {
	if n.Catalogname == "" && n.Schemaname == "" {
		if cte := sc.ctes.find(n.Relname, exactly); cte != nil {
			cols, err := cte.columns()
			if err != nil {
				return nil, err
			}
			return aliased(n.Alias, n.Relname, cols)
		}
	}
	t, err := w.req.table(int(n.Location), n.Catalogname, n.Schemaname, n.Relname, exactly)
	if err != nil {
		return nil, err
	}
	w.reads(t.Relation)
	cols := columns{}
	for _, c := range t.Columns {
		cols.names = append(cols.names, c.Name)
		cols.know(c.Name, w.columnType(c.Type))
	}
	src, err := aliased(n.Alias, t.Name, cols)
	if err != nil {
		return nil, err
	}
	src.table = t
	if n.Alias == nil {
		src.schema = t.Schema
	}
	n.Catalogname, n.Schemaname, n.Relname = "", t.Schema, t.Name
	return src, nil
}

func (w *pgWalker) fromQuery(n *pg_query.RangeSubselect, sc *scope) (*source, error) {
	sees := sc
	if !n.Lateral {
		sees = &scope{parent: sc.parent, ctes: sc.ctes}
	}
	cols, err := w.subquery(n.Subquery, sees, noPlace)
	if err != nil {
		return nil, err
	}
	return aliased(n.Alias, "", cols)
}

func (w *pgWalker) join(n *pg_query.JoinExpr, sc *scope) ([]*source, error) {
	switch n.Jointype {
	case pg_query.JoinType_JOIN_INNER, pg_query.JoinType_JOIN_LEFT, pg_query.JoinType_JOIN_FULL, pg_query.JoinType_JOIN_RIGHT:
	default:
		return nil, unreadable("a join of the kind " + n.Jointype.String())
	}
	left, err := w.from(n.Larg, sc)
	if err != nil {
		return nil, err
	}
	beside := &scope{parent: sc.parent, ctes: sc.ctes, sources: slices.Concat(sc.sources, left)}
	right, err := w.from(n.Rarg, beside)
	if err != nil {
		return nil, err
	}
	both := slices.Concat(left, right)
	// ON sees the two sides and what is around the query, nothing else of FROM.
	if err := w.expr(n.Quals, &scope{parent: sc.parent, ctes: sc.ctes, sources: both}); err != nil {
		return nil, err
	}
	l, r := visible(left), visible(right)
	using, err := pgNames(n.UsingClause)
	if err != nil {
		return nil, err
	}
	for _, c := range using {
		for _, side := range []columns{l, r} {
			if !side.open && !slices.Contains(side.names, c) {
				return nil, refuse(nodePlace(n.Rarg), kindQuery, columnHint(c, side.names), "there is no column %q on one side of the join with USING", c)
			}
		}
	}
	if n.IsNatural {
		for _, c := range l.names {
			if slices.Contains(r.names, c) {
				using = append(using, c)
			}
		}
	}
	cols := columns{names: slices.Clone(using)}
	cols.add(columns{open: l.open, types: l.types})
	cols.add(columns{open: r.open, types: r.types})
	for _, c := range slices.Concat(l.names, r.names) {
		if !slices.Contains(using, c) {
			cols.names = append(cols.names, c)
		}
	}
	for _, c := range using {
		if pgVectorTypes[cols.types[c].name] {
			return nil, refuse(nodePlace(n.Rarg), kindQuery, "write ON a."+c+" = b."+c, "the join compares the vectors %q without an operator", c)
		}
	}
	if len(cols.names) > pgMaxJoinColumns {
		return nil, refuse(noPlace, kindQuery, "join subqueries with the columns that you need", "a join may have no more than %d columns", pgMaxJoinColumns)
	}
	name, renames, err := alias(n.Alias)
	if err != nil {
		return nil, err
	}
	if name != "" {
		return []*source{{name: name, cols: cols.renamed(renames)}}, nil
	}
	for _, src := range both {
		src.merged = true
	}
	out := append(both, &source{cols: cols})
	usingName, _, err := alias(n.JoinUsingAlias)
	if err != nil {
		return nil, err
	}
	if usingName != "" {
		w.bare = append(w.bare, &n.JoinUsingAlias.Aliasname)
		out = append(out, &source{name: usingName, cols: columns{names: using, types: cols.types}, merged: true})
	}
	return out, nil
}

// visible gives the columns that need no name before them, in their order. Of very many it gives some.
func visible(list []*source) (out columns) {
	for _, src := range list {
		if len(out.names) > pgMaxJoinColumns {
			return out
		}
		if !src.merged {
			out.add(src.cols)
		}
	}
	return out
}

// sample decides on TABLESAMPLE.
func (w *pgWalker) sample(n *pg_query.RangeTableSample, sc *scope) (*source, error) {
	names, err := pgNames(n.Method)
	if err != nil {
		return nil, err
	}
	if len(names) == 2 && names[0] == pgCatalogSchema {
		names = names[1:]
	}
	if len(names) != 1 || names[0] != "bernoulli" && names[0] != "system" {
		return nil, refuse(int(n.Location), kindQuery, "use BERNOULLI or SYSTEM", "this method of sampling is not allowed")
	}
	n.Method = pgStrings(pgCatalogSchema, names[0])
	if w.req.Profile == RestrictedRead && n.Repeatable == nil {
		return nil, refuse(int(n.Location), kindQuery, "add REPEATABLE (1), or use ORDER BY and LIMIT", "a sample without a seed is random, which a restricted reader may not use")
	}
	t := n.Relation.GetRangeVar()
	if t == nil {
		return nil, refuse(int(n.Location), kindQuery, "take the sample of a table", "only tables can be sampled")
	}
	if err := pgFits("FROM", t.ProtoReflect(), pgFroms["RangeVar"]); err != nil {
		return nil, err
	}
	return w.table(t, sc)
}

// fromFunction decides on functions in FROM, which always see what stands to the left of them.
func (w *pgWalker) fromFunction(n *pg_query.RangeFunction, sc *scope) (*source, error) {
	name, renames, err := alias(n.Alias)
	if err != nil {
		return nil, err
	}
	cols := columns{}
	for _, item := range n.Functions {
		parts := item.GetList().GetItems()
		if len(parts) != 2 {
			return nil, unreadable("a function in FROM without its columns")
		}
		call := parts[0]
		if f := call.GetFuncCall(); f != nil && len(f.Funcname) == 1 && !f.FuncVariadic {
			if w.unnests == nil {
				w.unnests = map[*pg_query.FuncCall]bool{}
			}
			w.unnests[f] = true
		}
		if err := w.expr(call, sc); err != nil {
			return nil, err
		}
		list := parts[1].GetList().GetItems()
		if parts[1].GetNode() != nil && parts[1].GetList() == nil || len(list) > 0 && len(n.Coldeflist) > 0 {
			return nil, unreadable("a function in FROM with other columns")
		}
		if list == nil {
			list = n.Coldeflist
		}
		own, err := w.definitions(list)
		if err != nil {
			return nil, err
		}
		plain, _ := figureName(call)
		if name == "" {
			name = plain
		}
		if n.Alias != nil && len(n.Functions) == 1 {
			plain = name
		}
		f, err := w.columnsOf(call, plain, sc)
		switch {
		case err != nil:
			return nil, err
		case len(list) > 0 && !f.open:
			return nil, refuse(nodePlace(call), kindQuery, "give its columns names alone, as in AS t(a, b)", "the columns of this function are known, and have no types to give")
		case len(list) > 0:
			cols.add(own)
		case slices.Contains(pgRecords, pgCallName(call)):
			return nil, refuse(nodePlace(call), kindQuery, "write AS t(a integer, b text)", "the function %s needs a list of the columns that it is to give", pgCallName(call))
		default:
			cols.add(f)
		}
	}
	if n.Ordinality {
		cols.names = append(cols.names, "ordinality")
	}
	return &source{name: name, cols: cols.renamed(renames)}, nil
}

// pgRecords return rows of whatever columns the statement says; pgPopulates those of their first argument.
var (
	pgRecords   = []string{"json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset"}
	pgPopulates = []string{"json_populate_record", "json_populate_recordset", "jsonb_populate_record", "jsonb_populate_recordset"}
)

// columnsOf tells the columns of a call in FROM; one value has the name that plain is. They are open, without names, when they
// are those of a row: a name behind a dot that is no column would be a call.
func (w *pgWalker) columnsOf(call *pg_query.Node, plain string, sc *scope) (columns, error) {
	f, name := call.GetFuncCall(), pgCallName(call)
	out := columns{}
	if f != nil {
		known, err := w.call(f)
		switch {
		case err != nil:
			return out, err
		case len(known.columns) > 0:
			return columns{names: known.columns}, nil
		case slices.Contains(pgPopulates, name), slices.Contains(pgRecords, name):
			return columns{open: true}, nil
		}
	}
	values := []pgType{w.typeOf(call, sc)}
	if name == "unnest" { // unnest(a, b) has a column for each
		values = nil
		for _, a := range f.Args {
			values = append(values, w.typeOf(a, sc).element())
		}
	}
	for _, t := range values {
		if t.user {
			return columns{open: true}, nil
		}
		out.names = append(out.names, plain)
		out.know(plain, t)
	}
	return out, nil
}

// pgCallName gives the name of the function that an expression calls, "" for another one.
func pgCallName(n *pg_query.Node) string {
	name, _ := lastName(n.GetFuncCall().GetFuncname())
	return name
}

// definitions reads AS t(a int, b text).
func (w *pgWalker) definitions(list []*pg_query.Node) (out columns, err error) {
	for _, n := range list {
		d := n.GetColumnDef()
		if d == nil {
			return out, unreadable("a column without a definition")
		}
		if err := pgFits("a column's definition", d.ProtoReflect(), pgColumnDefShape); err != nil {
			return out, err
		}
		if err := w.below(d.ProtoReflect(), pgColumnDefShape, nil); err != nil {
			return out, err
		}
		out.names = append(out.names, d.Colname)
		out.know(d.Colname, namedType(d.TypeName))
	}
	return out, nil
}
