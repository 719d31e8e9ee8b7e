package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a server of ours and PostgreSQL, so that a test can cut one connection without stopping the other's
// server, which is everybody's.
type proxy struct {
	listener net.Listener
	server   *url.URL

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u, conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close(); p.cut(); all.Wait() })
	return p
}

// keep notes a connection, or closes it while nothing gets through.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) carry(c net.Conn) {
	if !p.keep(c) {
		return
	}
	defer c.Close()
	far, err := net.Dial("tcp", p.server.Host)
	if err != nil || !p.keep(far) {
		return
	}
	defer far.Close()
	go func() { _, _ = io.Copy(far, c); far.Close() }()
	_, _ = io.Copy(c, far)
}

// cut ends all connections and lets no new one through, as when the server stops.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *proxy) url(t *testing.T, role, password string) string {
	t.Helper()
	u := *p.server
	u.User, u.Host = url.UserPassword(role, password), p.listener.Addr().String()
	return u.String()
}

// endless runs until somebody stops it.
const endless = "WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"

// begin sends endless in the background, waits until PostgreSQL runs it, and gives its id in the list of statements.
func (s *erpServer) begin(t *testing.T) (id string, ended chan answer) {
	t.Helper()
	ended = make(chan answer, 1)
	go func() {
		a, err := s.post(t.Context(), adminKey, "erp", endless, "")
		if err != nil {
			t.Error(err)
		}
		ended <- a
	}()
	eventually(t, "PostgreSQL runs the statement", func() bool { return s.active(t) == "1" })
	var all []struct{ ID, Database, Statement, Owner string }
	s.data(t, adminKey, "GET", "/v1/queries", nil, &all)
	if len(all) != 1 || all[0].Database != "erp" || !strings.HasPrefix(all[0].Statement, "WITH RECURSIVE r(n) AS ") || all[0].Owner != "admin" {
		t.Fatalf("the statements that run are %+v", all)
	}
	return all[0].ID, ended
}

// active is how many statements of the role PostgreSQL runs now.
func (s *erpServer) active(t *testing.T) string {
	t.Helper()
	return psql(t, s.db.URL, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE usename = '%s' AND state = 'active' AND query LIKE 'WITH RECURSIVE%%'", s.role))
}

// A cancelled statement ends in PostgreSQL too, whoever cancels it, and by which way.
func TestRealPostgresCancel(t *testing.T) {
	s := startERP(t)
	for way, cancel := range map[string]func(id string){
		"by the API": func(id string) {
			var done struct{ Cancelled string }
			if s.data(t, adminKey, "DELETE", "/v1/queries/"+id, nil, &done); done.Cancelled != id {
				t.Errorf("%+v", done)
			}
		},
		"by the command line": func(id string) {
			if out, err := s.command(adminKey, "queries"); err != nil || !strings.Contains(out, id) || !strings.Contains(out, " erp ") || !strings.Contains(out, "WITH RECURSIVE r(n)") {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := s.command(adminKey, "queries", "cancel", id); err != nil || out != "cancelled "+id+"\n" {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := s.command(adminKey, "queries", "cancel", id); err == nil || !strings.Contains(out, id) {
				t.Errorf("a second time: %v: %s", err, out)
			}
		},
	} {
		t.Run(way, func(t *testing.T) {
			id, ended := s.begin(t)
			cancel(id)
			if a := <-ended; a.status != 499 || !strings.Contains(a.body, `"canceled"`) || !strings.Contains(a.body, "by 'admin'") {
				t.Errorf("%+v", a)
			}
			eventually(t, "PostgreSQL stops", func() bool { return s.active(t) == "0" })
			if got := s.rows(t, adminKey, "erp", "SELECT count(*) FROM customers"); got != "[[47]]" {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
	if status, text := s.call(t, adminKey, "DELETE", "/v1/queries/query_none", nil); status != 404 {
		t.Errorf("one that is not there: %d %s", status, text)
	}
}

// While PostgreSQL is away its database answers 503 and says when to come back, others answer as ever, and it is there again
// without a restart.
func TestRealPostgresAway(t *testing.T) {
	s := startERP(t)
	away := func(database string) {
		t.Helper()
		a, err := s.post(t.Context(), adminKey, database, "SELECT 1", "")
		if err != nil || a.status != http.StatusServiceUnavailable || a.retry == "" || !strings.Contains(a.body, database) ||
			strings.Contains(a.body, "127.0.0.1") || strings.Contains(a.body, "s3cret") {
			t.Errorf("%s: %v %+v", database, err, a)
		}
	}
	away("gone")
	if status, text := s.call(t, "", "GET", "/readyz", nil); status != 200 || !strings.Contains(text, "1 of 2 PostgreSQL databases") || strings.Contains(text, "gone") {
		t.Errorf("/readyz: %d %s", status, text)
	}
	if out, err := s.command(adminKey, "sql", "-d", "gone", "SELECT 1"); err == nil || !strings.Contains(out, "gone") {
		t.Errorf("sluice sql: %v %s", err, out)
	}
	_, ended := s.begin(t)
	s.proxy.cut()
	if a := <-ended; a.status != http.StatusServiceUnavailable || a.retry == "" || !strings.Contains(a.body, "erp") {
		t.Errorf("a statement whose server goes away: %+v", a)
	}
	away("erp")
	if got := s.rows(t, adminKey, "shop", "SELECT count(*) FROM customers"); got != "[[1]]" {
		t.Errorf("another database: %s", got)
	}
	s.proxy.mend()
	eventually(t, "the database is there again", func() bool {
		status, _ := s.execute(t, adminKey, "erp", "SELECT count(*) FROM customers", "")
		return status == 200
	})
}

// A question about PostgreSQL is answered from its rows, for a key that reads one table too.
func TestRealPostgresAsk(t *testing.T) {
	s := startERP(t)
	var k struct{ Key string }
	s.data(t, adminKey, "POST", "/v1/keys", object{"name": "asker", "role": "restricted", "tables": []string{"erp.public.customers"}}, &k)
	var a struct {
		Outcome, Answer, SQL string
		Rows                 [][]any
	}
	s.data(t, k.Key, "POST", "/v1/database/ask", object{"database": "erp", "question": "How many customers are there?", "model": coder}, &a)
	if a.Outcome != "answered" || len(a.Rows) != 1 || fmt.Sprint(a.Rows[0][0]) != "47" || !strings.Contains(a.Answer, "47") {
		t.Errorf("%+v", a)
	}
}
