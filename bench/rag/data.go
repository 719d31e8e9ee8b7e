package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
)

const (
	dims     = 384
	chunks   = 50_000
	clusters = 500
	teams    = 100
	latent   = 32  // dimensions that the vectors really vary in
	spread   = 0.8 // length of a vector's own part beside its centre, of length 1
	noise    = 0.2 // length of what varies in all 384
)

// maker makes vectors.
type maker struct {
	rnd     *rand.Rand
	out     [][]float32 // directions in all dimensions that the latent ones point to
	centres [][]float32 // latent
}

func newMaker() *maker {
	m := &maker{rnd: rand.New(rand.NewPCG(20261130, 7))}
	for range latent {
		m.out = append(m.out, m.direction(dims))
	}
	for range clusters {
		m.centres = append(m.centres, m.direction(latent))
	}
	return m
}

func (m *maker) direction(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(m.rnd.NormFloat64())
	}
	return unit(v)
}

func (m *maker) vector() []float32 {
	centre, own, v := m.centres[m.rnd.IntN(clusters)], m.direction(latent), m.direction(dims)
	for i := range v {
		v[i] *= noise
	}
	for j := range latent {
		for i := range v {
			v[i] += (centre[j] + spread*own[j]) * m.out[j][i]
		}
	}
	return unit(v)
}

func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

func teamOf(i int) string { return fmt.Sprintf(`{"team":"t%d"}`, i%teams) }

// load puts the vectors into the product's own tables: one collection of them all, in the space all, and 100 of 1 % each, in
// the spaces behind it.
func load(ctx context.Context, c *pgx.Conn, m *maker, space int64) error {
	if _, err := c.Exec(ctx, `INSERT INTO sluice_rag.document (collection, id, title, source, format, text, metadata, hash, bytes, chunks, added_by, added_at)
  SELECT id, 'bench', '', '', 'text', '', '{}', '', 0, 0, '', now() FROM sluice_rag.collection`); err != nil {
		return err
	}
	var document, collection int64
	if err := c.QueryRow(ctx, "SELECT key, collection FROM sluice_rag.document WHERE id = 'bench'").Scan(&document, &collection); err != nil {
		return err
	}
	ids := make([]int64, chunks)
	if err := c.QueryRow(ctx, `WITH made AS (INSERT INTO sluice_rag.chunk (document, collection, heading, text, words)
  SELECT $1, $2, '', '', '' FROM generate_series(1, $3) RETURNING id) SELECT array_agg(id ORDER BY id) FROM made`, document, collection, chunks).Scan(&ids); err != nil {
		return err
	}
	i := 0
	if _, err := c.CopyFrom(ctx, pgx.Identifier{"sluice_rag", "vectors_384"}, []string{"chunk", "space", "metadata", "numbers"}, pgx.CopyFromFunc(func() ([]any, error) {
		if i == chunks {
			return nil, nil
		}
		row := []any{ids[i], space, teamOf(i), pgvector.NewHalfVector(m.vector())}
		i++
		return row, nil
	})); err != nil {
		return err
	}
	_, err := c.Exec(ctx, "ANALYZE sluice_rag.vectors_384")
	return err
}
