package sqlguard

import (
	"strings"
	"testing"

	"sluice/fault"
)

// pgTables is a catalogue of some tables, with pgvector in the schema ext.
type pgTables []Table

func pgWith(tables ...Table) pgTables { return tables }

func (p pgTables) check(t *testing.T, sql string) (string, error) {
	t.Helper()
	cat := &Catalog{Engine: "erp", DefaultSchema: "public", Search: []string{"public"}, Extensions: map[string]string{"vector": "ext"}, Tables: p}
	a, err := New(Postgres, nil).Check(t.Context(), Request{SQL: sql, Database: "x", Profile: ReadOnly, Catalog: cat, May: pgGranted(nil)})
	return a.SQL(), err
}

// What PostgreSQL 18's format_type says of types, and what of them is a user's.
func TestPgColumnTypes(t *testing.T) {
	w := pgWalkerOf(ReadOnly)
	for text, want := range map[string]pgType{
		"": {}, "integer": {}, "integer[]": {}, "numeric(10,2)": {}, "numeric(10,2)[]": {}, "timestamp without time zone": {}, "timestamp(3) with time zone": {},
		"time(0) without time zone[]": {}, "interval": {}, "interval day to second(3)": {}, "interval year to month": {}, "character varying(20)": {}, "character(3)": {},
		`"char"`: {}, "bit(3)": {}, "bit varying(3)": {}, "jsonb": {}, "int4range": {}, "name": {}, "regclass": {}, "oid": {}, "uuid": {}, "xml": {}, "double precision": {},
		"ext.vector(3)": {name: "vector"}, "vector": {name: "vector"}, "ext.halfvec[]": {name: "halfvec[]"}, "point": {name: "point"}, "tsquery[]": {name: "tsquery[]"},
		"public.mood": {name: "public.mood", user: true}, "mood": {name: "mood", user: true}, "public.mood[]": {name: "public.mood[]", user: true},
		"public.vector": {name: "public.vector", user: true}, `public."interval day"`: {name: `public."interval day"`, user: true}, "pg_class": {name: "pg_class", user: true},
		"public.geometry(Point,4326)": {name: "public.geometry", user: true}, "public.integer": {name: "public.integer", user: true},
	} {
		if got := w.columnType(text); got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// A cast of a user's type may call a user's function, whatever name the value has by then.
func TestPgCastsOfUsersTypes(t *testing.T) {
	tables := pgWith(Table{Relation: Relation{"public", "tickets"}, Columns: []Column{{Name: "id", Type: "integer"}, {Name: "mood", Type: "public.mood"},
		{Name: "moods", Type: "public.mood[]"}, {Name: "span", Type: "public.money_range"}, {Name: "status", Type: "text"}}},
		Table{Relation: Relation{"public", "others"}, Columns: []Column{{Name: "id", Type: "integer"}, {Name: "mood", Type: "integer"}}})
	for sql, passes := range map[string]bool{
		"SELECT mood::int FROM tickets":                                                                false,
		"SELECT CAST(t.mood AS int) FROM tickets t":                                                    false,
		"SELECT (mood)::bigint + 1 FROM tickets":                                                       false,
		"SELECT moods::int[] FROM tickets":                                                             false,
		"SELECT moods[1]::int FROM tickets":                                                            false,
		"SELECT (array_agg(mood))[1]::int FROM tickets":                                                false,
		"SELECT ARRAY[mood]::int[] FROM tickets":                                                       false,
		"SELECT max(mood)::int FROM tickets":                                                           false,
		"SELECT (lag(mood) OVER ())::int FROM tickets":                                                 false,
		"SELECT (mode() WITHIN GROUP (ORDER BY mood))::int FROM tickets":                               false,
		"SELECT COALESCE(NULL, mood)::int FROM tickets":                                                false,
		"SELECT GREATEST(mood, 'a')::int FROM tickets":                                                 false,
		"SELECT NULLIF(mood, 'a')::int FROM tickets":                                                   false,
		"SELECT (CASE WHEN true THEN 'a' ELSE mood END)::int FROM tickets":                             false,
		"SELECT (SELECT mood FROM tickets LIMIT 1)::int":                                               false,
		"SELECT ARRAY(SELECT mood FROM tickets)::int[]":                                                false,
		"SELECT (moods || mood)::int[] FROM tickets":                                                   false,
		"SELECT x::int FROM (SELECT mood AS x FROM tickets) y":                                         false,
		"SELECT y.x::int FROM (SELECT mood FROM tickets) y(x)":                                         false,
		"SELECT mood::int FROM (SELECT * FROM tickets) y":                                              false,
		"WITH a AS (TABLE tickets), b AS (SELECT * FROM a) SELECT b.mood::int FROM b":                  false,
		"SELECT x::int FROM (SELECT 'a' AS x UNION ALL SELECT mood FROM tickets) y":                    false,
		"SELECT u::int FROM tickets, unnest(moods) u":                                                  false,
		"SELECT (t).mood::int FROM tickets t":                                                          false,
		"SELECT j.mood::int FROM (tickets JOIN (SELECT 1 AS id) o USING (id)) j":                       false,
		"SELECT 1 FROM tickets a JOIN tickets b ON a.mood::int = 1":                                    false,
		"SELECT 1 FROM tickets t WHERE EXISTS (SELECT 1 FROM others o WHERE t.mood::int = 1)":          false,
		"SELECT t::int FROM tickets t":                                                                 false,
		"SELECT span::numeric FROM tickets":                                                            false,
		"WITH RECURSIVE r(x) AS (SELECT mood FROM tickets UNION SELECT x FROM r) SELECT x::int FROM r": false,

		"SELECT mood::text, mood::varchar(10), CAST(mood AS char(3)) FROM tickets":     true,
		"SELECT mood::text::int FROM tickets":                                          true,
		"SELECT moods::text[] FROM tickets":                                            true,
		"SELECT count(mood)::int, count(DISTINCT mood)::numeric FROM tickets":          true,
		"SELECT (mood = 'a')::int FROM tickets":                                        true,
		"SELECT id::text::int, status::int, length(status)::numeric FROM tickets":      true,
		"SELECT mood::int FROM others":                                                 true,
		"SELECT mood::int FROM (SELECT id AS mood FROM tickets) y":                     true,
		"SELECT y.n::int FROM (SELECT mood, count(*) AS n FROM tickets GROUP BY 1) y":  true,
		"SELECT array_length(moods, 1)::text, cardinality(moods)::bigint FROM tickets": true,
		"SELECT t::text, to_jsonb(t)::text, row_to_json(t)::jsonb FROM tickets t":      true,
		"SELECT (string_agg(mood::text, ','))::varchar FROM tickets":                   true,
		"SELECT mood IN ('a', 'b'), mood IS NOT DISTINCT FROM 'a' FROM tickets":        true,
	} {
		got, err := tables.check(t, sql)
		if passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %s, %v", sql, got, err)
		}
		if !passes && err != nil && !strings.Contains(err.Error(), "cast of") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// The text of a row doubles the quotes of the row in it; 6 levels may stand.
func TestPgRowsInRows(t *testing.T) {
	tables := pgWith(Table{Relation: Relation{"public", "t"}, Columns: []Column{{Name: "id", Type: "integer"}}})
	wrap := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	for name, c := range map[string]struct {
		sql    string
		passes bool
	}{
		"six":                      {"SELECT " + wrap("ROW(", ")", 6), true},
		"seven":                    {"SELECT " + wrap("ROW(", ")", 7), false},
		"seven, in parentheses":    {"SELECT " + wrap("(1, ", ")", 7), false},
		"rows in arrays":           {"SELECT " + wrap("ARRAY[ROW(", ")]", 3), true},
		"rows in more arrays":      {"SELECT " + wrap("ARRAY[ROW(", ")]", 4), false},
		"arrays are no rows":       {"SELECT " + wrap("ARRAY[", "]", 12), true},
		"as texts":                 {"SELECT " + wrap("ROW((", ")::text)", 7), false},
		"in subqueries":            {"SELECT " + wrap("ROW((SELECT ", "))", 7), false},
		"in a row of a subquery":   {"SELECT ROW(x) FROM (SELECT " + wrap("ROW(", ")", 6) + " AS x) y", false},
		"the row of a subquery":    {"SELECT y FROM (SELECT " + wrap("ROW(", ")", 6) + " AS x) y", false},
		"rows of rows of queries":  {"WITH a AS (SELECT 1 AS x), b AS (SELECT a FROM a), c AS (SELECT b FROM b), d AS (SELECT c FROM c), e AS (SELECT d FROM d), f AS (SELECT e FROM e) SELECT f FROM f", true},
		"one more":                 {"WITH a AS (SELECT 1 AS x), b AS (SELECT a FROM a), c AS (SELECT b FROM b), d AS (SELECT c FROM c), e AS (SELECT d FROM d), f AS (SELECT e FROM e), g AS (SELECT f FROM f) SELECT g FROM g", false},
		"arrays of rows of arrays": {"SELECT array_agg(c) FROM (SELECT array_agg(b) FROM (SELECT array_agg(a) FROM (SELECT array_agg(t) FROM t) a) b) c", false},
		"in each round":            {"WITH RECURSIVE r(x, n) AS (SELECT ROW(1), 1 UNION ALL SELECT ROW(x), n + 1 FROM r WHERE n < 40) SELECT x FROM r", false},
		"the same in each round":   {"WITH RECURSIVE r(x, n) AS (SELECT ROW(1), 1 UNION ALL SELECT x, n + 1 FROM r WHERE n < 4) SELECT x FROM r", true},
		"beside one another":       {"SELECT (1, 2) = (3, 4) AND (1, 2) < (3, 4), ROW(ROW(1), ROW(2), ROW(t.*)) FROM t", true},
	} {
		got, err := tables.check(t, c.sql)
		if c.passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// How many columns there are, as PostgreSQL 18 counts them; what it would not parse is refused here, with a place.
func TestPgWidths(t *testing.T) {
	tables := pgWith(Table{Relation: Relation{"public", "t"}, Columns: []Column{{Name: "id", Type: "integer"}, {Name: "tags", Type: "text[]"}, {Name: "pairs", Type: "public.pair[]"}}})
	for sql, passes := range map[string]bool{
		"VALUES (1, 2), (3, 4)":                       true,
		"VALUES (1), (2, 3)":                          false,
		"VALUES (1, 2), (3)":                          false,
		"SELECT * FROM (VALUES (1), (2, 3)) x":        false,
		"SELECT 1 UNION SELECT 2":                     true,
		"SELECT 1 UNION SELECT 1, 2":                  false,
		"SELECT 1, 2 EXCEPT VALUES (1)":               false,
		"TABLE t INTERSECT SELECT * FROM t":           true,
		"SELECT id FROM t UNION SELECT * FROM t":      false,
		"SELECT 1 UNION (SELECT 1 UNION SELECT 1, 2)": false,
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n, 2 FROM r) TABLE r": false,
		"SELECT u.* FROM t, unnest(pairs) u UNION SELECT 1":                        true, // not known
		"SELECT *":                 false,
		"SELECT (SELECT *) FROM t": false,
		"SELECT * FROM t WHERE EXISTS (SELECT *)":      false,
		"SELECT y.id FROM (SELECT t.* AS x FROM t) y":  true, // the alias of a star means nothing
		"SELECT y.x FROM (SELECT t.* AS x FROM t) y":   false,
		"SELECT y.x FROM (SELECT (t).* AS x FROM t) y": false,
		"SELECT count(*)":                                                                          true,
		"SELECT * FROM generate_series(1, 2)":                                                      true,
		"SELECT * FROM generate_series(1, 2) AS (a int)":                                           false,
		"SELECT * FROM unnest(ARRAY[1]) AS x(a int)":                                               false,
		"SELECT * FROM jsonb_each('{}') AS x(a text, b jsonb)":                                     false,
		"SELECT * FROM json_to_record('{}') AS x(a int)":                                           true,
		"SELECT x.a FROM jsonb_to_recordset('[]') AS x(a int, b text)":                             true,
		"SELECT x.c FROM jsonb_to_recordset('[]') AS x(a int, b text)":                             false,
		"SELECT * FROM ROWS FROM (json_to_record('{}') AS (a int), generate_series(1, 2)) x(p, q)": true,
		"SELECT * FROM ROWS FROM (generate_series(1, 2) AS (a int)) x":                             false,
		"SELECT * FROM json_to_record('{}') x":                                                     false,
		"SELECT * FROM unnest(ARRAY[ROW(1, 'a')]) AS x(a int, b text)":                             true,
		"SELECT tag FROM t, unnest(tags) tag":                                                      true,
		"SELECT other FROM t, unnest(tags) tag":                                                    false,
		"SELECT other FROM (VALUES (NULL)) v JOIN unnest(NULL::text[]) ON true":                    false,
		"SELECT x.p, x.q FROM unnest(ARRAY[1], ARRAY[2]) x(p, q)":                                  true,
		"SELECT x.r FROM unnest(ARRAY[1], ARRAY[2]) x(p, q)":                                       false,
		"SELECT u FROM t, unnest(pairs) u":                                                         true,
		"SELECT l FROM t, unnest(pairs) u":                                                         true,  // a field, or an error of the server's
		"SELECT u.l FROM t, unnest(pairs) u":                                                       false, // a field, or a call of l
		"SELECT u.u FROM t, unnest(pairs) u":                                                       false,
		"SELECT u.l FROM t, unnest(pairs) AS u(l, r)":                                              true,
		"SELECT u.id FROM t, unnest(ARRAY[t]) AS u(id)":                                            true,
		"SELECT u.u FROM t, unnest(ARRAY[t]) u":                                                    false,
		"SELECT u.u FROM (SELECT array_agg(t) AS a FROM t) x, unnest(a) u":                         false,
		"SELECT pg_typeof.pg_typeof FROM t, unnest(ARRAY[t]) AS pg_typeof":                         false,
		"SELECT pg_typeof.pg_typeof FROM t, coalesce(t, t) AS pg_typeof":                           false,
	} {
		got, err := tables.check(t, sql)
		if passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %s, %v", sql, got, err)
		}
	}
}
