package main

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
)

// kind is a way to search, as settings of one transaction.
type kind struct {
	name     string
	sql      string
	settings []string                 // statements
	args     func(question int) []any // behind the vector
}

// measured are the answers to all questions.
type measured struct {
	hits  [][]int64
	times []time.Duration
}

const limit = 10

// search asks every question in a transaction of its own, as the product does. The clock runs from the transaction's begin to
// its end.
func search(ctx context.Context, c *pgx.Conn, k kind, questions [][]float32) (out measured, err error) {
	for i, q := range questions {
		start := time.Now()
		err := pgx.BeginTxFunc(ctx, c, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			for _, s := range k.settings {
				if _, err := tx.Exec(ctx, s); err != nil {
					return err
				}
			}
			rows, err := tx.Query(ctx, k.sql, append([]any{pgvector.NewHalfVector(q)}, k.args(i)...)...)
			if err != nil {
				return err
			}
			hits, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (id int64, err error) {
				var score float64
				err = r.Scan(&id, &score)
				return id, err
			})
			out.hits = append(out.hits, hits)
			return err
		})
		if err != nil {
			return out, err
		}
		out.times = append(out.times, time.Since(start))
	}
	return out, nil
}

// recall is the share of the exact hits that are among the found, on average over the questions.
func recall(found, exact measured) float64 {
	sum := 0.0
	for i, want := range exact.hits {
		n := 0
		for _, id := range want {
			if slices.Contains(found.hits[i], id) {
				n++
			}
		}
		sum += float64(n) / float64(len(want))
	}
	return sum / float64(len(exact.hits))
}

// fewest is the smallest number of hits that a question got.
func (m measured) fewest() int {
	least := limit
	for _, h := range m.hits {
		least = min(least, len(h))
	}
	return least
}

// percentile gives milliseconds.
func (m measured) percentile(p float64) float64 {
	sorted := slices.Sorted(slices.Values(m.times))
	return float64(sorted[int(p*float64(len(sorted)-1))].Microseconds()) / 1000
}
