package postgres

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
	"sluice/sqlguard"
)

// Check has the server parse and bind an approved statement, and runs nothing of it. Types that do not fit, an ambiguous
// name, a function without such arguments: the server's sentence is the answer, so that whoever wrote the statement can
// mend it. The server's position is one in the deparsed text, which the caller never saw, and is left out.
func (e *Engine) Check(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error {
	guarded, err := e.guarded(ctx, a.Relations())
	if err != nil {
		return err
	}
	return e.check(ctx, a.SQL(), guarded, allowedNames(cat, a.Relations()))
}

func (e *Engine) check(ctx context.Context, sql string, hide bool, names func(string) bool) error {
	ctx, stop := context.WithTimeoutCause(ctx, e.own, errSilent)
	defer stop()
	l, err := e.take(ctx, false, transaction{timeout: ownTimeout})
	if err != nil {
		return err
	}
	desc, err := l.pg.Prepare(ctx, "", sql, nil)
	if ctx.Err() != nil || l.pg.IsClosed() {
		l.abandon()
	} else {
		l.done()
	}
	var pg *pgconn.PgError
	switch {
	case err == nil && len(desc.Fields) == 0 && !selects(sql):
		return fault.Bug("an approved statement of the database %s gives no rows", e.cfg.Name)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return e.over(ctx, "postgres.Check")
	case errors.As(err, &pg) && slices.Contains([]string{"42P01", "42703", "3F000"}, pg.Code):
		e.forget()
	}
	known := e.statementError(err, "postgres.Check", hide, false)
	var f *fault.Error
	if !errors.As(known, &f) || f.Code != fault.Invalid || pg == nil {
		return known
	}
	f.Msg = strings.Replace(f.Msg, "the statement failed: ", "the statement is wrong: ", 1)
	if hide {
		f.Msg = "the statement is wrong: the reason is not shown, because it reads " + guardedThings
		return f
	}
	if pg.Code == "42P18" && f.Hint == "" {
		f.Hint = "say the parameter's type, as in $1::date"
	}
	if pg.Hint != "" && onlyNames(pg.Hint, sql, names) {
		f.Hint = pg.Hint
	}
	return f
}

// selects tells SELECT without columns, which is a query, from a statement that gives no rows.
func selects(sql string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(sql, "( \n\t"), " ")
	return strings.EqualFold(first, "SELECT") || strings.EqualFold(first, "WITH") || strings.EqualFold(first, "EXPLAIN")
}

var quoted = regexp.MustCompile(`["«„“]([^"»“”]*)["»“”]`)

// onlyNames says whether a hint of the server names only what the statement names, or columns of what it reads: another
// hint, such as one about a function, may tell of things that are nobody's business.
func onlyNames(hint, sql string, known func(string) bool) bool {
	for _, m := range quoted.FindAllStringSubmatch(hint, -1) {
		if !strings.Contains(sql, m[1]) && !known(m[1]) {
			return false
		}
	}
	return true
}

// allowedNames tells the columns of relations, alone or behind a name of the statement's.
func allowedNames(cat *sqlguard.Catalog, read []sqlguard.Relation) func(string) bool {
	columns := map[string]bool{}
	for _, t := range cat.Tables {
		if slices.Contains(read, t.Relation) {
			for _, c := range t.Columns {
				columns[c.Name] = true
			}
		}
	}
	return func(name string) bool {
		_, column, dotted := strings.Cut(name, ".")
		return columns[name] || dotted && columns[column]
	}
}
