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
	ID        string
	Hash      []byte // HashSecret of the whole secret text
	Owner     string
	Name      string
	Role      string
	Agent     bool
	Databases []string // nil: not narrowed
	Tables    []string
	Models    []string
	CreatedAt time.Time
}

// Principal is the caller that a key makes. A role that nobody knows gives a principal that may do nothing.
func (k Key) Principal() access.Principal {
	role, err := access.ParseRole(k.Role)
	if err != nil {
		role = access.NoRole
	}
	return access.Principal{
		KeyID: k.ID, Owner: k.Owner, Name: k.Name, Role: role, Agent: k.Agent,
		Databases: k.Databases, Tables: k.Tables, Models: k.Models,
	}
}

// NewSecret makes the secret of a key, "slc_" and 43 characters that hold 256 random bits, and its hash. The secret is
// shown once and stored nowhere.
func NewSecret() (secret string, hash []byte) {
	random := make([]byte, 32)
	rand.Read(random) // never fails: crypto/rand ends the program instead
	secret = "slc_" + base64.RawURLEncoding.EncodeToString(random)
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
	if len(k.Hash) != sha256.Size || k.ID == "" || k.Owner == "" {
		return fault.Bug("store: a key without id, owner or hash")
	}
	if _, err := access.ParseRole(k.Role); err != nil {
		return err
	}
	err := s.writer.InsertKey(ctx, db.InsertKeyParams{
		ID: k.ID, Hash: k.Hash, Owner: k.Owner, Name: k.Name, Role: k.Role, Agent: bit(k.Agent),
		Databases: packed(k.Databases), Tables: packed(k.Tables), Models: packed(k.Models), CreatedAt: micros(k.CreatedAt),
	})
	if conflict(err) {
		return fault.New(fault.Conflict, "store.InsertKey", "such a key exists already")
	}
	return wrap("insert a key", err)
}

// KeyByHash finds a key by HashSecret of what a caller sent. No such key is NotFound.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (Key, error) {
	row, err := s.reader.KeyByHash(ctx, hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, fault.New(fault.NotFound, "store.KeyByHash", "no such key")
	}
	if err != nil {
		return Key{}, wrap("find a key", err)
	}
	return key(row)
}

// Keys lists all keys, oldest first.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	rows, err := s.reader.Keys(ctx)
	if err != nil {
		return nil, wrap("list keys", err)
	}
	return each(rows, key)
}

// DeleteKey removes a key; false when there was none.
func (s *Store) DeleteKey(ctx context.Context, id string) (bool, error) {
	n, err := s.writer.DeleteKey(ctx, id)
	return n > 0, wrap("delete a key", err)
}

// CountKeys counts the keys, so that the first start can make the bootstrap key.
func (s *Store) CountKeys(ctx context.Context) (int, error) {
	n, err := s.reader.CountKeys(ctx)
	return int(n), wrap("count keys", err)
}

func key(row db.ApiKey) (Key, error) {
	k := Key{
		ID: row.ID, Hash: row.Hash, Owner: row.Owner, Name: row.Name, Role: row.Role, Agent: row.Agent != 0,
		CreatedAt: moment(row.CreatedAt),
	}
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
