package gateoracle

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/internal/gatefuzz"
)

// grammar writes queries that mostly are of the right types, so that a server runs them, over what is in scope. Once in a
// while it does what a reader may not do, and then says so in odd: a statement that is not odd, and runs, should pass.
type grammar struct {
	*gatefuzz.Choices
	odd   bool
	depth int
	names int
	scope []source // what columns come from, inner ones last
	own   int      // where the innermost FROM begins in scope
	ctes  []source
}

// source is something with columns: a table in FROM, a CTE.
type source struct {
	name string
	cols []column
}

type column struct{ name, typ string }

func cols(spec string) (out []column) {
	for _, f := range strings.Fields(spec) {
		name, typ, _ := strings.Cut(f, ":")
		out = append(out, column{name, typ})
	}
	return out
}

const orderColumns = "id:int customer_id:int placed_at:ts status:text total:num"

var tables = []source{
	{"orders", cols(orderColumns)},
	{"customers", cols("id:int name:text email:text region:text created_at:tz")},
	{"products", cols("id:int sku:text name:text category:text price:num tags:texts attrs:jsonb")},
	{"v_orders", cols(orderColumns)},
	{"v_late", cols("id:int status:text name:text")},
	{"audit_log", cols(`id:int "update":ts "delete":bool "select":text "table":text "user":text "order":int`)},
	{"items", cols("id:int embedding:vec half:half")},
	{"tickets", cols("id:int mood:mood score:int big:big small:int ratio:float at:tz open_for:span code:text data:bytea flags:bit span:range ids:ints doc:json")},
}

// spice is true once in a while, and marks the statement.
func (g *grammar) spice(n int) bool {
	if g.Left() > 0 && g.Seldom(n) {
		g.odd = true
		return true
	}
	return false
}

func (g *grammar) fresh(prefix string) string {
	g.names++
	name := fmt.Sprintf("%s%d", prefix, g.names)
	switch g.Pick(12) {
	case 11:
		return `"` + strings.ToUpper(name) + `"`
	case 10:
		return fmt.Sprintf(`"%s of %d"`, prefix, g.names)
	case 9:
		return fmt.Sprintf(`"%s.%d"`, prefix, g.names)
	case 8:
		return fmt.Sprintf(`"é%s%d"`, prefix, g.names)
	}
	return name
}

var someTypes = []string{"int", "text", "num", "bool", "ts", "date", "tz", "span", "big", "float", "jsonb", "texts", "ints", "range", "json", "vec", "bytea"}

func (g *grammar) statement() string {
	types := make([]string, 1+g.Pick(3))
	for i := range types {
		types[i] = someTypes[g.Pick(len(someTypes))]
	}
	sql, _ := g.query(types)
	switch g.Pick(20) {
	case 19:
		sql = g.One("EXPLAIN ", "EXPLAIN (COSTS OFF) ", "EXPLAIN VERBOSE ") + sql
		g.odd = true // views may not be explained
	case 18:
		sql += g.One(";", " -- x", "/* x /* y */ */", "\n")
	case 17:
		if g.spice(1) {
			sql += g.One("; SELECT 1", "; DROP TABLE orders", " INTO x", " FOR UPDATE", " FOR KEY SHARE OF t1", ";;", " \x00")
		}
	case 16:
		if g.spice(1) {
			sql = g.One("COPY (", "CREATE TABLE x AS ", "PREPARE p AS ", "EXPLAIN ANALYZE ", "EXPLAIN (ANALYZE true) ", "INSERT INTO orders ", "DECLARE c CURSOR FOR ", "DO $$ ", "EXPLAIN (BUFFERS, FORMAT xml) ") + sql
		}
	}
	return sql
}

// query is a SELECT with outputs of the given types, with WITH, a set operation, an order, a limit.
func (g *grammar) query(types []string) (string, []column) {
	g.depth++
	defer func() { g.depth-- }()
	ctes := len(g.ctes)
	defer func() { g.ctes = g.ctes[:ctes] }()
	var b strings.Builder
	if g.depth < 4 && g.Seldom(4) {
		b.WriteString(g.with())
	}
	body, out := g.selects(types)
	b.WriteString(body)
	plain := true
	if g.depth < 5 && g.Seldom(6) {
		op := g.One(" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT ", " EXCEPT ALL ")
		for _, ty := range types {
			if strings.Contains("json vec half mood range", ty) {
				op = " UNION ALL "
			}
		}
		other, _ := g.selects(types)
		b.WriteString(op + g.One(other, "("+other+")", "(WITH w AS (SELECT 1 AS one) "+other+")"))
		plain = false
	}
	if g.Seldom(3) {
		keys := []string{"1", fmt.Sprint(len(types))}
		if plain {
			keys = append(keys, out[0].name)
		}
		if !strings.Contains("json", types[0]) && !strings.Contains("json", types[len(types)-1]) {
			b.WriteString(" ORDER BY " + g.One(keys...) + g.One("", " DESC", " NULLS LAST", " ASC NULLS FIRST"))
		}
	}
	if g.Seldom(4) {
		b.WriteString(g.One(" LIMIT 3", " LIMIT 5 OFFSET 1", " FETCH FIRST 2 ROWS ONLY", " OFFSET 1 ROW", " LIMIT ALL", " LIMIT (SELECT 2)", " LIMIT $1"))
	}
	return b.String(), out
}

// with adds common table expressions: plain ones, recursive ones, and some with a table's name.
func (g *grammar) with() string {
	var parts []string
	word := "WITH "
	for range 1 + g.Pick(2) {
		name := g.One(g.fresh("x"), "salaries", "orders", "pg_class", g.fresh("Y"), `"Orders"`, "v_pay")
		if strings.Contains(strings.Join(parts, "\x01")+"\x01", "\x02"+name+"\x02") {
			continue
		}
		if g.Seldom(4) {
			word = "WITH RECURSIVE "
			c := source{name, []column{{"n", "int"}}}
			saved := g.scope
			g.scope = nil
			start := g.expr("int")
			g.scope = saved
			parts = append(parts, "\x02"+name+"\x02(n) AS (SELECT "+start+" UNION ALL SELECT "+name+".n + 1 FROM "+name+" WHERE "+name+".n < 5)"+
				g.One("", "", " SEARCH DEPTH FIRST BY n SET s", " CYCLE n SET c USING p"))
			g.ctes = append(g.ctes, c)
			continue
		}
		types := []string{someTypes[g.Pick(5)], someTypes[g.Pick(len(someTypes))]}[:1+g.Pick(2)]
		saved, own := g.scope, g.own
		g.scope, g.own = nil, 0
		body, out := g.query(types)
		g.scope, g.own = saved, own
		list := ""
		if g.Seldom(3) {
			out = rename(out, g.fresh("c"))
			list = "(" + names(out) + ")"
		}
		parts = append(parts, "\x02"+name+"\x02"+list+" AS "+g.One("", "MATERIALIZED ", "NOT MATERIALIZED ")+"("+body+")")
		g.ctes = append(g.ctes, source{name, out})
	}
	return strings.ReplaceAll(word+strings.Join(parts, ", "), "\x02", "") + " "
}

// rename gives the first columns other names.
func rename(in []column, name string) []column {
	out := append([]column{}, in...)
	out[0].name = name
	return out
}

func names(c []column) string {
	var out []string
	for _, one := range c {
		out = append(out, one.name)
	}
	return strings.Join(out, ", ")
}

// selects is one SELECT, or VALUES.
func (g *grammar) selects(types []string) (string, []column) {
	outer, outerOwn := g.scope, g.own
	defer func() { g.scope, g.own = outer, outerOwn }()
	g.own = len(g.scope)
	from := ""
	if !g.Seldom(8) {
		from = " FROM " + g.from()
	}
	var items, keys []string
	var out []column
	grouped := from != "" && g.Seldom(4)
	group := ""
	for _, ty := range types {
		item := ""
		switch {
		case grouped && (g.Seldom(2) || strings.Contains("json vec half", ty)):
			item = g.expand(g.One(aggregates[ty]...))
		case grouped:
			if item = g.column(ty); strings.Contains(item, ".") && !strings.ContainsAny(item, "'(") {
				keys = append(keys, item) // a constant is no key
			}
		case from != "" && g.Seldom(6) && len(windows[ty]) > 0:
			item = g.window(g.expand(g.One(windows[ty]...)))
		default:
			item = g.expr(ty)
		}
		name := g.fresh("c")
		if g.spice(200) {
			name = g.One("ctid", "xmin", "select")
		}
		items = append(items, item+g.One(" AS ", " AS ", " ")+name)
		out = append(out, column{name, ty})
	}
	var b strings.Builder
	b.WriteString("SELECT " + g.One("", "", "", "ALL ") + strings.Join(items, g.One(", ", ",\n\t", " /* , */ , ")) + from)
	if from != "" && g.Seldom(2) {
		b.WriteString(" WHERE " + g.expr("bool"))
	}
	if len(keys) > 0 {
		if group = strings.Join(keys, ", "); g.Seldom(5) {
			group = g.One("ROLLUP (", "CUBE (", "GROUPING SETS ((), ", "DISTINCT (") + group + ")"
		}
		b.WriteString(" GROUP BY " + group)
	}
	if grouped && g.Seldom(4) {
		b.WriteString(" HAVING count(*) > " + g.One("0", "1"))
	}
	return b.String(), out
}

func (g *grammar) window(call string) string {
	over := ""
	if g.Seldom(2) {
		over = "PARTITION BY " + g.expr("text")
	}
	if g.Seldom(2) {
		over += " ORDER BY " + g.column("int") + g.One("", " DESC")
		over += g.One("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " GROUPS UNBOUNDED PRECEDING EXCLUDE TIES", " RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING")
	}
	return call + " OVER (" + over + ")"
}

// column is one of the type that is in scope, or an expression where there is none. Names that two sources have are
// qualified anyway.
func (g *grammar) column(typ string) string {
	var found []string
	for i := len(g.scope) - 1; i >= 0; i-- {
		for _, c := range g.scope[i].cols {
			if c.typ == typ && !g.shadowed(i) {
				found = append(found, g.scope[i].name+"."+c.name)
			}
		}
	}
	if g.spice(80) {
		return g.here(g.One(oddColumns...))
	}
	if len(found) == 0 {
		return g.literal(typ)
	}
	return g.One(found...)
}

func (g *grammar) shadowed(i int) bool {
	for _, s := range g.scope[i+1:] {
		if s.name == g.scope[i].name {
			return true
		}
	}
	return false
}

var hole = regexp.MustCompile(`\{\{|\{[a-z]+\}`)

// expand fills a template: {int} is an expression of that type.
func (g *grammar) expand(template string) string {
	return strings.ReplaceAll(hole.ReplaceAllStringFunc(template, func(h string) string {
		switch h {
		case "{{":
			return "{"
		case "{row}":
			return g.row()
		case "{small}":
			return g.One("3", "2", "5", "10")
		case "{column}":
			return g.column("text")
		case "{one}":
			return g.scalar()
		case "{rows}":
			return g.inner("int")
		case "{texted}":
			return g.inner("text")
		}
		return g.expr(h[1 : len(h)-1])
	}), "}}", "}")
}

// row is something in FROM as a whole, or a row that is written.
func (g *grammar) row() string {
	if i := len(g.scope) - 1; i >= g.own {
		return g.scope[g.own+g.Pick(len(g.scope)-g.own)].name
	}
	return "ROW(1, 'a')"
}

// here lets a template speak of what is in scope, which it calls t1.
func (g *grammar) here(template string) string {
	if len(g.scope) == 0 {
		return template
	}
	return strings.ReplaceAll(template, "t1", g.scope[g.Pick(len(g.scope))].name)
}

// scalar is a sub-query of one number.
func (g *grammar) scalar() string {
	if g.depth > 4 {
		return "1"
	}
	return "(SELECT " + g.One("max", "min", "count") + "(q.v) FROM (" + g.named("int") + ") q)"
}

func (g *grammar) inner(typ string) string {
	if g.depth > 4 {
		return "SELECT " + g.literal(typ)
	}
	sql, _ := g.query([]string{typ})
	return sql
}

func (g *grammar) named(typ string) string {
	sql, out := g.query([]string{typ})
	return "SELECT z." + out[0].name + " AS v FROM (" + sql + ") z"
}

// expr is an expression of a type.
func (g *grammar) expr(typ string) string {
	g.depth++
	defer func() { g.depth-- }()
	if g.spice(60) {
		return g.expand(g.here(g.One(oddExpressions...)))
	}
	list := expressions[typ]
	switch pick := g.Pick(10); {
	case pick == 0 || g.depth > 7 || len(list) == 0:
		return g.literal(typ)
	case pick < 5 || g.depth > 5:
		return g.column(typ)
	}
	return g.expand(g.One(list...))
}

func (g *grammar) literal(typ string) string { return g.One(literals[typ]...) }
