package collection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	pgxvec "github.com/pgvector/pgvector-go/pgx"

	"sluice/fault"
)

// Postgres keeps collections in the schema sluice_rag of a PostgreSQL database, their vectors in pgvector's half floats with
// an HNSW index for each dimension. Several servers may share one.
type Postgres struct {
	cfg *pgx.ConnConfig
	log *slog.Logger
	few int64 // see there

	slots chan struct{} // one for each connection that may be there

	mu       sync.Mutex
	idle     []*pgx.Conn
	closed   bool
	migrated bool
}

// mostConns is how many connections are used at a time.
const mostConns = 8

// oldestPgvector is the first with iterative index scans, without which a filtered search gives too few rows.
const oldestPgvector = "0.8.0"

// NewPostgres reads the URL of a database. It connects when it is first asked, and says then what is missing, so that a server
// starts while its database does not answer.
func NewPostgres(url string, log *slog.Logger) (*Postgres, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fault.New(fault.Invalid, "collection.NewPostgres", "rag.store is not the URL of a PostgreSQL database: postgres://user:password@host:5432/database") // err may hold the password
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "sluice rag"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { // who leaves ends the statement on the server too
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 2 * time.Second}
	}
	return &Postgres{cfg: cfg, log: log, few: few, slots: make(chan struct{}, mostConns)}, nil
}

// Close closes the connections; one that is in use closes itself when it is given back.
func (p *Postgres) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		end(c)
	}
	p.idle = nil
	return nil
}

func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// change runs do in a transaction that is kept when do gives no error.
func (p *Postgres) change(ctx context.Context, do func(pgx.Tx) error) error {
	return p.transact(ctx, pgx.TxOptions{}, do)
}

// read runs do in a transaction that can change nothing and sees one state.
func (p *Postgres) read(ctx context.Context, do func(pgx.Tx) error) error {
	return p.transact(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, do)
}

func (p *Postgres) transact(ctx context.Context, opts pgx.TxOptions, do func(pgx.Tx) error) error {
	c, tx, err := p.begin(ctx, opts)
	if err != nil {
		return p.classify(ctx, err)
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(late) // after a commit nothing
		p.give(c)
	}()
	if err = do(tx); err == nil {
		err = tx.Commit(ctx)
	}
	return p.classify(ctx, err)
}

// begin takes a connection and begins. One that died while nobody used it is dropped for the next.
func (p *Postgres) begin(ctx context.Context, opts pgx.TxOptions) (*pgx.Conn, pgx.Tx, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	for {
		c, old, err := p.take(ctx)
		if err != nil {
			<-p.slots
			return nil, nil, err
		}
		tx, err := c.BeginTx(ctx, opts)
		if err == nil {
			return c, tx, nil
		}
		end(c)
		if !old || ctx.Err() != nil {
			<-p.slots
			return nil, nil, err
		}
	}
}

func (p *Postgres) take(ctx context.Context) (c *pgx.Conn, old bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, fault.New(fault.Conflict, "collection.Postgres", "the store of documents is closed")
	}
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
		p.mu.Unlock()
		return c, true, nil
	}
	p.mu.Unlock()
	c, err = p.dial(ctx)
	return c, false, err
}

func (p *Postgres) give(c *pgx.Conn) {
	p.mu.Lock()
	if c.IsClosed() || p.closed {
		p.mu.Unlock()
		end(c)
	} else {
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
	<-p.slots
}

// dial connects, makes the schema at the first time, and sets the connection up.
func (p *Postgres) dial(ctx context.Context) (_ *pgx.Conn, err error) {
	c, err := pgx.ConnectConfig(ctx, p.cfg.Copy())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end(c)
		}
	}()
	p.mu.Lock()
	migrated := p.migrated
	p.mu.Unlock()
	if !migrated {
		if err := migrate(ctx, c); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.migrated = true
		p.mu.Unlock()
	}
	schema, err := pgvector(ctx, c)
	if err != nil {
		return nil, err
	}
	// pg_catalog is before all of them; what others put into their temporary schema is behind.
	path := "sluice_rag, " + pgx.Identifier{schema}.Sanitize() + ", pg_temp"
	if _, err := c.Exec(ctx, "SELECT set_config('search_path', $1, false), set_config('statement_timeout', '120s', false)", path); err != nil {
		return nil, err
	}
	return c, pgxvec.RegisterTypes(ctx, c)
}

// pgvector finds the schema of the extension, and says what to do when it is not there or too old.
func pgvector(ctx context.Context, c *pgx.Conn) (schema string, err error) {
	var version string
	err = c.QueryRow(ctx, "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'").Scan(&schema, &version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", &fault.Error{Code: fault.Conflict, Op: "collection.Postgres", Msg: "the database of rag.store has not the extension vector (pgvector)",
			Hint: "have an administrator of that database run: CREATE EXTENSION vector; the package is called postgresql-18-pgvector or the like"}
	case err != nil:
		return "", err
	case older(version, oldestPgvector):
		return "", &fault.Error{Code: fault.Conflict, Op: "collection.Postgres", Msg: "the database of rag.store has pgvector " + version + "; " + oldestPgvector + " or newer is needed",
			Hint: "install it and have an administrator of that database run: ALTER EXTENSION vector UPDATE"}
	}
	return schema, nil
}

// older compares versions of numbers and dots.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range b {
		var x int
		if i < len(a) {
			x, _ = strconv.Atoi(a[i])
		}
		if y, _ := strconv.Atoi(b[i]); x != y {
			return x < y
		}
	}
	return false
}

// classify says what a caller can do about an error. What the server says may show a path or a text, so it is for the log.
func (p *Postgres) classify(ctx context.Context, err error) error {
	const op = "collection.Postgres"
	var known *fault.Error
	var pg *pgconn.PgError
	var refused *pgconn.ConnectError
	switch {
	case err == nil || errors.As(err, &known) || errors.Is(err, errMoved):
		return err
	case ctx.Err() != nil:
		return fault.Wrap(err, fault.Canceled, op, "the request was cancelled")
	case errors.As(err, &refused) || pgconn.Timeout(err):
		p.log.Warn("the store of documents does not answer", "error", err.Error())
		return &fault.Error{Code: fault.Busy, Op: op, Msg: "the store of documents does not answer", RetryAfter: 10 * time.Second, Err: err}
	case !errors.As(err, &pg):
		return &fault.Error{Code: fault.Busy, Op: op, Msg: "the connection to the store of documents broke", Hint: "try again", RetryAfter: time.Second, Err: err}
	}
	switch pg.Code {
	case "42501": // insufficient_privilege
		p.log.Error("the role of rag.store lacks a right", "error", pg.Message)
		return &fault.Error{Code: fault.Conflict, Op: op, Msg: "the role of rag.store lacks a right in its database: the log says which",
			Hint: "it needs CREATE on the database, for the schema sluice_rag, which it then owns", Err: err}
	case "57014": // query_canceled: by statement_timeout
		return fault.Wrap(err, fault.Busy, op, "the store of documents took too long")
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return &fault.Error{Code: fault.Busy, Op: op, Msg: "somebody else changed the same just now", Hint: "try again", RetryAfter: time.Second, Err: err}
	case "57P01", "57P02", "57P03", "53300": // shutting down, starting, too many connections
		return &fault.Error{Code: fault.Busy, Op: op, Msg: "the store of documents does not answer", RetryAfter: 10 * time.Second, Err: err}
	case "53100": // disk_full
		return fault.Wrap(err, fault.TooLarge, op, "the store of documents has no room left")
	}
	return fmt.Errorf("%s: %w", op, err)
}
