package duckdb

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

// Config describes one database file and how it is opened.
type Config struct {
	Name            string
	Path            string
	Writable        bool     // false opens it READ_ONLY
	SessionTimezone string   // default UTC
	LakeRoots       []string // folders that external tables may be read from
	MemoryLimit     string   // DuckDB's own spelling; default "2GB"
	Threads         int      // default: all cores
	TempDir         string   // where folders for what does not fit into memory are made; default the system's
}

func (c Config) withDefaults() Config {
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
	case c.Path == "":
		return fault.New(fault.Invalid, "database.Open", "database %s has no path", c.Name)
	case c.Threads < 0:
		return fault.New(fault.Invalid, "database.Open", "database %s has a negative number of threads", c.Name)
	}
	return nil
}

// Engine is one open database file. Its methods may be called by any goroutine.
type Engine struct {
	cfg Config
	in  *instance

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup    // what uses the instance: statements whose rows are not released, second opinions
	own     *sqlguard.Catalog // of the file, which nothing but Write changes while it is open; nil until it is read
	ownAt   int64             // instance.schemas of then
}

// Open opens a file and reads its catalogue. Files that are open already in another way are a Conflict.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	in, err := acquire(cfg)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, in: in}
	if _, err := e.Catalog(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Catalog lists what the file holds. It is read once, and anew after a statement that changed it.
func (e *Engine) Catalog(ctx context.Context) (*sqlguard.Catalog, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fault.New(fault.Conflict, "database.Catalog", "the database %s is closed", e.cfg.Name)
	}
	at := e.in.schemas.Load() // before the catalogue is read: a change meanwhile has it read again
	if e.own != nil && e.ownAt == at {
		return e.own, nil
	}
	cat, err := readCatalog(ctx, e.in)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "database.Catalog", "the catalogue of database %s cannot be read", e.cfg.Name)
	}
	e.own, e.ownAt = cat, at
	return cat, nil
}

// Writable says whether the file was opened for writing.
func (e *Engine) Writable() bool { return e.cfg.Writable }

// Check asks the engine what it would read for the approved text and compares with the gate's answer. The two can differ
// only when one of them is wrong about a name, such as which WITH it means; then nothing runs.
func (e *Engine) Check(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	return e.in.agrees(ctx, cat, a)
}

// Types gives the types of the marked expressions of a text (sqlguard.Request.Types).
func (e *Engine) Types(ctx context.Context, sql, mark string) (map[string][]string, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	return e.in.types(ctx, sql, mark)
}

// Run executes an approved statement, with values for its parameters (nil, bool, int64, float64 or string, in the order
// of their numbers), and streams its rows with bounded memory. Cancelling ctx interrupts it.
func (e *Engine) Run(ctx context.Context, a sqlguard.Approved, params []any) (array.RecordReader, error) {
	own, err := e.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	sql := a.SQL()
	if a.Explain() {
		sql = "EXPLAIN " + sql
	}
	r, err := e.start(ctx, sql, params, about{view: readsView(own, a), external: len(a.Scans()) > 0})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// enter keeps the instance open until running.Done is called.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fault.New(fault.Conflict, "database.Run", "the database %s is closed", e.cfg.Name)
	}
	e.running.Add(1)
	return nil
}

// Close closes the file after running statements ended.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.running.Wait()
	if err := e.in.release(); err != nil {
		return fmt.Errorf("database: close %s: %w", e.cfg.Name, err)
	}
	return nil
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
