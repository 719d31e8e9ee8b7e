package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

// slow runs for an hour after some rows, which are long because the server sends when its buffer is full.
const slow = "SELECT repeat('x', 20000), pg_sleep(CASE WHEN g > 3 THEN 3600 ELSE 0 END) IS NULL FROM generate_series(1, 10) g"

func TestRealCancellingStopsTheStatementOnTheServer(t *testing.T) {
	wide(t)
	why := errors.New("the caller left")
	cases := map[string]func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error{
		"before it begins": func(_ *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			cancel()
			_, err := e.text(ctx, "SELECT 1")
			return err
		},
		"while it waits for a connection": func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			held, err := e.text(t.Context(), wideQuery)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Release()
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err = e.text(ctx, "SELECT 1")
			return err
		},
		"before the first row": func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			go func() {
				defer cancel()
				eventually(t, "the statement runs", func() bool { return sessions(t, "active") == 1 })
			}()
			_, err := e.text(ctx, "SELECT pg_sleep(3600)")
			return err
		},
		"while the reader waits for rows": func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			r, err := e.text(ctx, slow)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err = all(r)
			return err
		},
		"while nobody reads and the server computes": func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			r, err := e.text(ctx, slow)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			eventually(t, "the server stops by itself", func() bool { return sessions(t, "active") == 0 })
			_, err = all(r)
			return err
		},
		"while nobody reads and the server cannot send": func(t *testing.T, e *Engine, ctx context.Context, cancel func()) error {
			r, err := e.text(ctx, "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)")
			if err != nil {
				t.Fatal(err)
			}
			if !r.Next() {
				t.Fatal(r.Err())
			}
			cancel()
			_, err = all(r)
			return err
		},
	}
	for name, stop := range cases {
		t.Run(name, func(t *testing.T) {
			e := open(t, func(c *Config) { c.MaxConns = 1 })
			ctx, cancel := context.WithCancelCause(t.Context())
			err := stop(t, e, ctx, func() { cancel(why) })
			if fault.CodeOf(err) != fault.Canceled || !errors.Is(err, why) {
				t.Errorf("the error is %v", err)
			}
			eventually(t, "nothing is left running", func() bool { return sessions(t, "active") == 0 && sessions(t, "idle in transaction%") == 0 })
			if err := run(t, e, "SELECT 1"); err != nil {
				t.Errorf("the next statement: %v", err)
			}
		})
	}
}

func TestRealReleasingEarlyStopsTheStatementOnTheServer(t *testing.T) {
	wide(t)
	for name, sql := range map[string]string{"the server computes": slow, "the server sends": wideQuery} {
		t.Run(name, func(t *testing.T) {
			e := open(t, func(c *Config) { c.MaxConns = 1 })
			for range 5 {
				r, err := e.text(t.Context(), sql)
				if err != nil {
					t.Fatal(err)
				}
				r.Release()
				if r.Next() || r.RecordBatch() != nil {
					t.Error("a released reader has rows")
				}
				r.Release() // once too often does no harm
			}
			eventually(t, "nothing is left running", func() bool { return sessions(t, "active") == 0 && sessions(t, "idle in transaction%") == 0 })
			if err := run(t, e, "SELECT 1"); err != nil {
				t.Errorf("the next statement: %v", err)
			}
		})
	}
}

func TestRealAValueThatDoesNotFitStopsTheStatementOnTheServer(t *testing.T) {
	e := open(t, func(c *Config) { c.MaxConns = 1 })
	sql := strings.Replace(slow, "SELECT ", "SELECT (CASE WHEN g = 2 THEN 'NaN' ELSE '1' END)::numeric, ", 1)
	r, err := e.text(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release() // later: the error alone is enough
	for r.Next() {
	}
	if f := fault.Public(r.Err()); f.Kind != "range" {
		t.Fatalf("%v", f)
	}
	eventually(t, "nothing is left running", func() bool { return sessions(t, "active") == 0 && sessions(t, "idle in transaction%") == 0 })
	if err := run(t, e, "SELECT 1"); err != nil {
		t.Errorf("the next statement: %v", err)
	}
}

func TestRealReleaseWakesAReaderThatWaits(t *testing.T) {
	e := open(t)
	r, err := e.text(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		for r.Next() {
		}
		ended <- r.Err()
	}()
	eventually(t, "the statement runs", func() bool { return sessions(t, "active") == 1 })
	r.Release()
	select {
	case err := <-ended:
		if err != nil && fault.CodeOf(err) != fault.Canceled {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the reader still waits")
	}
}

func TestRealAStatementThatTakesTooLongIsEnded(t *testing.T) {
	e := open(t, func(c *Config) { c.StatementTimeout = 200 * time.Millisecond })
	for name, sql := range map[string]string{"before the first row": "SELECT pg_sleep(3600)", "in mid-stream": slow} {
		t.Run(name, func(t *testing.T) {
			f := fault.Public(run(t, e, sql))
			if f.Code != fault.TooLarge || f.Kind != "limit" || f.Msg != "the statement took longer than 200ms" {
				t.Errorf("%v", f)
			}
		})
	}
	r, err := e.stream(t.Context(), statement{sql: "SELECT pg_sleep(0.4)"}) // a copy has no limit
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all(r); err != nil {
		t.Error(err)
	}
}

func TestRealAConnectionThatIsKilledIsBusyAndHeals(t *testing.T) {
	wide(t)
	e := open(t)
	kill := func() {
		admin(t, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '"+role()+"'")
	}
	r, err := e.text(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	kill()
	_, err = all(r)
	f := fault.Public(err)
	if f.Code != fault.Busy || f.RetryAfter == 0 || f.Msg != "the connection to the database erp was lost; ask again" {
		t.Errorf("in mid-stream: %v", err)
	}
	// Idle ones that died are not noticed by anybody.
	var open []*rows
	for range 3 {
		r, err := e.text(t.Context(), wideQuery+" LIMIT 50000")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	for _, r := range open {
		if _, err := all(r); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	if err := run(t, e, "SELECT 1"); err != nil {
		t.Errorf("after idle connections were killed: %v", err)
	}
}

func TestRealCloseWaitsForRunningStatements(t *testing.T) {
	e := open(t)
	r, err := e.text(t.Context(), "SELECT g FROM generate_series(1, 100000) g")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	eventually(t, "the engine closes", func() bool {
		_, err := e.Catalog(t.Context())
		return fault.CodeOf(err) == fault.Conflict
	})
	if err := run(t, e, "SELECT 1"); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a statement after Close: %v", err)
	}
	if n, err := all(r); n != 100000 || err != nil {
		t.Errorf("the running one: %d, %v", n, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	eventually(t, "no session is left", func() bool { return sessions(t, "%") == 0 })
}
