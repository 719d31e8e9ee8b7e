package collection

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// migrations are the schema's steps, each run once. A step that was published is never changed.
var migrations = []string{
	`CREATE TABLE sluice_rag.collection (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, owner text NOT NULL, database text NOT NULL, description text NOT NULL,
  created_at timestamptz NOT NULL, active bigint, next bigint);
CREATE TABLE sluice_rag.space (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection bigint NOT NULL REFERENCES sluice_rag.collection ON DELETE CASCADE,
  model text NOT NULL, digest text NOT NULL, dims integer NOT NULL);
CREATE INDEX ON sluice_rag.space (collection);
CREATE TABLE sluice_rag.document (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection bigint NOT NULL REFERENCES sluice_rag.collection ON DELETE CASCADE,
  id text NOT NULL COLLATE "C", title text NOT NULL, source text NOT NULL, format text NOT NULL, text text NOT NULL, metadata jsonb NOT NULL, hash text NOT NULL,
  bytes bigint NOT NULL, chunks bigint NOT NULL, added_by text NOT NULL, added_at timestamptz NOT NULL, UNIQUE (collection, id));
CREATE UNIQUE INDEX ON sluice_rag.document (collection, source) WHERE source <> '';
CREATE INDEX ON sluice_rag.document USING gin (metadata jsonb_path_ops);
CREATE TABLE sluice_rag.chunk (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, document bigint NOT NULL REFERENCES sluice_rag.document ON DELETE CASCADE, collection bigint NOT NULL,
  heading text NOT NULL, text text NOT NULL, words tsvector NOT NULL);
CREATE INDEX ON sluice_rag.chunk (document);
CREATE INDEX ON sluice_rag.chunk (collection);
CREATE INDEX ON sluice_rag.chunk USING gin (words);`,
}

// migrationLock keeps two servers that start at the same time apart.
const migrationLock = 0x51c3_4a67

// migrate makes the schema, or brings it up to date. With everything there it changes nothing, and needs no right to.
func migrate(ctx context.Context, c *pgx.Conn) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	var has bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector')").Scan(&has); err != nil {
		return err
	}
	if !has { // an administrator's role may make it; without that right the message about it is what counts
		if err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, "CREATE EXTENSION vector"); return err }); err != nil {
			if _, missing := pgvector(ctx, c); missing != nil {
				return fmt.Errorf("%w (%w)", missing, err)
			}
			return err
		}
	}
	if _, err := pgvector(ctx, c); err != nil {
		return err
	}
	var done int
	if err := tx.QueryRow(ctx, "SELECT (to_regclass('sluice_rag.version') IS NOT NULL)::int").Scan(&done); err != nil {
		return err
	}
	if done == 0 {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS sluice_rag; CREATE TABLE sluice_rag.version (step integer NOT NULL); INSERT INTO sluice_rag.version VALUES (0)"); err != nil {
			return err
		}
	}
	if err := tx.QueryRow(ctx, "SELECT step FROM sluice_rag.version").Scan(&done); err != nil {
		return err
	}
	for ; done < len(migrations); done++ {
		if _, err := tx.Exec(ctx, migrations[done]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE sluice_rag.version SET step = $1", done+1); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// vectorsOf names the table of the vectors with so many numbers. An index of pgvector is for one dimension.
func vectorsOf(dims int) string { return fmt.Sprintf("sluice_rag.vectors_%d", dims) }

// vectorTable makes it. All collections share it, and one index. An index of its own for 1 % of 50,000 vectors was asked in
// 2.8 ms, comparing those 500 took 0.9 ms, the iterative scan of the common index 15 ms (docs/RAG.md): so a small collection
// needs none, and a large one is most of the common one.
func vectorTable(ctx context.Context, tx pgx.Tx, dims int) error {
	if dims < 1 || dims > maxDims {
		return fmt.Errorf("collection: vectors of %d numbers", dims)
	}
	name := vectorsOf(dims)
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", name).Scan(&there); err != nil || there {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s (
  chunk bigint NOT NULL REFERENCES sluice_rag.chunk ON DELETE CASCADE, space bigint NOT NULL, metadata jsonb NOT NULL, numbers halfvec(%[2]d) NOT NULL,
  PRIMARY KEY (chunk, space));
CREATE INDEX IF NOT EXISTS vectors_%[2]d_space ON %[1]s (space);
CREATE INDEX IF NOT EXISTS vectors_%[2]d_metadata ON %[1]s USING gin (metadata jsonb_path_ops);
CREATE INDEX IF NOT EXISTS vectors_%[2]d_near ON %[1]s USING hnsw (numbers halfvec_cosine_ops)`, name, dims))
	return err
}
