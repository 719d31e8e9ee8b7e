package collection

import (
	"context"
	"strconv"
	"strings"
	"time"

	"sluice/database/duckdb"
	"sluice/fault"
)

// Embedded keeps collections in a DuckDB file of its own. Its nearest neighbours are exact: all vectors of a space are
// compared, about 20 million numbers (50,000 vectors of 384) in some ten milliseconds.
type Embedded struct{ file *duckdb.Own }

// embeddedSchema has no keys: DuckDB's are checked too early for replacing rows in one transaction. Changes come one at a
// time (duckdb.Own), so the code keeps names and ids apart.
const embeddedSchema = `
CREATE SEQUENCE IF NOT EXISTS ids;
CREATE TABLE IF NOT EXISTS collection (id BIGINT NOT NULL, name VARCHAR NOT NULL, owner VARCHAR NOT NULL, database VARCHAR NOT NULL, description VARCHAR NOT NULL,
  created_at BIGINT NOT NULL, active BIGINT, next BIGINT);
CREATE TABLE IF NOT EXISTS space (id BIGINT NOT NULL, collection BIGINT NOT NULL, model VARCHAR NOT NULL, digest VARCHAR NOT NULL, dims BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS document (key BIGINT NOT NULL, collection BIGINT NOT NULL, id VARCHAR NOT NULL, title VARCHAR NOT NULL, source VARCHAR NOT NULL,
  format VARCHAR NOT NULL, text VARCHAR NOT NULL, metadata VARCHAR NOT NULL, hash VARCHAR NOT NULL, bytes BIGINT NOT NULL, chunks BIGINT NOT NULL,
  added_by VARCHAR NOT NULL, added_at BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS chunk (id BIGINT NOT NULL, document BIGINT NOT NULL, collection BIGINT NOT NULL, heading VARCHAR NOT NULL, text VARCHAR NOT NULL, words BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS term (chunk BIGINT NOT NULL, term VARCHAR NOT NULL, n BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS vector (chunk BIGINT NOT NULL, space BIGINT NOT NULL, numbers FLOAT[] NOT NULL);`

// OpenEmbedded opens the file, or makes it. One process has it at a time. temp is for what does not fit into memory.
func OpenEmbedded(ctx context.Context, path, temp string) (*Embedded, error) {
	file, err := duckdb.OpenOwn(ctx, path, temp, embeddedSchema)
	if err != nil {
		return nil, err
	}
	return &Embedded{file}, nil
}

// Close closes the file.
func (e *Embedded) Close() error { return e.file.Close() }

// row reads one row of texts; a NULL is "".
type row []*string

func (r row) text(i int) string {
	if r[i] == nil {
		return ""
	}
	return *r[i]
}

func (r row) number(i int) int64 {
	n, _ := strconv.ParseInt(r.text(i), 10, 64) // the statement casts a BIGINT; a NULL is 0
	return n
}

func (r row) float(i int) float64 {
	f, _ := strconv.ParseFloat(r.text(i), 64)
	return f
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// list writes numbers as the statements split them.
func list(ns []int64) string {
	texts := make([]string, len(ns))
	for i, n := range ns {
		texts[i] = number(n)
	}
	return strings.Join(texts, ",")
}

func micros(t time.Time) string { return number(t.UnixMicro()) }

func moment(n int64) time.Time { return time.UnixMicro(n).UTC() }

const collectionColumns = `SELECT c.id::VARCHAR, c.name, c.owner, c.database, c.description, c.created_at::VARCHAR,
  a.id::VARCHAR, a.model, a.digest, a.dims::VARCHAR, n.id::VARCHAR, n.model, n.digest, n.dims::VARCHAR
  FROM collection c LEFT JOIN space a ON a.id = c.active LEFT JOIN space n ON n.id = c.next `

func readCollection(r row) Collection {
	space := func(i int) *Space {
		if r[i] == nil {
			return nil
		}
		return &Space{ID: r.number(i), Model: r.text(i + 1), Digest: r.text(i + 2), Dims: int(r.number(i + 3))}
	}
	return Collection{ID: r.number(0), Name: r.text(1), Owner: r.text(2), Database: r.text(3), Description: r.text(4), CreatedAt: moment(r.number(5)),
		Active: space(6), Next: space(10)}
}

func (e *Embedded) Count(ctx context.Context, c Collection) (Collection, error) {
	err := e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query("SELECT count(*)::VARCHAR, coalesce(sum(chunks), 0)::VARCHAR, coalesce(sum(bytes), 0)::VARCHAR FROM document WHERE collection = ?::BIGINT", number(c.ID))
		if err != nil {
			return err
		}
		r := row(rows[0])
		c.Documents, c.Chunks, c.Bytes = r.number(0), r.number(1), r.number(2)
		for _, s := range []**Space{&c.Active, &c.Next} {
			if *s == nil {
				continue
			}
			counted := **s
			rows, err := tx.Query("SELECT count(*)::VARCHAR FROM vector WHERE space = ?::BIGINT", number(counted.ID))
			if err != nil {
				return err
			}
			counted.Count = row(rows[0]).number(0)
			*s = &counted
		}
		return nil
	})
	return c, err
}

func (e *Embedded) Collections(ctx context.Context) (out []Collection, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query(collectionColumns + "ORDER BY c.name")
		for _, r := range rows {
			out = append(out, readCollection(r))
		}
		return err
	})
	return out, err
}

func (e *Embedded) Collection(ctx context.Context, name string) (c Collection, err error) {
	err = e.file.Read(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query(collectionColumns+"WHERE c.name = ?", name)
		if err == nil && len(rows) == 0 {
			return unknown(name)
		}
		if err == nil {
			c = readCollection(rows[0])
		}
		return err
	})
	return c, err
}

// taken is the answer to a second collection of a name.
func taken(name string) error {
	return &fault.Error{Code: fault.Conflict, Op: "collection.Create", Msg: "the name '" + name + "' is taken", Hint: "choose another"}
}

func (e *Embedded) Create(ctx context.Context, c Collection) error {
	return e.file.Change(ctx, func(tx duckdb.Tx) error {
		rows, err := tx.Query("SELECT name FROM collection WHERE name = ?", c.Name)
		if err == nil && len(rows) > 0 {
			return taken(c.Name)
		}
		if err == nil {
			_, err = tx.Exec("INSERT INTO collection SELECT nextval('ids'), ?, ?, ?, ?, ?::BIGINT, NULL, NULL", c.Name, c.Owner, c.Database, c.Description, micros(c.CreatedAt))
		}
		return err
	})
}

func (e *Embedded) Disown(ctx context.Context, owner string) (n int, err error) {
	err = e.file.Change(ctx, func(tx duckdb.Tx) error {
		changed, err := tx.Exec("UPDATE collection SET owner = '' WHERE owner = ?", owner)
		n = int(changed)
		return err
	})
	return n, err
}

func (e *Embedded) Delete(ctx context.Context, collection int64) error {
	id := number(collection)
	return e.file.Change(ctx, func(tx duckdb.Tx) error {
		_, err := tx.Exec("DELETE FROM vector WHERE chunk IN (SELECT id FROM chunk WHERE collection = ?::BIGINT)", id)
		if err == nil {
			_, err = tx.Exec("DELETE FROM term WHERE chunk IN (SELECT id FROM chunk WHERE collection = ?::BIGINT)", id)
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM chunk WHERE collection = ?::BIGINT", id)
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM document WHERE collection = ?::BIGINT", id)
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM space WHERE collection = ?::BIGINT", id)
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM collection WHERE id = ?::BIGINT", id)
		}
		return err
	})
}
