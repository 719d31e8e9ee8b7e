package gateoracle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	deparsedPath = "pg_catalog, pg_temp" // the engine's
	originalPath = "public"              // the caller's, in which the gate resolved names
)

// result is what a statement gave.
type result struct {
	columns []string
	types   []uint32
	rows    int
	bag     uint64   // of all rows, in any order
	seq     uint64   // of all rows, in theirs
	some    []string // the first rows
	code    string   // SQLSTATE of an error
	message string
	params  []uint32
	parsed  bool
}

func (o *oracle) begin(t testing.TB, path string) {
	t.Helper()
	o.must(t, "BEGIN READ ONLY; SET LOCAL search_path = "+path+"; SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '700ms'")
}

func (o *oracle) rollback(t testing.TB) {
	t.Helper()
	o.must(t, "ROLLBACK")
}

// must runs a constant of this file.
func (o *oracle) must(t testing.TB, script string) {
	t.Helper()
	if err := o.reader.Exec(context.WithoutCancel(t.Context()), script).Close(); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
}

// run runs what the gate wrote, and beside it what the caller sent. params is nil where the server did not parse it.
func (o *oracle) run(t testing.TB, sql, text string, explain bool) (out []violation, params *[]uint32) {
	t.Helper()
	if o.reader.IsClosed() {
		o.connect(t)
	}
	o.begin(t, o.path)
	got := o.prepare(t, o.reader, text)
	if got.parsed {
		params = &got.params
		out = append(out, o.locks(t, true)...)
		got = o.execute(t, o.reader, got)
	}
	if o.reader.IsClosed() {
		o.connect(t)
		return append(out, bad("connection", "the server ended the connection: %s", got.message)), params
	}
	inside := got.code == ""
	if inside {
		out = append(out, o.locks(t, true)...)
		o.must(t, "SET LOCAL search_path = "+deparsedPath)
		in, soon := o.settings(t)
		if soon && in != o.inside {
			out = append(out, bad("setting", "it changed a setting or took a transaction id: %s, was %s", in, o.inside))
		}
		inside = soon
	}
	if inside { // in one transaction now() is one
		o.must(t, "SET LOCAL search_path = "+originalPath)
	} else {
		o.rollback(t)
		o.begin(t, originalPath)
	}
	want := o.prepare(t, o.reader, sql)
	if want.parsed {
		want = o.execute(t, o.reader, want)
	}
	o.rollback(t)
	if left := o.locks(t, false); len(left) > 0 {
		out = append(out, left...)
		o.must(t, "DISCARD ALL")
	}
	if after, _ := o.settings(t); after != o.session {
		out = append(out, bad("session", "it left something in the session: %s, was %s", after, o.session))
		o.must(t, "DISCARD ALL")
	}
	return append(out, compare(got, want, explain, sql)...), params
}

// neverOf are the errors that a gate rules out; the others may be the caller's own mistake.
var neverOf = []string{"42601", "42P01", "42703", "42501", "25006", "3F000", "42P02", "25001", "XX000", "XX001"}

// ownMistake finds what only the server can know: an error of its analysis that the original has as well, word for word. Its
// grammar is the gate's, so a syntax error is none, but for one in a JSON path, which is a text to it; and names are the gate's to resolve unless a function in FROM, or the
// star of a row, may have columns of any name. One internal error is PostgreSQL's own: its planner does not know the row of an alias over a join with
// USING or NATURAL on the other side of an outer join.
func ownMistake(got, want result, sql string) bool {
	if got.code != want.code || got.message != want.message {
		return false
	}
	if got.code == "XX000" {
		return strings.Contains(got.message, "unsupported join alias expression")
	}
	grammar := strings.Contains(got.message, "at or near") && !strings.Contains(got.message, "of jsonpath input")
	return got.code == "42601" && !grammar && !strings.Contains(got.message, "multiple commands") || got.code == "42703" && openFunction.MatchString(sql)
}

var openFunction = regexp.MustCompile(`(?i)unnest|populate_record|to_record|(from|,)\s*(coalesce|greatest|least|nullif)\(|\)\s*\.\s*\*`)

func compare(got, want result, explain bool, sql string) (out []violation) {
	stopped := got.code == "57014" || want.code == "57014" || got.code == "53400" || want.code == "53400"
	switch {
	case ownMistake(got, want, sql):
	case slices.Contains(neverOf, got.code):
		out = append(out, bad("error "+got.code, "%s (the original: %s %s)", got.message, want.code, want.message))
	case stopped:
	case got.code != want.code:
		out = append(out, bad("error "+got.code+" for "+want.code, "%s; the original: %s", got.message, want.message))
	case got.code != "":
	case !slices.Equal(got.columns, want.columns) || !slices.Equal(got.types, want.types):
		out = append(out, bad("columns", "the columns are %q %v, of the original %q %v", got.columns, got.types, want.columns, want.types))
	case explain || notRepeatable.MatchString(sql):
	case got.rows != want.rows || got.bag != want.bag:
		out = append(out, bad("rows", "the %d rows begin %q, the original's %d rows %q", got.rows, got.some, want.rows, want.some))
	}
	return out
}

// notRepeatable finds what gives other rows each time.
var notRepeatable = regexp.MustCompile(`(?i)tablesample|random|uuid|clock_timestamp|timeofday|statement_timestamp|shuffle|array_sample`)

func (o *oracle) prepare(t testing.TB, c *pgconn.PgConn, sql string) (r result) {
	d, err := c.Prepare(context.WithoutCancel(t.Context()), "", sql, nil)
	if err != nil {
		r.code, r.message = codeOf(err), err.Error()
		return r
	}
	r.parsed, r.params = true, d.ParamOIDs
	if r.params == nil {
		r.params = []uint32{}
	}
	for _, f := range d.Fields {
		r.columns, r.types = append(r.columns, f.Name), append(r.types, f.DataTypeOID)
	}
	return r
}

var rowSeed = maphash.MakeSeed()

// execute runs what was prepared; a parameter is 3 where a number or a text may stand, else NULL.
func (o *oracle) execute(t testing.TB, c *pgconn.PgConn, r result) result {
	values := make([][]byte, len(r.params))
	for i, p := range r.params {
		if p == 20 || p == 21 || p == 23 || p == 25 || p == 700 || p == 701 || p == 1700 {
			values[i] = []byte("3")
		}
	}
	rr := c.ExecPrepared(context.WithoutCancel(t.Context()), "", values, nil, nil)
	var h maphash.Hash
	h.SetSeed(rowSeed)
	for rr.NextRow() {
		h.Reset()
		for _, v := range rr.Values() {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(v))<<1)
			if v == nil {
				n[0] = 1
			}
			h.Write(n[:])
			h.Write(v)
		}
		s := h.Sum64()
		r.rows, r.bag, r.seq = r.rows+1, r.bag+s, r.seq*31+s
		if r.rows <= 3 {
			r.some = append(r.some, short(fmt.Sprintf("%s", rr.Values())))
		}
	}
	if _, err := rr.Close(); err != nil {
		r.code, r.message = codeOf(err), err.Error()
	}
	return r
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return "lost"
}

// locks asks, from outside, what the reader's backend holds.
func (o *oracle) locks(t testing.TB, inside bool) (out []violation) {
	t.Helper()
	for _, r := range query(t, o.super, `SELECT l.locktype, l.mode, coalesce(quote_ident(n.nspname)||'.'||quote_ident(c.relname), ''), coalesce(quote_ident(tn.nspname)||'.'||quote_ident(tc.relname), '')
FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_class tc ON tc.oid = i.indrelid LEFT JOIN pg_namespace tn ON tn.oid = tc.relnamespace WHERE l.pid = $1 AND l.locktype <> 'virtualxid'`, o.reader.PID()) {
		kind, mode, name, table := r[0].(string), r[1].(string), r[2].(string), r[3].(string)
		if table != "" {
			name = table
		}
		switch {
		case kind != "relation" || !inside:
			out = append(out, bad("lock", "it holds a lock: %s %s %s", kind, mode, name))
		case mode != "AccessShareLock":
			out = append(out, bad("lock", "it holds %s on %s", mode, name))
		case !o.readable(name):
			out = append(out, bad("touched", "it touched %s", name))
		}
	}
	return out
}

// readable says whether a relation was granted, or is read by a view that was, or is the toast of one.
func (o *oracle) readable(name string) bool {
	if o.grants[name] || strings.HasPrefix(name, "pg_toast.") {
		return true
	}
	for view, reads := range o.base {
		if o.grants[view] && slices.Contains(reads, name) {
			return true
		}
	}
	return false
}

// settings is one line about the reader's session: its settings, its channels, its transaction id. In a transaction it may
// run into the time limit on a busy machine; then another statement's session will be looked at.
func (o *oracle) settings(t testing.TB) (line string, soon bool) {
	t.Helper()
	rr := o.reader.ExecParams(context.WithoutCancel(t.Context()), `SELECT pg_catalog.md5(pg_catalog.string_agg(name||'='||coalesce(setting,''), ',' ORDER BY name)) || ' channels ' || (SELECT pg_catalog.count(*) FROM pg_catalog.pg_listening_channels())
|| ' xid ' || coalesce(pg_catalog.pg_current_xact_id_if_assigned()::text, '-') FROM pg_catalog.pg_settings`, nil, nil, nil, nil).Read()
	var pg *pgconn.PgError
	switch {
	case errors.As(rr.Err, &pg) && pg.Code == "57014":
		return "", false
	case rr.Err != nil:
		t.Fatal(rr.Err)
	}
	return string(rr.Rows[0][0]), true
}

// held is one line about all that the database holds: rows, relations, functions, sequences, large objects.
func (o *oracle) held(t testing.TB) string {
	t.Helper()
	sql := "SELECT (SELECT count(*) FROM pg_class)||' '||(SELECT count(*) FROM pg_proc)||' '||(SELECT count(*) FROM pg_largeobject_metadata)||' '||(SELECT count(*) FROM pg_type)||' '||coalesce((SELECT string_agg(last_value::text, ',') FROM pg_sequences), '')"
	for _, r := range o.catalog.Tables {
		if name := o.quoted(r.Relation); !r.View {
			sql += "||' '||coalesce((SELECT md5(string_agg(x::text, ';' ORDER BY x::text)) FROM " + name + " x), '-')"
		}
	}
	return query(t, o.super, sql)[0][0].(string)
}
