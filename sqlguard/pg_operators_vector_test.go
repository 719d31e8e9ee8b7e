package sqlguard

import (
	"strings"
	"testing"

	"sluice/fault"
)

func TestPgVectorChoice(t *testing.T) {
	w := pgWith(
		Table{Relation: Relation{"public", "items"}, Columns: []Column{{Name: "v", Type: "vector(3)"}, {Name: "h", Type: "ext.halfvec(3)"}, {Name: "n", Type: "integer"},
			{Name: "place", Type: "point"}, {Name: "mixed", Type: "vector(3)"}, {Name: "list", Type: "vector(3)[]"}}},
		Table{Relation: Relation{"public", "others"}, Columns: []Column{{Name: "mixed", Type: "integer"}}},
	)
	cases := map[string]struct{ expr, want string }{
		"a distance":                      {"v <-> '[1,2,3]'", "v OPERATOR(ext.<->) '[1,2,3]'"},
		"a distance of literals":          {"'[1]' <=> '[2]'", "'[1]' OPERATOR(ext.<=>) '[2]'"},
		"a distance of points":            {"place <-> '(0,0)'", "place <-> '(0,0)'"},
		"points that are made":            {"'(1,2)' <-> point(1, 2)", "'(1,2)' <-> pg_catalog.point(1, 2)"},
		"points that are cast":            {"'(1,2)'::point <-> x", "'(1,2)'::pg_catalog.point <-> x"},
		"followed by":                     {"to_tsquery('a') <-> to_tsquery('b')", "pg_catalog.to_tsquery('a') <-> pg_catalog.to_tsquery('b')"},
		"followed by, twice":              {"to_tsquery('a') <-> 'b' <-> 'c'", "(pg_catalog.to_tsquery('a') <-> 'b') <-> 'c'"},
		"PostgreSQL's, said so":           {"a OPERATOR(pg_catalog.<->) b", "a OPERATOR(pg_catalog.<->) b"},
		"a sum of vectors":                {"v + '[1,1,1]'", "v OPERATOR(ext.+) '[1,1,1]'"},
		"a sum of vectors of the schema":  {"'[1]' - items.h", "'[1]' OPERATOR(ext.-) items.h"},
		"a sum of vectors that are cast":  {"a * '[2]'::vector", "a OPERATOR(ext.*) '[2]'::ext.vector"},
		"a sum of numbers":                {"n + 1", "n + 1"},
		"a column of the other type":      {"others.mixed + 1", "others.mixed + 1"},
		"a column of this type":           {"items.mixed + x", "items.mixed OPERATOR(ext.+) x"},
		"vectors that are equal":          {"v = '[1,2,3]'", "v OPERATOR(ext.=) '[1,2,3]'"},
		"vectors the other way round":     {"'[1,2,3]' <> h", "'[1,2,3]' OPERATOR(ext.<>) h"},
		"vectors in an order":             {"v < v AND v <= v AND v > v AND v >= v", "v OPERATOR(ext.<) v AND v OPERATOR(ext.<=) v AND v OPERATOR(ext.>) v AND v OPERATOR(ext.>=) v"},
		"a vector of a list":              {"list[1] = '[1]'", "list[1] OPERATOR(ext.=) '[1]'"},
		"some of a list":                  {"v = ANY (list)", "v OPERATOR(ext.=) ANY(list)"},
		"all of an array":                 {"'[1]' <> ALL (ARRAY[v, h])", "'[1]' OPERATOR(ext.<>) ALL(ARRAY[v, h])"},
		"some of a query":                 {"v = ANY (SELECT v FROM items)", "v OPERATOR(ext.=) ANY (SELECT v FROM public.items)"},
		"one of a query":                  {"v IN (SELECT v FROM items)", "v OPERATOR(ext.=) ANY (SELECT v FROM public.items)"},
		"a vector of a query":             {"(SELECT v FROM items LIMIT 1) = '[1]'", "(SELECT v FROM public.items LIMIT 1) OPERATOR(ext.=) '[1]'"},
		"the last of several":             {"(array_agg(v ORDER BY n))[1] + lag(v) OVER ()", "(pg_catalog.array_agg(v ORDER BY n))[1] OPERATOR(ext.+) pg_catalog.lag(v) OVER ()"},
		"a vector or another":             {"COALESCE(NULL, v) = CASE WHEN n = 1 THEN '[1]' ELSE h END", "COALESCE(NULL, v) OPERATOR(ext.=) CASE WHEN n = 1 THEN '[1]' ELSE h END"},
		"a distance and a number":         {"(v <-> v) < 1", "(v OPERATOR(ext.<->) v) < 1"},
		"points that are equal":           {"place ~= place", "place ~= place"},
		"an array of vectors":             {"list || list = list AND list || v <> list", "(list || list) = list AND (list || v) <> list"},
		"a negative number":               {"- n", "- n"},
		"an average of vectors":           {"avg(v)", "ext.avg(v)"},
		"an average of sums":              {"avg(v + v)", "ext.avg(v OPERATOR(ext.+) v)"},
		"a sum of averages":               {"avg(h) + v", "ext.avg(h) OPERATOR(ext.+) v"},
		"an average of numbers":           {"avg(n)", "pg_catalog.avg(n)"},
		"a largest vector, which is none": {"max(v)", "pg_catalog.max(v)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			const from = " FROM public.items, public.others, (SELECT 1 AS a, 2 AS b, 3 AS x) y"
			got, err := w.check(t, "SELECT "+c.expr+strings.ReplaceAll(from, "public.", ""))
			if err != nil || got != "SELECT "+c.want+from {
				t.Fatalf("got %s, %v", got, err)
			}
			if again, err := w.check(t, got); err != nil || again != got {
				t.Errorf("approved again it is %s, %v", again, err)
			}
		})
	}
}

// A vector is one behind another name as well.
func TestPgVectorNames(t *testing.T) {
	w := pgWith(Table{Relation: Relation{"public", "items"}, Columns: []Column{{Name: "v", Type: "vector(3)"}, {Name: "n", Type: "integer"}, {Name: "list", Type: "ext.vector[]"}}})
	for name, c := range map[string]struct{ sql, want string }{
		"of a subquery":                         {"SELECT x = '[1]' FROM (SELECT v AS x FROM items) y", "SELECT x OPERATOR(ext.=) '[1]' FROM (SELECT v AS x FROM public.items) y"},
		"of WITH":                               {"WITH a(x) AS (SELECT v FROM items) SELECT avg(a.x) FROM a", "WITH a(x) AS (SELECT v FROM public.items) SELECT ext.avg(a.x) FROM a"},
		"of a star":                             {"SELECT v + v FROM (SELECT * FROM items) y", "SELECT v OPERATOR(ext.+) v FROM (SELECT * FROM public.items) y"},
		"of a join":                             {"SELECT j.v = j.v FROM (items a JOIN (SELECT 1 AS n) b USING (n)) j", "SELECT j.v OPERATOR(ext.=) j.v FROM (public.items a JOIN (SELECT 1 AS n) b USING (n) ) j"},
		"of unnest":                             {"SELECT e = '[1]' FROM items, unnest(list) e", "SELECT e OPERATOR(ext.=) '[1]' FROM public.items, pg_catalog.unnest(list) e"},
		"of a union":                            {"SELECT x = '[1]' FROM (SELECT NULL AS x UNION SELECT v FROM items) y", "SELECT x OPERATOR(ext.=) '[1]' FROM (SELECT NULL AS x UNION SELECT v FROM public.items) y"},
		"of VALUES":                             {"SELECT column1 = '[1]' FROM (VALUES ('[1]'::vector)) y", "SELECT column1 OPERATOR(ext.=) '[1]' FROM (VALUES ('[1]'::ext.vector)) y"},
		"of a row":                              {"SELECT (i).v = '[1]' FROM items i", "SELECT (i).v OPERATOR(ext.=) '[1]' FROM public.items i"},
		"no longer one":                         {"SELECT v = '1' FROM (SELECT v::text FROM items) y", "SELECT v = '1' FROM (SELECT v::pg_catalog.text FROM public.items) y"},
		"another's name":                        {"SELECT v = 1 FROM (SELECT n AS v FROM items) y", "SELECT v = 1 FROM (SELECT n AS v FROM public.items) y"},
		"one of several":                        {"SELECT 1 FROM items WHERE v IN ('[1]', '[2]')", ""},
		"between":                               {"SELECT 1 FROM items WHERE v BETWEEN '[1]' AND '[2]'", ""},
		"a difference":                          {"SELECT v IS DISTINCT FROM v FROM items", ""},
		"none when the same":                    {"SELECT NULLIF(v, '[1]') FROM items", ""},
		"rows":                                  {"SELECT (v, 1) = (v, 1) FROM items", ""},
		"rows of a query":                       {"SELECT (v, n) IN (SELECT v, n FROM items) FROM items", ""},
		"a case":                                {"SELECT CASE v WHEN '[1]' THEN 1 END FROM items", ""},
		"a join of vectors":                     {"SELECT 1 FROM items a JOIN items b USING (v)", ""},
		"a natural one":                         {"SELECT 1 FROM items a NATURAL JOIN items b", ""},
		"sorted by operator":                    {"SELECT 1 FROM items ORDER BY v USING <", ""},
		"a sum of no vectors":                   {"SELECT ext.sum(n) FROM items", ""},
		"an operator that a user may have made": {"SELECT 1 OPERATOR(ext.=) 2", ""},
		"and before ANY":                        {"SELECT 1 OPERATOR(ext.=) ANY (SELECT 2)", ""},
		"and sorting":                           {"SELECT 1 FROM items ORDER BY n USING OPERATOR(ext.<)", ""},
		"and of vectors":                        {"SELECT v OPERATOR(ext.=) v FROM items", "SELECT v OPERATOR(ext.=) v FROM public.items"},
	} {
		got, err := w.check(t, c.sql)
		if got != c.want || (c.want == "") != (fault.CodeOf(err) == fault.Refused) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
