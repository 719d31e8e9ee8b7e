package agent

import (
	"strings"
	"testing"

	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

// TestMendingByWhatTheGateSays mends statements with the gate's own refusals, each until it passes.
func TestMendingByWhatTheGateSays(t *testing.T) {
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	m := mender{k: k, focus: k.Focus("customers, their orders, tickets and payments", ""), dialect: sqlguard.DuckDB}
	for name, row := range map[string]struct{ sql, want string }{
		"a column of another table in FROM": {
			"SELECT orders.city FROM orders JOIN customers ON orders.customer_id = customers.customer_id",
			"SELECT customers.city FROM orders JOIN customers ON orders.customer_id = customers.customer_id",
		},
		"an alias is kept": {
			"SELECT o.city FROM orders o JOIN customers AS c ON o.customer_id = c.customer_id",
			"SELECT c.city FROM orders o JOIN customers AS c ON o.customer_id = c.customer_id",
		},
		"a table's name where it has an alias": {
			"SELECT customers.city FROM customers c", "SELECT c.city FROM customers c",
		},
		"a column whose table is not in FROM": {
			"SELECT city, COUNT(*) FROM orders GROUP BY city",
			"SELECT customers.city, COUNT(*) FROM orders JOIN customers ON customers.customer_id = orders.customer_id GROUP BY customers.city",
		},
		"a table that is named and not in FROM": {
			"SELECT customers.city FROM orders WHERE orders.status = 'CANC'",
			"SELECT customers.city FROM orders JOIN customers ON customers.customer_id = orders.customer_id WHERE orders.status = 'CANC'",
		},
		"the same name twice, and an alias of that name": {
			"SELECT o.city AS city, COUNT(*) FROM orders o WHERE o.city <> 'Lyon' GROUP BY o.city ORDER BY city",
			"SELECT customers.city AS city, COUNT(*) FROM orders o JOIN customers ON customers.customer_id = o.customer_id WHERE customers.city <> 'Lyon' GROUP BY customers.city ORDER BY city",
		},
		"two joins away": {
			"SELECT p.product_name, customers.city FROM products p",
			"SELECT p.product_name, customers.city FROM products p JOIN order_items ON order_items.product_id = p.product_id JOIN orders ON orders.order_id = order_items.order_id JOIN customers ON customers.customer_id = orders.customer_id",
		},
		"a part of a name":  {"SELECT name FROM customers", "SELECT customers.full_name FROM customers"},
		"a slip of the pen": {"SELECT customers.ful_name FROM customers", "SELECT customers.full_name FROM customers"},
		"a table's name": {
			"SELECT customer.city FROM customer", "SELECT customers.city FROM customers",
		},
		"a column of two tables": {
			"SELECT order_id FROM orders JOIN order_items ON orders.order_id = order_items.order_id",
			"SELECT orders.order_id FROM orders JOIN order_items ON orders.order_id = order_items.order_id",
		},
		"a column that is not grouped by": {
			"SELECT tier, city, COUNT(*) FROM customers WHERE tier <> 'B' GROUP BY tier ORDER BY 3",
			"SELECT tier, city, COUNT(*) FROM customers WHERE tier <> 'B' GROUP BY tier, city ORDER BY 3",
		},
		"no grouping at all": {
			"SELECT city, COUNT(*) FROM customers ORDER BY 2", "SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY 2",
		},
		"inside of a subquery": {
			"SELECT full_name FROM customers WHERE customer_id IN (SELECT orders.customer_id FROM orders WHERE orders.amount > 5)",
			"SELECT full_name FROM customers WHERE customer_id IN (SELECT orders.customer_id FROM orders JOIN payments ON payments.order_id = orders.order_id WHERE payments.amount > 5)",
		},
		"a literal that looks like the column": {
			"SELECT orders.city FROM orders JOIN customers ON orders.customer_id = customers.customer_id WHERE customers.city = 'orders.city'",
			"SELECT customers.city FROM orders JOIN customers ON orders.customer_id = customers.customer_id WHERE customers.city = 'orders.city'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sql, passed := row.sql, false
			for range maxMends + 1 {
				_, err := src.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
				if passed = err == nil; passed {
					break
				}
				next, what, ok := m.refusal(sql, fault.Public(err))
				if !ok || what == "" {
					t.Fatalf("not mended: %s: %v", sql, err)
				}
				sql = next
			}
			if sql != row.want || !passed {
				t.Errorf("got  %s\nwant %s (passed: %t)", sql, row.want, passed)
			}
		})
	}
}

// TestWhatIsNotMended: where nothing is sure, the text stays.
func TestWhatIsNotMended(t *testing.T) {
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	m := mender{k: k, focus: k.Focus("customers", ""), dialect: sqlguard.DuckDB}
	for name, sql := range map[string]string{
		"a column of nothing":        "SELECT shoe_size FROM customers",
		"a syntax error":             "SELECT FROM WHERE",
		"a function":                 "SELECT nosuch(1) FROM customers",
		"dollar quotes":              "SELECT $$x$$, orders.city FROM orders",
		"an escape text":             "SELECT E'a\\'b', orders.city FROM orders",
		"a list of tables with join": "SELECT tickets.priority FROM customers, agents",
		"a write":                    "DELETE FROM customers",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := src.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
			if err == nil {
				t.Fatal("it passes")
			}
			if mended, what, ok := m.refusal(sql, fault.Public(err)); ok {
				t.Errorf("%s: %s", what, mended)
			}
		})
	}
}

// TestAHiddenTableIsNotJoined: mending knows only what the asker may read.
func TestAHiddenTableIsNotJoined(t *testing.T) {
	src := shopdesk(t)
	may := func(r sqlguard.Relation) bool { return r.Name != "customers" }
	k := knowledgeOf(t, src, may)
	m := mender{k: k, focus: k.Focus("orders by city", ""), dialect: sqlguard.DuckDB}
	const sql = "SELECT city FROM orders"
	_, err := src.Approve(t.Context(), sql, sqlguard.ReadOnly, may)
	if mended, what, ok := m.refusal(sql, fault.Public(err)); ok {
		t.Errorf("%s: %s", what, mended)
	}
}

func TestStoredSpellings(t *testing.T) {
	k := knowledgeOf(t, shopdesk(t), everything)
	m := mender{k: k, focus: rag.Focus{}, dialect: sqlguard.DuckDB}
	for name, row := range map[string]struct{ sql, want string }{
		"what the comment says":        {"SELECT COUNT(*) FROM orders WHERE status = 'cancelled'", "SELECT COUNT(*) FROM orders WHERE status = 'CANC'"},
		"in capitals":                  {"SELECT COUNT(*) FROM orders o WHERE o.status <> 'SHIPPED'", "SELECT COUNT(*) FROM orders o WHERE o.status <> 'SHIP'"},
		"in a list":                    {"SELECT COUNT(*) FROM orders WHERE status NOT IN ('Cancelled', 'DLVD', 'returned')", "SELECT COUNT(*) FROM orders WHERE status NOT IN ('CANC', 'DLVD', 'RTRN')"},
		"a number":                     {"SELECT COUNT(*) FROM tickets WHERE priority = 'urgent'", "SELECT COUNT(*) FROM tickets WHERE priority = 1"},
		"another case":                 {"SELECT COUNT(*) FROM agents WHERE agent_name = 'mira holt'", "SELECT COUNT(*) FROM agents WHERE agent_name = 'Mira Holt'"},
		"the table of the inner query": {"SELECT 1 FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE status = 'Delivered')", "SELECT 1 FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE status = 'DLVD')"},
		"a stored value stays":         {"SELECT COUNT(*) FROM orders WHERE status = 'CANC'", ""},
		"something else stays":         {"SELECT COUNT(*) FROM orders WHERE status = 'lost'", ""},
		"a pattern stays":              {"SELECT COUNT(*) FROM orders WHERE status LIKE 'cancelled'", ""},
		"a text of no column stays":    {"SELECT 'cancelled' FROM orders", ""},
		"a date stays":                 {"SELECT COUNT(*) FROM orders WHERE ordered_at > '2024-01-01'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, what, ok := m.values(row.sql)
			if got != row.want || ok != (row.want != "") || ok == (what == "") {
				t.Errorf("got %q (%s), want %q", got, what, row.want)
			}
		})
	}
}

// TestTokensCoverTheText: the tokens and what is between them are the text, and nothing else than blanks and comments is
// between them.
func TestTokensCoverTheText(t *testing.T) {
	for _, sql := range []string{
		"SELECT 'it''s', \"a\"\"b\" /* x */ FROM t -- 'y\nWHERE a>=1.5e3 AND b::text <> 'é'",
		"SELECT a.b.c, [1, 2][1], {'k': 1} FROM (SELECT 1) AS s(x)",
	} {
		ts, ok := tokens(sql)
		if !ok {
			t.Fatalf("not read: %s", sql)
		}
		at := 0
		for _, x := range ts {
			if between := sql[at:x.start]; strings.TrimSpace(between) != "" && !strings.Contains(between, "/*") && !strings.Contains(between, "--") {
				t.Errorf("%q is in no token of %s", between, sql)
			}
			if sql[x.start:x.end] != x.text {
				t.Errorf("%q is not at its place", x.text)
			}
			at = x.end
		}
	}
	for _, sql := range []string{"SELECT (", "SELECT )", "SELECT 'a", `SELECT "`, "SELECT $1", "SELECT /* x", "SELECT U&'x'"} {
		if _, ok := tokens(sql); ok {
			t.Errorf("read: %s", sql)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"SELECT 'a''b' FROM \"t\" -- x", "a.b(c) /* d */ >= 1", "'", "((", "é\"\"", "SELECT a FROM b JOIN c ON a.x = c.y WHERE z IN (SELECT 1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		ts, ok := tokens(sql)
		if !ok {
			return
		}
		at := 0
		for _, x := range ts {
			if x.start < at || x.end <= x.start || x.end > len(sql) {
				t.Fatalf("%q: a token from %d to %d", sql, x.start, x.end)
			}
			at = x.end
		}
		for _, b := range blocks(ts) {
			if b.from < 0 || b.to > len(ts) || b.to < b.from || b.at["FROM"] > 0 && b.end("FROM") > b.to {
				t.Fatalf("%q: a block %+v", sql, b)
			}
		}
	})
}
