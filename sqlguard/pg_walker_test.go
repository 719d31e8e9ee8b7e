package sqlguard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice/fault"
)

// pgNodes are the messages that a Node may hold, by name.
func pgNodes() map[string]protoreflect.MessageDescriptor {
	out := map[string]protoreflect.MessageDescriptor{}
	fields := (&pg_query.Node{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i).Message()
		out[string(d.Name())] = d
	}
	return out
}

// populated makes a message of a kind that has a value in one field.
func populated(d protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) protoreflect.Message {
	m := newMessage(d)
	switch {
	case f.IsList():
		l := m.Mutable(f).List()
		if f.Message() != nil {
			l.AppendMutable()
		} else {
			l.Append(protoreflect.ValueOfUint64(1))
		}
	case f.Message() != nil:
		m.Mutable(f)
	case f.Enum() != nil:
		m.Set(f, protoreflect.ValueOfEnum(1))
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString("x"))
	case f.Kind() == protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(true))
	case f.Kind() == protoreflect.Uint32Kind:
		m.Set(f, protoreflect.ValueOfUint32(1))
	case f.Kind() == protoreflect.Uint64Kind:
		m.Set(f, protoreflect.ValueOfUint64(1))
	case f.Kind() == protoreflect.Int64Kind:
		m.Set(f, protoreflect.ValueOfInt64(1))
	default:
		m.Set(f, protoreflect.ValueOfInt32(1))
	}
	return m
}

// newMessage makes an empty message of a kind, in a Node when it can be in one.
func newMessage(d protoreflect.MessageDescriptor) protoreflect.Message {
	fields := (&pg_query.Node{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Message() == d {
			return (&pg_query.Node{}).ProtoReflect().NewField(f).Message()
		}
	}
	panic("no such message: " + d.Name())
}

// TestPostgresShapes holds the tables of the gate to the grammar: each name is one of the grammar's, and whatever the
// tables do not name is refused.
func TestPostgresShapes(t *testing.T) {
	nodes := pgNodes()
	all := maps.Clone(pgExprs)
	maps.Copy(all, pgFroms)
	for name, s := range map[string]pgShape{"RawStmt": pgStatementShape, "ExplainStmt": pgExplainShape, "SelectStmt": pgSelectShape, "ResTarget": pgTargetShape,
		"Alias": pgAliasShape, "WithClause": pgWithShape, "CommonTableExpr": pgCTEShape, "CTESearchClause": pgSearchShape, "CTECycleClause": pgCycleShape,
		"GroupingSet": pgGroupingShape, "ColumnDef": pgColumnDefShape, "RangeTableFuncCol": pgXMLColumnShape, "JsonTableColumn": pgJSONColumnShape,
		"JsonTablePathSpec": pgJSONPathShape} {
		all[name] = s
	}
	refusedFields := 0
	for name, shape := range all {
		d := nodes[name]
		if d == nil {
			t.Errorf("the grammar has no %s", name)
			continue
		}
		for f := range shape {
			if f != "location" && d.Fields().ByName(protoreflect.Name(f)) == nil {
				t.Errorf("%s has no field %s", name, f)
			}
		}
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			_, known := shape[string(f.Name())]
			err := pgFits(name, populated(d, f), shape)
			if known != (err == nil) {
				t.Errorf("%s.%s: %v", name, f.Name(), err)
			}
			if !known {
				refusedFields++
			}
		}
	}
	if refusedFields < 40 {
		t.Errorf("only %d fields are refused", refusedFields)
	}
}

// TestPostgresUnknownIsRefused puts every message of the grammar where an expression and a relation stand.
func TestPostgresUnknownIsRefused(t *testing.T) {
	for name, d := range pgNodes() {
		w := &pgWalker{req: Request{Catalog: pgFixture(), Profile: ReadOnly, May: pgGranted(nil)}}
		_, isExpr := pgExprs[name]
		if err := w.message(newMessage(d), &scope{}); !isExpr && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s passes as an expression: %v", name, err)
		}
		n := &pg_query.Node{}
		fields := n.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if fields.Get(i).Message() == d {
				n.ProtoReflect().Set(fields.Get(i), protoreflect.ValueOfMessage(newMessage(d)))
			}
		}
		_, isFrom := pgFroms[name]
		if _, err := w.from(n, &scope{}); !isFrom && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s passes in FROM: %v", name, err)
		}
	}
	w := &pgWalker{req: Request{Catalog: pgFixture(), Profile: ReadOnly}}
	if err := w.expr(&pg_query.Node{}, &scope{}); fault.CodeOf(err) != fault.Refused {
		t.Errorf("an empty node passes: %v", err)
	}
	// What a later version of the parser might send.
	sel := &pg_query.SelectStmt{Op: pg_query.SetOperation_SETOP_NONE, LimitOption: 99}
	if _, err := w.query(sel, nil, nil); fault.CodeOf(err) != fault.Refused {
		t.Errorf("an unknown word passes: %v", err)
	}
	later := &pg_query.SelectStmt{Op: pg_query.SetOperation_SETOP_NONE}
	later.ProtoReflect().SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 1})
	if _, err := w.query(later, nil, nil); fault.CodeOf(err) != fault.Refused {
		t.Errorf("an unknown field passes: %v", err)
	}
}

// TestPostgresDeparseIsCompared: what the writer adds or drops is noticed. It prints a window's name as it is.
func TestPostgresDeparseIsCompared(t *testing.T) {
	tree, _, err := pgStatement("SELECT sum(id) OVER w FROM orders WINDOW w AS ()")
	if err != nil {
		t.Fatal(err)
	}
	call := pgRoot(tree).TargetList[0].GetResTarget().Val.GetFuncCall()
	for name, passes := range map[string]bool{"w": true, "w FROM secret, orders": false, "w, secret": false, "W": false} {
		call.Over.Name = name
		sql, err := pgDeparse(proto.Clone(tree).(*pg_query.ParseResult), nil)
		if passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%q: %q, %v", name, sql, err)
		}
	}
	deep := &pg_query.SelectStmt{}
	for range maxMessages + 1 {
		deep = &pg_query.SelectStmt{Larg: deep}
	}
	tree.Stmts[0].Stmt = &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: deep}}
	if _, err := pgDeparse(tree, nil); fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), "levels deep") {
		t.Error(err)
	}
}

// TestPostgresNesting: texts of the longest kind that nest as deeply as they can end in an answer, not in a crash.
func TestPostgresNesting(t *testing.T) {
	for _, c := range []struct{ head, open, mid, shut string }{
		{"SELECT 1", "+1", "", ""}, {"SELECT ", "- ", "1", ""}, {"SELECT ", "(", "1", ")"}, {"SELECT ", "NOT ", "true", ""}, {"SELECT 1", "::int", "", ""},
		{"SELECT ", "a[", "1", "]"}, {"SELECT ", "lower(", "1", ")"}, {"SELECT 1", " UNION SELECT 1", "", ""}, {"", "(", "SELECT 1", ")"},
		{"SELECT ", "CASE WHEN ", "true", " THEN true END"}, {"SELECT * FROM ", "(SELECT * FROM ", "orders", ") a"}, {"SELECT * FROM orders a", " JOIN orders b ON true", "", ""},
		{"SELECT ", "ARRAY[", "1", "]"}, {"SELECT ", "(SELECT ", "1", ")"}, {"SELECT '1'", "||'1'", "", ""}, {"", "WITH a AS (", "SELECT 1", ") SELECT 1"},
		{"SELECT 1", " AT LOCAL", "", ""}, {"SELECT ", "~ ", "1", ""}, {"SELECT 1 GROUP BY ", "CUBE (", "1", ")"}, {"SELECT ", "JSON_ARRAY(", "1", ")"},
	} {
		for _, size := range []int{MaxBytes, 9000} {
			n := (size - len(c.head) - len(c.mid)) / (len(c.open) + len(c.shut))
			sql := c.head + strings.Repeat(c.open, n) + c.mid + strings.Repeat(c.shut, n)
			if _, err := pgCheck(t, sql, ReadOnly, nil); err != nil && fault.CodeOf(err) != fault.Refused {
				t.Errorf("%d times %q: %v", n, c.open, err)
			}
		}
	}
	sql := "SELECT 1" + strings.Repeat("+1", maxDepth+1)
	if _, err := pgCheck(t, sql, ReadOnly, nil); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("%v", err)
	}
	if _, err := pgCheck(t, "SELECT 1"+strings.Repeat("+1", maxDepth-10), ReadOnly, nil); err != nil {
		t.Error(err)
	}
}

// TestPostgresWideQueries: stars over queries that read one another twice have as many columns as there are atoms.
func TestPostgresWideQueries(t *testing.T) {
	var ctes strings.Builder
	ctes.WriteString("WITH c0 AS (SELECT * FROM orders)")
	for i := range 60 {
		fmt.Fprintf(&ctes, ", c%d AS (SELECT * FROM c%d x, c%d y)", i+1, i, i)
	}
	joins := "SELECT 1 FROM " + strings.Repeat("(", 14) + "orders" + strings.Repeat(" CROSS JOIN orders o1)", 14)
	wide := "SELECT 1 FROM (SELECT o.*" + strings.Repeat(", o.*", 300) + " FROM orders o) w"
	for name, c := range map[string]struct {
		sql    string
		passes bool
	}{
		"a chain that doubles":          {ctes.String() + " SELECT 1", false},
		"stars beside one another":      {"SELECT o.*" + strings.Repeat(", o.*", 400) + " FROM orders o", false},
		"just as many as the server":    {"SELECT o.*" + strings.Repeat(", o.*", 331) + ", 1, 2, 3, 4 FROM orders o", true},
		"one more":                      {"SELECT o.*" + strings.Repeat(", o.*", 331) + ", 1, 2, 3, 4, 5 FROM orders o", false},
		"a list of many tables":         {"SELECT * FROM orders" + strings.Repeat(", orders", 4000), false},
		"joins":                         {joins, true},
		"joins of something wide":       {wide + strings.Repeat(" CROSS JOIN (SELECT o.*"+strings.Repeat(", o.*", 300)+" FROM orders o) w", 7), false},
		"with RECURSIVE, from the last": {strings.Replace(ctes.String(), "WITH", "WITH RECURSIVE", 1) + " SELECT * FROM c60", false},
	} {
		if _, err := pgCheck(t, c.sql, ReadOnly, nil); c.passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPostgresCatalog: schemas are searched in order, and what a name means does not depend on who asks.
func TestPostgresCatalog(t *testing.T) {
	cat := &Catalog{Engine: "erp", DefaultSchema: "sales", Search: []string{"sales", "public"}, Tables: []Table{
		{Relation: Relation{"public", "t"}, Columns: []Column{{Name: "p"}}},
		{Relation: Relation{"sales", "t"}, Columns: []Column{{Name: "s"}}},
		{Relation: Relation{"public", "u"}, Columns: []Column{{Name: "u"}}},
		{Relation: Relation{"hidden", "v"}, Columns: []Column{{Name: "v"}}},
	}}
	for name, c := range map[string]struct {
		sql  string
		may  func(Relation) bool
		want string // "" when it is refused
	}{
		"the first schema wins":              {"SELECT s FROM t", pgGranted(nil), "SELECT s FROM sales.t"},
		"a schema that is named":             {"SELECT p FROM public.t", pgGranted(nil), "SELECT p FROM public.t"},
		"the next schema":                    {"SELECT u.u FROM u", pgGranted(nil), "SELECT u.u FROM public.u"},
		"a schema that is not searched":      {"SELECT v FROM v", pgGranted(nil), ""},
		"not the next one for want of grant": {"SELECT * FROM t", pgGranted([]string{"public.t"}), ""},
		"nobody may":                         {"SELECT 1 FROM u", nil, ""},
		"the catalogue's name":               {"SELECT erp.public.u.u FROM erp.public.u", pgGranted(nil), "SELECT public.u.u FROM public.u"},
		"another catalogue's":                {"SELECT 1 FROM postgres.public.u", pgGranted(nil), ""},
	} {
		a, err := New(Postgres, nil).Check(t.Context(), Request{SQL: c.sql, Database: "x", Profile: ReadOnly, Catalog: cat, May: c.may})
		if a.SQL() != c.want || (c.want == "") != (fault.CodeOf(err) == fault.Refused) {
			t.Errorf("%s: %q, %v", name, a.SQL(), err)
		}
	}
}

// FuzzPostgres holds that no text makes the gate panic, that every answer is a refusal with a place in the text or a
// statement that passes again as it is, and that nothing but what is granted is read.
func FuzzPostgres(f *testing.F) {
	for _, c := range pgCases(f) {
		if len(c.SQL) < 2000 {
			f.Add(c.SQL)
		}
	}
	for _, sql := range []string{
		"SELECT (o).id, o.*, (o.*).total FROM orders o", "SELECT * FROM JSON_TABLE('{}', '$' COLUMNS (NESTED PATH '$' COLUMNS (a int PATH '$'))) x",
		"WITH RECURSIVE g(id) AS (SELECT 1 UNION SELECT id + 1 FROM g) SEARCH DEPTH FIRST BY id SET o CYCLE id SET c USING p SELECT * FROM g",
		"SELECT sum(total) OVER \"W\"\"x\" FROM orders WINDOW \"W\"\"x\" AS (ORDER BY id ROWS 1 PRECEDING EXCLUDE TIES)", "EXPLAIN SELECT 1",
		"SELECT * FROM (orders o JOIN customers c USING (id) AS u) AS j(a, b), LATERAL unnest(ARRAY[1], ARRAY[2]) WITH ORDINALITY AS x(p, q)",
		"SELECT XMLELEMENT(NAME a, XMLATTRIBUTES(1 AS b)), 't'::bool, OVERLAY('a' PLACING 'b' FROM 1 FOR 2), INTERVAL '1' DAY, U&'\\0041'",
	} {
		f.Add(sql)
	}
	grants := []string{"public.orders", "public.customers", "public.order_items", "public.products", "public.audit_log", "public.items", "public.v_orders", "public.Order Summary"}
	f.Fuzz(func(t *testing.T, sql string) {
		a, err := pgCheck(t, sql, ReadOnly, grants)
		var fe *fault.Error
		switch {
		case err != nil && (!errors.As(err, &fe) || fe.Code != fault.Refused || fe.Position < 0 || fe.Position > len(sql)+1):
			t.Fatalf("%#v", err)
		case err != nil:
			return
		}
		for _, r := range a.Relations() {
			if !slices.Contains(grants, r.Schema+"."+r.Name) {
				t.Fatalf("reads %v", r)
			}
		}
		if len(a.SQL()) <= MaxBytes {
			pgStable(t, sql, a, ReadOnly, grants)
		}
	})
}
