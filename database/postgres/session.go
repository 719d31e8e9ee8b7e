package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
)

// transaction tells how one use begins.
type transaction struct {
	snapshot bool          // one snapshot for several queries, for the catalogue
	timeout  time.Duration // of each statement; 0 or less: none
}

// ownTimeout is the limit of the catalogue's queries and of binding a statement, whatever statements may take.
const ownTimeout = 30 * time.Second

type setting struct{ name, value string }

// pins are the settings that what we run counts on. Names without a schema can only be pg_catalog's; text forms are the
// ISO ones.
func (e *Engine) pins(statement time.Duration) []setting {
	return []setting{
		{"search_path", "pg_catalog, pg_temp"},
		{"TimeZone", e.cfg.SessionTimezone},
		{"DateStyle", "ISO, MDY"},
		{"IntervalStyle", "postgres"},
		{"bytea_output", "hex"},
		{"extra_float_digits", "1"},
		{"standard_conforming_strings", "on"},
		{"row_security", "on"},
		{"statement_timeout", milliseconds(statement)},
		{"lock_timeout", milliseconds(e.cfg.LockTimeout)},
		{"idle_in_transaction_session_timeout", milliseconds(time.Minute)},
	}
}

func milliseconds(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// begin opens the read-only transaction and pins the settings in it: whatever happened to the session before, and
// whichever server session a pooler hands out. The text is made of constants and of the configuration.
func (e *Engine) begin(ctx context.Context, c *conn, t transaction) error {
	var b strings.Builder
	b.WriteString("BEGIN TRANSACTION ISOLATION LEVEL ")
	if t.snapshot {
		b.WriteString("REPEATABLE READ")
	} else {
		b.WriteString("READ COMMITTED")
	}
	b.WriteString(" READ ONLY")
	for _, s := range e.pins(t.timeout) {
		b.WriteString("; SET LOCAL " + s.name + " = ")
		if s.name == "search_path" { // a list of names, not one
			b.WriteString(s.value)
			continue
		}
		b.WriteString(quoteText(s.value))
	}
	_, err := c.pg.Exec(ctx, b.String()).ReadAll()
	return err
}

// reset ends the transaction and forgets all that a session keeps: settings, prepared statements, temporary tables,
// advisory locks, listening. Both go in one round trip.
func (c *conn) reset() error {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	p := c.pg.StartPipeline(ctx)
	for _, sql := range []string{"ROLLBACK", "DISCARD ALL"} {
		p.SendQueryParams(sql, nil, nil, nil, nil)
		if err := p.Sync(); err != nil {
			return errors.Join(err, p.Close())
		}
	}
	for {
		results, err := p.GetResults()
		if err != nil {
			return errors.Join(err, p.Close())
		}
		switch r := results.(type) {
		case nil:
			return p.Close()
		case *pgconn.ResultReader:
			if _, err := r.Close(); err != nil {
				return errors.Join(err, p.Close())
			}
		}
	}
}

// quoteText writes a string literal that means the same with and without standard_conforming_strings.
func quoteText(s string) string {
	if strings.Contains(s, `\`) {
		return "E'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", "''") + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// query runs a constant query with one argument or none, and gives its rows with NULL as "". Each has as many columns as
// the caller says: what calls itself a PostgreSQL server may send anything.
func (c *conn) query(ctx context.Context, sql string, columns int, arg ...string) ([][]string, error) {
	args := make([][]byte, len(arg))
	for i, a := range arg {
		args[i] = []byte(a)
	}
	res := c.pg.ExecParams(ctx, sql, args, nil, nil, nil)
	var out [][]string
	odd := false
	for res.NextRow() {
		odd = odd || len(res.Values()) != columns
		row := make([]string, len(res.Values()))
		for i, v := range res.Values() {
			row[i] = string(v)
		}
		out = append(out, row)
	}
	_, err := res.Close()
	if err == nil && odd {
		err = oddAnswer()
	}
	return out, err
}

// queryOne is query where there is one row.
func (c *conn) queryOne(ctx context.Context, sql string, columns int, arg ...string) ([]string, error) {
	rows, err := c.query(ctx, sql, columns, arg...)
	if err == nil && len(rows) != 1 {
		err = oddAnswer()
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

func oddAnswer() error {
	return fault.Bug("the server's answer does not have the rows and columns that were asked for")
}

// textArray writes a text[] for the argument of a query.
func textArray(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}
