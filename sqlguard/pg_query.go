package sqlguard

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// subquery decides on a nested query, which sees the columns of sc.
func (w *pgWalker) subquery(n *pg_query.Node, sc *scope, at int) (columns, error) {
	sel := n.GetSelectStmt()
	if sel == nil {
		word := "this"
		if m, ok := pgInner(n.ProtoReflect()); ok {
			word = strings.ToUpper(strings.TrimSuffix(string(m.Descriptor().Name()), "Stmt"))
		}
		return columns{}, notQuery(at, onePgQuery, "%s is not allowed: only queries that read may run here", word)
	}
	var ctes *cteScope
	if sc != nil {
		ctes = sc.ctes
	}
	cols, err := w.query(sel, sc, ctes)
	return cols, at1(err, at)
}

// query decides on a query and tells its output columns.
func (w *pgWalker) query(n *pg_query.SelectStmt, outer *scope, ctes *cteScope) (columns, error) {
	if err := w.enter(noPlace); err != nil {
		return columns{}, err
	}
	defer w.leave()
	switch {
	case n.IntoClause != nil:
		return columns{}, notQuery(int(n.IntoClause.GetRel().GetLocation()), "leave INTO out", "SELECT INTO makes a table")
	case len(n.LockingClause) > 0:
		return columns{}, refuse(noPlace, kindQuery, "leave FOR UPDATE or FOR SHARE out", "a query that locks rows is not allowed")
	}
	if err := pgFits("the query", n.ProtoReflect(), pgSelectShape); err != nil {
		return columns{}, err
	}
	ctes, err := w.with(n.WithClause, outer, ctes)
	if err != nil {
		return columns{}, err
	}
	var cols columns
	switch {
	case n.Op != pg_query.SetOperation_SETOP_NONE:
		cols, err = w.setOperation(n, outer, ctes)
	case len(n.ValuesLists) > 0:
		cols, err = w.values(n, outer, ctes)
	default:
		cols, err = w.selection(n, outer, ctes)
	}
	if err != nil {
		return columns{}, err
	}
	// LIMIT sees no columns of the query itself.
	around := &scope{parent: outer, ctes: ctes}
	if err := w.expr(n.LimitOffset, around); err != nil {
		return columns{}, err
	}
	return cols, w.expr(n.LimitCount, around)
}

// only refuses the parts of a query that its kind does not have.
func only(n *pg_query.SelectStmt, kind string, parts ...bool) error {
	if slices.Contains(parts, true) {
		return unreadable(kind + " with parts of another kind of query")
	}
	return nil
}

func (w *pgWalker) selection(n *pg_query.SelectStmt, outer *scope, ctes *cteScope) (columns, error) {
	if err := only(n, "SELECT", n.Larg != nil, n.Rarg != nil); err != nil {
		return columns{}, err
	}
	sc := &scope{parent: outer, ctes: ctes}
	for _, f := range n.FromClause {
		items, err := w.from(f, sc)
		if err != nil {
			return columns{}, err
		}
		sc.sources = append(sc.sources, items...)
	}
	if err := w.targets(n.TargetList, sc); err != nil {
		return columns{}, err
	}
	cols, err := w.output(n.TargetList, sc)
	if err != nil {
		return columns{}, err
	}
	if err := w.expr(n.WhereClause, sc); err != nil {
		return columns{}, err
	}
	for _, g := range n.GroupClause {
		if err := w.grouping(g, sc, cols); err != nil {
			return columns{}, err
		}
	}
	if err := w.expr(n.HavingClause, sc); err != nil {
		return columns{}, err
	}
	if err := w.each(n.WindowClause, sc); err != nil {
		return columns{}, err
	}
	// Plain DISTINCT is a list of one empty node.
	if len(n.DistinctClause) != 1 || n.DistinctClause[0].GetNode() != nil {
		for _, d := range n.DistinctClause {
			if err := w.outputOr(d, sc, cols); err != nil {
				return columns{}, err
			}
		}
	}
	return cols, w.sorts(n.SortClause, sc, cols)
}

// outputOr decides on what may be the bare name of an output column, or else an expression over the input.
func (w *pgWalker) outputOr(n *pg_query.Node, sc *scope, output columns) error {
	if c := n.GetColumnRef(); c != nil && len(c.Fields) == 1 {
		if name := c.Fields[0].GetString_().GetSval(); name != "" && (output.open || slices.Contains(output.names, name)) {
			return pgFits("ColumnRef", c.ProtoReflect(), pgExprs["ColumnRef"])
		}
	}
	return w.expr(n, sc)
}

func (w *pgWalker) sorts(list []*pg_query.Node, sc *scope, output columns) error {
	for _, n := range list {
		s := n.GetSortBy()
		if s == nil {
			return unreadable("ORDER BY without its items")
		}
		if err := pgFits("ORDER BY", s.ProtoReflect(), pgExprs["SortBy"]); err != nil {
			return err
		}
		if err := w.special(s, sc); err != nil {
			return err
		}
		if err := w.outputOr(s.Node, sc, output); err != nil {
			return err
		}
	}
	return nil
}

// grouping decides on an item of GROUP BY: an expression, an output column, or sets of such.
func (w *pgWalker) grouping(n *pg_query.Node, sc *scope, output columns) error {
	if err := w.enter(noPlace); err != nil {
		return err
	}
	defer w.leave()
	items := n.GetGroupingSet().GetContent()
	switch {
	case n.GetGroupingSet() != nil:
		if err := pgFits("GROUP BY", n.GetGroupingSet().ProtoReflect(), pgGroupingShape); err != nil {
			return err
		}
	case n.GetRowExpr() != nil && n.GetRowExpr().RowFormat == pg_query.CoercionForm_COERCE_IMPLICIT_CAST:
		if err := pgFits("GROUP BY", n.GetRowExpr().ProtoReflect(), pgExprs["RowExpr"]); err != nil {
			return err
		}
		items = n.GetRowExpr().Args
	default:
		return w.outputOr(n, sc, output)
	}
	for _, i := range items {
		if err := w.grouping(i, sc, output); err != nil {
			return err
		}
	}
	return nil
}

func (w *pgWalker) values(n *pg_query.SelectStmt, outer *scope, ctes *cteScope) (columns, error) {
	err := only(n, "VALUES", n.Larg != nil, n.Rarg != nil, len(n.TargetList) > 0, len(n.FromClause) > 0, n.WhereClause != nil, len(n.GroupClause) > 0,
		n.HavingClause != nil, len(n.WindowClause) > 0, len(n.DistinctClause) > 0)
	if err != nil {
		return columns{}, err
	}
	sc := &scope{parent: outer, ctes: ctes}
	if err := w.each(n.ValuesLists, sc); err != nil {
		return columns{}, err
	}
	cols := columns{}
	for i := range n.ValuesLists[0].GetList().GetItems() {
		cols.names = append(cols.names, "column"+strconv.Itoa(i+1))
	}
	for _, row := range n.ValuesLists {
		items := row.GetList().GetItems()
		if len(items) != len(cols.names) {
			at := noPlace
			if len(items) > 0 {
				at = nodePlace(items[0])
			}
			return columns{}, refuse(at, kindQuery, "give each row as many values", "VALUES has a row of %d values and one of %d", len(cols.names), len(items))
		}
		for i, x := range items {
			cols.know(cols.names[i], w.typeOf(x, sc))
		}
	}
	return cols, w.sorts(n.SortClause, sc, cols)
}

func (w *pgWalker) setOperation(n *pg_query.SelectStmt, outer *scope, ctes *cteScope) (columns, error) {
	err := only(n, "a set operation", n.Larg == nil, n.Rarg == nil, len(n.TargetList) > 0, len(n.FromClause) > 0, n.WhereClause != nil, len(n.GroupClause) > 0,
		n.HavingClause != nil, len(n.WindowClause) > 0, len(n.DistinctClause) > 0, len(n.ValuesLists) > 0)
	if err != nil {
		return columns{}, err
	}
	cols, err := w.query(n.Larg, outer, ctes)
	if err != nil {
		return columns{}, err
	}
	if known := w.leftArm[n]; known != nil {
		known(cols)
	}
	right, err := w.query(n.Rarg, outer, ctes)
	if err != nil {
		return columns{}, err
	}
	if cols, err = w.united(n, cols, right); err != nil {
		return columns{}, err
	}
	return cols, w.sorts(n.SortClause, &scope{parent: outer, ctes: ctes, sources: []*source{{cols: cols}}}, cols)
}

// united gives the columns of a set operation: the names are those of its first query.
func (w *pgWalker) united(n *pg_query.SelectStmt, left, right columns) (columns, error) {
	if len(left.names) != len(right.names) && !left.open && !right.open {
		at := noPlace
		if list := n.Rarg.GetTargetList(); len(list) > 0 {
			at = nodePlace(list[0])
		}
		return columns{}, refuse(at, kindQuery, "give both as many columns", "one query of the set operation has %d columns, the other one %d", len(left.names), len(right.names))
	}
	out := columns{names: left.names, open: left.open}
	for i, name := range left.names {
		l, r := left.types[name], pgType{}
		if i < len(right.names) {
			r = right.types[right.names[i]]
		}
		if w.leftArm[n] != nil && r.rows > l.rows {
			return columns{}, refuse(noPlace, kindQuery, "put the values into columns beside one another", "the rows of the recursive query nest one level deeper in each round")
		}
		out.know(name, l.with(r))
	}
	return out, nil
}

// with walks WITH. A common table expression sees its earlier siblings and the enclosing ones; with RECURSIVE all of its
// siblings and itself. Every one is checked, read or not.
func (w *pgWalker) with(n *pg_query.WithClause, outer *scope, ctes *cteScope) (*cteScope, error) {
	if n == nil {
		return ctes, nil
	}
	if err := pgFits("WITH", n.ProtoReflect(), pgWithShape); err != nil {
		return nil, err
	}
	var all []*cteScope
	for _, node := range n.Ctes {
		c := node.GetCommonTableExpr()
		if c == nil {
			return nil, unreadable("WITH without queries")
		}
		if slices.ContainsFunc(all, func(o *cteScope) bool { return o.name == c.Ctename }) {
			return nil, refuse(int(c.Location), kindQuery, "give them different names", "WITH has two queries of the name %q", c.Ctename)
		}
		entry := &cteScope{parent: ctes, name: c.Ctename}
		all = append(all, entry)
		if n.Recursive {
			ctes = entry
			continue
		}
		cols, err := w.commonTable(c, entry, &scope{parent: outer, ctes: ctes})
		if err != nil {
			return nil, err
		}
		entry.cols, ctes = cols, entry
	}
	if !n.Recursive {
		return ctes, nil
	}
	for i, entry := range all {
		entry.later = w.recursive(n.Ctes[i].GetCommonTableExpr(), entry, &scope{parent: outer, ctes: ctes})
	}
	for _, entry := range all {
		if _, err := entry.columns(); err != nil {
			return nil, err
		}
	}
	return ctes, nil
}

// columns gives the columns, found when they are first asked for.
func (c *cteScope) columns() (columns, error) {
	if c.later == nil {
		return c.cols, nil
	}
	return c.later()
}

// recursive walks one query of WITH RECURSIVE when it is first read, which may be before its turn. While it is being
// walked it has the columns of its first arm, and before that none: there it may not read itself.
func (w *pgWalker) recursive(c *pg_query.CommonTableExpr, entry *cteScope, inner *scope) func() (columns, error) {
	return func() (columns, error) {
		entry.later = func() (columns, error) {
			return columns{}, refuse(int(c.Location), kindQuery, "write SELECT … UNION ALL SELECT … FROM "+c.Ctename, "%q reads itself before its first rows are known", c.Ctename)
		}
		if sel := c.Ctequery.GetSelectStmt(); sel != nil {
			if w.leftArm == nil {
				w.leftArm = map[*pg_query.SelectStmt]func(columns){}
			}
			w.leftArm[sel] = func(cols columns) {
				names, err := pgNames(c.Aliascolnames)
				if err == nil {
					entry.cols, entry.later = added(c, cols.renamed(names)), nil
				}
			}
		}
		w.recursing++
		cols, err := w.commonTable(c, entry, inner)
		w.recursing--
		entry.cols, entry.later = cols, func() (columns, error) { return cols, err }
		return cols, err
	}
}

// commonTable decides on one query of WITH and tells its columns.
func (w *pgWalker) commonTable(c *pg_query.CommonTableExpr, entry *cteScope, inner *scope) (columns, error) {
	if err := pgFits("WITH", c.ProtoReflect(), pgCTEShape); err != nil {
		return columns{}, err
	}
	names, err := pgNames(c.Aliascolnames)
	if err != nil {
		return columns{}, err
	}
	cols, err := w.subquery(c.Ctequery, inner, int(c.Location))
	if err != nil {
		return columns{}, err
	}
	cols = cols.renamed(names)
	if err := w.searches(c, cols); err != nil {
		return columns{}, at1(err, int(c.Location))
	}
	return added(c, cols), nil
}

// searches decides on SEARCH and CYCLE.
func (w *pgWalker) searches(c *pg_query.CommonTableExpr, cols columns) error {
	var names []*pg_query.Node
	if s := c.SearchClause; s != nil {
		if err := pgFits("SEARCH", s.ProtoReflect(), pgSearchShape); err != nil {
			return err
		}
		names = append(names, s.SearchColList...)
	}
	if y := c.CycleClause; y != nil {
		if err := pgFits("CYCLE", y.ProtoReflect(), pgCycleShape); err != nil {
			return err
		}
		if err := w.below(y.ProtoReflect(), pgCycleShape, nil); err != nil {
			return err
		}
		names = append(names, y.CycleColList...)
	}
	by, err := pgNames(names)
	if err != nil {
		return err
	}
	for _, name := range by {
		if !cols.open && !slices.Contains(cols.names, name) {
			return refuse(noPlace, kindQuery, nearest(name, cols.names), "there is no column %q in %q", name, c.Ctename)
		}
	}
	return nil
}

// added gives the columns with those that SEARCH and CYCLE make.
func added(c *pg_query.CommonTableExpr, cols columns) columns {
	if c.SearchClause == nil && c.CycleClause == nil {
		return cols
	}
	row := cols.row()
	out := columns{}
	out.add(cols)
	if s := c.SearchClause; s != nil {
		out.names = append(out.names, s.SearchSeqColumn)
		out.know(s.SearchSeqColumn, row.array())
	}
	if y := c.CycleClause; y != nil {
		out.names = append(out.names, y.CycleMarkColumn, y.CyclePathColumn)
		out.know(y.CyclePathColumn, row.array())
	}
	return out
}
