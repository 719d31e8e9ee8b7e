package collection

import (
	"context"
	"encoding/json"
	"errors"

	"sluice/database/duckdb"
	"sluice/fault"
)

const documentColumns = `id, title, source, format, metadata, hash, bytes::VARCHAR, chunks::VARCHAR, added_by, added_at::VARCHAR`

func readDocument(r row) Document {
	return Document{ID: r.text(0), Title: r.text(1), Source: r.text(2), Format: r.text(3), Metadata: parseMetadata(r.text(4)), Hash: r.text(5),
		Bytes: r.number(6), Chunks: r.number(7), AddedBy: r.text(8), AddedAt: moment(r.number(9))}
}

func (e *Embedded) Documents(ctx context.Context, collection int64, after string, limit int) (out []Document, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query("SELECT "+documentColumns+" FROM document WHERE collection = ?::BIGINT AND id > ? ORDER BY id LIMIT ?::BIGINT", number(collection), after, number(int64(limit)))
		for _, r := range rows {
			out = append(out, readDocument(r))
		}
		return err
	})
	return out, err
}

// findEmbedded gives the key and the rest of the document with an id, else of the one with a source.
func findEmbedded(tx duckdb.Tx, collection int64, id, source string) (string, Document, error) {
	rows, err := tx.Query("SELECT "+documentColumns+`, key::VARCHAR, text FROM document WHERE collection = ?::BIGINT AND (id = ? OR (source <> '' AND source = ?))
  ORDER BY id = ? DESC LIMIT 1`, number(collection), id, source, id)
	if err != nil {
		return "", Document{}, err
	}
	if len(rows) == 0 {
		return "", Document{}, noDocument(id)
	}
	r := row(rows[0])
	d := readDocument(r)
	d.Text = r.text(11)
	return r.text(10), d, nil
}

func (e *Embedded) Find(ctx context.Context, collection int64, id, source string) (d Document, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		_, d, err = findEmbedded(tx, collection, id, source)
		return err
	})
	return d, err
}

// replaces says which document a put replaces, by what is there with its id or its source. A chosen id names another one than
// the source's: that is a Conflict, as one of the two would be lost.
func (p *Put) replaces(had Document) error {
	if had.ID != p.Document.ID {
		if p.Named {
			return &fault.Error{Code: fault.Conflict, Op: "collection.Add", Msg: "the source is that of the document '" + had.ID + "'", Hint: "replace that one, or delete it first"}
		}
		p.Document.ID = had.ID
	}
	if p.Document.Source == "" {
		p.Document.Source = had.Source
	}
	return nil
}

// otherSource refuses a source that another document has.
func otherSource(id string) error {
	return &fault.Error{Code: fault.Conflict, Op: "collection.Add", Msg: "the source is that of the document '" + id + "'", Hint: "replace that one, or delete it first"}
}

func (e *Embedded) Put(ctx context.Context, p Put) (Document, bool, error) {
	replaced := false
	err := e.file.Change(ctx, func(tx duckdb.Tx) error {
		space, err := targetEmbedded(tx, p.Collection, p.Space)
		if err != nil {
			return err
		}
		key, had, err := findEmbedded(tx, p.Collection, p.Document.ID, p.Document.Source)
		switch {
		case err == nil:
			replaced = true
			if err := p.replaces(had); err != nil {
				return err
			}
			if err := removeEmbedded(tx, key); err != nil {
				return err
			}
		case fault.CodeOf(err) != fault.NotFound:
			return err
		}
		if err := freeSource(tx, p.Collection, p.Document.ID, p.Document.Source); err != nil {
			return err
		}
		p.Document.Chunks = int64(len(p.Chunks))
		return insertEmbedded(tx, p, space)
	})
	return p.Document, replaced, err
}

func freeSource(tx duckdb.Tx, collection int64, id, source string) error {
	rows, err := tx.Query("SELECT id FROM document WHERE collection = ?::BIGINT AND source <> '' AND source = ? AND id <> ?", number(collection), source, id)
	if err == nil && len(rows) > 0 {
		return otherSource(row(rows[0]).text(0))
	}
	return err
}

// targetEmbedded gives the id of the space that vectors go to, and makes the first one of a collection.
func targetEmbedded(tx duckdb.Tx, collection int64, s Space) (string, error) {
	rows, err := tx.Query("SELECT name, coalesce(next, active)::VARCHAR FROM collection WHERE id = ?::BIGINT", number(collection))
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", fault.New(fault.NotFound, "collection.Put", "the collection was deleted meanwhile")
	}
	target := row(rows[0]).text(1)
	if target == "" && s.ID == 0 {
		id, err := newSpace(tx, collection, s)
		if err == nil {
			_, err = tx.Exec("UPDATE collection SET active = ?::BIGINT WHERE id = ?::BIGINT", id, number(collection))
		}
		return id, err
	}
	if target != number(s.ID) {
		return "", errMoved
	}
	return target, nil
}

// insertBatch is how many chunks one statement takes.
const insertBatch = 200

func insertEmbedded(tx duckdb.Tx, p Put, space string) error {
	d := p.Document
	rows, err := tx.Query("SELECT nextval('ids')::VARCHAR FROM range(?::BIGINT)", number(int64(len(p.Chunks)+1)))
	if err != nil {
		return err
	}
	key := row(rows[0]).text(0)
	if _, err := tx.Exec(`INSERT INTO document SELECT ?::BIGINT, ?::BIGINT, ?, ?, ?, ?, ?, ?, ?, ?::BIGINT, ?::BIGINT, ?, ?::BIGINT`, key, number(p.Collection), d.ID, d.Title,
		d.Source, d.Format, d.Text, d.Metadata.text(), d.Hash, number(d.Bytes), number(d.Chunks), d.AddedBy, micros(d.AddedAt)); err != nil {
		return err
	}
	type chunkRow struct {
		ID      string    `json:"id"`
		Heading string    `json:"heading"`
		Text    string    `json:"text"`
		Words   int       `json:"words"`
		Numbers []float32 `json:"numbers"`
	}
	type termRow struct {
		Chunk string `json:"chunk"`
		Term  string `json:"term"`
		N     int    `json:"n"`
	}
	for from := 0; from < len(p.Chunks); from += insertBatch {
		var cs []chunkRow
		var ts []termRow
		for i := from; i < min(from+insertBatch, len(p.Chunks)); i++ {
			c, id := p.Chunks[i], row(rows[i+1]).text(0)
			cs = append(cs, chunkRow{id, c.Heading, c.Text, len(c.Terms), c.Vector})
			count := map[string]int{}
			for _, t := range c.Terms {
				count[t]++
			}
			for _, t := range distinct(c.Terms, len(c.Terms)) {
				ts = append(ts, termRow{id, t, count[t]})
			}
		}
		chunkText, err := json.Marshal(cs)
		termText, err2 := json.Marshal(ts)
		if err := errors.Join(err, err2); err != nil {
			return fault.Bug("collection: chunks have no JSON: %v", err)
		}
		if _, err := tx.Exec(`INSERT INTO chunk SELECT r.id, ?::BIGINT, ?::BIGINT, r.heading, r.text, r.words FROM
  (SELECT unnest(from_json(?, '[{"id":"BIGINT","heading":"VARCHAR","text":"VARCHAR","words":"BIGINT"}]')) AS r)`, key, number(p.Collection), string(chunkText)); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO vector SELECT r.id, ?::BIGINT, r.numbers FROM (SELECT unnest(from_json(?, '[{"id":"BIGINT","numbers":["FLOAT"]}]')) AS r)`, space, string(chunkText)); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO term SELECT r.chunk, r.term, r.n FROM (SELECT unnest(from_json(?, '[{"chunk":"BIGINT","term":"VARCHAR","n":"BIGINT"}]')) AS r)`, string(termText)); err != nil {
			return err
		}
	}
	return nil
}

func removeEmbedded(tx duckdb.Tx, key string) error {
	_, err := tx.Exec("DELETE FROM vector WHERE chunk IN (SELECT id FROM chunk WHERE document = ?::BIGINT)", key)
	if err == nil {
		_, err = tx.Exec("DELETE FROM term WHERE chunk IN (SELECT id FROM chunk WHERE document = ?::BIGINT)", key)
	}
	if err == nil {
		_, err = tx.Exec("DELETE FROM chunk WHERE document = ?::BIGINT", key)
	}
	if err == nil {
		_, err = tx.Exec("DELETE FROM document WHERE key = ?::BIGINT", key)
	}
	return err
}

func (e *Embedded) Annotate(ctx context.Context, collection int64, id, source string, metadata Metadata) error {
	return e.file.Change(ctx, func(tx duckdb.Tx) error {
		if err := freeSource(tx, collection, id, source); err != nil {
			return err
		}
		n, err := tx.Exec("UPDATE document SET source = ?, metadata = ? WHERE collection = ?::BIGINT AND id = ?", source, metadata.text(), number(collection), id)
		if err == nil && n == 0 {
			return noDocument(id)
		}
		return err
	})
}

func (e *Embedded) Remove(ctx context.Context, collection int64, id string) error {
	return e.file.Change(ctx, func(tx duckdb.Tx) error {
		key, _, err := findEmbedded(tx, collection, id, "")
		if err != nil {
			return err
		}
		return removeEmbedded(tx, key)
	})
}
