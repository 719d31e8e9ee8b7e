package database

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/array"
	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// Config describes one source database.
type Config struct {
	Name            string
	Kind            string   // "duckdb"
	Path            string   // the DuckDB file
	Writable        bool     // false opens it READ_ONLY
	SessionTimezone string   // default UTC
	LakeRoots       []string // folders that external tables may be read from
	MemoryLimit     string   // DuckDB's own spelling; default "2GB"
	Threads         int      // default: all cores
	TempDir         string   // where folders for what does not fit into memory are made; default the system's
}

func (c Config) withDefaults() Config {
	if c.Kind == "" {
		c.Kind = "duckdb"
	}
	if c.SessionTimezone == "" {
		c.SessionTimezone = "UTC"
	}
	if c.MemoryLimit == "" {
		c.MemoryLimit = "2GB"
	}
	if c.Threads == 0 {
		c.Threads = runtime.NumCPU()
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Name == "":
		return fault.New(fault.Invalid, "database.Open", "a database has no name")
	case c.Kind != "duckdb":
		return fault.New(fault.Unimplemented, "database.Open", "this version opens databases of the kind duckdb, not %s", c.Kind)
	case c.Path == "":
		return fault.New(fault.Invalid, "database.Open", "database %s has no path", c.Name)
	case c.Threads < 0:
		return fault.New(fault.Invalid, "database.Open", "database %s has a negative number of threads", c.Name)
	}
	return nil
}

// Externals gives the external tables of a database. lakecopy implements it. It is asked for every statement, so it looks
// at no file: Table.External.Files does, for those tables that a statement names.
type Externals interface {
	Tables(ctx context.Context, database string) ([]sqlguard.Table, error)
}

// Source is one open database: its catalogue, its gate and the only way to run something on it.
type Source struct {
	cfg    Config
	ext    Externals
	in     *instance
	gate   *sqlguard.Gate
	parser *parser
	seen   seen

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup    // what uses the instance: statements whose rows are not released, second opinions
	own     *sqlguard.Catalog // of a READ_ONLY file, which cannot change while it is open; nil until it is read
}

// Open opens a source. The zero LakeRoots means no external tables.
func Open(ctx context.Context, cfg Config, ext Externals) (*Source, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p, err := sharedParser()
	if err != nil {
		return nil, err
	}
	in, err := acquire(cfg)
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, ext: ext, in: in, parser: p, gate: sqlguard.New(sqlguard.DuckDB, p)}
	if _, err := s.ownCatalog(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Name is the configured name.
func (s *Source) Name() string { return s.cfg.Name }

// Dialect is the source's SQL dialect.
func (s *Source) Dialect() sqlguard.Dialect { return sqlguard.DuckDB }

// Catalog lists the tables and views of the source and its external tables, with columns, comments and keys.
func (s *Source) Catalog(ctx context.Context) (*sqlguard.Catalog, error) {
	own, err := s.ownCatalog(ctx)
	if err != nil {
		return nil, err
	}
	if s.ext == nil || len(s.cfg.LakeRoots) == 0 {
		return own, nil
	}
	external, err := s.ext.Tables(ctx, s.cfg.Name)
	if err != nil {
		return nil, err
	}
	if len(external) == 0 {
		return own, nil // the same one each time, which seen.go counts on
	}
	return merge(own, external), nil
}

// Approve passes a statement through the gate, against the catalogue of now.
func (s *Source) Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	cat, err := s.Catalog(ctx)
	if err != nil {
		return sqlguard.Approved{}, err
	}
	if a, ok := s.seen.find(sql, profile, cat, may); ok {
		if err := s.enter(); err != nil {
			return sqlguard.Approved{}, err
		}
		s.running.Done()
		return a, nil
	}
	a, err := s.gate.Check(ctx, sqlguard.Request{SQL: sql, Database: s.cfg.Name, Profile: profile, Catalog: cat, May: may, Types: s.types})
	if err != nil {
		return sqlguard.Approved{}, err
	}
	if err := s.agrees(ctx, cat, a); err != nil {
		return sqlguard.Approved{}, err
	}
	s.seen.keep(sql, cat, a)
	return a, nil
}

// Run executes an approved statement and streams its rows with bounded memory. Cancelling ctx interrupts the engine.
// The caller must Release the reader; its Err reports a failure in mid-stream.
func (s *Source) Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error) {
	return s.RunParams(ctx, a, nil)
}

// RunParams is Run with values for the statement's parameters: nil, bool, int64, float64 or string, in the order of
// their numbers.
func (s *Source) RunParams(ctx context.Context, a sqlguard.Approved, params []any) (array.RecordReader, error) {
	if !a.Valid() || a.Database() != s.cfg.Name {
		return nil, fault.New(fault.Refused, "database.Run", "the statement was not approved for the database %s", s.cfg.Name)
	}
	for _, p := range a.Patterns() {
		if err := p.Allows(func(name string) string { return textParam(params, name) }); err != nil {
			return nil, err
		}
	}
	view, err := s.readsView(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil { // left by rows.free
		return nil, err
	}
	sql := a.SQL()
	if a.Explain() {
		sql = "EXPLAIN " + sql
	}
	r, err := s.start(ctx, sql, params, about{view: view, external: len(a.Scans()) > 0})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// enter keeps the instance open until running.Done is called.
func (s *Source) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.New(fault.Conflict, "database.Run", "the database %s is closed", s.cfg.Name)
	}
	s.running.Add(1)
	return nil
}

func (s *Source) readsView(ctx context.Context, a sqlguard.Approved) (bool, error) {
	own, err := s.ownCatalog(ctx)
	if err != nil {
		return false, err
	}
	return readsView(own, a), nil
}

// Close closes the source after running statements ended.
func (s *Source) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	if err := s.in.release(); err != nil {
		return fmt.Errorf("database: close %s: %w", s.cfg.Name, err)
	}
	return nil
}

// textParam gives the text that is bound to a parameter of that number.
func textParam(params []any, name string) string {
	i, err := strconv.Atoi(name)
	if err != nil || i < 1 || i > len(params) {
		return ""
	}
	s, _ := params[i-1].(string)
	return s
}

// bind sets the values of a statement's parameters.
func bind(st duck.PreparedStatement, params []any) error {
	if want := int(duck.NParams(st)); want != len(params) {
		return fault.New(fault.Invalid, "database.Run", "the statement has %d parameters, and %d values came with it", want, len(params))
	}
	for i, p := range params {
		at := duck.IdxT(i + 1)
		var state duck.State
		switch v := p.(type) {
		case nil:
			state = duck.BindNull(st, at)
		case bool:
			state = duck.BindBoolean(st, at, v)
		case int64:
			state = duck.BindInt64(st, at, v)
		case float64:
			state = duck.BindDouble(st, at, v)
		case string:
			state = duck.BindVarchar(st, at, v)
		default:
			return fault.New(fault.Invalid, "database.Run", "parameter %s has a type that cannot be bound", strconv.Itoa(i+1))
		}
		if state != duck.StateSuccess {
			return fault.New(fault.Invalid, "database.Run", "parameter %s cannot be bound", strconv.Itoa(i+1))
		}
	}
	return nil
}
