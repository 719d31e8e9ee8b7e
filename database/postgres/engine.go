package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
	"sluice/sqlguard"
)

// Config describes one PostgreSQL source.
type Config struct {
	Name            string
	URL             string   // postgres://user:password@host:port/database?sslmode=…; never shown
	Schemas         []string // whose relations are seen, in the order in which a name without a schema is looked for; default public
	SessionTimezone string   // default UTC

	MaxConns         int           // connections at once, default 8; one of several is kept for the catalogue and for checks
	StatementTimeout time.Duration // of one statement on the server, except what is copied to the lake; default 60 s, negative: none
	LockTimeout      time.Duration // of waiting for a lock, default 10 s
	QueueTimeout     time.Duration // of waiting for a connection when all are in use, default 30 s
	ConnectTimeout   time.Duration // of connecting, unless the URL has a connect_timeout; default 5 s
	MaxRowBytes      int           // of one row on the wire, default 64 MiB
}

func (c Config) withDefaults() Config {
	if len(c.Schemas) == 0 {
		c.Schemas = []string{"public"}
	}
	if c.SessionTimezone == "" {
		c.SessionTimezone = "UTC"
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.StatementTimeout, time.Minute)
	def(&c.LockTimeout, 10*time.Second)
	def(&c.QueueTimeout, 30*time.Second)
	def(&c.ConnectTimeout, 5*time.Second)
	if c.MaxConns == 0 {
		c.MaxConns = 8
	}
	if c.MaxRowBytes == 0 {
		c.MaxRowBytes = 64 << 20
	}
	return c
}

func (c Config) validate() error {
	invalid := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "postgres.Open", format, args...)
	}
	switch {
	case c.Name == "":
		return invalid("a database has no name")
	case c.URL == "":
		return invalid("database %s has no url", c.Name)
	case c.MaxConns < 0 || c.LockTimeout < 0 || c.QueueTimeout < 0 || c.ConnectTimeout < 0 || c.MaxRowBytes < 0:
		return invalid("database %s has a negative limit", c.Name)
	}
	for i, s := range c.Schemas {
		switch {
		case s == "":
			return invalid("database %s has a schema without a name", c.Name)
		case strings.HasPrefix(s, "pg_") || s == "information_schema":
			return invalid("database %s: the schema %s is the server's own and no source", c.Name, s)
		case strings.ContainsRune(s, 0) || strings.ContainsRune(c.SessionTimezone, 0):
			return invalid("database %s: a name has a zero byte", c.Name)
		case slices.Contains(c.Schemas[:i], s):
			return invalid("database %s names the schema %s twice", c.Name, s)
		}
	}
	return nil
}

// Engine is one PostgreSQL source. Its methods may be called by any goroutine.
type Engine struct {
	cfg     Config
	connect *pgconn.Config // copied for each connection, never changed
	plain   atomic.Bool    // the server takes no settings at connecting: a connection pooler is in between

	slots chan struct{} // one for each connection in use
	runs  chan struct{} // and one for each statement whose rows stream: fewer, so that they never take the last connection
	fresh fresh
	own   time.Duration // that the catalogue and a check may take in all, whatever the server says

	mu     sync.Mutex
	idle   []*conn
	closed bool
	ending chan struct{}  // closed with closed, ends waiting for a connection
	work   sync.WaitGroup // uses, and connections that are being given up
}

// Open makes a source of a URL. It connects to nothing: a server that cannot be reached is told at each use.
func Open(_ context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, ending: make(chan struct{}), fresh: newFresh(), own: ownTimeout + 5*time.Second}
	var err error
	if e.connect, err = e.parseURL(); err != nil {
		return nil, err
	}
	e.slots = make(chan struct{}, cfg.MaxConns)
	e.runs = make(chan struct{}, max(cfg.MaxConns-1, 1))
	return e, nil
}

// Types is sqlguard.Request.Types. A sum of PostgreSQL needs no help: that of INTEGER is BIGINT.
func (e *Engine) Types(context.Context, string, string) (map[string][]string, error) { return nil, nil }

// Run executes an approved statement in a read-only transaction and streams its rows with bounded memory. What fails
// before the first row is Run's error, what fails later the reader's Err. Cancelling ctx cancels the statement on the
// server, and so does releasing the reader before its end.
func (e *Engine) Run(ctx context.Context, a sqlguard.Approved, params []any) (array.RecordReader, error) {
	if !a.Valid() || a.Database() != e.cfg.Name {
		return nil, fault.New(fault.Refused, "postgres.Run", "the statement was not approved for the database %s", e.cfg.Name)
	}
	guarded, err := e.guarded(ctx, a.Relations())
	if err != nil {
		return nil, err
	}
	s := statement{sql: a.SQL(), params: params, hide: guarded, exact: a.Profile() == sqlguard.CopySource}
	if a.Profile() != sqlguard.CopySource { // a copy may take hours; who started it can cancel it
		s.timeout = e.cfg.StatementTimeout
	}
	if a.Explain() {
		if guarded {
			return nil, fault.New(fault.Refused, "postgres.Run", "the plan of %s is not shown", guardedThings)
		}
		s.sql = "EXPLAIN " + s.sql
	}
	r, err := e.stream(ctx, s)
	if err != nil {
		return nil, err // not r: a nil *rows is no nil reader
	}
	return r, nil
}

// Close closes the connections after running statements ended. Uses after it are a Conflict.
func (e *Engine) Close() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.ending)
	}
	e.mu.Unlock()
	e.work.Wait()
	e.mu.Lock()
	idle := e.idle
	e.idle = nil
	e.mu.Unlock()
	for _, c := range idle {
		c.end()
	}
	return nil
}
