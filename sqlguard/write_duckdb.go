package sqlguard

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice/fault"
)

// What a write on DuckDB reads passes DuckDB's own gate: each part, made a query of its own, is read by DuckDB's parser and
// decided on as any other query. In the tree of the write a mark stands in its place; when that has become text, each mark
// becomes what DuckDB's writer made of the part that was decided on. So of the text that runs PostgreSQL's grammar has read
// and written the form, and DuckDB's the expressions, queries and types.

// duckParts are the parts of one write on DuckDB.
type duckParts struct {
	ctx  context.Context
	gate *Gate
	req  Request
	pg   int32 // the grammar's version, which the writer of trees asks for

	marks     *marks // in the text of the whole
	approved  []Approved
	relations []Relation
	patterns  []Pattern
}

func newDuckParts(ctx context.Context, g *Gate, req Request, pg int32) *duckParts {
	req.Profile = ReadOnly
	return &duckParts{ctx: ctx, pg: pg, gate: g, req: req, marks: newMarks()}
}

// read has DuckDB's gate decide on a query, and gives its tree as it is to be written. bind says whether the engine is to look at it.
func (d *duckParts) read(sel *pg_query.SelectStmt, bind bool) (node, Approved, error) {
	root := selectNode(sel).ProtoReflect()
	if err := sameBinding(root); err != nil {
		return nil, Approved{}, err
	}
	plainTypes(root)
	names := newMarks()
	names.quote(root, queryNames)
	tree := &pg_query.ParseResult{Version: d.pg, Stmts: []*pg_query.RawStmt{{Stmt: selectNode(sel)}}}
	text, err := pgDeparse(tree, nil)
	if err == nil {
		text, err = names.splice(text)
	}
	if err != nil {
		return nil, Approved{}, err
	}
	stmt, err := d.gate.parse(d.ctx, text)
	if err != nil {
		return nil, Approved{}, withoutPlace(err)
	}
	w := &walker{req: d.req}
	if err := w.statement(stmt); err != nil {
		return nil, Approved{}, withoutPlace(err)
	}
	if err := d.req.views(w.relations, false, w.raises); err != nil {
		return nil, Approved{}, withoutPlace(err)
	}
	a, err := d.gate.approve(d.ctx, w, stmt, false)
	if err != nil {
		return nil, Approved{}, withoutPlace(err)
	}
	for _, r := range a.relations {
		if !slices.Contains(d.relations, r) {
			d.relations = append(d.relations, r)
		}
	}
	d.patterns = append(d.patterns, a.patterns...)
	if bind && len(a.relations) > 0 {
		d.approved = append(d.approved, a)
	}
	return stmt, a, nil
}

// elsewhereBound are operators that bind otherwise in DuckDB than in PostgreSQL, whose grammar reads the statement: a + b // 2
// would run as (a + b) // 2. What may be written instead is the value.
var elsewhereBound = map[string]string{
	"//": "write floor(a / b)", "**": "write pow(a, b)", "==": "write a = b",
	"->": "write json_extract(j, '$.x')", "->>": "write json_extract_string(j, '$.x')",
}

// sameBinding refuses operators whose operands the two grammars see differently.
func sameBinding(m protoreflect.Message) (err error) {
	if x, ok := m.Interface().(*pg_query.A_Expr); ok && len(x.Name) > 0 {
		name := x.Name[len(x.Name)-1].GetString_().GetSval()
		if hint, odd := elsewhereBound[name]; odd {
			return refuse(int(x.Location), kindQuery, hint, "in a statement that writes to DuckDB the operator %s is not allowed: it binds otherwise there", name)
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = sameBinding(v.List().Get(i).Message())
			}
		default:
			err = sameBinding(v.Message())
		}
		return err == nil
	})
	return err
}

// plainTypes takes PostgreSQL's schema from the types that its grammar puts there and that are written with it.
func plainTypes(m protoreflect.Message) {
	if t, ok := m.Interface().(*pg_query.TypeName); ok && len(t.Names) == 2 && t.Names[0].GetString_().GetSval() == pgCatalogSchema &&
		t.Names[1].GetString_().GetSval() == "json" {
		t.Names = t.Names[1:]
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				plainTypes(v.List().Get(i).Message())
			}
		default:
			plainTypes(v.Message())
		}
		return true
	})
}

// withoutPlace takes the place from a refusal: it is one in a text that the caller never saw.
func withoutPlace(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		f.Position = 0
	}
	return err
}

// query puts a mark in the place of a query.
func (d *duckParts) query(n *pg_query.Node) error {
	stmt, a, err := d.read(n.GetSelectStmt(), true)
	if err != nil {
		return err
	}
	text, err := d.bareValues(stmt, a.SQL())
	if err != nil {
		return err
	}
	mark := d.marks.place(text, "SELECT '%'")
	n.Node = selectNode(&pg_query.SelectStmt{TargetList: []*pg_query.Node{target(pg_query.MakeAConstStrNode(mark, -1), "")},
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}).Node
	return nil
}

// bareValues takes VALUES out of the query that DuckDB's writer puts around it: in INSERT each value gets the type of its
// column, in a query all rows must agree on one.
func (d *duckParts) bareValues(stmt node, sql string) (string, error) {
	text, before := strings.CutPrefix(sql, "SELECT * FROM (VALUES ")
	text, after := strings.CutSuffix(text, ") AS valueslist")
	if !before || !after {
		return sql, nil
	}
	text = "VALUES " + text
	again, err := d.gate.parse(d.ctx, text)
	switch {
	case err == nil && reflect.DeepEqual(normal(stmt["node"]), normal(again["node"])):
		return text, nil
	case d.ctx.Err() != nil:
		return "", err
	}
	return sql, nil
}

// expressions puts marks in the place of expressions over what from has.
func (d *duckParts) expressions(from, list []*pg_query.Node, bind bool) error {
	if len(list) == 0 {
		return nil
	}
	sel := &pg_query.SelectStmt{LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}
	for _, n := range from {
		sel.FromClause = append(sel.FromClause, proto.Clone(n).(*pg_query.Node))
	}
	for _, n := range list {
		sel.TargetList = append(sel.TargetList, target(proto.Clone(n).(*pg_query.Node), ""))
	}
	stmt, _, err := d.read(sel, bind)
	if err != nil {
		return err
	}
	items, _ := under(stmt, "node")["select_list"].([]any)
	if len(items) != len(list) {
		return changed()
	}
	for i, n := range list {
		text, err := d.text(stmt, items[i], nil)
		if err != nil {
			return err
		}
		if n.GetColumnRef() == nil {
			text = "(" + text + ")"
		}
		n.Node = pg_query.MakeAConstStrNode(d.marks.place(text, "'%'"), -1).Node
	}
	return nil
}

// from gives one mark for all of FROM.
func (d *duckParts) from(list []*pg_query.Node) ([]*pg_query.Node, error) {
	star := &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: &pg_query.ColumnRef{Fields: []*pg_query.Node{{Node: &pg_query.Node_AStar{AStar: &pg_query.A_Star{}}}}}}}
	stmt, _, err := d.read(&pg_query.SelectStmt{TargetList: []*pg_query.Node{target(star, "")}, FromClause: list,
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}, true)
	if err != nil {
		return nil, err
	}
	items, _ := under(stmt, "node")["select_list"].([]any)
	if len(items) != 1 {
		return nil, changed()
	}
	text, err := d.text(stmt, items[0], under(stmt, "node")["from_table"])
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(text, "* FROM ")
	if !ok {
		return nil, changed()
	}
	return []*pg_query.Node{relationNode(&pg_query.RangeVar{Relname: d.marks.place(text, "%"), Inh: true, Relpersistence: "p"})}, nil
}

// typeName puts a mark in the place of a type.
func (d *duckParts) typeName(t *pg_query.TypeName) error {
	null := &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Isnull: true}}}
	cast := &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{Arg: null, TypeName: proto.Clone(t).(*pg_query.TypeName)}}}
	stmt, _, err := d.read(&pg_query.SelectStmt{TargetList: []*pg_query.Node{target(cast, "")},
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}, false)
	if err != nil {
		return err
	}
	items, _ := under(stmt, "node")["select_list"].([]any)
	if len(items) != 1 {
		return changed()
	}
	text, err := d.text(stmt, items[0], nil)
	if err != nil {
		return err
	}
	text, before := strings.CutPrefix(text, "CAST(NULL AS ")
	text, after := strings.CutSuffix(text, ")")
	if !before || !after {
		return changed()
	}
	t.Names, t.Typmods, t.ArrayBounds = pgStrings(d.marks.place(text, "%")), nil, nil
	return nil
}

// text writes one item of a checked query, and perhaps its FROM, has that read once more, and compares.
func (d *duckParts) text(stmt node, item, from any) (string, error) {
	one, err := d.gate.parse(d.ctx, "SELECT 1")
	if err != nil {
		return "", err
	}
	if n, ok := item.(node); ok {
		n["alias"] = ""
	}
	under(one, "node")["select_list"] = []any{item}
	if from != nil {
		under(one, "node")["from_table"] = from
	}
	one["named_param_map"] = stmt["named_param_map"]
	mend(one)
	sql, err := d.gate.write(d.ctx, one)
	if err != nil {
		return "", err
	}
	again, err := d.gate.parse(d.ctx, sql)
	if err != nil {
		if d.ctx.Err() != nil {
			return "", err
		}
		return "", changed()
	}
	if !reflect.DeepEqual(normal(one["node"]), normal(again["node"])) {
		return "", changed()
	}
	text, ok := strings.CutPrefix(sql, "SELECT ")
	if !ok {
		return "", changed()
	}
	return text, nil
}

func target(val *pg_query.Node, name string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_ResTarget{ResTarget: &pg_query.ResTarget{Name: name, Val: val}}}
}

func selectNode(sel *pg_query.SelectStmt) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: sel}}
}
