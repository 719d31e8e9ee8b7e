package gateoracle

import "strings"

func (g *grammar) from() string {
	var b strings.Builder
	b.WriteString(g.relation(false))
	for range g.Pick(3) {
		switch kind := g.Pick(8); kind {
		case 0:
			b.WriteString(", " + g.relation(true))
		case 1:
			b.WriteString(" CROSS JOIN " + g.relation(true))
		case 2, 3, 4:
			word := g.One(" JOIN ", " LEFT JOIN ", " INNER JOIN ", " LEFT OUTER JOIN ")
			b.WriteString(word + g.relation(true) + " ON " + g.expr("bool"))
		case 5:
			b.WriteString(" LEFT JOIN LATERAL " + g.subquery() + " ON true")
		case 6:
			b.WriteString(" JOIN " + g.relation(false) + " ON true")
		case 7:
			if only := g.scope[g.own:]; len(only) == 1 && only[0].cols[0] == (column{"id", "int"}) {
				t := tables[g.Pick(len(tables))]
				alias := g.fresh("u")
				b.WriteString(g.One(" JOIN ", " FULL JOIN ", " RIGHT JOIN ") + g.qualify(t.name) + " AS " + alias + " USING (id)")
				g.scope = append(g.scope, source{alias, t.cols})
				if g.Seldom(2) {
					both := g.fresh("j")
					b.WriteString(" AS " + both)
					g.scope = append(g.scope, source{both, cols("id:int")})
				}
			}
		}
	}
	return b.String()
}

func (g *grammar) subquery() string {
	types := []string{"int", "text", "num"}[:1+g.Pick(3)]
	body, out := g.query(types)
	alias := g.fresh("s")
	list := ""
	if g.Seldom(4) {
		out = rename(out, g.fresh("d"))
		list = "(" + out[0].name + ")"
	}
	g.scope = append(g.scope, source{alias, out})
	return "(" + body + ")" + g.One(" AS ", " ") + alias + list
}

var tableFunctions = []struct {
	text string
	cols []column
}{
	{"generate_series(1, {small})", cols("v:int")}, {"unnest(ARRAY[1, 2, {int}])", cols("v:int")}, {"unnest({texts})", cols("v:text")},
	{"jsonb_array_elements('[1, 2]'::jsonb)", cols("v:jsonb")}, {"jsonb_each({jsonb})", cols("k:text v:jsonb")}, {"jsonb_each_text('{{\"a\": 1}}')", cols("k:text v:text")},
	{"regexp_split_to_table({text}, ',')", cols("v:text")}, {"generate_series(date '2026-01-01', date '2026-01-03', interval '1 day')", cols("v:tz")},
	{"ROWS FROM (generate_series(1, 2), unnest({texts}))", cols("n:int v:text")}, {"jsonb_object_keys('{{\"a\": 1}}'::jsonb)", cols("v:text")},
	{"string_to_table({text}, 'a')", cols("v:text")}, {"generate_subscripts({ints}, 1)", cols("v:int")}, {"unnest({ints}, {texts})", cols("v:int w:text")},
	{"regexp_matches({text}, 'a', 'g')", cols("v:texts")},
}

// derived are sub-queries whose columns come by stars, joins and keywords.
var derived = []source{
	{"(SELECT DISTINCT ON (status) * FROM public.orders ORDER BY status, id)", cols(orderColumns)},
	{"(TABLE public.customers)", cols("id:int name:text email:text region:text created_at:tz")},
	{"(SELECT o.*, c.region FROM public.orders o JOIN public.customers c ON c.id = o.customer_id)", cols(orderColumns + " region:text")},
	{"(public.orders a NATURAL LEFT JOIN public.v_orders b)", cols(orderColumns)},
	{"(public.orders a JOIN public.customers b USING (id))", cols(orderColumns + " name:text email:text region:text created_at:tz")},
	{"(SELECT id, row_number() OVER w AS v FROM public.orders WINDOW w AS (PARTITION BY status ORDER BY id))", cols("id:int v:big")},
	{"(VALUES (1), (2) ORDER BY 1 LIMIT 1)", cols("column1:int")},
	{"(SELECT 1 AS a UNION SELECT 2 INTERSECT SELECT 2 ORDER BY a)", cols("a:int")},
	{"(SELECT (o).* FROM public.orders o)", cols(orderColumns)},
	{"(SELECT count(*), max(total), CASE WHEN true THEN 1 END, 'x'::text, coalesce(1, 2) FROM public.orders)", cols("count:big max:num case:int text:text coalesce:int")[:2]},
	{"(SELECT * FROM (public.orders a CROSS JOIN LATERAL (SELECT a.total * 2 AS twice) b))", cols(orderColumns + " twice:num")},
	{`JSON_TABLE('[{"a":1}]'::jsonb, '$[*]' COLUMNS (n FOR ORDINALITY, a int PATH '$.a', NESTED PATH '$.b' COLUMNS (c text PATH '$')))`, cols("n:int a:int c:text")},
	{"(WITH w(a) AS (SELECT id FROM public.orders) SELECT w.a, w FROM w)", cols("a:int")},
	{"(SELECT * FROM public.orders TABLESAMPLE BERNOULLI (50) REPEATABLE (7))", cols(orderColumns)},
	{"(SELECT date_trunc('day', placed_at), placed_at::date, (tags)[1], extract(year FROM placed_at) FROM public.orders, public.products)", cols("date_trunc:ts placed_at:date tags:text extract:num")},
}

// relation is a table, a CTE, a sub-query, a function or VALUES, with an alias; what it has is then in scope.
func (g *grammar) relation(inner bool) string {
	if g.spice(30) {
		return g.One(oddRelations...) + " AS " + g.fresh("t")
	}
	alias := g.fresh("t")
	as := g.One(" AS ", " ") + alias
	switch pick := g.Pick(14); {
	case pick == 1 && len(g.ctes) > 0:
		c := g.ctes[g.Pick(len(g.ctes))]
		for i := len(g.ctes) - 1; i >= 0; i-- { // the innermost of a name
			if g.ctes[i].name == c.name {
				c = g.ctes[i]
				break
			}
		}
		g.scope = append(g.scope, source{alias, c.cols})
		return c.name + as
	case (pick == 2 || pick == 3) && g.depth < 5:
		saved := g.scope
		g.scope = g.scope[:g.own:g.own] // without LATERAL, it sees no siblings
		text := g.subquery()
		g.scope = append(saved, g.scope[len(g.scope)-1])
		return text
	case pick == 4:
		f := tableFunctions[g.Pick(len(tableFunctions))]
		text := g.expand(f.text)
		cs := f.cols
		if g.Seldom(4) {
			text += " WITH ORDINALITY"
			cs = append(append([]column{}, cs...), column{"o", "big"})
		}
		g.scope = append(g.scope, source{alias, cs})
		return text + " AS " + alias + "(" + names(cs) + ")"
	case pick == 5:
		g.scope = append(g.scope, source{alias, cols("a:int b:text")})
		return "(VALUES (1, 'a'), (" + g.literal("int") + ", " + g.literal("text") + "))" + as + "(a, b)"
	case pick == 6:
		t := tables[0]
		c := rename(t.cols, g.fresh("r"))
		g.scope = append(g.scope, source{alias, c})
		return g.qualify(t.name) + as + "(" + c[0].name + ")"
	case pick >= 12:
		d := derived[g.Pick(len(derived))]
		g.scope = append(g.scope, source{alias, d.cols})
		return d.name + as
	case pick == 7 && inner:
		g.scope = append(g.scope, source{alias, cols("x:int y:text")})
		return `jsonb_to_recordset('[{"x":1,"y":"u"}]') AS ` + alias + "(x int, y text)"
	}
	t := tables[g.Pick(len(tables))]
	g.scope = append(g.scope, source{alias, t.cols})
	return g.qualify(t.name) + as
}

// qualify writes a table's name so that no CTE takes it.
func (g *grammar) qualify(name string) string {
	for _, c := range g.ctes {
		if c.name == name {
			return "public." + name
		}
	}
	return g.One(name, name, "public."+name, `"`+name+`"`, strings.ToUpper(name), `public."`+name+`"`)
}
