package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice/config"
	"sluice/database"
	"sluice/sqlguard"
)

// openDatabases opens the sources. A PostgreSQL server that cannot be reached keeps none of the others from being asked:
// the log tells of it, /readyz warns, and it is there as soon as it answers.
func (s *server) openDatabases(ctx context.Context) error {
	var roots []string
	for _, c := range s.connections() {
		root, err := c.Root()
		if err != nil {
			return err
		}
		roots = append(roots, root)
	}
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Databases)) {
		db := s.cfg.Databases[name]
		if db.Kind == database.KindDuckDB {
			if err := s.makeFile(ctx, name, db); err != nil {
				return err
			}
		}
		src, err := database.Open(ctx, sourceConfig(s.cfg, name, roots), s.lake)
		if err != nil {
			return fmt.Errorf("databases.%s: %w", name, err)
		}
		s.databases[name] = src
	}
	s.reach = newReach(s.databases, s.log)
	s.reach.look(ctx)
	return nil
}

// makeFile makes the file of the database that nobody named. One that somebody named must be there.
func (s *server) makeFile(ctx context.Context, name string, db config.Database) error {
	if _, err := os.Stat(db.Path); !errors.Is(err, os.ErrNotExist) {
		return nil // what else is wrong with it is told by opening it
	}
	if !db.Implicit {
		return usageError{fmt.Errorf("databases.%s.path: there is no file %s (sluice load makes one from SQL scripts; relative paths are below home)", name, db.Path)}
	}
	if err := database.CreateFile(ctx, db.Path); err != nil {
		return fmt.Errorf("databases.%s: %w", name, err)
	}
	s.log.Info("made an empty database", "database", name, "path", db.Path)
	return nil
}

// sourceConfig is a database of the settings, as package database has it. roots are the lakes' folders.
func sourceConfig(cfg *config.Config, name string, roots []string) database.Config {
	db := cfg.Databases[name]
	return database.Config{
		Name: name, Kind: db.Kind, Writable: db.Writable, SessionTimezone: db.SessionTimezone, StatementTimeout: time.Duration(cfg.Limits.StatementTimeout),
		Path: db.Path, LakeRoots: roots,
		TempDir: filepath.Join(cfg.Home, "tmp"), // not the system's, which is often memory
		URL:     db.URL, Schemas: db.Schemas,
	}
}

// warnings are for /readyz.
func (s *server) warnings() []string { return append(s.defaults.Warnings(), s.reach.warnings()...) }

const (
	reachEvery   = 10 * time.Second // /readyz is asked by anybody, as often as they like
	reachTimeout = 2 * time.Second  // of one look
)

// reach knows which databases on servers elsewhere can be reached.
type reach struct {
	sources []*database.Source
	log     *slog.Logger

	mu     sync.Mutex
	looked time.Time
	away   map[string]bool
}

func newReach(all map[string]*database.Source, log *slog.Logger) *reach {
	r := &reach{log: log, away: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].Dialect() == sqlguard.Postgres {
			r.sources = append(r.sources, all[name])
		}
	}
	return r
}

// look asks each of them, and logs what has changed.
func (r *reach) look(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errors.New("it did not answer in "+reachTimeout.String()))
	defer cancel()
	errs := make([]error, len(r.sources))
	var all sync.WaitGroup
	for i, src := range r.sources {
		all.Go(func() { _, errs[i] = src.Catalog(ctx) })
	}
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = time.Now()
	for i, src := range r.sources {
		switch away := errs[i] != nil; {
		case away && !r.away[src.Name()]:
			r.log.Warn("a database cannot be used; it is asked again with each statement", "database", src.Name(), "error", errs[i].Error())
		case !away && r.away[src.Name()]:
			r.log.Info("a database can be used again", "database", src.Name())
		}
		r.away[src.Name()] = errs[i] != nil
	}
}

// warnings tells how many cannot be used. Their names are for the log: strangers may ask /readyz.
func (r *reach) warnings() []string {
	if r == nil || len(r.sources) == 0 {
		return nil
	}
	r.mu.Lock()
	old := time.Since(r.looked) > reachEvery
	if old {
		r.looked = time.Now() // one looks, others hear what was
	}
	r.mu.Unlock()
	if old {
		r.look(context.Background())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, away := range r.away {
		if away {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %s cannot be used now: the log says which, and why", n, count(len(r.sources), "PostgreSQL database"))}
}
