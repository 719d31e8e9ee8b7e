package collection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgvec "github.com/pgvector/pgvector-go"

	"sluice/fault"
)

const pgCollection = `SELECT c.id, c.name, c.owner, c.database, c.description, c.created_at, a.id, a.model, a.digest, a.dims, n.id, n.model, n.digest, n.dims
  FROM sluice_rag.collection c LEFT JOIN sluice_rag.space a ON a.id = c.active LEFT JOIN sluice_rag.space n ON n.id = c.next `

func scanCollection(r pgx.CollectableRow) (c Collection, err error) {
	type nullable struct {
		id            *int64
		model, digest *string
		dims          *int
	}
	var a, n nullable
	err = r.Scan(&c.ID, &c.Name, &c.Owner, &c.Database, &c.Description, &c.CreatedAt, &a.id, &a.model, &a.digest, &a.dims, &n.id, &n.model, &n.digest, &n.dims)
	c.CreatedAt = c.CreatedAt.UTC()
	space := func(s nullable) *Space {
		if s.id == nil {
			return nil
		}
		return &Space{ID: *s.id, Model: *s.model, Digest: *s.digest, Dims: *s.dims}
	}
	c.Active, c.Next = space(a), space(n)
	return c, err
}

func (p *Postgres) Collections(ctx context.Context) (out []Collection, err error) {
	err = p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, pgCollection+`ORDER BY c.name COLLATE "C"`)
		if err == nil {
			out, err = pgx.CollectRows(rows, scanCollection)
		}
		return err
	})
	return out, err
}

func (p *Postgres) Collection(ctx context.Context, name string) (c Collection, err error) {
	err = p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, pgCollection+"WHERE c.name = $1", name)
		if err == nil {
			c, err = pgx.CollectExactlyOneRow(rows, scanCollection)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return unknown(name)
		}
		return err
	})
	return c, err
}

func (p *Postgres) Count(ctx context.Context, c Collection) (Collection, error) {
	err := p.read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT count(*), coalesce(sum(chunks), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM sluice_rag.document WHERE collection = $1", c.ID).
			Scan(&c.Documents, &c.Chunks, &c.Bytes); err != nil {
			return err
		}
		for _, s := range []**Space{&c.Active, &c.Next} {
			if *s == nil {
				continue
			}
			counted := **s
			if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+vectorsOf(counted.Dims)+" WHERE space = $1", counted.ID).Scan(&counted.Count); err != nil {
				return err
			}
			*s = &counted
		}
		return nil
	})
	return c, err
}

func (p *Postgres) Create(ctx context.Context, c Collection) error {
	err := p.change(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO sluice_rag.collection (name, owner, database, description, created_at) VALUES ($1, $2, $3, $4, $5)", c.Name, c.Owner, c.Database, c.Description, c.CreatedAt)
		return err
	})
	if twice(err) {
		return taken(c.Name)
	}
	return err
}

// twice says whether a row was refused because another has the same key.
func twice(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}

func (p *Postgres) Disown(ctx context.Context, owner string) (n int, err error) {
	err = p.change(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE sluice_rag.collection SET owner = '' WHERE owner = $1", owner)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

func (p *Postgres) Delete(ctx context.Context, collection int64) error {
	return p.change(ctx, func(tx pgx.Tx) error {
		if _, _, err := lockCollection(ctx, tx, collection); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM sluice_rag.collection WHERE id = $1", collection)
		return err
	})
}

// lockCollection waits for whoever changes the collection, and gives its spaces, nil where there is none.
func lockCollection(ctx context.Context, tx pgx.Tx, collection int64) (active, next *int64, err error) {
	err = tx.QueryRow(ctx, "SELECT active, next FROM sluice_rag.collection WHERE id = $1 FOR UPDATE", collection).Scan(&active, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fault.New(fault.NotFound, "collection.Postgres", "the collection was deleted meanwhile")
	}
	return active, next, err
}

const pgDocument = "key, id, title, source, format, metadata::text, hash, bytes, chunks, added_by, added_at"

type keyed struct {
	key int64
	Document
}

func scanDocument(r pgx.CollectableRow) (d keyed, err error) {
	var metadata string
	into := []any{&d.key, &d.ID, &d.Title, &d.Source, &d.Format, &metadata, &d.Hash, &d.Bytes, &d.Chunks, &d.AddedBy, &d.AddedAt}
	if len(r.FieldDescriptions()) > len(into) {
		into = append(into, &d.Text)
	}
	err = r.Scan(into...)
	d.Metadata, d.AddedAt = parseMetadata(metadata), d.AddedAt.UTC()
	return d, err
}

func (p *Postgres) Documents(ctx context.Context, collection int64, after string, limit int) (out []Document, err error) {
	err = p.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT "+pgDocument+" FROM sluice_rag.document WHERE collection = $1 AND id > $2 ORDER BY id LIMIT $3", collection, after, limit)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, scanDocument)
		for _, d := range all {
			out = append(out, d.Document)
		}
		return err
	})
	return out, err
}

func findPostgres(ctx context.Context, tx pgx.Tx, collection int64, id, source string) (keyed, error) {
	rows, err := tx.Query(ctx, "SELECT "+pgDocument+", text FROM sluice_rag.document WHERE collection = $1 AND (id = $2 OR source <> '' AND source = $3) ORDER BY (id = $2) DESC LIMIT 1", collection, id, source)
	if err != nil {
		return keyed{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, scanDocument)
	if errors.Is(err, pgx.ErrNoRows) {
		err = noDocument(id)
	}
	return d, err
}

func (p *Postgres) Find(ctx context.Context, collection int64, id, source string) (d Document, err error) {
	err = p.read(ctx, func(tx pgx.Tx) error {
		found, err := findPostgres(ctx, tx, collection, id, source)
		d = found.Document
		return err
	})
	return d, err
}

func (p *Postgres) Put(ctx context.Context, put Put) (Document, bool, error) {
	replaced := false
	err := p.change(ctx, func(tx pgx.Tx) error {
		space, err := targetPostgres(ctx, tx, put.Collection, put.Space)
		if err != nil {
			return err
		}
		had, err := findPostgres(ctx, tx, put.Collection, put.Document.ID, put.Document.Source)
		switch {
		case err == nil:
			replaced = true
			if err := put.replaces(had.Document); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "DELETE FROM sluice_rag.document WHERE key = $1", had.key); err != nil {
				return err
			}
		case fault.CodeOf(err) != fault.NotFound:
			return err
		}
		if err := freeSourcePostgres(ctx, tx, put.Collection, put.Document.ID, put.Document.Source); err != nil {
			return err
		}
		put.Document.Chunks = int64(len(put.Chunks))
		return insertPostgres(ctx, tx, put, space)
	})
	return put.Document, replaced, err
}

func freeSourcePostgres(ctx context.Context, tx pgx.Tx, collection int64, id, source string) error {
	var other string
	err := tx.QueryRow(ctx, "SELECT id FROM sluice_rag.document WHERE collection = $1 AND source <> '' AND source = $2 AND id <> $3", collection, source, id).Scan(&other)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err == nil:
		return otherSource(other)
	}
	return err
}

// targetPostgres gives the id of the space that vectors go to, and makes the first one of a collection.
func targetPostgres(ctx context.Context, tx pgx.Tx, collection int64, s Space) (int64, error) {
	active, next, err := lockCollection(ctx, tx, collection)
	if err != nil {
		return 0, err
	}
	target := next
	if target == nil {
		target = active
	}
	switch {
	case target == nil && s.ID == 0:
		id, err := newSpacePostgres(ctx, tx, collection, s)
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE sluice_rag.collection SET active = $1 WHERE id = $2", id, collection)
		}
		return id, err
	case target == nil || *target != s.ID:
		return 0, errMoved
	}
	return s.ID, nil
}

func insertPostgres(ctx context.Context, tx pgx.Tx, p Put, space int64) error {
	d := p.Document
	var key int64
	if err := tx.QueryRow(ctx, `INSERT INTO sluice_rag.document (collection, id, title, source, format, text, metadata, hash, bytes, chunks, added_by, added_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9, $10, $11, $12) RETURNING key`, p.Collection, d.ID, d.Title, d.Source, d.Format, d.Text, d.Metadata.text(), d.Hash,
		d.Bytes, d.Chunks, d.AddedBy, d.AddedAt).Scan(&key); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "SELECT nextval(pg_get_serial_sequence('sluice_rag.chunk', 'id')) FROM generate_series(1, $1)", len(p.Chunks))
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for i, c := range p.Chunks {
		batch.Queue(`INSERT INTO sluice_rag.chunk (id, document, collection, heading, text, words) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6::text::tsvector)`,
			ids[i], key, p.Collection, c.Heading, c.Text, tsvector(c.Terms))
		batch.Queue("INSERT INTO "+vectorsOf(p.Space.Dims)+" (chunk, space, metadata, numbers) VALUES ($1, $2, $3::text::jsonb, $4)", ids[i], space, d.Metadata.text(), pgvec.NewHalfVector(c.Vector))
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// tsvector writes terms with their positions as PostgreSQL reads them. Its own parser would cut words otherwise than the
// embedded store does. Terms hold only letters, digits and marks. Positions end at 16383, and there are 256 of a word.
func tsvector(terms []string) string {
	at := map[string][]string{}
	for i, t := range terms {
		if len(at[t]) < 256 {
			at[t] = append(at[t], fmt.Sprint(min(i+1, 16383)))
		}
	}
	var out []string
	for _, t := range distinct(terms, len(terms)) {
		out = append(out, "'"+t+"':"+strings.Join(at[t], ","))
	}
	return strings.Join(out, " ")
}

func (p *Postgres) Annotate(ctx context.Context, collection int64, id, source string, metadata Metadata) error {
	return p.change(ctx, func(tx pgx.Tx) error {
		active, next, err := lockCollection(ctx, tx, collection)
		if err != nil {
			return err
		}
		if err := freeSourcePostgres(ctx, tx, collection, id, source); err != nil {
			return err
		}
		var key int64
		err = tx.QueryRow(ctx, "UPDATE sluice_rag.document SET source = $1, metadata = $2::text::jsonb WHERE collection = $3 AND id = $4 RETURNING key", source, metadata.text(), collection, id).Scan(&key)
		if errors.Is(err, pgx.ErrNoRows) {
			return noDocument(id)
		}
		for _, space := range []*int64{active, next} {
			if space == nil || err != nil {
				continue
			}
			var dims int
			if err = tx.QueryRow(ctx, "SELECT dims FROM sluice_rag.space WHERE id = $1", *space).Scan(&dims); err == nil {
				_, err = tx.Exec(ctx, "UPDATE "+vectorsOf(dims)+" SET metadata = $1::text::jsonb WHERE space = $2 AND chunk IN (SELECT id FROM sluice_rag.chunk WHERE document = $3)", metadata.text(), *space, key)
			}
		}
		return err
	})
}

func (p *Postgres) Remove(ctx context.Context, collection int64, id string) error {
	return p.change(ctx, func(tx pgx.Tx) error {
		if _, _, err := lockCollection(ctx, tx, collection); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "DELETE FROM sluice_rag.document WHERE collection = $1 AND id = $2", collection, id)
		if err == nil && tag.RowsAffected() == 0 {
			return noDocument(id)
		}
		return err
	})
}
