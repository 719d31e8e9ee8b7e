package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sluice/bench/beside"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// shop is a read-only database with a few tables.
func shop(ctx context.Context, b *beside.Bench) (*database.Source, error) {
	path := filepath.Join(b.Dir, fmt.Sprintf("shop-%d.duckdb", time.Now().UnixNano()))
	err := database.CreateFile(ctx, path, `CREATE TABLE customers (id INTEGER, name VARCHAR, region VARCHAR); CREATE TABLE products (id INTEGER, name VARCHAR, category VARCHAR);
		CREATE TABLE orders (id INTEGER, customer_id INTEGER, placed_at TIMESTAMP, status VARCHAR, total DECIMAL(18,2));
		CREATE TABLE order_items (id INTEGER, order_id INTEGER, product_id INTEGER, quantity INTEGER, unit_price DECIMAL(18,2))`)
	if err != nil {
		return nil, err
	}
	return database.Open(ctx, database.Config{Name: "shop", Path: path}, nil)
}

// analytic is a question as people and models write it.
const analytic = `WITH monthly AS (
  SELECT date_trunc('month', o.placed_at) AS month,
         c.region,
         p.category,
         sum(i.quantity) AS units,
         sum(i.quantity * i.unit_price) AS revenue
  FROM orders o
  JOIN customers c ON c.id = o.customer_id
  JOIN order_items i ON i.order_id = o.id
  JOIN products p ON p.id = i.product_id
  WHERE o.status = 'paid' AND o.placed_at >= DATE '2026-01-01'
  GROUP BY 1, 2, 3
)
SELECT month, region, category, units, revenue,
       lag(revenue) OVER (PARTITION BY region, category ORDER BY month) AS before,
       rank() OVER (PARTITION BY month ORDER BY revenue DESC) AS place
FROM monthly
WHERE units > (SELECT avg(units) FROM monthly)
ORDER BY month, place LIMIT 50`

func everything(sqlguard.Relation) bool { return true }

// repeated is how many microseconds the gate takes for a statement that it let through before.
func repeated(ctx context.Context, b *beside.Bench) (float64, error) {
	s, err := shop(ctx, b)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	begin := time.Now()
	first, err := s.Approve(ctx, analytic, sqlguard.ReadOnly, everything)
	if err != nil {
		return 0, err
	}
	fmt.Printf("  the first time: %.1f ms\n", time.Since(begin).Seconds()*1e3)
	const times = 10_000
	var each []float64
	for range b.Pairs {
		begin := time.Now()
		for range times {
			again, err := s.Approve(ctx, analytic, sqlguard.ReadOnly, everything)
			if err != nil || again.SQL() != first.SQL() {
				return 0, errors.Join(err, errors.New("the second answer is another"))
			}
		}
		each = append(each, time.Since(begin).Seconds()*1e6/times)
	}
	return beside.Show("a statement again", "us", each), nil
}

// huge is how many milliseconds the gate takes to refuse 1 MB.
func huge(ctx context.Context, b *beside.Bench) (float64, error) {
	s, err := shop(ctx, b)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	sql := "SELECT 1" + strings.Repeat(" + 1", 1<<18)
	var each []float64
	for range b.Pairs {
		begin := time.Now()
		_, err := sqlguard.Classify(sql)
		if err == nil {
			_, err = s.Approve(ctx, sql, sqlguard.ReadOnly, everything)
		}
		each = append(each, time.Since(begin).Seconds()*1e3)
		if fault.CodeOf(err) != fault.Refused {
			return 0, fmt.Errorf("1 MB gave %v", err)
		}
	}
	return beside.Show("1 MB refused", "ms", each), nil
}
