package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
)

// The tests have a database and a role of their own on the real server; the role may only read, and only what is granted.
var (
	adminURL string // of the test database
	roleURL  string
)

func TestMain(m *testing.M) {
	server := os.Getenv("SLUICE_TEST_POSTGRES")
	var drop func()
	if server != "" {
		var err error
		if drop, err = createDatabase(server); err != nil {
			fmt.Fprintln(os.Stderr, "the test database cannot be made:", err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if drop != nil {
			drop()
		}
		os.Exit(code)
	}))
}

func createDatabase(server string) (drop func(), err error) {
	name := fmt.Sprintf("sluice_engine_%d", os.Getpid())
	on := func(u, sql string) error {
		c, err := pgconn.Connect(context.Background(), u)
		if err != nil {
			return err
		}
		defer c.Close(context.Background())
		_, err = c.Exec(context.Background(), sql).ReadAll()
		return err
	}
	drop = func() {
		_ = on(server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		_ = on(server, "DROP ROLE IF EXISTS "+name)
	}
	if err := on(server, "CREATE ROLE "+name+" LOGIN PASSWORD 'pa/ss%word'"); err != nil {
		return nil, err
	}
	if err := on(server, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		drop()
		return nil, err
	}
	u, err := url.Parse(server)
	if err != nil {
		drop()
		return nil, err
	}
	u.Path = "/" + name
	adminURL = u.String()
	u.User = url.UserPassword(name, "pa/ss%word")
	roleURL = u.String()
	if err := on(adminURL, "CREATE EXTENSION vector"); err != nil {
		drop()
		return nil, err
	}
	return drop, nil
}

func needServer(t testing.TB) {
	t.Helper()
	if adminURL == "" {
		t.Fatal("make test sets SLUICE_TEST_POSTGRES")
	}
}

// role is the name of the reading role, and of the database.
func role() string {
	u, _ := url.Parse(roleURL)
	return u.User.Username()
}

// admin runs statements as the owner of everything.
func admin(t testing.TB, statements ...string) [][]string {
	t.Helper()
	needServer(t)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	c, err := pgconn.Connect(ctx, adminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var rows [][]string
	for _, sql := range statements {
		results, err := c.Exec(ctx, sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		rows = nil
		for _, res := range results {
			for _, r := range res.Rows {
				var row []string
				for _, v := range r {
					if v == nil {
						row = append(row, "NULL")
						continue
					}
					row = append(row, string(v))
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// open gives an engine that reads the test database as the role.
func open(t testing.TB, change ...func(*Config)) *Engine {
	t.Helper()
	needServer(t)
	cfg := Config{Name: "erp", URL: roleURL}
	for _, c := range change {
		c(&cfg)
	}
	e, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *Engine) text(ctx context.Context, sql string, params ...any) (*rows, error) {
	return e.stream(ctx, statement{sql: sql, params: params, timeout: e.cfg.StatementTimeout})
}

// all reads a result to its end.
func all(r array.RecordReader) (rows int64, err error) {
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}

// run reads a statement to its end, whose rows do not matter.
func run(t testing.TB, e *Engine, sql string, params ...any) error {
	t.Helper()
	r, err := e.text(t.Context(), sql, params...)
	if err != nil {
		return err
	}
	_, err = all(r)
	return err
}

// eventually polls a condition until it holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("it did not come to pass: " + what)
		case <-tick.C:
		}
	}
}

// sessions counts the role's sessions on the server whose state is like the pattern.
func sessions(t testing.TB, state string) int {
	t.Helper()
	return len(admin(t, "SELECT 1 FROM pg_stat_activity WHERE usename = '"+role()+"' AND state LIKE '"+strings.ReplaceAll(state, "'", "''")+"'"))
}

// dialAdmin gives a session of the owner's, which ends with the test.
func dialAdmin(t testing.TB) *pgconn.PgConn {
	t.Helper()
	needServer(t)
	c, err := pgconn.Connect(context.Background(), adminURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}
