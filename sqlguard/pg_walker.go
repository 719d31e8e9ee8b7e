package sqlguard

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// pgWalker decides on one statement of PostgreSQL. It changes the tree where the text that runs must differ from the
// caller's: relations, functions, types and the operators of extensions get their schemas.
type pgWalker struct {
	req Request
	reading
	growth growth // what the calls of the statement can make together (pg_cost.go)

	// leftArm is told the columns of the first arm of a recursive WITH query, which are those of the whole.
	leftArm map[*pg_query.SelectStmt]func(columns)
	// calls are those that were decided on.
	calls map[*pg_query.FuncCall]pgFunc
	// firsts are the types of the first columns of subqueries in expressions.
	firsts map[*pg_query.SubLink]pgType
	// sums are the calls of sum over BIGINT, recursing the WITH RECURSIVE queries around what is being walked.
	sums      map[*pg_query.FuncCall]bool
	recursing int
	// unnests are the calls in FROM of unnest(a, b, …), which the server takes apart. It does so for the bare name alone.
	unnests map[*pg_query.FuncCall]bool
	// plain are the constants that a cast makes something else than a time.
	plain map[*pg_query.A_Const]bool
	// bare are the names that the writer prints as they are: of windows, and the aliases of USING.
	bare []*string
}

// expr decides on an expression and all below it.
func (w *pgWalker) expr(n *pg_query.Node, sc *scope) error {
	if n == nil {
		return nil
	}
	return w.message(n.ProtoReflect(), sc)
}

func (w *pgWalker) each(nodes []*pg_query.Node, sc *scope) error {
	for _, n := range nodes {
		if err := w.expr(n, sc); err != nil {
			return err
		}
	}
	return nil
}

// message decides on a message of an expression: it is known, its populated fields are, and all that they hold passes.
func (w *pgWalker) message(outer protoreflect.Message, sc *scope) error {
	m, ok := pgInner(outer)
	at := pgPlace(m)
	if err := w.enter(at); err != nil {
		return err
	}
	defer w.leave()
	name := string(m.Descriptor().Name())
	shape, known := pgExprs[name]
	if !ok || !known {
		return refuse(at, kindQuery, "leave it out", "an expression of the kind %s is not allowed here", name)
	}
	if err := pgFits(name, m, shape); err != nil {
		return at1(err, at)
	}
	if err := w.special(m.Interface(), sc); err != nil {
		return at1(err, at)
	}
	if err := w.below(m, shape, sc); err != nil {
		return at1(err, at)
	}
	return at1(w.after(m.Interface(), sc), at)
}

// below walks the fields of a shape that hold expressions, in the order of the grammar's file.
func (w *pgWalker) below(m protoreflect.Message, s pgShape, sc *scope) error {
	l, v := pgLayoutOf(m)
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.inner == nil && f.kind != pgOneof, !f.has(v):
		case f.kind == pgList:
			if s[f.name] != pgWalk {
				continue
			}
			for list, k := v.Field(f.index), 0; k < list.Len(); k++ {
				if err := w.message(pgReflect(list.Index(k)), sc); err != nil {
					return err
				}
			}
		default:
			in, held := f, v.Field(f.index)
			if f.kind == pgOneof {
				in, held = f.member(v)
			}
			if s[in.name] != pgWalk {
				continue
			}
			if err := w.message(pgReflect(held), sc); err != nil {
				return err
			}
		}
	}
	return nil
}

// special does what an expression needs beyond walking its children. Every pgOwn field of pgExprs is read here.
func (w *pgWalker) special(m any, sc *scope) error {
	switch m := m.(type) {
	case *pg_query.ColumnRef:
		return w.column(m, sc)
	case *pg_query.A_Indirection:
		return w.indirection(m, sc)
	case *pg_query.FuncCall:
		_, err := w.call(m)
		w.sum(m, sc)
		return err
	case *pg_query.WindowDef:
		if m.Name != "" {
			w.bare = append(w.bare, &m.Name)
		}
	case *pg_query.A_Expr:
		return w.operation(m)
	case *pg_query.SortBy:
		var err error
		if m.UseOp, err = w.operatorName(m.UseOp, int(m.Location)); err == nil && len(m.UseOp) > 0 && (w.vectorial(m.Node, sc) || len(m.UseOp) == 2 && !ofSchema(m.UseOp, pgCatalogSchema)) {
			err = refuse(int(m.Location), kindQuery, "write ASC or DESC", "an extension's operator cannot be sorted by here")
		}
		return err
	case *pg_query.SubLink:
		return w.subLink(m, sc)
	case *pg_query.TypeCast:
		mendBoolean(m)
		return w.clockCast(m)
	case *pg_query.A_Const:
		return w.clockConstant(m)
	case *pg_query.TypeName:
		return w.typeName(m)
	case *pg_query.CollateClause:
		return w.collation(m)
	case *pg_query.SQLValueFunction:
		return w.valueFunction(m)
	case *pg_query.ParamRef:
		switch {
		case w.req.Profile == CopySource:
			return refuse(int(m.Location), kindQuery, "write the value into the statement", "a copied query cannot have parameters")
		case m.Number < 1:
			return refuse(int(m.Location), kindQuery, "write $1, $2, …", "a parameter has no number")
		}
	case *pg_query.XmlExpr:
		return w.targets(m.NamedArgs, sc)
	case *pg_query.JsonArrayQueryConstructor:
		_, err := w.subquery(m.Query, sc, int(m.Location))
		return err
	}
	return nil
}

// targets walks named expressions: a select list, or the arguments of an XML expression.
func (w *pgWalker) targets(list []*pg_query.Node, sc *scope) error {
	for _, n := range list {
		t := n.GetResTarget()
		if t == nil {
			return unreadable("a select list without names")
		}
		if err := pgFits("the select list", t.ProtoReflect(), pgTargetShape); err != nil {
			return err
		}
		if err := w.expr(t.Val, sc); err != nil {
			return at1(err, int(t.Location))
		}
	}
	return nil
}

// pgNames reads a list of names. A star among them is not one.
func pgNames(nodes []*pg_query.Node) ([]string, error) {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		s, ok := n.GetNode().(*pg_query.Node_String_)
		if !ok {
			return nil, refuse(noPlace, kindQuery, "", "the statement has a name that the gate cannot read")
		}
		out[i] = s.String_.Sval
	}
	return out, nil
}

// pgStrings makes the list of nodes of names.
func pgStrings(names ...string) []*pg_query.Node {
	out := make([]*pg_query.Node, len(names))
	for i, s := range names {
		out[i] = pg_query.MakeStrNode(s)
	}
	return out
}
