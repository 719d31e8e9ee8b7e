package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	pgxvec "github.com/pgvector/pgvector-go/pgx"

	"sluice/bench/beside"
	"sluice/rag/collection"
)

var server = flag.String("postgres", "", "URL of a superuser of a PostgreSQL with pgvector: a database of its own is made there, and dropped")

func main() {
	var all result
	var once error
	run := func(ctx context.Context) (err error) {
		if once == nil && all.asked == 0 {
			all, once = measure(ctx)
		}
		return once
	}
	beside.Main(nil, []beside.Scene{
		{Name: "rag.recall10", Run: func(ctx context.Context, _ *beside.Bench) (float64, error) { err := run(ctx); return all.recall, err }},
		{Name: "rag.p95_ms", Run: func(ctx context.Context, _ *beside.Bench) (float64, error) { err := run(ctx); return all.p95, err }},
	}, "rag.")
}

const (
	database  = "sluice_bench_rag"
	questions = 200
)

type result struct {
	asked       int
	recall, p95 float64
}

func measure(ctx context.Context) (out result, err error) {
	if *server == "" {
		return out, errors.New("-postgres is required")
	}
	own, err := ownDatabase(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, admin(ctx, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)")) }()
	store, err := collection.NewPostgres(own, nil)
	if err != nil {
		return out, err
	}
	defer store.Close()
	space, err := begin(ctx, store)
	if err != nil {
		return out, err
	}
	c, err := connect(ctx, own)
	if err != nil {
		return out, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	m := newMaker()
	start := time.Now()
	for _, sql := range []string{"DROP INDEX sluice_rag.vectors_384_near", "SET maintenance_work_mem = '512MB'"} { // built at once, it is the same index
		if _, err := c.Exec(ctx, sql); err != nil {
			return out, err
		}
	}
	if err := load(ctx, c, m, space.ID); err != nil {
		return out, err
	}
	loaded := time.Since(start)
	if _, err := c.Exec(ctx, "CREATE INDEX vectors_384_near ON sluice_rag.vectors_384 USING hnsw (numbers halfvec_cosine_ops)"); err != nil {
		return out, err
	}
	fmt.Printf("  %d vectors of %d numbers in %d clusters: loaded in %.0f s, index built in %.0f s\n", chunks, dims, clusters, loaded.Seconds(), (time.Since(start) - loaded).Seconds())
	var asked [][]float32
	for range questions {
		asked = append(asked, m.vector())
	}
	return compare(ctx, c, store, space, asked)
}

// begin makes the product's schema and tables, with one collection whose document has one chunk.
func begin(ctx context.Context, store *collection.Postgres) (collection.Space, error) {
	if err := store.Create(ctx, collection.Collection{Name: "bench", CreatedAt: time.Now()}); err != nil {
		return collection.Space{}, err
	}
	c, err := store.Collection(ctx, "bench")
	if err != nil {
		return collection.Space{}, err
	}
	first := make([]float32, dims)
	first[0] = 1
	_, _, err = store.Put(ctx, collection.Put{Collection: c.ID, Document: collection.Document{ID: "first", Format: collection.FormatText},
		Chunks: []collection.Chunk{{Text: "x", Vector: first}}, Space: collection.Space{Model: "bench", Dims: dims}})
	if err != nil {
		return collection.Space{}, err
	}
	if c, err = store.Collection(ctx, "bench"); err != nil {
		return collection.Space{}, err
	}
	return *c.Active, nil
}

func compare(ctx context.Context, c *pgx.Conn, store *collection.Postgres, space collection.Space, asked [][]float32) (out result, err error) {
	team := func(i int) []any { return []any{[]int64{space.ID}, limit, teamOf(i)} }
	sql := collection.NearestSQL(dims, true)
	truth, err := search(ctx, c, kind{sql: sql, args: team, settings: []string{collection.ExactSettings, "SET LOCAL enable_bitmapscan = off"}}, asked)
	if err != nil {
		return out, err
	}
	show("exact, the whole table read", truth, truth)
	// The index is taken, whatever the planner thinks: it would rather compare the 1 % that the filter keeps.
	index := []string{collection.ScanSettings, "SET LOCAL enable_bitmapscan = off"}
	for _, k := range []kind{
		{name: "HNSW as the product has it", settings: index},
		{name: "HNSW, 100 candidates a round", settings: append(index, "SET LOCAL hnsw.ef_search = 100")},
		{name: "HNSW without iterative_scan", settings: append(index, "SET LOCAL hnsw.iterative_scan = off")},
	} {
		k.sql, k.args = sql, team
		if _, err := search(ctx, c, k, asked[:20]); err != nil { // into the caches
			return out, err
		}
		got, err := search(ctx, c, k, asked)
		if err != nil {
			return out, err
		}
		show(k.name, got, truth)
		if out.asked == 0 {
			out = result{asked: questions, recall: recall(got, truth), p95: got.percentile(0.95)}
		}
	}
	product, err := throughStore(ctx, store, space, asked)
	if err != nil {
		return out, err
	}
	show("the product, which compares those 1 %", product, truth)
	return out, ownIndex(ctx, c, asked)
}

// throughStore is the same search by the product's code, which counts first, and compares one by one what a filter keeps of so
// few.
func throughStore(ctx context.Context, store *collection.Postgres, space collection.Space, asked [][]float32) (out measured, err error) {
	for i, q := range asked {
		start := time.Now()
		hits, err := store.Nearest(ctx, collection.Near{Spaces: []collection.Space{space}, Vector: q, Limit: limit, Filter: collection.Metadata{"team": fmt.Sprint("t", i%teams)}})
		if err != nil {
			return out, err
		}
		var ids []int64
		for _, h := range hits {
			ids = append(ids, h.Chunk)
		}
		out.hits, out.times = append(out.hits, ids), append(out.times, time.Since(start))
	}
	return out, nil
}

// ownIndex asks about one team with an index of its own, which a collection could have instead of its share of the common one.
func ownIndex(ctx context.Context, c *pgx.Conn, asked [][]float32) error {
	const one = `{"team":"t1"}`
	if _, err := c.Exec(ctx, `CREATE INDEX own ON sluice_rag.vectors_384 USING hnsw (numbers halfvec_cosine_ops) WHERE metadata @> '`+one+`'`); err != nil {
		return err
	}
	sql := `SELECT chunk, 0::float8 FROM sluice_rag.vectors_384 WHERE metadata @> '` + one + `' ORDER BY numbers <=> $1 LIMIT 10`
	none := func(int) []any { return nil }
	truth, err := search(ctx, c, kind{sql: sql, args: none, settings: []string{collection.ExactSettings}}, asked)
	if err != nil {
		return err
	}
	got, err := search(ctx, c, kind{sql: sql, args: none, settings: []string{collection.ScanSettings, "SET LOCAL enable_bitmapscan = off"}}, asked)
	if err != nil {
		return err
	}
	show("one team, an index of its own", got, truth)
	show("one team, its 500 compared", truth, truth)
	return nil
}

func show(name string, got, truth measured) {
	fmt.Printf("  %-36s recall %.3f  fewest hits %2d  median %6.2f ms  p95 %6.2f ms\n", name, recall(got, truth), got.fewest(), got.percentile(0.5), got.percentile(0.95))
}

func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	return c, pgxvec.RegisterTypes(ctx, c)
}

func admin(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, *server)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}

func ownDatabase(ctx context.Context) (string, error) {
	if err := errors.Join(admin(ctx, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)"), admin(ctx, "CREATE DATABASE "+database+" TEMPLATE template0")); err != nil {
		return "", err
	}
	u, err := url.Parse(*server)
	if err != nil {
		return "", errors.New("-postgres is no URL")
	}
	u.Path = "/" + database
	return u.String(), nil
}
