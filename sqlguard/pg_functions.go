package sqlguard

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The lists of pg_functions.gen.go are written by a test that asks a live server, and fails when the committed file says
// something else than the server does. It needs SLUICE_TEST_POSTGRES.
//
//go:generate go test . -run TestRealFunctionListIsTheServers -count=1 -rewrite

// pgForm is what the overloads of a function that differ in types alone have in common.
type pgForm struct {
	kind    byte   // 'f' function, 'a' aggregate, 'w' window function
	counts  string // numbers of arguments, with those of WITHIN GROUP: "1 3", "2+" for two or more
	reach   reach
	set     bool
	columns string // names of its OUT columns
}

// pgClass is why a function may not be called. A name with overloads of several classes has the last of them.
type pgClass byte

const (
	pgAllowed    pgClass = iota
	pgInternals          // part of the machinery: input and output of types, support of aggregates and indexes
	pgCatalogues         // tells of the server, the session or the catalogue, not of its arguments
	pgEffects            // does something, or gives another value each time
)

// listed is how the generated file holds a map from names: most of them share a value with others.
type listed[V any] struct {
	value V
	names string // with blanks between them
}

func byName[V any](lists []listed[V]) map[string]V {
	out := map[string]V{}
	for _, l := range lists {
		for n := range strings.FieldsSeq(l.names) {
			out[n] = l.value
		}
	}
	return out
}

// pgFunc is what is known of an allowed function.
type pgFunc struct {
	kind    byte     // 'f' function, 'a' aggregate, 'w' window function
	set     bool     // returns a set
	columns []string // its OUT columns' names when it returns rows of known columns (jsonb_each: key, value); nil: one value
	schema  string   // where it is: pg_catalog or the extension's
}

// pgVector is the extension whose functions, operators and types the gate knows.
const pgVector = "vector"

// callable decides on a function of a name, which was written without a schema or with that of pgFunc.schema, called with a
// number of arguments, those of WITHIN GROUP among them. The * of count is none. The error is a refusal.
func (w *pgWalker) callable(name string, args int, at int) (pgFunc, error) {
	schema := "pg_catalog"
	forms, known := pgFunctions[name], false
	if forms == nil {
		if s := w.req.Catalog.Extensions[pgVector]; s != "" {
			if forms, schema = pgVectorFunctions[name], s; forms != nil && slices.Contains(w.req.Catalog.Functions, name) {
				return pgFunc{}, refuse(at, kindQuery, "ask for that function to be renamed", "the source defines a function %s of its own, which could take the place of the extension's", name)
			}
		}
	}
	if forms == nil {
		return pgFunc{}, w.uncallable(name, at)
	}
	out := pgFunc{schema: schema}
	mixed := false
	for _, f := range forms {
		if !takes(f.counts, args) {
			continue
		}
		if f.reach != argumentsOnly && w.req.Profile == RestrictedRead {
			return pgFunc{}, refuse(at, kindQuery, restrictedHint, "the function %s reads more than its arguments, which a restricted reader may not", name)
		}
		columns := strings.Fields(f.columns)
		mixed = mixed || known && !slices.Equal(columns, out.columns)
		out.kind, out.set, out.columns, known = f.kind, out.set || f.set, columns, true
	}
	if !known {
		var counts []string
		for _, f := range forms {
			counts = append(counts, strings.Fields(f.counts)...)
		}
		slices.Sort(counts)
		return pgFunc{}, refuse(at, kindQuery, "it takes "+takesText(slices.Compact(counts)), "the function %s may not be called with %d arguments", name, args)
	}
	if mixed || len(out.columns) == 0 {
		out.columns = nil // which columns it has depends on the types
	}
	return out, nil
}

// takes tells whether a number of arguments is one of counts.
func takes(counts string, args int) bool {
	for c := range strings.FieldsSeq(counts) {
		least, more := strings.CutSuffix(c, "+")
		n, _ := strconv.Atoi(least)
		if n == args || more && n < args {
			return true
		}
	}
	return false
}

func takesText(counts []string) string {
	if len(counts) == 1 && counts[0] == "1" {
		return "1 argument"
	}
	text := strings.Join(counts, ", ")
	if i := strings.LastIndex(text, ", "); i >= 0 {
		text = text[:i] + " or " + text[i+2:]
	}
	return strings.ReplaceAll(text, "+", " or more") + " arguments"
}

// pgInstead is what to write instead of functions that people use and that do more than compute.
var pgInstead = map[string]string{
	"random":                "chance is not allowed; order by md5(id::text) to shuffle in the same way each time",
	"random_normal":         "chance is not allowed",
	"gen_random_uuid":       "chance is not allowed; md5(id::text)::uuid gives one that stays the same",
	"uuidv4":                "chance is not allowed; md5(id::text)::uuid gives one that stays the same",
	"uuidv7":                "chance is not allowed; md5(id::text)::uuid gives one that stays the same",
	"array_shuffle":         "chance is not allowed",
	"array_sample":          "chance is not allowed",
	"clock_timestamp":       "use now(), the time at which the statement began",
	"timeofday":             "use now()::text",
	"pg_typeof":             "the result says the type of each of its columns",
	"pg_sleep":              "a statement may not wait",
	"current_setting":       "settings cannot be read",
	"version":               "the server's version cannot be read",
	"nextval":               "sequences cannot be used; row_number() OVER () numbers the rows",
	"currval":               "sequences cannot be used; row_number() OVER () numbers the rows",
	"ts_stat":               "it runs SQL that stands in a text; write the query as a sub-query",
	"query_to_xml":          "it runs SQL that stands in a text; write the query as a sub-query",
	"ts_rewrite":            "with two arguments it runs SQL that stands in a text; use the form with three",
	"pg_relation_size":      "sizes of relations cannot be read; count(*) counts rows",
	"current_database":      "the session cannot be read",
	"pg_column_size":        "use octet_length",
	"obj_description":       "comments are shown with the schema, not by SQL",
	"col_description":       "comments are shown with the schema, not by SQL",
	"txid_current":          "transactions cannot be read",
	"percentile":            "use percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
	"median":                "use percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
	"ifnull":                "use coalesce",
	"nvl":                   "use coalesce",
	"isnull":                "use IS NULL, or coalesce",
	"if":                    "use CASE WHEN … THEN … ELSE … END",
	"iif":                   "use CASE WHEN … THEN … ELSE … END",
	"group_concat":          "use string_agg(x::text, ', ')",
	"listagg":               "use string_agg(x::text, ', ' ORDER BY x)",
	"datediff":              "subtract: b::date - a::date gives days",
	"date_diff":             "subtract: b::date - a::date gives days",
	"dateadd":               "add an interval: d + INTERVAL '1 day'",
	"date_format":           "use to_char(d, 'YYYY-MM-DD')",
	"strftime":              "use to_char(d, 'YYYY-MM-DD')",
	"year":                  "use EXTRACT(year FROM d)",
	"month":                 "use EXTRACT(month FROM d)",
	"day":                   "use EXTRACT(day FROM d)",
	"getdate":               "use now()",
	"curdate":               "use CURRENT_DATE",
	"today":                 "use CURRENT_DATE",
	"sysdate":               "use now()",
	"len":                   "use length",
	"charindex":             "use strpos(text, part)",
	"instr":                 "use strpos(text, part)",
	"substr_count":          "use regexp_count",
	"arg_max":               "use (array_agg(x ORDER BY y DESC))[1]",
	"max_by":                "use (array_agg(x ORDER BY y DESC))[1]",
	"arg_min":               "use (array_agg(x ORDER BY y))[1]",
	"min_by":                "use (array_agg(x ORDER BY y))[1]",
	"first":                 "use (array_agg(x ORDER BY y))[1]",
	"last":                  "use (array_agg(x ORDER BY y DESC))[1]",
	"approx_count_distinct": "use count(DISTINCT x)",
	"countif":               "use count(*) FILTER (WHERE …)",
	"sumif":                 "use sum(x) FILTER (WHERE …)",
	"to_varchar":            "use x::text",
	"list":                  "use array_agg",
}

// uncallable says why a name may not be called, and what is there instead.
func (w *pgWalker) uncallable(name string, at int) error {
	instead, hinted := pgInstead[name]
	switch pgRefused[name] {
	case pgEffects:
		if !hinted {
			instead = "functions that compute on their arguments are allowed"
		}
		return refuse(at, kindQuery, instead, "the function %s is not allowed: it does something, or gives another value each time", name)
	case pgCatalogues:
		if !hinted {
			instead = "functions that compute on their arguments are allowed"
		}
		return refuse(at, kindQuery, instead, "the function %s is not allowed: it tells of the server or its catalogue", name)
	case pgInternals:
		return refuse(at, kindQuery, instead, "the function %s is not allowed: it is part of the server's machinery", name)
	}
	if !hinted {
		names := slices.Sorted(maps.Keys(pgFunctions))
		if w.req.Catalog.Extensions[pgVector] != "" {
			names = append(names, slices.Sorted(maps.Keys(pgVectorFunctions))...)
		}
		instead = nearest(name, names)
	}
	return refuse(at, kindQuery, instead, "the function %s is not on the list of allowed functions", name)
}
