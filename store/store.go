package store

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitecodes "modernc.org/sqlite/lib"

	"sluice/fault"
	"sluice/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is the control store on SQLite. Its methods may be called from many goroutines.
type Store struct {
	path           string // absolute
	write, read    *sql.DB
	writer, reader *db.Queries

	asks atomic.Int64 // inserted since the start
}

// Open opens or creates the file, readable by its owner alone, and migrates it. A file of a newer program is refused
// with code Conflict: an older one could not know what it would break.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := private(path); err != nil {
		return nil, err
	}
	s := &Store{path: path}
	if s.write, err = open(path, "immediate", 1); err != nil {
		return nil, err
	}
	if err := migrate(ctx, s.write); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	if s.read, err = open(path, "deferred", 4, "query_only(1)"); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	s.writer, s.reader = db.New(s.write), db.New(s.read)
	return s, nil
}

// private makes the file with mode 0600 before SQLite can make it with another; SQLite gives its -wal and -shm the mode
// of the database. A file that others could read is closed to them.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func open(path, lock string, connections int, pragmas ...string) (*sql.DB, error) {
	all := append([]string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, pragmas...)
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": all, "_txlock": {lock}}.Encode()}
	pool, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

func migrate(ctx context.Context, pool *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	// goose's global registry of Go migrations is not ours.
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("store: read the version: %w", err)
	}
	if has > knows {
		return fault.New(fault.Conflict, "store.Open", "the control store was written by a newer version of sluice (schema %d; this program knows %d): start that version, or restore a backup", has, knows)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	return nil
}

// change does several writes as one. It is on the disk when change returns nil.
func (s *Store) change(ctx context.Context, do func(*db.Queries) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(s.writer.WithTx(tx)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// look does several reads on one state of the store.
func (s *Store) look(ctx context.Context, do func(*db.Queries) error) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return wrap("begin to read", err)
	}
	return errors.Join(do(s.reader.WithTx(tx)), tx.Rollback())
}

// Close closes it. Calls after that fail.
func (s *Store) Close() error {
	return errors.Join(s.read.Close(), s.write.Close())
}

// conflict says whether err is a broken uniqueness: a second row with the same key.
func conflict(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlitecodes.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlitecodes.SQLITE_CONSTRAINT_PRIMARYKEY)
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

// packed keeps nil and empty apart: nil becomes NULL, empty becomes [].
func packed(list []string) sql.NullString {
	if list == nil {
		return sql.NullString{}
	}
	text, _ := json.Marshal(list) // strings always marshal
	return sql.NullString{String: string(text), Valid: true}
}

func unpacked(text sql.NullString) ([]string, error) {
	if !text.Valid {
		return nil, nil
	}
	list := []string{}
	if err := json.Unmarshal([]byte(text.String), &list); err != nil {
		return nil, err
	}
	if list == nil {
		// "null" must not turn a narrowed key into one that is not.
		return nil, errors.New("a list is null")
	}
	return list, nil
}
