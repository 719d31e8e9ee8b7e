package duckdb_test

import (
	"strconv"
	"strings"
)

// grammar turns bytes into a statement: each byte is one choice, and when they are used up every choice is the first,
// which is always one that ends.
type grammar struct {
	choices []byte
	depth   int
	ctes    []string
}

func (g *grammar) pick(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	c := int(g.choices[0]) % n
	g.choices = g.choices[1:]
	return c
}

func (g *grammar) one(of ...string) string { return of[g.pick(len(of))] }

// seldom is true once in n.
func (g *grammar) seldom(n int) bool { return g.pick(n) == n-1 }

func (g *grammar) statement() string {
	sql := g.query()
	switch g.pick(16) {
	case 15:
		sql = "EXPLAIN " + sql
	case 14:
		sql = "SUMMARIZE " + sql
	case 13:
		sql = sql + g.one(";", " -- x", "; SELECT 1", "; DROP TABLE orders", "/* x */", " INTO x")
	case 12:
		sql = g.one("", "COPY (", "CREATE TABLE x AS ", "PREPARE p AS ", "EXPLAIN ANALYZE ", "DESCRIBE ", "INSERT INTO orders ") + sql
	}
	return sql
}

// query is a SELECT, a set operation or a WITH.
func (g *grammar) query() string {
	if g.depth++; g.depth > 5 {
		g.depth--
		return "SELECT 1 AS id"
	}
	defer func() { g.depth-- }()
	scope := len(g.ctes)
	defer func() { g.ctes = g.ctes[:scope] }()
	var b strings.Builder
	if g.seldom(4) {
		b.WriteString("WITH ")
		if g.seldom(3) {
			b.WriteString("RECURSIVE ")
		}
		for i := range 1 + g.pick(2) {
			name := g.one("x", "y", "salaries", "orders", `"Orders"`, "audit_log")
			b.WriteString([]string{"", ", "}[min(i, 1)] + name + g.one("", "", "(id)", "(id, status)") + " AS " + g.one("", "MATERIALIZED ") + "(")
			if g.seldom(3) {
				b.WriteString(g.query() + " UNION ALL SELECT id FROM " + name + " WHERE id < 3")
			} else {
				b.WriteString(g.query())
			}
			b.WriteString(") ")
			g.ctes = append(g.ctes, name)
		}
	}
	b.WriteString(g.selects())
	if g.seldom(6) {
		b.WriteString(g.one(" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT ALL ", " UNION BY NAME ") + g.selects())
	}
	if g.seldom(4) {
		b.WriteString(" ORDER BY " + g.one("1", "id", "ALL", g.expr()) + g.one("", " DESC", " NULLS LAST"))
	}
	if g.seldom(4) {
		b.WriteString(" LIMIT " + g.one("3", "(SELECT 2)", "$1", "10%", g.expr()))
	}
	return b.String()
}

func (g *grammar) selects() string {
	var b strings.Builder
	b.WriteString("SELECT " + g.one("", "", "", "DISTINCT ", "DISTINCT ON (id) "))
	for i := range 1 + g.pick(3) {
		b.WriteString([]string{"", ", "}[min(i, 1)] + g.item())
	}
	b.WriteString(" FROM " + g.from())
	if g.seldom(2) {
		b.WriteString(" WHERE " + g.expr())
	}
	if g.seldom(4) {
		b.WriteString(" GROUP BY " + g.one("1", "ALL", "status", "ROLLUP (status, id)", "GROUPING SETS ((), (id))", g.expr()))
	}
	if g.seldom(6) {
		b.WriteString(" HAVING " + g.aggregate() + " > 1")
	}
	if g.seldom(8) {
		b.WriteString(" QUALIFY " + g.window() + " < 3")
	}
	if g.seldom(10) {
		b.WriteString(g.one(" USING SAMPLE 10%", " USING SAMPLE 3 ROWS"))
	}
	return b.String()
}

func (g *grammar) item() string {
	switch g.pick(8) {
	case 1:
		return "*"
	case 2:
		return g.one("o.*", "orders.*", "* EXCLUDE (id)", "* REPLACE (id + 1 AS id)", "COLUMNS('i.*')", "COLUMNS(c -> c LIKE '%a%')", "* RENAME (id AS k)", "sum(COLUMNS('i.*'))")
	case 3:
		return g.aggregate()
	case 4:
		return g.window()
	case 5:
		return g.expr() + " AS " + g.one("id", "status", "total", "n", `"sum(id)"`)
	}
	return g.expr()
}

func (g *grammar) from() string {
	var b strings.Builder
	b.WriteString(g.relation())
	for range g.pick(3) {
		switch g.pick(5) {
		case 0:
			b.WriteString(", " + g.relation())
		case 1:
			b.WriteString(g.one(" JOIN ", " LEFT JOIN ", " FULL JOIN ", " SEMI JOIN ") + g.relation() + " ON " + g.expr())
		case 2:
			b.WriteString(g.one(" JOIN ", " LEFT JOIN ") + g.relation() + " USING (id)")
		case 3:
			b.WriteString(g.one(" NATURAL JOIN ", " CROSS JOIN ", " POSITIONAL JOIN ", " CROSS JOIN LATERAL ") + g.relation())
		case 4:
			b.WriteString(" LEFT JOIN (" + g.relation() + " CROSS JOIN " + g.relation() + ") ON true")
		}
	}
	return b.String()
}

func (g *grammar) relation() string {
	alias := g.one("", "", " o", " AS t(id, status)", ` "O"`, " TABLESAMPLE 10%")
	switch g.pick(14) {
	case 1:
		return g.one("customers", "products", "v_orders", "main.orders", "source.main.orders", "ORDERS", `"orders"`) + alias
	case 2: // not granted
		return g.one("salaries", "hr.salaries", "main.salaries", "audit_log", "v_pay", `"Order Summary"`, "HR.Salaries", "source.hr.salaries") + alias
	case 3: // files and the catalogue
		return g.one("'x.csv'", `"x.parquet"`, "x.csv", "sqlite_master", "information_schema.tables", "pg_catalog.pg_class", "duckdb_tables()", "glob('*')",
			"read_csv('x.csv')", "read_text('/etc/passwd')", "query('SELECT * FROM salaries')", "query_table('salaries')", "pragma_table_info('salaries')") + alias
	case 4:
		if len(g.ctes) > 0 {
			return g.ctes[g.pick(len(g.ctes))] + alias
		}
		return g.one("x", "y") + alias
	case 5, 6:
		return "(" + g.query() + ")" + g.one(" o", " AS t(id, status)", " AS t(id)", "")
	case 7:
		return g.one("range(3)", "generate_series(1, 3)", "unnest([1, 2])", "range(3) WITH ORDINALITY", "range(id)", "unnest([{'id': 1}])") + g.one("", " r(id)", " r(a, b)", " o")
	case 8:
		return g.one("(VALUES (1, 'a'), (2, 'b'))", "(VALUES (1))") + g.one(" v", " v(id, status)", " v(id)")
	case 9:
		return "(PIVOT " + g.one("orders", "salaries", "customers") + " ON " + g.one("status", "region") + " IN ('paid', 'open') USING " + g.aggregate() + g.one("", " GROUP BY id") + ") p"
	case 10:
		return "(UNPIVOT " + g.one("orders", "salaries") + " ON id, customer_id INTO NAME n VALUE v) u"
	}
	return "orders" + alias
}

func (g *grammar) column() string {
	return g.one("id", "id", "status", "total", "placed_at", "name", "o.id", "orders.id", "main.orders.total", "t.id", "source.main.orders.status", "customer_id", "tags", "attrs",
		"rowid", "o", "orders", "amount", "salaries.amount", "nope", `"ID"`, "current_date", "current_user", "user", "r.id", `"sum(id)"`)
}

func (g *grammar) literal() string {
	return g.one("1", "'a'", "NULL", "2.5", "1e3", "true", "DATE '2026-01-05'", "INTERVAL 1 DAY", "'%a%'", "[1, 2]", "{'a': 1}", "MAP {'a': 1}", "$1", "$$x$$", "E'a\\'b'", "'SELECT * FROM salaries'",
		"9223372036854775807", "-1", "x'ab'")
}

func (g *grammar) expr() string {
	if g.depth++; g.depth > 7 {
		g.depth--
		return "id"
	}
	defer func() { g.depth-- }()
	switch g.pick(17) {
	case 1, 2:
		return g.literal()
	case 3, 4:
		return "(" + g.expr() + " " + g.one("=", "<>", "<", "+", "-", "*", "/", "//", "%", "||", "AND", "OR", "LIKE", "ILIKE", "IS DISTINCT FROM", "~", "^", "->>", "[", "&") + " " + g.expr() + ")"
	case 5, 6:
		return g.one("lower", "upper", "length", "abs", "round", "coalesce", "concat", "strftime", "date_trunc", "list_value", "greatest", "nullif", "replace", "lpad", "repeat", "typeof", "hash", "md5",
			"list_sum", "regexp_replace", "json_extract", "array_to_string", "main.lower", "LOWER", `"lower"`) + "(" + g.args() + ")"
	case 7: // not allowed
		return g.one("random", "uuid", "pg_sleep", "current_setting", "getenv", "read_text", "nextval", "currval", "set_config", "json_execute_serialized_sql", "hr.lower", "system.main.version", "query",
			"write_log", "enable_logging", "checkpoint", "getvariable", "pg_read_file", "error", "now", "stats", "in_search_path", "txid_current", "current_schemas", "force_checkpoint") + "(" + g.args() + ")"
	case 8:
		return "CASE WHEN " + g.expr() + " THEN " + g.expr() + " ELSE " + g.expr() + " END"
	case 9:
		return "(" + g.query() + ")"
	case 10:
		return g.one("EXISTS (", "NOT EXISTS (", "ARRAY(", "id IN (", "id > ALL (", "id = ANY (") + g.query() + ")"
	case 11:
		return "CAST(" + g.expr() + " AS " + g.one("INTEGER", "VARCHAR", "DATE", "DECIMAL(9,2)", "STRUCT(a INTEGER)", "INTEGER[]", "JSON", "ENUM('a')", "salaries", "hr.salaries", "regclass", "BIGNUM", "TINYINT") + ")"
	case 12:
		return "list_transform([" + g.expr() + "], " + g.one("x -> ", "lambda x : ", "(x, i) -> ", "id -> ") + g.expr() + ")"
	case 13:
		return g.expr() + g.one(" IS NULL", " IS NOT NULL", " IN (1, 2)", " BETWEEN 1 AND 3", "::BIGINT", "[1]", "[1:2]", ".a", " COLLATE NOCASE", " AT TIME ZONE 'UTC'", " NOT IN (SELECT id FROM salaries)")
	case 14:
		return g.aggregate()
	}
	return g.column()
}

func (g *grammar) args() string {
	var out []string
	for range g.pick(4) {
		out = append(out, g.expr())
	}
	return strings.Join(out, ", ")
}

func (g *grammar) aggregate() string {
	call := g.one("sum", "count", "max", "list", "avg", "string_agg", "quantile_cont", "arg_max", "first", "mode", "histogram", "SUM") + "(" + g.one("", "DISTINCT ") + g.expr()
	if g.seldom(3) {
		call += ", " + g.expr()
	}
	if g.seldom(5) {
		call += " ORDER BY " + g.expr()
	}
	call += ")"
	if g.seldom(4) {
		call += " FILTER (WHERE " + g.expr() + ")"
	}
	return call
}

func (g *grammar) window() string {
	call := g.one("row_number()", "rank()", "lag("+g.expr()+")", "sum("+g.expr()+")", "ntile(2)", "first_value("+g.expr()+")", "count(*)", "nth_value(id, "+g.expr()+")")
	over := ""
	if g.seldom(2) {
		over = "PARTITION BY " + g.expr()
	}
	if g.seldom(2) {
		over += " ORDER BY " + g.expr()
		if g.seldom(2) {
			over += " ROWS BETWEEN " + strconv.Itoa(g.pick(3)) + " PRECEDING AND " + g.one("CURRENT ROW", g.expr()+" FOLLOWING")
		}
	}
	return call + " OVER (" + over + ")"
}
