package sqlguard

import (
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

func TestPgVectorChoice(t *testing.T) {
	w := pgWalkerOf(ReadOnly)
	w.req.Catalog.Tables = []Table{
		{Relation: Relation{"public", "items"}, Columns: []Column{{Name: "v", Type: "vector(3)"}, {Name: "h", Type: "ext.halfvec(3)"}, {Name: "n", Type: "integer"},
			{Name: "place", Type: "point"}, {Name: "mixed", Type: "vector(3)"}, {Name: "list", Type: "vector(3)[]"}}},
		{Relation: Relation{"public", "others"}, Columns: []Column{{Name: "mixed", Type: "integer"}}},
		{Relation: Relation{"hr", "secret"}, Columns: []Column{{Name: "hidden", Type: "vector(3)"}, {Name: "v", Type: "integer"}}},
	}
	w.req.May = func(r Relation) bool { return r.Schema != "hr" }
	cases := map[string]struct{ expr, want string }{
		"a distance":                       {"v <-> '[1,2,3]'", "v OPERATOR(ext.<->) '[1,2,3]'"},
		"a distance of literals":           {"'[1]' <=> '[2]'", "'[1]' OPERATOR(ext.<=>) '[2]'"},
		"a distance of points":             {"place <-> '(0,0)'", "place <-> '(0,0)'"},
		"points that are made":             {"'(1,2)' <-> point(1, 2)", "'(1,2)' <-> pg_catalog.point(1, 2)"},
		"points that are cast":             {"'(1,2)'::point <-> x", "'(1,2)'::point <-> x"},
		"followed by":                      {"to_tsquery('a') <-> to_tsquery('b')", "pg_catalog.to_tsquery('a') <-> pg_catalog.to_tsquery('b')"},
		"followed by, twice":               {"to_tsquery('a') <-> 'b' <-> 'c'", "(pg_catalog.to_tsquery('a') <-> 'b') <-> 'c'"},
		"PostgreSQL's, said so":            {"a OPERATOR(pg_catalog.<->) b", "a OPERATOR(pg_catalog.<->) b"},
		"a sum of vectors":                 {"v + '[1,1,1]'", "v OPERATOR(ext.+) '[1,1,1]'"},
		"a sum of vectors of the schema":   {"'[1]' - items.h", "'[1]' OPERATOR(ext.-) items.h"},
		"a sum of vectors that are cast":   {"a * '[2]'::vector", "a OPERATOR(ext.*) '[2]'::vector"},
		"a sum of numbers":                 {"n + 1", "n + 1"},
		"a column of two types":            {"mixed + 1", "mixed + 1"},
		"a column that is not to be read":  {"hidden + x", "hidden + x"},
		"an array of vectors":              {"list || x", "list || x"},
		"a negative number":                {"- n", "- n"},
		"an average of vectors":            {"avg(v)", "ext.avg(v)"},
		"an average of sums":               {"avg(v + v)", "ext.avg(v OPERATOR(ext.+) v)"},
		"a sum of averages":                {"avg(h) + v", "ext.avg(h) OPERATOR(ext.+) v"},
		"an average of numbers":            {"avg(n)", "pg_catalog.avg(n)"},
		"an average of what is not to see": {"avg(hidden)", "pg_catalog.avg(hidden)"},
		"a largest vector, which is none":  {"max(v)", "pg_catalog.max(v)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tree, err := pg_query.Parse("SELECT " + c.expr)
			if err != nil {
				t.Fatal(err)
			}
			var choose func(n *pg_query.Node)
			choose = func(n *pg_query.Node) {
				if x := n.GetAExpr(); x != nil {
					if x.Name, err = w.operatorName(x.Name, 0); err != nil {
						t.Fatal(err)
					}
					w.vectorOperator(x)
					choose(x.Lexpr)
					choose(x.Rexpr)
				}
				if f := n.GetFuncCall(); f != nil {
					if _, err := w.call(f); err != nil {
						t.Fatal(err)
					}
					for _, a := range f.Args {
						choose(a)
					}
				}
			}
			choose(tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val)
			got, err := pg_query.Deparse(tree)
			if err != nil || got != "SELECT "+c.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
