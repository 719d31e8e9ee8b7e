package main

import (
	"fmt"
	"strings"

	"sluice/bench/beside"
)

var subjects = []string{"a river", "an old clock", "a lighthouse", "a train at night", "a market in spring", "a mountain village", "a letter", "a ship's cook", "the first snow", "a violin"}

// story asks for a text that is longer than anybody waits for. Each number gives another prompt.
func story(i int) string {
	return beside.ChatML(fmt.Sprintf("Story number %d. Write a long story about %s. Do not stop before the end.", i, subjects[i%len(subjects)]))
}

// storySmol is for a base prompt that any model goes on with.
func storySmol(i int) string {
	return fmt.Sprintf("<|im_start|>user\nWrite a long story about %s, number %d.<|im_end|>\n<|im_start|>assistant\n", subjects[i%len(subjects)], i)
}

var (
	nouns   = []string{"customer", "order", "product", "invoice", "store", "supplier", "payment", "shipment", "employee", "review"}
	columns = []string{"id", "name", "city", "created_at", "amount", "status", "country", "email", "price", "quantity", "discount", "comment", "region", "category"}
)

func tableName(i int) string {
	if i < len(nouns) {
		return nouns[i]
	}
	return fmt.Sprintf("%s_%d", nouns[i%len(nouns)], i/len(nouns))
}

// schemaText is a schema card of some tables, about 35 tokens for each dozen columns.
func schemaText(tables, each int) string {
	var b strings.Builder
	for i := range tables {
		fmt.Fprintf(&b, "%s(%s)\n", tableName(i), strings.Join(columns[:each], ", "))
	}
	return b.String()
}

// tablesSchema is a JSON schema that names one of the tables and any of their columns.
func tablesSchema(tables, each int) map[string]any {
	var names, cols []string
	for i := range tables {
		names = append(names, tableName(i))
		for _, c := range columns[:each] {
			cols = append(cols, tableName(i)+"."+c)
		}
	}
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"columns": map[string]any{"type": "array", "items": map[string]any{"enum": cols}, "minItems": 5},
			"table":   map[string]any{"enum": names},
		},
		"required": []string{"columns", "table"},
	}
}

func tablesQuestion(i int) string {
	return fmt.Sprintf("Tables:\n%s\nWhich columns answer this question, as JSON {\"columns\": [\"table.column\", ...], \"table\": \"...\"}: name, city, amount, price, email, country and status of %s number %d?",
		schemaText(6, 14), nouns[i%6], i)
}

// repairs are prompts with a failing statement and its error: the answer repeats most of the statement.
func repairs() []string {
	var out []string
	for _, row := range [][2]string{
		{"SELECT customer.name, customer.city, sum(orders.amount) AS total FROM customer JOIN orders ON orders.customer_id = customer.id WHERE customer.country = 'DE' GROUP BY customer.name ORDER BY total DESC LIMIT 10;", "column \"customer.city\" must appear in the GROUP BY clause"},
		{"SELECT product.name, product.category, avg(review.stars) AS average FROM product JOIN review ON review.product = product.id GROUP BY product.name, product.category HAVING count(*) > 5 ORDER BY average DESC;", "column review.product does not exist, did you mean review.product_id"},
		{"SELECT store.region, store.name, count(*) AS shipments FROM store LEFT JOIN shipment ON shipment.store_id = store.id WHERE shipment.created_at >= '2024-01-01' AND shipment.status = 'late' GROUP BY store.region, store.nam ORDER BY shipments DESC LIMIT 20;", "column store.nam does not exist"},
		{"SELECT employee.name, employee.email, sum(invoice.amout) AS revenue FROM employee JOIN invoice ON invoice.employee_id = employee.id WHERE invoice.status = 'paid' GROUP BY employee.name, employee.email ORDER BY revenue DESC LIMIT 5;", "column invoice.amout does not exist, did you mean invoice.amount"},
		{"SELECT supplier.name, supplier.country, min(product.price) AS cheapest, max(product.price) AS dearest FROM suplier JOIN product ON product.supplier_id = supplier.id GROUP BY supplier.name, supplier.country ORDER BY dearest DESC;", "relation \"suplier\" does not exist"},
	} {
		out = append(out, beside.ChatML("This PostgreSQL statement fails:\n"+row[0]+"\nError: "+row[1]+"\nAnswer with the corrected statement only, nothing else.")+"```sql\n")
	}
	return out
}

// elsewhere are prompts whose answers repeat little: first statements and prose. Each has one plain greedy text on this model: of some
// prompts, such as story(7), it changes with the size of the batches that the prompt is read in, and proves nothing.
func elsewhere() []string {
	ask := "Tables:\n" + schemaText(6, 10) + "\nWrite one PostgreSQL statement, and nothing else: "
	return []string{
		beside.ChatML(ask + "the ten customers with the highest total of orders, with their city."),
		beside.ChatML(ask + "the average price of products by category, the dearest first, only categories with over 5 products."),
		beside.ChatML(ask + "for each month the number of invoices and their sum."),
		story(3), story(4),
	}
}
