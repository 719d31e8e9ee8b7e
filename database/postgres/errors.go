package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/fault"
)

const (
	guardedThings = "a view, a foreign table or a table under row-level security"
	hiddenText    = "the value that failed is not shown, because the statement reads " + guardedThings
)

// failed classifies what ended a statement. When the caller's context is over, that is why, whatever the server said.
func (r *rows) failed(err error) error {
	if r.caller.Err() != nil {
		return fault.Wrap(context.Cause(r.caller), fault.Canceled, "postgres.Run", "the statement was cancelled")
	}
	if r.ctx.Err() != nil {
		return fault.Wrap(err, fault.Canceled, "postgres.Run", "the reader was released before its end")
	}
	late := r.stmt.timeout > 0 && time.Since(r.start) >= r.stmt.timeout
	return r.engine.statementError(err, "postgres.Run", r.stmt.hide, late)
}

// shown is an error of a decoder, which may have a value in it.
func (r *rows) shown(err error) error {
	var f *fault.Error
	if r.stmt.hide && errors.As(err, &f) && f.Code == fault.Invalid {
		hidden := *f
		hidden.Hint = f.Hint
		hidden.Msg = "the statement failed: " + hiddenText
		return &hidden
	}
	return err
}

// statementError classifies an error of the server, by its SQLSTATE: its words are in the server's language. late tells
// that the statement ran for as long as it may. Detail and context of an error, which may show rows and functions, never
// leave the log; the message does for what the caller's own text or the caller's own rows are at fault for.
func (e *Engine) statementError(err error, op string, hide, late bool) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		f := fault.Wrap(err, fault.TooLarge, op, "a row of the result is larger than %d MiB", e.cfg.MaxRowBytes>>20)
		f.Kind, f.Hint = "limit", "read fewer columns, or a part of the long ones"
		return f
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return e.lost(err, op)
	}
	as := func(code fault.Code, kind, msg, hint string) *fault.Error {
		f := fault.Wrap(pg, code, op, "%s", msg)
		f.Kind, f.Hint = kind, hint
		if code == fault.Busy {
			f.RetryAfter = time.Second
		}
		return f
	}
	class := pg.Code[:min(2, len(pg.Code))]
	switch {
	case pg.Code == "57014" && late:
		return as(fault.TooLarge, "limit", "the statement took longer than "+e.cfg.StatementTimeout.String(), "read fewer rows, or ask for less at once")
	case pg.Code == "57014":
		return as(fault.Canceled, "query", "the statement was cancelled at the server", "")
	case class == "57", class == "08" && strings.EqualFold(pg.Severity, "FATAL"), pg.Code == "25P03", pg.Code == "25P04":
		return e.lost(pg, op)
	case class == "53":
		return as(fault.Busy, "limit", "the database "+e.cfg.Name+" has no room for the statement now: memory, disk or connections", "try again later, or read fewer rows")
	case class == "54":
		return as(fault.TooLarge, "limit", "the statement is too large for the server", "write it in a simpler way")
	case class == "40", pg.Code == "55P03", pg.Code == "55006":
		return as(fault.Busy, "query", "the statement met a lock or a change of the data; ask again", "")
	case pg.Code == "42501":
		return as(fault.Denied, "query", "the role that the database "+e.cfg.Name+" is read as may not read all that the statement names", "")
	case class == "25":
		return as(fault.Refused, "query", "the statement writes or changes its transaction, which nothing may here", "")
	case class == "08" && pg.Code != "08P01", class == "58", class == "HV": // of a server that answers
		return as(fault.Busy, "query", "what is behind a foreign table cannot be read now", "")
	case pg.Code == "P0001" || class == "P0" || class == "38" || class == "39":
		return as(fault.Invalid, "query", "the statement failed in a function of the database", "")
	case class == "22" || class == "21" || class == "42" || class == "0A" || class == "2F" || class == "20":
		msg := "the statement failed: " + pg.Message
		if hide {
			msg = "the statement failed: " + hiddenText
		}
		return as(fault.Invalid, "query", msg, "")
	}
	f := fault.Wrap(pg, fault.Internal, op, "the database failed to run the statement")
	f.Kind = "query"
	return f
}

// errSilent is why a use of ours ended to which the server said nothing for too long: its own timeouts say something.
var errSilent = errors.New("postgres: the server does not answer")

// over is the error of a use whose context ended.
func (e *Engine) over(ctx context.Context, op string) error {
	why := context.Cause(ctx)
	if !errors.Is(why, errSilent) {
		return fault.Wrap(why, fault.Canceled, op, "the request was cancelled")
	}
	f := fault.Wrap(why, fault.Busy, op, "the database %s does not answer; ask again", e.cfg.Name)
	f.RetryAfter = 5 * time.Second
	return f
}

// lost is the error of a use whose connection ended: the server stopped, or somebody ended its session.
func (e *Engine) lost(err error, op string) error {
	f := fault.Wrap(scrubbed(err), fault.Busy, op, "the connection to the database %s was lost; ask again", e.cfg.Name)
	f.RetryAfter = time.Second
	return f
}
