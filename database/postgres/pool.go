package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
)

// maxAge is how long a connection is used: after a change of the server's address, its role or its configuration the old
// ones are gone by then.
const maxAge = 30 * time.Minute

// conn is a connection with what it knows of the server's types. One use has it at a time.
type conn struct {
	pg         *pgconn.PgConn
	born       time.Time
	types      map[uint32]pgType // by OID, as far as they were asked for
	moneyScale int32             // digits of money behind the point; 0: not asked for, else one more than it is
	exact      bool              // the statement that runs may round no number
}

// end closes a connection in which nothing runs.
func (c *conn) end() {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	_ = c.pg.Close(ctx)
}

// lease is the use of a connection with an open transaction. It ends with done or abandon, once.
type lease struct {
	*conn
	engine *Engine
	run    bool
}

// take waits for a connection and begins a transaction in it. run is for statements whose rows stream.
func (e *Engine) take(ctx context.Context, run bool, t transaction) (*lease, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	l := &lease{engine: e, run: run}
	if err := e.queue(ctx, run); err != nil {
		e.work.Done()
		return nil, err
	}
	for {
		c := e.pop()
		old := c != nil
		if !old {
			var err error
			if c, err = e.dial(ctx); err != nil {
				l.leave()
				return nil, err
			}
		}
		err := e.begin(ctx, c, t)
		if err == nil {
			l.conn = c
			return l, nil
		}
		l.conn = c
		if !old || ctx.Err() != nil {
			l.abandon()
			return nil, e.unreachable(ctx, err)
		}
		e.drop(c) // it died while nobody used it, as when the server was restarted: take the next one
	}
}

// enter counts a use, unless the engine is closed.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fault.New(fault.Conflict, "postgres.connect", "the database %s is closed", e.cfg.Name)
	}
	e.work.Add(1)
	return nil
}

// queue waits for a place among the connections in use.
func (e *Engine) queue(ctx context.Context, run bool) error {
	limit := time.NewTimer(e.cfg.QueueTimeout)
	defer limit.Stop()
	wait := func(places chan struct{}) error {
		select {
		case places <- struct{}{}:
			return nil
		default:
		}
		select {
		case places <- struct{}{}:
			return nil
		case <-ctx.Done():
			return e.over(ctx, "postgres.connect")
		case <-e.ending:
			return fault.New(fault.Conflict, "postgres.connect", "the database %s is closed", e.cfg.Name)
		case <-limit.C:
			f := fault.New(fault.Busy, "postgres.connect", "all %d connections to the database %s are in use", e.cfg.MaxConns, e.cfg.Name)
			f.RetryAfter = 5 * time.Second
			return f
		}
	}
	if run {
		if err := wait(e.runs); err != nil {
			return err
		}
	}
	if err := wait(e.slots); err != nil {
		if run {
			<-e.runs
		}
		return err
	}
	return nil
}

// leave gives the place back.
func (l *lease) leave() {
	<-l.engine.slots
	if l.run {
		<-l.engine.runs
	}
	l.engine.work.Done()
}

// pop takes the connection that was used last, if there is one.
func (e *Engine) pop() *conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.idle)
	if n == 0 {
		return nil
	}
	c := e.idle[n-1]
	e.idle = e.idle[:n-1]
	return c
}

// done rolls the transaction back, resets the session and keeps the connection for the next use. What fails at that is
// no error of the statement, whose rows are read: the connection is closed.
func (l *lease) done() {
	c, e := l.conn, l.engine
	if c.pg.IsClosed() || time.Since(c.born) > maxAge || c.reset() != nil {
		l.abandon()
		return
	}
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.idle = append(e.idle, c)
	}
	e.mu.Unlock()
	if closed {
		c.end()
	}
	l.leave()
}

// abandon gives a connection up, with whatever runs in it. It returns at once: the server is told in the background, and
// the place is free when the connection is gone.
func (l *lease) abandon() {
	go func() {
		defer l.leave()
		l.engine.drop(l.conn)
	}()
}

// drop closes a connection after cancelling what runs in it.
func (e *Engine) drop(c *conn) {
	if c.pg.IsClosed() {
		<-c.pg.CleanupDone()
		return
	}
	if c.pg.IsBusy() {
		cancelOnServer(c.pg)
	}
	c.end()
}
