package eval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sluice/database"
	"sluice/fault"
)

// scratch builds databases on a PostgreSQL server, and a role that reads them and can do nothing else. All are called
// sluice_eval_<token>…, and the run holds an advisory lock that is its token: a name whose lock nobody holds is of a run
// that was killed, and the next one removes it.
type scratch struct {
	server *url.URL  // of the maker, who may make databases and roles
	admin  *pgx.Conn // holds the lock

	prefix, role, password string
	made                   int
}

// scratchTime bounds making or removing one database.
const scratchTime = 2 * time.Minute

func newScratch(ctx context.Context, server string) (_ *scratch, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" { // the error would show the password
		return nil, fault.New(fault.Invalid, "eval.postgres", "the address of the PostgreSQL server is no URL such as postgres://user:password@host:5432/postgres")
	}
	s := &scratch{server: u, password: token(16)}
	mark := token(6)
	s.prefix = "sluice_eval_" + mark + "_"
	s.role = s.prefix + "reader"
	if s.admin, err = pgx.Connect(ctx, server); err != nil {
		return nil, unreachable(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.admin.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.sweep(ctx); err != nil {
		return nil, err
	}
	key, err := strconv.ParseInt(mark, 16, 64)
	if err != nil {
		return nil, fault.Bug("eval: the token %q is no number", mark)
	}
	if _, err := s.admin.Exec(ctx, "SELECT pg_advisory_lock($1)", key); err != nil {
		return nil, s.failed(err, "lock")
	}
	if _, err := s.admin.Exec(ctx, "CREATE ROLE "+s.role+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT PASSWORD '"+s.password+"'"); err != nil {
		return nil, s.failed(err, "make a role")
	}
	for _, set := range []string{"default_transaction_read_only = on", "lock_timeout = '10s'", "idle_in_transaction_session_timeout = '60s'", "search_path = pg_catalog, pg_temp"} {
		if _, err := s.admin.Exec(ctx, "ALTER ROLE "+s.role+" SET "+set); err != nil {
			return nil, s.failed(err, "set up the role")
		}
	}
	return s, nil
}

func token(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}

func unreachable(err error) error {
	return &fault.Error{Code: fault.Busy, Op: "eval.postgres", Msg: "the PostgreSQL server cannot be used: " + lastOf(err), Err: err,
		Hint: "check the address, and that the server is up"}
}

// lastOf is the innermost error's text: those around it name the user and the host.
func lastOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

func (s *scratch) failed(err error, what string) error {
	f := &fault.Error{Code: fault.Invalid, Op: "eval.postgres", Msg: "cannot " + what + " on the PostgreSQL server: " + lastOf(err), Err: err}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		f.Hint = "the user of --postgres must be able to make databases and roles: ALTER ROLE … CREATEDB CREATEROLE"
	}
	return f
}

// build makes a database of the scripts, which the role may read.
func (s *scratch) build(ctx context.Context, name, schema, data string) (*database.Source, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scratchTime, fmt.Errorf("eval: building %s took over %s", name, scratchTime))
	defer cancel()
	db := s.prefix + strconv.Itoa(s.made)
	s.made++
	// template0: nobody can be connected to it, so runs beside each other can copy it. C.UTF-8 sorts as DuckDB does.
	create := "CREATE DATABASE " + db + " TEMPLATE template0 ENCODING 'UTF8' LOCALE "
	_, err := s.admin.Exec(ctx, create+"'C.UTF-8'")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42809" { // the server's system has no such locale
		_, err = s.admin.Exec(ctx, create+"'C'")
	}
	if err != nil {
		return nil, s.failed(err, "make a database")
	}
	if err := s.fill(ctx, db, name, schema, data); err != nil {
		return nil, err
	}
	src, err := database.Open(ctx, database.Config{Name: name, Kind: database.KindPostgres, URL: s.url(db, url.UserPassword(s.role, s.password))}, nil)
	if err != nil {
		return nil, fmt.Errorf("eval: open %s: %w", name, err)
	}
	return src, nil
}

// fill runs the set's own scripts, and lets the role read what they made, as docs/DATABASES.md has it.
func (s *scratch) fill(ctx context.Context, db, name, schema, data string) (err error) {
	c, err := pgconn.Connect(ctx, s.url(db, s.server.User))
	if err != nil {
		return unreachable(err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	rights := "REVOKE CREATE, TEMPORARY ON DATABASE " + db + " FROM PUBLIC; REVOKE CREATE ON SCHEMA public FROM PUBLIC; " +
		"GRANT USAGE ON SCHEMA public TO " + s.role + "; GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + s.role + ";"
	for _, script := range []string{"SET TIME ZONE 'UTC';" + schema, data, rights} {
		if err := c.Exec(ctx, script).Close(); err != nil {
			return fault.Wrap(err, fault.Invalid, "eval.postgres", "the scripts of %s do not run on PostgreSQL: %s", name, lastOf(err))
		}
	}
	return nil
}

func (s *scratch) url(db string, user *url.Userinfo) string {
	u := *s.server
	u.Path, u.RawPath, u.User = "/"+db, "", user
	return u.String()
}

// close removes the databases and the role, also when the run was cancelled.
func (s *scratch) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), scratchTime)
	defer cancel()
	err := s.remove(ctx, s.prefix)
	return errors.Join(err, s.admin.Close(ctx))
}

// sweep removes what runs left that were killed.
func (s *scratch) sweep(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `SELECT DISTINCT substr(name, 1, 25) FROM (SELECT datname::text AS name FROM pg_database UNION ALL SELECT rolname::text FROM pg_roles) n
		WHERE name ~ '^sluice_eval_[0-9a-f]{12}_([0-9]+|reader)$' AND NOT EXISTS (SELECT FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND to_hex((classid::bigint << 32) | objid::bigint) = ltrim(substr(name, 13, 12), '0'))`)
	if err != nil {
		return s.failed(err, "look for what an earlier run left")
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return s.failed(err, "look for what an earlier run left")
	}
	for _, prefix := range left {
		if err := s.remove(ctx, prefix); err != nil {
			return err
		}
	}
	return nil
}

// remove drops what begins with a prefix: databases first, for the role has rights in them.
func (s *scratch) remove(ctx context.Context, prefix string) error {
	rows, err := s.admin.Query(ctx, "SELECT datname::text FROM pg_database WHERE starts_with(datname::text, $1)", prefix)
	if err != nil {
		return s.failed(err, "look for databases")
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return s.failed(err, "look for databases")
	}
	var errs []error
	for _, name := range names {
		if _, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			errs = append(errs, s.failed(err, "remove a database"))
		}
	}
	if len(errs) == 0 {
		if _, err := s.admin.Exec(ctx, "DROP ROLE IF EXISTS "+pgx.Identifier{prefix + "reader"}.Sanitize()); err != nil {
			errs = append(errs, s.failed(err, "remove a role"))
		}
	}
	return errors.Join(errs...)
}
