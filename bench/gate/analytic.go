package main

import (
	"context"
	"errors"
	"time"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"sluice/bench/beside"
	"sluice/sqlguard"
)

// warehouse is the database of the query below.
const warehouse = `CREATE TABLE customers (id int PRIMARY KEY, name text, email text, region text, created_at timestamptz);
CREATE TABLE products (id int PRIMARY KEY, sku text, name text, category text, price numeric);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, placed_at timestamp, status text, total numeric);
CREATE TABLE order_items (id int PRIMARY KEY, order_id int REFERENCES orders, product_id int REFERENCES products, quantity int, unit_price numeric);`

// long is an analytic query of 19 lines: WITH, LATERAL, GROUPING SETS, windows.
const long = `WITH monthly AS (
  SELECT date_trunc('month', o.placed_at) AS month, c.region, p.category, sum(i.quantity) AS units,
         sum(i.quantity * i.unit_price) AS revenue, count(DISTINCT o.customer_id) AS buyers
  FROM orders o
  JOIN customers c ON c.id = o.customer_id
  JOIN order_items i ON i.order_id = o.id
  JOIN products p ON p.id = i.product_id
  WHERE o.status IN ('paid', 'shipped') AND o.placed_at >= DATE '2026-01-01'
  GROUP BY GROUPING SETS ((1, c.region, p.category), (1, c.region), ())
  HAVING sum(i.quantity) > 0
)
SELECT m.month, coalesce(m.region, 'all') AS region, m.category, m.units, round(m.revenue, 2) AS revenue, top.name, top.spent,
       m.revenue - lag(m.revenue) OVER w AS growth, rank() OVER (PARTITION BY m.month ORDER BY m.revenue DESC) AS place
FROM monthly m
LEFT JOIN LATERAL (SELECT c.name, sum(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id
                   WHERE c.region = m.region GROUP BY c.name ORDER BY 2 DESC LIMIT 1) top ON true
WHERE m.units > (SELECT avg(units) FROM monthly)
WINDOW w AS (PARTITION BY m.region, m.category ORDER BY m.month)
ORDER BY month, place LIMIT 50`

// analyticQuery is the time of the gate for a query that it sees for the first time, over that of the parser's library to read it
// and to write it, which checks nothing.
func analyticQuery(ctx context.Context, b *beside.Bench) (float64, error) {
	cat, err := sqlguard.PostgresSchema(warehouse)
	if err != nil {
		return 0, err
	}
	gate := sqlguard.New(sqlguard.Postgres, nil)
	req := sqlguard.Request{SQL: long, Database: "warehouse", Profile: sqlguard.ReadOnly, Catalog: cat, May: everything}
	check := func() error {
		a, err := gate.Check(ctx, req)
		if err == nil && a.SQL() == "" {
			err = errors.New("the gate gave no text")
		}
		return err
	}
	library := func() error {
		tree, err := pg_query.Parse(long)
		if err != nil {
			return err
		}
		_, err = pg_query.Deparse(tree)
		return err
	}
	// The sides take turns every few milliseconds, and a pair is the medians of its turns, so that what else the machine does
	// meets both, or neither.
	const turns, calls = 100, 4
	var ours, peers, ratios []float64
	for range b.Pairs {
		var took [2][]float64 // microseconds a call, ours and the library's
		for range turns {
			for side, f := range []func() error{check, library} {
				begin := time.Now()
				for range calls {
					if err := f(); err != nil {
						return 0, err
					}
				}
				took[side] = append(took[side], time.Since(begin).Seconds()*1e6/calls)
			}
		}
		us, peer := beside.Median(took[0]), beside.Median(took[1])
		ours, peers, ratios = append(ours, us), append(peers, peer), append(ratios, us/peer)
	}
	beside.Show("check and deparse", "us", ours)
	beside.Show("pg_query Parse, Deparse", "us", peers)
	return beside.Show("ratio of each pair", "", ratios), nil
}
