package sqlguard

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// withBefore decides on WITH before a statement.
func (w *pgWriter) withBefore(n *pg_query.WithClause) (err error) {
	w.ctes, err = w.with(n, nil, nil)
	return err
}

// source decides on a query that the statement takes its rows from.
func (w *pgWriter) source(n *pg_query.Node) error {
	if n.GetSelectStmt() == nil {
		return notQuery(noPlace, onePgQuery, "rows come from a query or from VALUES")
	}
	if w.duck != nil {
		return w.duck.query(n)
	}
	_, err := w.query(n.GetSelectStmt(), nil, w.ctes)
	return err
}

// expressions decides on expressions that see the relations of sc, which from has as the parser made them.
func (w *pgWriter) expressions(from []*pg_query.Node, sc *scope, list []*pg_query.Node) error {
	if w.duck != nil {
		return w.duck.expressions(from, list, true)
	}
	return w.each(list, sc)
}

func (w *pgWriter) insert(n *pg_query.InsertStmt) error {
	w.writing.Command, w.writing.Rows = "INSERT", len(n.ReturningList) > 0
	if err := pgFits("INSERT", n.ProtoReflect(), pgInsertShape); err != nil {
		return err
	}
	if w.duck != nil && n.Override != pg_query.OverridingKind_OVERRIDING_NOT_SET {
		return refuse(noPlace, kindQuery, "leave OVERRIDING out", "DuckDB has no OVERRIDING")
	}
	if n.WithClause != nil && w.duck != nil {
		// DuckDB's own parser reads the query with its WITH.
		sel := n.SelectStmt.GetSelectStmt()
		if sel == nil || sel.WithClause != nil {
			return refuse(noPlace, kindQuery, "write WITH once, before SELECT", "INSERT has WITH twice, or no query for it")
		}
		sel.WithClause, n.WithClause = n.WithClause, nil
	}
	if err := w.withBefore(n.WithClause); err != nil {
		return err
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	for _, c := range n.Cols {
		if err := w.assigned(c.GetResTarget(), src, pgTargetNameShape); err != nil {
			return err
		}
	}
	if n.SelectStmt != nil {
		if err := w.inserted(n.SelectStmt); err != nil {
			return err
		}
	}
	sc := &scope{ctes: w.ctes, sources: []*source{src}}
	from := []*pg_query.Node{relationNode(n.Relation)}
	if err := w.conflict(n.OnConflictClause, src, from); err != nil {
		return err
	}
	return w.returning(from, sc, n.ReturningList)
}

// inserted decides on the rows of INSERT. DEFAULT may stand for a value of VALUES, and nowhere else.
func (w *pgWriter) inserted(n *pg_query.Node) error {
	sel := n.GetSelectStmt()
	defaults := false
	for _, row := range sel.GetValuesLists() {
		for _, v := range row.GetList().GetItems() {
			defaults = defaults || v.GetSetToDefault() != nil
		}
	}
	if !defaults {
		return w.source(n)
	}
	if w.duck != nil {
		return refuse(noPlace, kindQuery, "leave the column out of the list of columns", "DEFAULT is not allowed in VALUES")
	}
	if err := pgFits("VALUES", sel.ProtoReflect(), pgFields("limit_option op", "", "values_lists")); err != nil {
		return err
	}
	for _, row := range sel.ValuesLists {
		l := row.GetList()
		if l == nil {
			return unreadable("VALUES without rows")
		}
		if err := pgFits("VALUES", l.ProtoReflect(), pgExprs["List"]); err != nil {
			return err
		}
		for _, v := range l.Items {
			if err := w.valueOrDefault(v, &scope{ctes: w.ctes}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *pgWriter) valueOrDefault(v *pg_query.Node, sc *scope) error {
	if d := v.GetSetToDefault(); d != nil {
		return pgFits("DEFAULT", d.ProtoReflect(), pgDefaultShape)
	}
	return w.expr(v, sc)
}

// assigned decides on a column that gets a value.
func (w *pgWriter) assigned(t *pg_query.ResTarget, src *source, s pgShape) (err error) {
	if t == nil {
		return unreadable("a list of columns without names")
	}
	if err := pgFits("a column", t.ProtoReflect(), s); err != nil {
		return err
	}
	t.Name, err = w.columnOf(src, t.Name, int(t.Location))
	return err
}

// assignments decides on SET a = …, b = DEFAULT and gives the values that are expressions.
func (w *pgWriter) assignments(list []*pg_query.Node, src *source) (values []*pg_query.Node, err error) {
	for _, n := range list {
		t := n.GetResTarget()
		if err := w.assigned(t, src, pgAssignShape); err != nil {
			return nil, err
		}
		if t.Val.GetMultiAssignRef() != nil {
			return nil, refuse(int(t.Location), kindQuery, "write a = …, b = …", "columns get their values one by one")
		}
		if d := t.Val.GetSetToDefault(); d != nil {
			if err := pgFits("DEFAULT", d.ProtoReflect(), pgDefaultShape); err != nil {
				return nil, err
			}
			continue
		}
		if t.Val == nil {
			return nil, unreadable("a column without a value")
		}
		values = append(values, t.Val)
	}
	return values, nil
}

// conflict decides on ON CONFLICT.
func (w *pgWriter) conflict(n *pg_query.OnConflictClause, src *source, from []*pg_query.Node) error {
	if n == nil {
		return nil
	}
	if err := pgFits("ON CONFLICT", n.ProtoReflect(), pgConflictShape); err != nil {
		return err
	}
	if i := n.Infer; i != nil {
		if err := pgFits("ON CONFLICT", i.ProtoReflect(), pgInferShape); err != nil {
			return err
		}
		if i.Conname != "" && w.duck != nil {
			return refuse(int(n.Location), kindQuery, "name its columns: ON CONFLICT (id)", "DuckDB has no ON CONSTRAINT")
		}
		for _, e := range i.IndexElems {
			x := e.GetIndexElem()
			if x == nil || x.Name == "" {
				return refuse(int(n.Location), kindQuery, "name columns: ON CONFLICT (id)", "ON CONFLICT with an expression is not allowed")
			}
			if err := pgFits("ON CONFLICT", x.ProtoReflect(), pgInferElemShape); err != nil {
				return err
			}
			var err error
			if x.Name, err = w.columnOf(src, x.Name, int(n.Location)); err != nil {
				return err
			}
		}
	}
	values, err := w.assignments(n.TargetList, src)
	if err != nil {
		return err
	}
	if n.WhereClause != nil {
		values = append(values, n.WhereClause)
	}
	if w.duck != nil {
		// The engine's second opinion is left out: as a query over both, a plain name would be ambiguous.
		return w.duck.expressions(append(from, excluded(src.table)), values, false)
	}
	both := &scope{ctes: w.ctes, sources: []*source{src, {name: "excluded", cols: src.cols, table: src.table}}}
	return w.each(values, both)
}

func excluded(t *Table) *pg_query.Node {
	return relationNode(&pg_query.RangeVar{Schemaname: t.Schema, Relname: t.Name, Inh: true, Relpersistence: "p", Alias: &pg_query.Alias{Aliasname: "excluded"}})
}

func relationNode(r *pg_query.RangeVar) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: r}}
}

// returning decides on RETURNING.
func (w *pgWriter) returning(from []*pg_query.Node, sc *scope, list []*pg_query.Node) error {
	if len(list) == 0 {
		return nil
	}
	if w.duck == nil {
		if err := w.targets(list, sc); err != nil {
			return err
		}
		_, err := w.output(list, sc)
		return err
	}
	var values []*pg_query.Node
	for _, n := range list {
		t := n.GetResTarget()
		if t == nil || t.Val == nil {
			return unreadable("RETURNING without names")
		}
		if err := pgFits("RETURNING", t.ProtoReflect(), pgTargetShape); err != nil {
			return err
		}
		values = append(values, t.Val)
	}
	return w.duck.expressions(from[:1], values, true) // DuckDB returns columns of the changed table alone
}

// beside decides on FROM of UPDATE and USING of DELETE. It gives the scope of the statement's expressions, and FROM as the
// parser made it with the changed table first.
func (w *pgWriter) beside(r *pg_query.RangeVar, src *source, list []*pg_query.Node) ([]*pg_query.Node, *scope, error) {
	sc := &scope{ctes: w.ctes, sources: []*source{src}}
	from := append([]*pg_query.Node{relationNode(r)}, list...)
	if w.duck != nil {
		return from, sc, nil
	}
	// They see one another where they are LATERAL, and never the table that is changed.
	others := &scope{ctes: w.ctes}
	for _, n := range list {
		items, err := w.from(n, others)
		if err != nil {
			return nil, nil, err
		}
		others.sources = append(others.sources, items...)
	}
	sc.sources = append(sc.sources, others.sources...)
	return from, sc, nil
}

func (w *pgWriter) noWith(n *pg_query.WithClause) error {
	if n != nil && w.duck != nil {
		return refuse(noPlace, kindQuery, "write the query where it is used: IN (SELECT …), or FROM (SELECT …) AS q", "WITH before UPDATE or DELETE is not allowed on DuckDB")
	}
	return w.withBefore(n)
}

func (w *pgWriter) update(n *pg_query.UpdateStmt) error {
	w.writing.Command, w.writing.Rows = "UPDATE", len(n.ReturningList) > 0
	if err := pgFits("UPDATE", n.ProtoReflect(), pgUpdateShape); err != nil {
		return err
	}
	if err := w.noWith(n.WithClause); err != nil {
		return err
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	values, err := w.assignments(n.TargetList, src)
	if err != nil {
		return err
	}
	from, sc, err := w.beside(n.Relation, src, n.FromClause)
	if err != nil {
		return err
	}
	if n.WhereClause != nil {
		values = append(values, n.WhereClause)
	}
	if err := w.expressions(from, sc, values); err != nil {
		return err
	}
	if err := w.returning(from, sc, n.ReturningList); err != nil {
		return err
	}
	n.FromClause, err = w.fromText(n.FromClause)
	return err
}

func (w *pgWriter) delete(n *pg_query.DeleteStmt) error {
	w.writing.Command, w.writing.Rows = "DELETE", len(n.ReturningList) > 0
	if err := pgFits("DELETE", n.ProtoReflect(), pgDeleteShape); err != nil {
		return err
	}
	if err := w.noWith(n.WithClause); err != nil {
		return err
	}
	src, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	from, sc, err := w.beside(n.Relation, src, n.UsingClause)
	if err != nil {
		return err
	}
	if n.WhereClause != nil {
		if err := w.expressions(from, sc, []*pg_query.Node{n.WhereClause}); err != nil {
			return err
		}
	}
	if err := w.returning(from, sc, n.ReturningList); err != nil {
		return err
	}
	n.UsingClause, err = w.fromText(n.UsingClause)
	return err
}

// fromText leaves FROM as the walker wrote it, or as DuckDB's gate did.
func (w *pgWriter) fromText(list []*pg_query.Node) ([]*pg_query.Node, error) {
	if w.duck == nil || len(list) == 0 {
		return list, nil
	}
	return w.duck.from(list)
}

func (w *pgWriter) truncate(n *pg_query.TruncateStmt) error {
	w.writing.Command = "TRUNCATE"
	if err := pgFits("TRUNCATE", n.ProtoReflect(), pgTruncateShape); err != nil {
		return err
	}
	if err := restrict(n.Behavior); err != nil {
		return err
	}
	if w.duck != nil && (len(n.Relations) > 1 || n.RestartSeqs) {
		return refuse(noPlace, kindQuery, "TRUNCATE one table at a time", "DuckDB empties one table at a time, without options")
	}
	for _, r := range n.Relations {
		if _, err := w.target(r.GetRangeVar()); err != nil {
			return err
		}
	}
	return nil
}

// restrict refuses CASCADE: it changes what the statement does not name.
func restrict(b pg_query.DropBehavior) error {
	if b != pg_query.DropBehavior_DROP_RESTRICT {
		return refuse(noPlace, kindQuery, "name each thing in a statement of its own", "CASCADE is not allowed: it changes what the statement does not name")
	}
	return nil
}
