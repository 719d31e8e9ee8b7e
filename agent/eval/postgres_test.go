package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"sluice/database"
	"sluice/database/pgrole"
	"sluice/fault"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

func postgresJudge(t *testing.T) *Judge {
	t.Helper()
	j, err := NewPostgresJudge(t.Context(), set, pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestRealGoldsAreCorrectOnPostgreSQL(t *testing.T) {
	j := postgresJudge(t)
	for id, q := range questions(t) {
		for i, gold := range q.Gold {
			v, err := j.Verdict(t.Context(), q, gold)
			if err != nil || v.Verdict != "correct" {
				t.Errorf("%s gold %d: %q, %v", id, i+1, v.Verdict, err)
			}
		}
	}
}

func TestRealVerdictsEqualScorePyOnPostgreSQL(t *testing.T) {
	var want []string
	golden, err := os.ReadFile("testdata/postgres.verdicts.json") // verdicts.py says how it is made
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	cases := mutations(t)
	if len(cases) != len(want) {
		t.Fatalf("%d mutations, %d verdicts", len(cases), len(want))
	}
	j := postgresJudge(t)
	judged := 0
	for i, m := range cases {
		t.Run(m.Case, func(t *testing.T) {
			got, err := j.Verdict(t.Context(), m.Question, m.SQL)
			switch {
			case class(want[i]) == "gold": // in DuckDB's words
				if err == nil {
					t.Errorf("the gold runs here: %s", m.Gold)
				}
			case err != nil:
				t.Fatal(err)
			case got.Class() == "error" && (m.Case == "two statements" || m.Case == "a plan"): // no single SELECT, which score.py looks for on DuckDB only
			case got.Class() != class(want[i]):
				t.Errorf("%s\ngot %s, score.py says %s", m.SQL, got.Verdict, want[i])
			default:
				judged++
			}
		})
	}
	if judged < 50 {
		t.Errorf("only %d are judged", judged)
	}
}

// TestRealWhatPsycopgMakesOfValues: as psycopg2 2.9 and score.py's norm gave them.
func TestRealWhatPsycopgMakesOfValues(t *testing.T) {
	db := pgtest.New(t, "CREATE TABLE one AS SELECT 1 AS x")
	src, err := database.Open(t.Context(), database.Config{Name: "one", Kind: database.KindPostgres, URL: db.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	for sql, want := range map[string]value{
		"SELECT sum(x) FROM one":                                           ofInt("1"),
		"SELECT sum(x::bigint) FROM one":                                   ofFloat(1),
		"SELECT round(x / 3.0, 4) FROM one":                                ofFloat(0.3333),
		"SELECT x = 1 FROM one":                                            ofInt("1"),
		"SELECT interval '1 year 2 months 3 days 1 second' FROM one":       ofFloat((365+60+3)*86400 + 1),
		"SELECT date '2024-01-31' - date '2024-01-01' FROM one":            ofInt("30"),
		"SELECT timestamp '2024-01-31 10:00' - '2024-01-01' FROM one":      ofFloat(30*86400 + 36000),
		"SELECT date_trunc('month', date '2024-01-31') FROM one":           ofText("2024-01-01"),
		"SELECT timestamptz '2024-01-31 10:00:00.5+02' FROM one":           ofText("2024-01-31 08:00:00.500000"),
		"SELECT time '10:00' FROM one":                                     ofText("10:00:00"),
		"SELECT array[1,2,NULL] FROM one":                                  ofText("[1, 2, None]"),
		"SELECT array['a','it''s'] FROM one":                               ofText(`['a', "it's"]`),
		"SELECT 'x  '::char(5) FROM one":                                   ofText("x"),
		"SELECT '01234567-89ab-cdef-0123-456789abcdef'::uuid FROM one":     ofText("01234567-89ab-cdef-0123-456789abcdef"),
		`SELECT '{"b": [1, null, true], "a": {"c": "d"}}'::jsonb FROM one`: ofText("{'a': {'c': 'd'}, 'b': [1, None, True]}"),
		`SELECT '[true, 1.5, "x", [false]]'::jsonb FROM one`:               ofText(`[1, 1.5, 'x', '[0]']`),
		`SELECT '"text"'::json FROM one`:                                   ofText("text"),
		`SELECT 'null'::jsonb FROM one`:                                    {},
		"SELECT NULL::interval FROM one":                                   {},
	} {
		rows, err := readRows(t.Context(), src, sql)
		if err != nil || len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s: %+v, %v; want %+v", sql, rows, err, want)
		}
	}
}

// TestRealTheReaderOnlyReads: the role is the one that docs/DATABASES.md asks for, and everything goes away.
func TestRealTheReaderOnlyReads(t *testing.T) {
	on, err := newScratch(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	d := newDatabases(set, on)
	src, err := d.source(t.Context(), "shopdesk")
	if err != nil {
		t.Fatal(err)
	}
	if src.Dialect() != sqlguard.Postgres {
		t.Errorf("the dialect is %s", src.Dialect())
	}
	role, err := pgrole.Examine(t.Context(), on.url(on.prefix+"0", url.UserPassword(on.role, on.password)))
	if err != nil || len(role.Attributes)+len(role.System)+len(role.Writes)+len(role.Creates)+len(role.Definers) != 0 {
		t.Errorf("%+v, %v", role, err)
	}
	if n := left(t, on.prefix); n != 2 {
		t.Fatalf("%d databases and roles while it runs", n)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if n := left(t, on.prefix); n != 0 {
		t.Errorf("%d databases and roles are left", n)
	}
}

// TestRealWhatAKillLeftIsSwept: and what a run beside has stays.
func TestRealWhatAKillLeftIsSwept(t *testing.T) {
	make := func() *scratch {
		s, err := newScratch(t.Context(), pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.build(t.Context(), "a", "CREATE TABLE t (x int);", "INSERT INTO t VALUES (1);"); err != nil {
			t.Fatal(err)
		}
		return s
	}
	killed, alive := make(), make()
	if err := killed.admin.Close(t.Context()); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	next := make()
	if a, b, c := left(t, killed.prefix), left(t, alive.prefix), left(t, next.prefix); a != 0 || b != 2 || c != 2 {
		t.Errorf("left of the killed %d, of the one beside %d, of the next %d", a, b, c)
	}
	for _, s := range []*scratch{alive, next} {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

func left(t *testing.T, prefix string) (n int) {
	t.Helper()
	c := pgtest.Connect(t, pgtest.URL(t))
	err := c.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_database WHERE starts_with(datname::text, $1)) + (SELECT count(*) FROM pg_roles WHERE starts_with(rolname::text, $1))`, prefix).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRealAServerThatCannotBeUsed(t *testing.T) {
	weak := pgtest.New(t)
	reader := weak.Reader()
	for name, row := range map[string]struct {
		url  string
		code fault.Code
		says string
	}{
		"no URL":                    {"host=localhost", fault.Invalid, "postgres://"},
		"a URL that does not parse": {"postgres://u:s3cret@h:port/db", fault.Invalid, "postgres://"},
		"nobody there":              {"postgres://u:s3cret@127.0.0.1:1/db", fault.Busy, "refused"},
		"a user without rights":     {reader, fault.Invalid, "permission"},
	} {
		_, err := NewPostgresJudge(t.Context(), set, row.url)
		text := fmt.Sprint(err, fault.Public(err).Msg, fault.Public(err).Hint)
		if fault.CodeOf(err) != row.code || !strings.Contains(text, row.says) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRealScriptsThatDoNotRun(t *testing.T) {
	s, err := newScratch(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.build(t.Context(), "broken", "CREATE TABLE t (x nonsense);", ""); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.build(ctx, "late", "CREATE TABLE t (x int);", ""); err == nil {
		t.Error("a run that is over builds on")
	}
	if err := s.close(); err != nil { // the connection that was cancelled is gone
		t.Log(err)
	}
	next, err := newScratch(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := next.close(); err != nil {
		t.Error(err)
	}
	if n := left(t, s.prefix); n != 0 {
		t.Errorf("%d are left", n)
	}
}
