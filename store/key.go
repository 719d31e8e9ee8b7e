package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

// Key is an API key as stored: only the hash of its secret.
type Key struct {
	access.Key
	Hash []byte // HashSecret of the whole secret text
}

// NewSecret makes the secret of a key, "slc_" and 43 characters that hold 256 random bits, and its hash. The secret is
// shown once and stored nowhere.
func NewSecret() (secret string, hash []byte) { return newSecret("slc_") }

// newSecret makes the secret of a key or the token of a login, which begin differently.
func newSecret(prefix string) (secret string, hash []byte) {
	random := make([]byte, 32)
	rand.Read(random) // never fails: crypto/rand ends the program instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(random)
	return secret, HashSecret(secret)
}

// HashSecret is SHA-256 of the whole secret text. A secret holds 128 random bits or more, so a slow hash would add
// nothing; and as the lookup is by hash, its timing says nothing about the secret.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// InsertKey stores a key. A second key with the same id or secret is a Conflict.
func (s *Store) InsertKey(ctx context.Context, k Key) error {
	return insertKey(ctx, s.writer, k)
}

func insertKey(ctx context.Context, q *db.Queries, k Key) error {
	if len(k.Hash) != sha256.Size || k.ID == "" || k.Owner == "" || !k.Role.AtLeast(access.Restricted) {
		return fault.Bug("store: a key without id, owner, role or hash")
	}
	err := q.InsertKey(ctx, db.InsertKeyParams{
		ID: k.ID, Hash: k.Hash, Owner: k.Owner, Name: k.Name, Role: k.Role.String(), Agent: bit(k.Agent),
		Databases: packed(k.Databases), Tables: packed(k.Tables), Models: packed(k.Models), CreatedAt: micros(k.CreatedAt),
		ActsFor: k.ActsFor, ExpiresAt: orNull(k.ExpiresAt),
	})
	if conflict(err) {
		return fault.New(fault.Conflict, "store.InsertKey", "such a key exists already")
	}
	return wrap("insert a key", err)
}

// KeyByHash finds a key by HashSecret of what a caller sent. No such key is NotFound.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (Key, error) {
	return keyByHash(ctx, s.reader, hash)
}

func keyByHash(ctx context.Context, q *db.Queries, hash []byte) (Key, error) {
	row, err := q.KeyByHash(ctx, hash)
	return found(row, err, key, "no such key")
}

// found reads a row, or says with code NotFound that there is none.
func found[Row, T any](row Row, err error, read func(Row) (T, error), missing string) (T, error) {
	var none T
	if errors.Is(err, sql.ErrNoRows) {
		return none, fault.New(fault.NotFound, "store", "%s", missing)
	}
	if err != nil {
		return none, wrap("find a row", err)
	}
	return read(row)
}

// Keys lists all keys, oldest first.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	rows, err := s.reader.Keys(ctx)
	if err != nil {
		return nil, wrap("list keys", err)
	}
	return each(rows, key)
}

// DeleteKey removes a key and what was granted to it; false when there was none.
func (s *Store) DeleteKey(ctx context.Context, id string) (gone bool, err error) {
	err = s.change(ctx, func(q *db.Queries) error {
		n, err := q.DeleteKey(ctx, id)
		gone = n > 0
		return errors.Join(err, q.DeleteGrantsOf(ctx, id))
	})
	return gone && err == nil, wrap("delete a key", err)
}

// CountKeys counts the keys, so that the first start can make the bootstrap key.
func (s *Store) CountKeys(ctx context.Context) (int, error) {
	n, err := s.reader.CountKeys(ctx)
	return int(n), wrap("count keys", err)
}

// key reads a row. A role that nobody knows gives a key that may do nothing.
func key(row db.ApiKey) (Key, error) {
	k := Key{Hash: row.Hash, Key: access.Key{
		ID: row.ID, Owner: row.Owner, Name: row.Name, Role: role(row.Role), Agent: row.Agent != 0, ActsFor: row.ActsFor,
		ExpiresAt: orZero(row.ExpiresAt), LastUsed: orZero(row.LastUsed), CreatedAt: moment(row.CreatedAt),
	}}
	var errs [3]error
	k.Databases, errs[0] = unpacked(row.Databases)
	k.Tables, errs[1] = unpacked(row.Tables)
	k.Models, errs[2] = unpacked(row.Models)
	if err := errors.Join(errs[:]...); err != nil {
		return Key{}, fmt.Errorf("store: key %s is damaged: %w", row.ID, err)
	}
	return k, nil
}

func each[From, To any](rows []From, read func(From) (To, error)) ([]To, error) {
	out := make([]To, 0, len(rows))
	for _, row := range rows {
		item, err := read(row)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func role(name string) access.Role {
	known, err := access.ParseRole(name)
	if err != nil {
		return access.NoRole
	}
	return known
}

// orNull keeps the zero time as NULL.
func orNull(t time.Time) sql.NullInt64 { return sql.NullInt64{Int64: micros(t), Valid: !t.IsZero()} }

func orZero(us sql.NullInt64) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return moment(us.Int64)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w", what, err)
}
