package collection

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	pgvec "github.com/pgvector/pgvector-go"
)

// ScanSettings has HNSW searched, for one transaction.
//
// An HNSW scan looks at hnsw.ef_search candidates and stops; what a filter leaves of them may be fewer rows than were asked
// for, or none. hnsw.iterative_scan goes on, in the order of distance, until there are enough or hnsw.max_scan_tuples were
// looked at. strict_order drops what turns up too late to be in order, so that each round must be large: of the ten nearest of
// 1 % of 50,000 vectors, 100 candidates a round found 92 %, 400 find 96 % in the same time (make bench-rag).
// Sorting is off because the planner guesses how many rows a filter on metadata keeps, and often wrongly: Nearest has counted.
const ScanSettings = `SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '400', true),
  set_config('hnsw.max_scan_tuples', '20000', true), set_config('hnsw.scan_mem_multiplier', '4', true), set_config('enable_sort', 'off', true)`

// ExactSettings has all vectors that the filters keep compared, for one transaction.
const ExactSettings = `SELECT set_config('enable_indexscan', 'off', true)`

// few is up to how many vectors are compared one by one, which is exact and takes some 5 ms. Of a filter that keeps few of
// many, an HNSW scan would look at nearly all of the graph for less.
const few = 10_000

// NearestSQL is the statement with the arguments vector, spaces, limit and, filtered, metadata as JSON text: the shape that
// pgvector's index can be used for, ordered by the distance alone, and all filters beside it.
func NearestSQL(dims int, filtered bool) string {
	return "SELECT chunk, 1 - (numbers <=> $1) FROM " + vectorsOf(dims) + " WHERE " + within("$2", "$4", filtered) + " ORDER BY numbers <=> $1 LIMIT $3"
}

func within(spaces, metadata string, filtered bool) string {
	where := "space = ANY(" + spaces + ")"
	if filtered {
		where += " AND metadata @> " + metadata + "::text::jsonb"
	}
	return where
}

// Nearest compares all vectors that the filters keep where they are few, and asks the index where they are many.
func (p *Postgres) Nearest(ctx context.Context, q Near) (out []Hit, err error) {
	ids := make([]int64, len(q.Spaces))
	for i, s := range q.Spaces {
		ids[i] = s.ID
	}
	dims, filtered := len(q.Vector), len(q.Filter) > 0
	args, counted := []any{pgvec.NewHalfVector(q.Vector), ids, q.Limit}, []any{ids, p.few + 1}
	if filtered {
		args, counted = append(args, q.Filter.text()), append(counted, q.Filter.text())
	}
	err = p.read(ctx, func(tx pgx.Tx) error {
		var n int64
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+vectorsOf(dims)+" WHERE "+within("$1", "$3", filtered)+" LIMIT $2) AS first", counted...).Scan(&n); err != nil {
			return err
		}
		if n > p.few {
			if _, err := tx.Exec(ctx, ScanSettings); err != nil {
				return err
			}
			if out, err = hitsPostgres(ctx, tx, NearestSQL(dims, filtered), args...); err != nil || len(out) == q.Limit {
				return err
			}
			// The index gave up before it had enough: without it nothing is overlooked.
			if _, err := tx.Exec(ctx, "SELECT set_config('enable_sort', 'on', true)"); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, ExactSettings); err != nil {
			return err
		}
		out, err = hitsPostgres(ctx, tx, NearestSQL(dims, filtered), args...)
		return err
	})
	return out, err
}

func hitsPostgres(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]Hit, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (h Hit, err error) {
		err = r.Scan(&h.Chunk, &h.Score)
		return h, err
	})
}

// Matching ranks by cover density: how often, and how near to each other, the terms stand. A long passage does not win by its
// length (1: divided by the logarithm of it).
func (p *Postgres) Matching(ctx context.Context, q Words) (out []Hit, err error) {
	query := "'" + strings.Join(q.Terms, "' | '") + "'"
	sql := `SELECT k.id, ts_rank_cd(k.words, $1::text::tsquery, 1)::float8 AS score FROM sluice_rag.chunk k `
	where := "WHERE k.collection = ANY($2) AND k.words @@ $1::text::tsquery "
	args := []any{query, q.Collections, q.Limit}
	if len(q.Filter) > 0 {
		sql += "JOIN sluice_rag.document d ON d.key = k.document "
		where += "AND d.metadata @> $4::text::jsonb "
		args = append(args, q.Filter.text())
	}
	err = p.read(ctx, func(tx pgx.Tx) error {
		out, err = hitsPostgres(ctx, tx, sql+where+"ORDER BY score DESC, k.id LIMIT $3", args...)
		return err
	})
	return out, err
}

func (p *Postgres) Passages(ctx context.Context, chunks []int64) (map[int64]Passage, error) {
	out := map[int64]Passage{}
	if len(chunks) == 0 {
		return out, nil
	}
	err := p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT k.id, c.name, d.id, d.title, k.heading, k.text, d.source, d.metadata::text
  FROM sluice_rag.chunk k JOIN sluice_rag.document d ON d.key = k.document JOIN sluice_rag.collection c ON c.id = k.collection WHERE k.id = ANY($1)`, chunks)
		if err != nil {
			return err
		}
		var id int64
		var found Passage
		var metadata string
		_, err = pgx.ForEachRow(rows, []any{&id, &found.Collection, &found.Document, &found.Title, &found.Heading, &found.Text, &found.Source, &metadata}, func() error {
			p := found
			p.Metadata = parseMetadata(metadata)
			out[id] = p
			return nil
		})
		return err
	})
	return out, err
}
