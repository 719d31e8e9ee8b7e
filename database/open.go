package database

import (
	"context"
	"time"

	"sluice/database/duckdb"
	"sluice/database/postgres"
	"sluice/fault"
	"sluice/sqlguard"
)

// The kinds of databases.
const (
	KindDuckDB   = "duckdb"
	KindPostgres = "postgres"
)

// Config describes one source database.
type Config struct {
	Name            string
	Kind            string // KindDuckDB (default) or KindPostgres
	SessionTimezone string // default UTC
	Writable        bool   // false opens a DuckDB file READ_ONLY, and refuses writes of either kind

	// DuckDB's.
	Path        string   // the file
	LakeRoots   []string // folders that external tables may be read from
	MemoryLimit string   // DuckDB's own spelling; default "2GB"
	Threads     int      // default: all cores
	TempDir     string   // where folders for what does not fit into memory are made; default the system's

	// PostgreSQL's.
	URL              string        // with the password: never shown
	Schemas          []string      // whose tables are seen; default public
	StatementTimeout time.Duration // of one statement on the server, but not of a copy; default 60 s, negative: none
}

// Open opens a source. The zero LakeRoots means no external tables.
func Open(ctx context.Context, cfg Config, ext Externals) (*Source, error) {
	if cfg.Name == "" {
		return nil, fault.New(fault.Invalid, "database.Open", "a database has no name")
	}
	switch cfg.Kind {
	case "", KindDuckDB:
		return openDuckDB(ctx, cfg, ext)
	case KindPostgres:
		return openPostgres(ctx, cfg)
	}
	return nil, fault.New(fault.Invalid, "database.Open", "database %s is of the kind %s, which is neither duckdb nor postgres", cfg.Name, cfg.Kind)
}

// openPostgres connects to nothing: a server that is down is Busy at each use, until it is there again. There are no external
// tables: the server cannot read our files.
func openPostgres(ctx context.Context, cfg Config) (*Source, error) {
	if len(cfg.Schemas) == 0 {
		cfg.Schemas = []string{"public"}
	}
	e, err := postgres.Open(ctx, postgres.Config{Name: cfg.Name, URL: cfg.URL, Schemas: cfg.Schemas, SessionTimezone: cfg.SessionTimezone, StatementTimeout: cfg.StatementTimeout})
	if err != nil {
		return nil, err
	}
	return &Source{cfg: cfg, engine: e, dialect: sqlguard.Postgres, gate: sqlguard.New(sqlguard.Postgres, nil)}, nil
}

func openDuckDB(ctx context.Context, cfg Config, ext Externals) (*Source, error) {
	parser, err := duckdb.Parser()
	if err != nil {
		return nil, err
	}
	e, err := duckdb.Open(ctx, duckdb.Config{Name: cfg.Name, Path: cfg.Path, Writable: cfg.Writable, SessionTimezone: cfg.SessionTimezone,
		LakeRoots: cfg.LakeRoots, MemoryLimit: cfg.MemoryLimit, Threads: cfg.Threads, TempDir: cfg.TempDir})
	if err != nil {
		return nil, err
	}
	return &Source{cfg: cfg, ext: ext, engine: e, dialect: sqlguard.DuckDB, gate: sqlguard.New(sqlguard.DuckDB, parser)}, nil
}

// CreateFile makes a new DuckDB file from the operator's own scripts (duckdb.CreateFile).
func CreateFile(ctx context.Context, path string, scripts ...string) error {
	return duckdb.CreateFile(ctx, path, scripts...)
}
