package collection

import (
	"context"

	"github.com/jackc/pgx/v5"
	pgvec "github.com/pgvector/pgvector-go"

	"sluice/fault"
)

// newSpacePostgres makes a space, and the table of its vectors, to which nothing points yet.
func newSpacePostgres(ctx context.Context, tx pgx.Tx, collection int64, s Space) (id int64, err error) {
	if err = vectorTable(ctx, tx, s.Dims); err == nil {
		err = tx.QueryRow(ctx, "INSERT INTO sluice_rag.space (collection, model, digest, dims) VALUES ($1, $2, $3, $4) RETURNING id", collection, s.Model, s.Digest, s.Dims).Scan(&id)
	}
	return id, err
}

func dropSpacePostgres(ctx context.Context, tx pgx.Tx, id int64) error {
	var dims int
	err := tx.QueryRow(ctx, "DELETE FROM sluice_rag.space WHERE id = $1 RETURNING dims", id).Scan(&dims)
	if err == nil {
		_, err = tx.Exec(ctx, "DELETE FROM "+vectorsOf(dims)+" WHERE space = $1", id)
	}
	return err
}

func (p *Postgres) Begin(ctx context.Context, collection int64, s Space) (Space, error) {
	err := p.change(ctx, func(tx pgx.Tx) error {
		_, next, err := lockCollection(ctx, tx, collection)
		if err != nil {
			return err
		}
		if next != nil {
			var model, digest string
			if err := tx.QueryRow(ctx, "SELECT model, digest FROM sluice_rag.space WHERE id = $1", *next).Scan(&model, &digest); err != nil {
				return err
			}
			if model == s.Model && digest == s.Digest { // somebody else has just begun it
				s.ID = *next
				return nil
			}
			if err := dropSpacePostgres(ctx, tx, *next); err != nil {
				return err
			}
		}
		if s.ID, err = newSpacePostgres(ctx, tx, collection, s); err == nil {
			_, err = tx.Exec(ctx, "UPDATE sluice_rag.collection SET next = $1 WHERE id = $2", s.ID, collection)
		}
		return err
	})
	return s, err
}

// lacking are a collection's chunks without a vector in a space.
func lacking(dims int) string {
	return " FROM sluice_rag.chunk k WHERE k.collection = $1 AND NOT EXISTS (SELECT 1 FROM " + vectorsOf(dims) + " v WHERE v.chunk = k.id AND v.space = $2)"
}

func (p *Postgres) Missing(ctx context.Context, collection int64, space Space, limit int) (out []Piece, err error) {
	err = p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT k.id, (SELECT d.title FROM sluice_rag.document d WHERE d.key = k.document), k.heading, k.text"+lacking(space.Dims)+" ORDER BY k.id LIMIT $3", collection, space.ID, limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Piece])
		return err
	})
	return out, err
}

func (p *Postgres) Fill(ctx context.Context, collection int64, space Space, vectors []Vector) error {
	return p.change(ctx, func(tx pgx.Tx) error {
		_, next, err := lockCollection(ctx, tx, collection) // no chunk goes away meanwhile
		if err != nil {
			return err
		}
		if next == nil || *next != space.ID {
			return fault.New(fault.Busy, "collection.Fill", "another space was begun meanwhile")
		}
		var batch pgx.Batch
		for _, v := range vectors {
			batch.Queue("INSERT INTO "+vectorsOf(space.Dims)+` (chunk, space, metadata, numbers)
  SELECT k.id, $2, d.metadata, $3 FROM sluice_rag.chunk k JOIN sluice_rag.document d ON d.key = k.document WHERE k.id = $1 ON CONFLICT DO NOTHING`,
				v.Chunk, space.ID, pgvec.NewHalfVector(v.Values))
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}

func (p *Postgres) Promote(ctx context.Context, collection int64, space Space) (whole bool, err error) {
	err = p.change(ctx, func(tx pgx.Tx) error {
		active, next, err := lockCollection(ctx, tx, collection)
		if err != nil {
			return err
		}
		if next == nil || *next != space.ID {
			return fault.New(fault.Busy, "collection.Promote", "another space was begun meanwhile")
		}
		var lack bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1"+lacking(space.Dims)+")", collection, space.ID).Scan(&lack); err != nil || lack {
			return err
		}
		if active != nil {
			if err := dropSpacePostgres(ctx, tx, *active); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "UPDATE sluice_rag.collection SET active = next, next = NULL WHERE id = $1", collection)
		whole = err == nil
		return err
	})
	return whole && err == nil, err
}
