package collection

import (
	"context"
	"encoding/json"
	"strconv"

	"sluice/database/duckdb"
	"sluice/fault"
)

// newSpace makes a space, to which nothing points yet.
func newSpace(tx duckdb.Tx, collection int64, s Space) (string, error) {
	rows, err := tx.Query("SELECT nextval('ids')::VARCHAR")
	if err != nil {
		return "", err
	}
	id := row(rows[0]).text(0)
	_, err = tx.Exec("INSERT INTO space SELECT ?::BIGINT, ?::BIGINT, ?, ?, ?::BIGINT", id, number(collection), s.Model, s.Digest, number(int64(s.Dims)))
	return id, err
}

func (e *Embedded) Begin(ctx context.Context, collection int64, s Space) (Space, error) {
	err := e.file.Change(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query("SELECT n.id::VARCHAR, n.model, n.digest FROM collection c LEFT JOIN space n ON n.id = c.next WHERE c.id = ?::BIGINT", number(collection))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.New(fault.NotFound, "collection.Begin", "the collection was deleted meanwhile")
		}
		if r := row(rows[0]); r[0] != nil {
			if r.text(1) == s.Model && r.text(2) == s.Digest { // somebody else has just begun it
				s.ID = r.number(0)
				return nil
			}
			if err := dropSpace(tx, r.text(0)); err != nil {
				return err
			}
		}
		id, err := newSpace(tx, collection, s)
		if err == nil {
			s.ID, _ = strconv.ParseInt(id, 10, 64)
			_, err = tx.Exec("UPDATE collection SET next = ?::BIGINT WHERE id = ?::BIGINT", id, number(collection))
		}
		return err
	})
	return s, err
}

func dropSpace(tx duckdb.Tx, id string) error {
	_, err := tx.Exec("DELETE FROM vector WHERE space = ?::BIGINT", id)
	if err == nil {
		_, err = tx.Exec("DELETE FROM space WHERE id = ?::BIGINT", id)
	}
	return err
}

func (e *Embedded) Missing(ctx context.Context, collection int64, space Space, limit int) (out []Piece, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query(`SELECT k.id::VARCHAR, d.title, k.heading, k.text FROM chunk k JOIN document d ON d.key = k.document
  WHERE k.collection = ?::BIGINT AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.space = ?::BIGINT AND v.chunk = k.id) ORDER BY k.id LIMIT ?::BIGINT`,
			number(collection), number(space.ID), number(int64(limit)))
		for _, r := range rows {
			r := row(r)
			out = append(out, Piece{ID: r.number(0), Title: r.text(1), Heading: r.text(2), Text: r.text(3)})
		}
		return err
	})
	return out, err
}

func (e *Embedded) Fill(ctx context.Context, collection int64, space Space, vectors []Vector) error {
	type vectorRow struct {
		ID      string    `json:"id"`
		Numbers []float32 `json:"numbers"`
	}
	var vs []vectorRow
	for _, v := range vectors {
		vs = append(vs, vectorRow{number(v.Chunk), v.Values})
	}
	text, err := json.Marshal(vs)
	if err != nil {
		return fault.Bug("collection: vectors have no JSON: %v", err)
	}
	return e.file.Change(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query("SELECT next::VARCHAR FROM collection WHERE id = ?::BIGINT", number(collection))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.New(fault.NotFound, "collection.Fill", "the collection was deleted meanwhile")
		}
		if row(rows[0]).text(0) != number(space.ID) {
			return fault.New(fault.Busy, "collection.Fill", "another space was begun meanwhile")
		}
		_, err = tx.Exec(`INSERT INTO vector SELECT r.id, ?::BIGINT, r.numbers FROM (SELECT unnest(from_json(?, '[{"id":"BIGINT","numbers":["FLOAT"]}]')) AS r)
  WHERE r.id IN (SELECT id FROM chunk) AND r.id NOT IN (SELECT chunk FROM vector WHERE space = ?::BIGINT)`, number(space.ID), string(text), number(space.ID))
		return err
	})
}

func (e *Embedded) Promote(ctx context.Context, collection int64, space Space) (whole bool, err error) {
	err = e.file.Change(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query(`SELECT active::VARCHAR, next::VARCHAR,
  (SELECT count(*) FROM chunk k WHERE k.collection = c.id AND k.id NOT IN (SELECT v.chunk FROM vector v WHERE v.space = c.next))::VARCHAR
  FROM collection c WHERE id = ?::BIGINT`, number(collection))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.New(fault.NotFound, "collection.Promote", "the collection was deleted meanwhile")
		}
		r := row(rows[0])
		if r.text(1) != number(space.ID) {
			return fault.New(fault.Busy, "collection.Promote", "another space was begun meanwhile")
		}
		if r.number(2) > 0 {
			return nil
		}
		if err := dropSpace(tx, r.text(0)); err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE collection SET active = next, next = NULL WHERE id = ?::BIGINT", number(collection))
		whole = err == nil
		return err
	})
	return whole && err == nil, err
}
