package agent

import (
	"slices"
	"strings"
	"testing"
)

// looking gives an ask that has come as far as its focus.
func looking(t testing.TB, question string) *ask {
	t.Helper()
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	return &ask{agent: newAgent(t, Config{Completer: writes("")}), src: src, q: Ask{Who: admin(), Question: question}, may: everything, known: k, focus: k.Focus(question, "")}
}

// TestWhatSpeaksAgainstAStatement: each has what it says, and the same question's right statement has nothing.
func TestWhatSpeaksAgainstAStatement(t *testing.T) {
	const join = " FROM orders JOIN payments ON payments.order_id = orders.order_id"
	for name, row := range map[string]struct{ question, sql, want string }{
		"a filter of the model's own": {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon' AND tier = 'G'", "the question does not name 'G'"},
		"the same, by LIKE":           {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon' AND full_name LIKE 'Ada%'", "the question does not name 'Ada%'"},
		"a value is not used":         {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers", "it does not use 'Lyon'"},
		"a number is not used":        {"Which orders have more than 3 items?", "SELECT order_id FROM order_items GROUP BY order_id HAVING COUNT(*) > 2", "it does not use 3"},
		"a number in words":           {"Which orders have more than three items?", "SELECT order_id FROM order_items GROUP BY order_id HAVING COUNT(*) > 2", "it does not use 3"},
		"a condition on itself":       {"Which orders were paid?", "SELECT o.order_id FROM orders o JOIN payments p ON o.order_id = o.order_id", "it compares order_id with itself"},
		"tables without a condition":  {"Which orders were paid?", "SELECT o.order_id, p.amount FROM orders o, payments p", "not all tables in FROM are joined"},
		"joined by other columns":     {"Which orders were paid?", "SELECT o.order_id, p.amount FROM orders o JOIN payments p ON o.order_id = p.payment_id", "are joined by other columns"},
		"columns that are not kin":    {"What did agents and products cost?", "SELECT a.agent_name, p.cost_price FROM agents a JOIN products p ON a.agent_id = p.product_id", "does not refer to"},
		"a table that does nothing":   {"Which amounts came by paypal?", "SELECT payments.amount FROM payments JOIN orders ON orders.order_id = payments.order_id WHERE payments.method = 'paypal'", "nothing of orders is used"},
		"no average":                  {"What is the average amount of payments?", "SELECT amount FROM payments", "it gives no average"},
		"no count":                    {"How many payments are there?", "SELECT payment_id FROM payments", "it counts nothing"},
		"no ratio":                    {"What is the ratio of gold customers to silver customers?", "SELECT COUNT(*) FROM customers WHERE tier IN ('G', 'S')", "it gives no ratio"},
		"no extreme":                  {"Which payment has the highest amount?", "SELECT payment_id, amount FROM payments", "it takes no extreme"},
		"a table beside the question": {"How many payments are there?", "SELECT COUNT(*) FROM tickets", "payments is not used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := looking(t, row.question).doubtsOf(row.sql)
			if !slices.ContainsFunc(got, func(d doubt) bool { return strings.Contains(d.why, row.want) && d.weight > 0 }) {
				t.Errorf("got %+v", got)
			}
		})
	}
	for question, sql := range map[string]string{
		"How many customers are there in Lyon?":                          "SELECT COUNT(*) FROM customers WHERE city = 'Lyon'",
		"How many gold customers are there?":                             "SELECT COUNT(*) FROM customers WHERE tier = 'G'",
		"Which orders have more than three items?":                       "SELECT order_id FROM order_items GROUP BY order_id HAVING COUNT(*) > 3",
		"What is the average amount of payments from customers in Lyon?": "SELECT AVG(p.amount)" + strings.NewReplacer("payments ON payments.", "payments p ON p.").Replace(join) + " JOIN customers ON customers.customer_id = orders.customer_id WHERE customers.city = 'Lyon'",
		"Which payment has the highest amount?":                          "SELECT payment_id FROM payments ORDER BY amount DESC LIMIT 1",
		"What is the ratio of gold customers to silver customers?":       "SELECT SUM(CASE WHEN tier = 'G' THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN tier = 'S' THEN 1 ELSE 0 END) FROM customers",
		"How many customers have no order?":                              "SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)",
	} {
		if got := looking(t, question).doubtsOf(sql); slices.ContainsFunc(got, func(d doubt) bool { return d.weight >= likely }) || len(got) > 1 {
			t.Errorf("%s\n%s\ngot %+v", question, sql, got)
		}
	}
	if got := looking(t, "How many payments are there?").doubtsOf("SELECT $$ FROM ("); got != nil {
		t.Errorf("a text that cannot be read: %+v", got)
	}
}

// TestPruning: what speaks against a statement and can be left out is left out, and the statement stays whole.
func TestPruning(t *testing.T) {
	for name, row := range map[string]struct{ question, sql, want string }{
		"the last condition":  {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon' AND tier = 'G'", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon'"},
		"the first one":       {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE tier = 'G' AND city = 'Lyon'", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon'"},
		"the only one":        {"How many customers are there?", "SELECT COUNT(*) FROM customers WHERE tier = 'G'", "SELECT COUNT(*) FROM customers "},
		"two of them":         {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE tier = 'G' AND city = 'Lyon' AND country_code = 'SE'", "SELECT COUNT(*) FROM customers WHERE city = 'Lyon'"},
		"BETWEEN has its AND": {"How many customers are there?", "SELECT COUNT(*) FROM customers WHERE signup_date BETWEEN DATE '2022-01-01' AND DATE '2022-12-31' AND tier = 'G'", "SELECT COUNT(*) FROM customers WHERE signup_date BETWEEN DATE '2022-01-01' AND DATE '2022-12-31'"},
		"not where OR is":     {"How many customers are there in Lyon?", "SELECT COUNT(*) FROM customers WHERE tier = 'G' OR city = 'Lyon'", ""},
		"a join that does nothing": {"Which amounts came by paypal?", "SELECT payments.amount FROM payments JOIN orders ON orders.order_id = payments.order_id WHERE payments.method = 'paypal'",
			"SELECT payments.amount FROM payments  WHERE payments.method = 'paypal'"},
		"one in the middle, when it is last": {"Which amounts came by paypal?", "SELECT payments.amount FROM payments INNER JOIN orders ON orders.order_id = payments.order_id INNER JOIN customers ON customers.customer_id = orders.customer_id WHERE payments.method = 'paypal'",
			"SELECT payments.amount FROM payments   WHERE payments.method = 'paypal'"},
		"nothing": {"How many payments are there?", "SELECT COUNT(*) FROM payments", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := looking(t, row.question)
			got, ok := k.pruned(row.sql, k.doubtsOf(row.sql))
			if ok != (row.want != "") || ok && strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(row.want), " ") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

// TestAPrunedStatementTakesThePlaceOfTheOther, and a join by the wrong columns is made anew over the known ones.
func TestAPrunedStatementTakesThePlaceOfTheOther(t *testing.T) {
	ans := askDesk(t, Config{}, &play{answers: [][]string{{"SELECT COUNT(*) AS n FROM payments WHERE method = 'paypal' AND amount > 0 AND order_id IN (SELECT order_id FROM orders WHERE status = 'CANC')"}, {paypal, paypal}}},
		Ask{Question: "How many payments came by paypal?"})
	want := askDesk(t, Config{}, &play{answers: [][]string{{paypal}}}, Ask{Question: "How many payments came by paypal?"})
	if ans.Text != want.Text || ans.Outcome != Answered {
		t.Errorf("got %+v", ans)
	}
	ans = askDesk(t, Config{}, &play{answers: [][]string{{"SELECT SUM(p.amount) AS n FROM payments p JOIN orders o ON o.order_id = p.payment_id JOIN customers c ON c.customer_id = o.customer_id WHERE c.city = 'Lyon'"}}},
		Ask{Question: "What is the total amount from customers in Lyon?"})
	right := askDesk(t, Config{}, &play{answers: [][]string{{"SELECT SUM(p.amount) AS n FROM payments p JOIN orders o ON o.order_id = p.order_id JOIN customers c ON c.customer_id = o.customer_id WHERE c.city = 'Lyon'"}}},
		Ask{Question: "What is the total amount from customers in Lyon?"})
	if ans.Text != right.Text || ans.Candidates[0].Mended == "" || right.Candidates[0].Mended != "" {
		t.Errorf("got %+v\nwant %+v", ans, right)
	}
}

// TestLittleThatSpeaksAgainstAStatementSavesCalls: a statement without doubts is the answer; others are asked for else.
func TestLittleThatSpeaksAgainstAStatementSavesCalls(t *testing.T) {
	if ans := askDesk(t, Config{}, &play{answers: [][]string{{paypal}}}, Ask{Question: "How many payments came by paypal?"}); ans.ModelCalls != 1 {
		t.Errorf("%+v", ans)
	}
	for name, first := range map[string]string{
		"found nothing":     "SELECT COUNT(*) AS n FROM payments WHERE method = 'paypal' AND amount < 0",
		"not what is asked": "SELECT payment_id FROM payments WHERE method = 'paypal'",
	} {
		ans := askDesk(t, Config{}, &play{answers: [][]string{{first}, {paypal, paypal}}}, Ask{Question: "How many payments came by paypal?"})
		if ans.ModelCalls != 2 || ans.Written != paypal {
			t.Errorf("%s: %+v", name, ans)
		}
	}
	if ans := askDesk(t, Config{}, &play{answers: [][]string{{transfers}}}, Ask{Question: "How many payments came by paypal?"}); ans.ModelCalls != 1 || ans.Written != paypal {
		t.Errorf("another value than the one that is named: %+v", ans)
	}
}

// FuzzLookingOver: no text breaks it, and what it leaves out leaves a text that can be looked over again.
func FuzzLookingOver(f *testing.F) {
	for _, sql := range []string{
		"SELECT COUNT(*) FROM customers WHERE tier = 'G' AND city = 'Lyon'", "SELECT a FROM b JOIN c ON d = 'x' AND WHERE e = 'y' AND", "SELECT FROM WHERE AND", "SELECT x FROM a JOIN", "JOIN a ON a.b = a.b",
		"SELECT o.order_id FROM orders o JOIN payments p ON o.order_id = p.payment_id LEFT JOIN tickets ON tickets.order_id = o.order_id WHERE p.method IN ('a', 'b') AND NOT o.status LIKE '%q'",
		"SELECT 1 FROM (SELECT * FROM orders WHERE status = 'x') q, customers WHERE city = 'y' AND (tier = 'z' OR tier = 'w') GROUP BY 1 HAVING COUNT(*) > 2 ORDER BY 1 LIMIT 3",
		`SELECT "a""b"."c" FROM "a""b" WHERE "c" BETWEEN 'x' AND 'y' AND "c" = 'z'`, "SELECT a.b.c.d FROM a.b.c AS d WHERE = 'x'", "'", "(", "SELECT \xff FROM \x00",
	} {
		f.Add(sql)
	}
	k := looking(f, "How many gold customers in Lyon have more than 3 orders?")
	f.Fuzz(func(t *testing.T, sql string) {
		if less, ok := k.pruned(sql, k.doubtsOf(sql)); ok && len(less) > len(sql)+1000 {
			t.Errorf("%q became %q", sql, less)
		}
	})
}
