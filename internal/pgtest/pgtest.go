package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Variable names the environment's variable with a superuser's URL of the server.
const Variable = "SLUICE_TEST_POSTGRES"

// URL is the superuser's URL of the server. Without one the test fails: a test that skips itself is one that nobody runs.
func URL(t testing.TB) string {
	t.Helper()
	u := os.Getenv(Variable)
	if u == "" {
		t.Fatal("make test sets " + Variable)
	}
	return u
}

// DB is a database of the test's own.
type DB struct {
	Name string
	URL  string // the superuser's, for this database

	roles int
	tb    testing.TB
}

// New makes an empty database, runs the scripts in it as its superuser, and drops it, with every role made for it, when
// the test ends.
func New(t testing.TB, scripts ...string) *DB {
	t.Helper()
	server := URL(t)
	d := &DB{Name: "sluice_test_" + random(), tb: t}
	d.URL = with(t, server, d.Name, nil)
	// template0: nobody can be connected to it, so two tests can copy it at the same time
	exec(t, server, "CREATE DATABASE "+d.Name+" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")
	t.Cleanup(func() {
		exec(t, server, "DROP DATABASE IF EXISTS "+d.Name+" WITH (FORCE)")
		for i := range d.roles {
			exec(t, server, "DROP ROLE IF EXISTS "+d.role(i))
		}
	})
	for _, s := range scripts {
		d.Exec(s)
	}
	return d
}

func (d *DB) role(i int) string { return d.Name + "_" + string(rune('a'+i)) }

// Exec runs a script as the superuser.
func (d *DB) Exec(script string) {
	d.tb.Helper()
	exec(d.tb, d.URL, script)
}

// Reader makes a role that can log in and may SELECT from the given relations ("public.orders", each part quoted where it
// must be) and nothing else, and returns its URL. EXECUTE on the functions that the database's scripts made is taken from
// PUBLIC, as `sluice doctor --print-role-sql` has it; an extension's functions stay callable.
func (d *DB) Reader(relations ...string) string {
	d.tb.Helper()
	if d.roles == 26 {
		d.tb.Fatal("pgtest: 26 roles are enough for one test")
	}
	name, password := d.role(d.roles), random()
	d.roles++
	script := `CREATE ROLE ` + name + ` LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD '` + password + `';
REVOKE CREATE, TEMPORARY ON DATABASE ` + d.Name + ` FROM PUBLIC;
` + revokeFunctions
	schemas := map[string]bool{}
	for _, r := range relations {
		schema, _, _ := strings.Cut(r, ".")
		if !schemas[schema] {
			schemas[schema] = true
			script += "GRANT USAGE ON SCHEMA " + schema + " TO " + name + ";\n"
		}
		script += "GRANT SELECT ON " + r + " TO " + name + ";\n"
	}
	d.Exec(script)
	return with(d.tb, d.URL, d.Name, url.UserPassword(name, password))
}

// revokeFunctions takes the functions that no extension brought from PUBLIC.
const revokeFunctions = `DO $$ DECLARE f regprocedure; BEGIN
FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
  AND NOT EXISTS (SELECT FROM pg_depend x WHERE x.classid = 'pg_proc'::regclass AND x.objid = p.oid AND x.deptype = 'e') LOOP
  EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', f); END LOOP; END $$;
`

// Connect opens one connection, closed when the database's test ends.
func (d *DB) Connect(u string) *pgx.Conn {
	d.tb.Helper()
	return Connect(d.tb, u)
}

// Connect opens one connection, closed when the test ends.
func Connect(t testing.TB, u string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
	return c
}

// exec runs a script, several statements if need be. It is the test's own text, so the simple protocol may carry it.
func exec(t testing.TB, u, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := c.Exec(ctx, script).Close(); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
}

// with is a URL with another database and, where given, another user.
func with(t testing.TB, u, database string, user *url.Userinfo) string {
	t.Helper()
	parsed, err := url.Parse(u)
	if err != nil {
		t.Fatal(Variable + " is not a URL")
	}
	parsed.Path = "/" + database
	if user != nil {
		parsed.User = user
	}
	return parsed.String()
}

func random() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
