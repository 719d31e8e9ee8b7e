package postgres

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/fault"
)

func one(t *testing.T, e *Engine, sql string) string {
	t.Helper()
	_, values, err := value(t, e, sql)
	if err != nil || len(values) != 1 {
		t.Fatalf("%s: %q, %v", sql, values, err)
	}
	return strings.Trim(values[0], `"`)
}

func TestRealNothingOfOneStatementIsThereForTheNext(t *testing.T) {
	e := open(t, func(c *Config) { c.MaxConns = 1; c.SessionTimezone = "Europe/Berlin" })
	pid := one(t, e, "SELECT pg_backend_pid()")
	leave := map[string]struct{ leave, look, want string }{
		"search_path":                   {"SELECT set_config('search_path', 'public', false)", "SHOW search_path", "pg_catalog, pg_temp"},
		"the read-only default":         {"SELECT set_config('default_transaction_read_only', 'off', false)", "SHOW default_transaction_read_only", "on"},
		"the statement's time":          {"SELECT set_config('statement_timeout', '0', false)", "SHOW statement_timeout", "1min"},
		"the time of idle transactions": {"SELECT set_config('idle_in_transaction_session_timeout', '0', false)", "SHOW idle_in_transaction_session_timeout", "1min"},
		"the time for locks":            {"SELECT set_config('lock_timeout', '0', false)", "SHOW lock_timeout", "10s"},
		"the time zone":                 {"SELECT set_config('TimeZone', 'Asia/Tokyo', false)", "SHOW TimeZone", "Europe/Berlin"},
		"strings":                       {"SELECT set_config('standard_conforming_strings', 'off', false)", "SHOW standard_conforming_strings", "on"},
		"dates":                         {"SELECT set_config('datestyle', 'German', false)", "SHOW datestyle", "ISO, MDY"},
		"row security":                  {"SELECT set_config('row_security', 'off', false)", "SHOW row_security", "on"},
		"a setting of one's own":        {"SELECT set_config('my.secret', 'x', false)", "SELECT coalesce(current_setting('my.secret', true), '')", ""},
		"a lock":                        {"SELECT pg_advisory_lock_shared(7) IS NULL", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", "0"},
		"who asks":                      {"SELECT set_config('application_name', 'x', false)", "SHOW application_name", "sluice"},
	}
	for name, c := range leave {
		t.Run(name, func(t *testing.T) {
			if err := run(t, e, c.leave); err != nil {
				t.Fatal(err)
			}
			if got := one(t, e, c.look); got != c.want {
				t.Errorf("%q is left, want %q", got, c.want)
			}
		})
	}
	if now := one(t, e, "SELECT pg_backend_pid()"); now != pid {
		t.Error("it was not the same connection, so nothing was tested")
	}
	if got := one(t, e, "SELECT count(*) FROM pg_prepared_statements"); got != "0" {
		t.Errorf("%s prepared statements are left", got)
	}
}

func TestRealNothingWritesAndNoTwoStatementsRun(t *testing.T) {
	admin(t, "CREATE TABLE IF NOT EXISTS written (n int); GRANT ALL ON written TO "+role())
	e := open(t)
	cases := map[string]struct {
		sql  string
		code fault.Code
	}{
		"an insert":                        {"INSERT INTO public.written VALUES (1) RETURNING n", fault.Refused},
		"a table":                          {"CREATE TABLE public.x (n int)", fault.Refused},
		"leaving the transaction":          {"COMMIT; INSERT INTO public.written VALUES (1)", fault.Invalid},
		"two statements":                   {"SELECT 1; SELECT 2", fault.Invalid},
		"switching read-only off":          {"SELECT set_config('transaction_read_only', 'off', true)", fault.Refused},
		"a name that only search_path has": {"SELECT * FROM written", fault.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(t, e, c.sql)
			if err == nil || fault.CodeOf(err) != c.code {
				t.Errorf("%v", err)
			}
		})
	}
	if got := admin(t, "SELECT count(*) FROM written"); got[0][0] != "0" {
		t.Error("something was written")
	}
	if err := run(t, e, "COMMIT"); err != nil { // it ends the transaction, and the session is reset all the same
		t.Error(err)
	}
	if got := one(t, e, "SHOW transaction_read_only"); got != "on" {
		t.Error("the next statement may write")
	}
}

func TestTheURLIsCheckedAndNeverShown(t *testing.T) {
	secret := "hunter2"
	cases := map[string]struct{ url, says string }{
		"none":                      {"", "has no url"},
		"another scheme":            {"mysql://root:" + secret + "@db/x", "postgres://"},
		"keywords":                  {"host=db password=" + secret, "postgres://"},
		"a bad port":                {"postgres://u:" + secret + "@db:port/x", "cannot be read"},
		"a slash in the password":   {"postgres://u:" + secret + "/x@db:5432/x?sslmode=bad", "cannot be read"},
		"a bad escape":              {"postgres://u:" + secret + "%zz@db/x", "cannot be read"},
		"a bad sslmode":             {"postgres://u:" + secret + "@db/x?sslmode=" + secret, "cannot be read"},
		"a service that is not":     {"postgres://u:" + secret + "@db/x?service=" + secret, "cannot be read"},
		"a search path of its own":  {"postgres://u:" + secret + "@db/x?search_path=evil", "sets search_path"},
		"its own read-only setting": {"postgres://u:" + secret + "@db/x?default_transaction_read_only=off", "sets default_transaction_read_only"},
		"its own time zone":         {"postgres://u:" + secret + "@db/x?TimeZone=UTC", "sets timezone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := Open(context.Background(), Config{Name: "erp", URL: c.url})
			if err == nil {
				e.Close()
				t.Fatal("it was taken")
			}
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v", err)
			}
			if f := fault.Public(err); strings.Contains(f.Hint, secret) {
				t.Errorf("the hint is %q", f.Hint)
			}
		})
	}
	for name, cfg := range map[string]Config{
		"without a name":             {URL: "postgres://u@db/x"},
		"the server's own schema":    {Name: "erp", URL: "postgres://u@db/x", Schemas: []string{"pg_catalog"}},
		"the information schema":     {Name: "erp", URL: "postgres://u@db/x", Schemas: []string{"information_schema"}},
		"a schema twice":             {Name: "erp", URL: "postgres://u@db/x", Schemas: []string{"a", "a"}},
		"a negative number of conns": {Name: "erp", URL: "postgres://u@db/x", MaxConns: -1},
	} {
		if _, err := Open(context.Background(), cfg); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// with gives the role's URL, changed.
func with(change func(*url.URL)) func(*Config) {
	return func(c *Config) {
		u, err := url.Parse(c.URL)
		if err != nil {
			panic(err)
		}
		change(u)
		c.URL = u.String()
	}
}

func TestRealAServerThatCannotBeReachedIsToldAsAClass(t *testing.T) {
	needServer(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	query := func(u *url.URL, k, v string) {
		q := u.Query()
		q.Set(k, v)
		u.RawQuery = q.Encode()
	}
	cases := map[string]struct {
		change func(*url.URL)
		code   fault.Code
		says   string
	}{
		"nobody listens":   {func(u *url.URL) { u.Host = closed.Addr().String() }, fault.Busy, "the connection was refused"},
		"a wrong password": {func(u *url.URL) { u.User = url.UserPassword(role(), "hunter2") }, fault.Busy, "authentication failed"},
		"no password":      {func(u *url.URL) { u.User = url.User(role()) }, fault.Busy, "authentication failed"},
		"no such role":     {func(u *url.URL) { u.User = url.UserPassword("nobody_here", "hunter2") }, fault.Busy, "authentication failed"},
		"no such database": {func(u *url.URL) { u.Path = "/nothing_here" }, fault.Busy, "no such database"},
		"no TLS":           {func(u *url.URL) { query(u, "sslmode", "require") }, fault.Busy, "TLS failed"},
		"no answer":        {func(u *url.URL) { u.Host = silent.Addr().String() }, fault.Busy, "did not answer in time"},
		"no such host":     {func(u *url.URL) { u.Host = "db.invalid:5432" }, fault.Busy, "the database erp cannot be reached: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := open(t, with(c.change), func(cfg *Config) {
				if cfg.ConnectTimeout = 20 * time.Second; c.says == "did not answer in time" {
					cfg.ConnectTimeout = 200 * time.Millisecond
				}
			})
			for use, err := range map[string]error{
				"run":     run(t, e, "SELECT 1"),
				"catalog": func() error { _, err := e.Catalog(t.Context()); return err }(),
				"check":   e.check(t.Context(), "SELECT 1", false, nil),
			} {
				f := fault.Public(err)
				if err == nil || f.Code != c.code || !strings.Contains(f.Msg, "the database erp cannot be reached: ") || !strings.Contains(f.Msg, c.says) || f.RetryAfter == 0 {
					t.Errorf("%s: %v", use, err)
				}
				if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ss%25word") || strings.Contains(err.Error(), "pa/ss")) {
					t.Errorf("%s: the error has the password: %v", use, err)
				}
			}
		})
	}
}

func TestRealAServerThatComesBackIsUsedAgain(t *testing.T) {
	p := newProxy(t, nil)
	e := open(t, with(func(u *url.URL) { u.Host = p.addr }))
	if err := run(t, e, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	p.down(true)
	for range 2 {
		if err := run(t, e, "SELECT 1"); fault.CodeOf(err) != fault.Busy {
			t.Errorf("while it is down: %v", err)
		}
	}
	p.down(false)
	if err := run(t, e, "SELECT 1"); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

func TestRealAPoolerThatTakesNoSettingsAtConnecting(t *testing.T) {
	// PgBouncer's answer to a parameter that it does not track.
	p := newProxy(t, func(s *pgproto3.StartupMessage) *pgproto3.ErrorResponse {
		if _, ok := s.Parameters["search_path"]; ok {
			return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: search_path"}
		}
		return nil
	})
	e := open(t, with(func(u *url.URL) { u.Host = p.addr }))
	for range 2 {
		if got := one(t, e, "SHOW search_path"); got != "pg_catalog, pg_temp" {
			t.Errorf("the search path is %q", got)
		}
		if got := one(t, e, "SHOW transaction_read_only"); got != "on" {
			t.Error("a statement may write")
		}
	}
}

func TestRealATimezoneThatTheServerDoesNotKnow(t *testing.T) {
	e := open(t, func(c *Config) { c.SessionTimezone = `Mars'; SELECT \` })
	f := fault.Public(run(t, e, "SELECT 1"))
	if f.Code != fault.Conflict || !strings.Contains(f.Msg, "Mars") {
		t.Errorf("%v", f)
	}
}

func TestRealConnectionsAreBounded(t *testing.T) {
	wide(t)
	e := open(t, func(c *Config) { c.MaxConns = 2; c.QueueTimeout = 100 * time.Millisecond })
	r, err := e.text(t.Context(), wideQuery)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.text(t.Context(), "SELECT 1"); fault.CodeOf(err) != fault.Busy || !strings.Contains(err.Error(), "all 2 connections") {
		t.Errorf("a second statement: %v", err)
	}
	if _, err := e.Catalog(t.Context()); err != nil { // one connection is kept for it
		t.Error(err)
	}
	r.Release()
	eventually(t, "the place is free", func() bool { return run(t, e, "SELECT 1") == nil })

	var all sync.WaitGroup
	many := open(t, func(c *Config) { c.MaxConns = 3 })
	for range 40 {
		all.Go(func() {
			if err := run(t, many, "SELECT g FROM generate_series(1, 100) g"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := sessions(t, "%"); n > 5 {
		t.Errorf("there are %d sessions", n)
	}
}

// proxy stands between the engine and the real server. It can be down, and can answer a startup message itself.
type proxy struct {
	addr   string
	target string
	answer func(*pgproto3.StartupMessage) *pgproto3.ErrorResponse

	mu    sync.Mutex
	off   bool
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, answer func(*pgproto3.StartupMessage) *pgproto3.ErrorResponse) *proxy {
	t.Helper()
	needServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(roleURL)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), target: u.Host, answer: answer, conns: map[net.Conn]bool{}}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); p.down(true); work.Wait() })
	return p
}

func (p *proxy) down(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	if off {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	off := p.off
	p.conns[c] = true
	p.mu.Unlock()
	if off {
		return
	}
	backend := pgproto3.NewBackend(c, c)
	first, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	if s, ok := first.(*pgproto3.StartupMessage); ok && p.answer != nil {
		if no := p.answer(s); no != nil {
			backend.Send(no)
			_ = backend.Flush()
			return
		}
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	encoded, err := first.Encode(nil)
	if err != nil {
		return
	}
	if _, err := server.Write(encoded); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, c)
		server.Close()
	}()
	_, _ = io.Copy(c, server)
	c.Close()
	<-done
}
