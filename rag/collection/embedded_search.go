package collection

import (
	"context"
	"encoding/json"
	"strings"

	"sluice/database/duckdb"
	"sluice/fault"
)

// Nearest compares every vector of the spaces. They all have length 1, so the product is the cosine.
func (e *Embedded) Nearest(ctx context.Context, q Near) ([]Hit, error) {
	vector, err := json.Marshal(q.Vector)
	if err != nil {
		return nil, fault.Bug("collection: a vector has no JSON: %v", err)
	}
	ids := make([]int64, len(q.Spaces))
	for i, s := range q.Spaces {
		ids[i] = s.ID
	}
	return e.hits(ctx, func(tx duckdb.Tx) ([][]*string, error) {
		return tx.Query(`SELECT v.chunk::VARCHAR, list_inner_product(v.numbers, ?::FLOAT[])::VARCHAR FROM vector v
  WHERE v.space IN (SELECT unnest(string_split(?, ','))::BIGINT) AND (? = '{}' OR v.chunk IN
    (SELECT k.id FROM chunk k JOIN document d ON d.key = k.document WHERE json_contains(d.metadata, ?)))
  ORDER BY list_inner_product(v.numbers, ?::FLOAT[]) DESC, v.chunk LIMIT ?::BIGINT`,
			string(vector), list(ids), q.Filter.text(), q.Filter.text(), string(vector), number(int64(q.Limit)))
	})
}

// Matching ranks by BM25 (Robertson and Zaragoza 2009; k1 = 1.2, b = 0.75, idf as Lucene has it, never negative). How rare a
// term is counts among the chunks that are searched only, so that nothing shows of collections that the asker may not read.
func (e *Embedded) Matching(ctx context.Context, q Words) ([]Hit, error) {
	return e.hits(ctx, func(tx duckdb.Tx) ([][]*string, error) {
		return tx.Query(`WITH scope AS (
    SELECT k.id, k.words FROM chunk k WHERE k.collection IN (SELECT unnest(string_split(?, ','))::BIGINT) AND
      (? = '{}' OR k.document IN (SELECT d.key FROM document d WHERE json_contains(d.metadata, ?)))),
  size AS (SELECT count(*) AS n, greatest(avg(words), 1) AS length FROM scope),
  hit AS (SELECT t.chunk, t.term, t.n, s.words FROM term t JOIN scope s ON s.id = t.chunk WHERE t.term IN (SELECT unnest(string_split(?, ' ')))),
  rare AS (SELECT term, count(*) AS df FROM hit GROUP BY term)
  SELECT h.chunk::VARCHAR, sum(ln(1 + (z.n - r.df + 0.5) / (r.df + 0.5)) * h.n * 2.2 / (h.n + 1.2 * (0.25 + 0.75 * h.words / z.length)))::VARCHAR AS score
  FROM hit h JOIN rare r USING (term), size z GROUP BY h.chunk ORDER BY score::DOUBLE DESC, h.chunk LIMIT ?::BIGINT`,
			list(q.Collections), q.Filter.text(), q.Filter.text(), strings.Join(q.Terms, " "), number(int64(q.Limit)))
	})
}

func (e *Embedded) hits(ctx context.Context, query func(duckdb.Tx) ([][]*string, error)) (out []Hit, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := query(tx)
		for _, r := range rows {
			out = append(out, Hit{row(r).number(0), row(r).float(1)})
		}
		return err
	})
	return out, err
}

func (e *Embedded) Passages(ctx context.Context, chunks []int64) (map[int64]Passage, error) {
	out := map[int64]Passage{}
	if len(chunks) == 0 {
		return out, nil
	}
	err := e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query(`SELECT k.id::VARCHAR, c.name, d.id, d.title, k.heading, k.text, d.source, d.metadata
  FROM chunk k JOIN document d ON d.key = k.document JOIN collection c ON c.id = k.collection WHERE k.id IN (SELECT unnest(string_split(?, ','))::BIGINT)`, list(chunks))
		for _, r := range rows {
			r := row(r)
			out[r.number(0)] = Passage{Collection: r.text(1), Document: r.text(2), Title: r.text(3), Heading: r.text(4), Text: r.text(5), Source: r.text(6), Metadata: parseMetadata(r.text(7))}
		}
		return err
	})
	return out, err
}
