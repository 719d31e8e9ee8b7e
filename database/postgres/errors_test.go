package postgres

import (
	"strings"
	"testing"

	"sluice/fault"
)

func TestRealAnErrorOfTheServerSaysWhatToDoAndLeaksNothing(t *testing.T) {
	r := role()
	admin(t, `CREATE TABLE IF NOT EXISTS no_grant (n int); CREATE TABLE IF NOT EXISTS locked (n int); GRANT SELECT ON locked TO `+r+`;
		CREATE OR REPLACE FUNCTION tells(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the secret is 42'; END $$`)
	cases := map[string]struct {
		sql  string
		hide bool
		code fault.Code
		kind string
		says string // "" for an error that says nothing
	}{
		"a division by zero":               {"SELECT 1 / (g - 3) FROM generate_series(1, 5) g", false, fault.Invalid, "query", "division by zero"},
		"a value that is no number":        {"SELECT v::int FROM (VALUES ('1'), ('tell')) t(v)", false, fault.Invalid, "query", `"tell"`},
		"the same behind a view":           {"SELECT v::int FROM (VALUES ('1'), ('secret')) t(v)", true, fault.Invalid, "query", hiddenText},
		"a range error behind a view":      {"SELECT v::numeric AS secret FROM (VALUES ('1'), ('NaN')) t(v)", true, fault.Invalid, "range", hiddenText},
		"out of range":                     {"SELECT 2147483647 + g FROM generate_series(1, 2) g", false, fault.Invalid, "query", "integer out of range"},
		"two rows for one value":           {"SELECT (SELECT g FROM generate_series(1, 2) g)", false, fault.Invalid, "query", "more than one row"},
		"a table without a grant":          {"SELECT * FROM public.no_grant", false, fault.Denied, "query", "the role that the database erp is read as may not read"},
		"a function that raises":           {"SELECT public.tells(1)", false, fault.Invalid, "query", "the statement failed in a function of the database"},
		"a result of too many columns":     {"SELECT " + strings.Repeat("1,", 1700) + "1", false, fault.TooLarge, "limit", "too large"},
		"a feature that is none":           {"SELECT DISTINCT g FROM generate_series(1,2) g FOR UPDATE", false, fault.Invalid, "query", "FOR UPDATE"},
		"text that is no JSON":             {"SELECT v::json FROM (VALUES ('{secret')) t(v)", true, fault.Invalid, "query", hiddenText},
		"a row that is larger than it may": {"SELECT repeat('x', 3000000)", false, fault.TooLarge, "limit", "larger than 1 MiB"},
	}
	e := open(t, func(c *Config) { c.MaxRowBytes = 1 << 20 })
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rows, err := e.stream(t.Context(), statement{sql: c.sql, hide: c.hide})
			if err == nil {
				_, err = all(rows)
			}
			f := fault.Public(err)
			if err == nil || f.Code != c.code || f.Kind != c.kind || !strings.Contains(f.Msg, c.says) {
				t.Errorf("%v", err)
			}
			if strings.Contains(f.Msg+f.Hint, "secret") || strings.Contains(f.Msg+f.Hint, "no_grant") {
				t.Errorf("it leaks: %v", f)
			}
			if err := run(t, e, "SELECT 1"); err != nil {
				t.Errorf("the next statement: %v", err)
			}
		})
	}
}

func TestRealALockThatIsHeldIsBusy(t *testing.T) {
	admin(t, "DROP TABLE IF EXISTS held; CREATE TABLE held (n int); GRANT SELECT ON held TO "+role())
	e := open(t, func(c *Config) { c.LockTimeout = 50_000_000 })
	holder := dialAdmin(t)
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE held").ReadAll(); err != nil {
		t.Fatal(err)
	}
	f := fault.Public(run(t, e, "SELECT * FROM public.held"))
	if f.Code != fault.Busy || f.RetryAfter == 0 || !strings.Contains(f.Msg, "lock") {
		t.Errorf("%v", f)
	}
}

func TestRealParametersHaveTheTypesOfTheStatement(t *testing.T) {
	e := open(t)
	cases := map[string]struct {
		sql    string
		params []any
		want   string // "" when the value does not fit
	}{
		"an integer":                 {"SELECT $1::int + 1", []any{int64(41)}, "42"},
		"a number for an integer":    {"SELECT $1::bigint", []any{3.0}, "3"},
		"a fraction for an integer":  {"SELECT $1::int", []any{1.5}, ""},
		"an integer too large":       {"SELECT $1::int", []any{int64(1 << 40)}, ""},
		"a number":                   {"SELECT $1::float8", []any{0.1}, "0.1"},
		"an integer for a number":    {"SELECT $1::numeric(9,2)", []any{int64(7)}, "7.00"},
		"text for a date":            {"SELECT $1::date", []any{"1970-01-02"}, "1"},
		"text for a number":          {"SELECT $1::int", []any{"12"}, "12"},
		"true for a boolean":         {"SELECT $1::bool", []any{true}, "true"},
		"true for text":              {"SELECT $1::text", []any{true}, `"true"`},
		"NULL":                       {"SELECT $1::int", []any{nil}, "NULL"},
		"an empty text, not NULL":    {"SELECT $1::text", []any{""}, `""`},
		"a quote that ends nothing":  {"SELECT $1::text", []any{"'; DROP TABLE x; --"}, `"'; DROP TABLE x; --"`},
		"in another order, and once": {"SELECT $2::text || $1::text || $2::text", []any{"a", "b"}, `"bab"`},
		"a type found by the server": {"SELECT count(*) FROM generate_series(1, 9) g WHERE g > $1", []any{int64(7)}, "2"},
		"an array as text":           {"SELECT 2 = ANY ($1::int[])", []any{"{1,2}"}, "true"},
		"a zero byte":                {"SELECT $1::text", []any{"a\x00b"}, ""},
		"too few":                    {"SELECT $1::int + $2::int", []any{int64(1)}, ""},
		"too many":                   {"SELECT 1", []any{int64(1)}, ""},
		"none of the five kinds":     {"SELECT $1::int", []any{[]int{1}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := e.text(t.Context(), c.sql, c.params...)
			if c.want == "" {
				if err == nil {
					_, err = all(r)
				}
				if fault.CodeOf(err) != fault.Invalid {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if !r.Next() {
				t.Fatal(r.Err())
			}
			if got := show(r.Schema().Field(0), r.RecordBatch().Column(0), 0); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}
