package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/fault"
)

// show writes a value so that a test can compare it: numbers as they are in Arrow, decimals with their point, NULL.
func show(f arrow.Field, arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "NULL"
	}
	switch a := arr.(type) {
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Date32:
		return fmt.Sprint(int32(a.Value(i)))
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		return fmt.Sprintf("%d months %d days %d ns", v.Months, v.Days, v.Nanoseconds)
	case *array.FixedSizeBinary:
		return fmt.Sprintf("%x", a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("%x", a.Value(i))
	case *array.String:
		return fmt.Sprintf("%q", a.Value(i))
	case *array.List:
		start, end := a.ValueOffsets(i)
		var out []string
		for j := start; j < end; j++ {
			out = append(out, show(arrow.Field{}, a.ListValues(), int(j)))
		}
		return "[" + strings.Join(out, " ") + "]"
	}
	return arr.ValueStr(i)
}

func typeName(f arrow.Field) string {
	name := f.Type.String()
	if l, ok := f.Type.(*arrow.ListType); ok {
		name = "list<" + typeName(l.ElemField()) + ">"
	}
	if ext, ok := f.Metadata.GetValue("ARROW:extension:name"); ok {
		name += " " + ext
	}
	return name
}

// value reads the one column of a statement.
func value(t *testing.T, e *Engine, sql string) (typ string, values []string, err error) {
	t.Helper()
	return valueOf(t, e, statement{sql: sql, timeout: e.cfg.StatementTimeout})
}

func valueOf(t *testing.T, e *Engine, s statement) (typ string, values []string, err error) {
	t.Helper()
	r, err := e.stream(t.Context(), s)
	if err != nil {
		return "", nil, err
	}
	defer r.Release()
	f := r.Schema().Field(0)
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			values = append(values, show(f, r.RecordBatch().Column(0), i))
		}
	}
	return typeName(f), values, r.Err()
}

// The expected numbers are computed by hand: days and microseconds since 1970, digits, bytes.
func TestRealEveryTypeHasItsArrowForm(t *testing.T) {
	admin(t, `CREATE TYPE mood AS ENUM ('ok', 'so, "so"'); CREATE TYPE pair AS (n int, s text);
		CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN small AS positive; CREATE DOMAIN price AS numeric(9,2);
		CREATE DOMAIN numbers AS int[]; CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION cube`)
	e := open(t)
	cases := map[string]struct {
		sql    string
		typ    string
		values string
	}{
		"boolean":                           {"SELECT v FROM (VALUES (true), (false), (NULL)) t(v)", "bool", "true false NULL"},
		"smallint, its bounds":              {"SELECT v::int2 FROM (VALUES (-32768), (32767), (NULL)) t(v)", "int16", "-32768 32767 NULL"},
		"integer, its bounds":               {"SELECT v::int4 FROM (VALUES (-2147483648), (2147483647), (NULL)) t(v)", "int32", "-2147483648 2147483647 NULL"},
		"bigint, its bounds":                {"SELECT v::int8 FROM (VALUES (-9223372036854775808), (9223372036854775807), (NULL)) t(v)", "int64", "-9223372036854775808 9223372036854775807 NULL"},
		"a sum of integer":                  {"SELECT sum(v) FROM (VALUES (2147483647), (2147483647)) t(v)", "int64", "4294967294"},
		"real":                              {"SELECT v::float4 FROM (VALUES ('1.5'), ('NaN'), ('-Infinity'), ('-0'), (NULL)) t(v)", "float32", "1.5 NaN -Inf -0 NULL"},
		"double precision":                  {"SELECT v::float8 FROM (VALUES ('2.5'), ('NaN'), ('Infinity'), ('1e-300'), (NULL)) t(v)", "float64", "2.5 NaN +Inf 1e-300 NULL"},
		"numeric of 9 digits":               {"SELECT 12345.67::numeric(9,2)", "decimal(9, 2)", "12345.67"},
		"numeric below zero":                {"SELECT (-0.001)::numeric(12,3)", "decimal(12, 3)", "-0.001"},
		"numeric of 38 digits":              {"SELECT 99999999999999999999999999999.123456789::numeric(38,9)", "decimal(38, 9)", "99999999999999999999999999999.123456789"},
		"numeric with a negative scale":     {"SELECT 1234::numeric(3,-2)", "decimal(5, 0)", "1200"},
		"numeric with a scale over it":      {"SELECT 0.00123::numeric(3,5)", "decimal(5, 5)", "0.00123"},
		"numeric of 40 digits":              {"SELECT (-12.34)::numeric(40,2)", "utf8", `"-12.34"`},
		"numeric with a scale of 50":        {"SELECT 1e-50::numeric(3,50)", "utf8", `"0.00000000000000000000000000000000000000000000000001"`},
		"numeric without a type modifier":   {"SELECT v FROM (VALUES (0.0012), (1e19), (-1), (0), (0.500000000000000000), (NULL)) t(v)", "decimal(38, 18)", "0.001200000000000000 10000000000000000000.000000000000000000 -1.000000000000000000 0.000000000000000000 0.500000000000000000 NULL"},
		"a sum of bigint":                   {"SELECT sum(v) FROM (VALUES (9223372036854775807), (9223372036854775807)) t(v)", "decimal(38, 18)", "18446744073709551614.000000000000000000"},
		"money":                             {"SELECT v::money FROM (VALUES ('1234.56'), ('-0.01')) t(v)", "decimal(19, 2)", "1234.56 -0.01"},
		"text":                              {`SELECT v FROM (VALUES ('ä "€" 😀'), (''), (NULL)) t(v)`, "utf8", `"ä \"€\" 😀" "" NULL`},
		"varchar(n)":                        {"SELECT 'vc'::varchar(10)", "utf8", `"vc"`},
		"char(n) without its blanks":        {"SELECT 'ab  '::char(6)", "utf8", `"ab"`},
		"name":                              {"SELECT 'pg_x'::name", "utf8", `"pg_x"`},
		"the type \"char\"":                 {`SELECT v::"char" FROM (VALUES ('x'), ('')) t(v)`, "utf8", `"x" ""`},
		"a literal without a type":          {"SELECT 'abc'", "utf8", `"abc"`},
		"NULL without a type":               {"SELECT NULL", "utf8", "NULL"},
		"citext":                            {"SELECT 'Ab'::public.citext", "utf8", `"Ab"`},
		"bytea":                             {`SELECT v FROM (VALUES ('\x00ff'::bytea), (''), (NULL)) t(v)`, "binary", "00ff  NULL"},
		"uuid":                              {"SELECT '7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60'::uuid", "fixed_size_binary[16] arrow.uuid", "7d3cf1b40d114b7e9a4e1f2c3d4e5f60"},
		"json":                              {`SELECT '{"a":  1}'::json`, "utf8 arrow.json", `"{\"a\":  1}"`},
		"jsonb without its version":         {`SELECT '{"b":2,"a":1}'::jsonb`, "utf8 arrow.json", `"{\"a\": 1, \"b\": 2}"`},
		"enum":                              {`SELECT 'so, "so"'::public.mood`, "utf8", `"so, \"so\""`},
		"date":                              {"SELECT v::date FROM (VALUES ('1999-12-31'), ('1970-01-01'), ('0001-01-01'), ('4713-01-01 BC'), ('5874897-12-31'), (NULL)) t(v)", "date32", "10956 0 -719162 -2440550 2145042905 NULL"},
		"infinite dates":                    {"SELECT v::date FROM (VALUES ('infinity'), ('-infinity')) t(v)", "date32", "2147483647 -2147483647"},
		"timestamp":                         {"SELECT v::timestamp FROM (VALUES ('1970-01-01 00:00:00.000001'), ('1969-12-31 23:59:59.999999'), ('2024-03-31 02:30:00.123456')) t(v)", "timestamp[us]", "1 -1 1711852200123456"},
		"the last timestamp":                {"SELECT '294247-01-10 04:00:54.775805'::timestamp - interval '1 year'", "timestamp[us]", "9223340500854775805"},
		"infinite timestamps":               {"SELECT v::timestamp FROM (VALUES ('infinity'), ('-infinity')) t(v)", "timestamp[us]", "9223372036854775807 -9223372036854775807"},
		"timestamptz":                       {"SELECT '2024-03-31 02:30:00.123456+02'::timestamptz", "timestamp[us, tz=UTC]", "1711845000123456"},
		"time":                              {"SELECT v::time FROM (VALUES ('00:00'), ('23:59:59.999999'), ('24:00')) t(v)", "time64[us]", "0 86399999999 86400000000"},
		"timetz in UTC":                     {"SELECT v::timetz FROM (VALUES ('01:02:03+05'), ('23:00-03:30'), ('10:00Z')) t(v)", "time64[us]", "72123000000 9000000000 36000000000"},
		"interval":                          {"SELECT v::interval FROM (VALUES ('1 year 2 mons 3 days 04:05:06.789012'), ('-1 mon +2 days -00:00:00.000001'), (NULL)) t(v)", "month_day_nano_interval", "14 months 3 days 14706789012000 ns -1 months 2 days -1000 ns NULL"},
		"bit":                               {"SELECT B'0101'", "utf8", `"0101"`},
		"bit varying":                       {"SELECT B'01'::varbit(9)", "utf8", `"01"`},
		"oid, unsigned":                     {"SELECT 4294967295::oid", "int64", "4294967295"},
		"xid":                               {"SELECT '7'::xid", "int64", "7"},
		"a registered class":                {"SELECT 'pg_class'::regclass", "utf8", `"pg_class"`},
		"a list of numbers with NULL":       {"SELECT ARRAY[1,NULL,3]::int4[]", "list<int32>", "[1 NULL 3]"},
		"an empty list and none":            {"SELECT v FROM (VALUES ('{}'::text[]), (NULL)) t(v)", "list<utf8>", "[] NULL"},
		"a list of text":                    {`SELECT ARRAY['a,b', '', 'NULL', NULL, '"\']`, "list<utf8>", `["a,b" "" "NULL" NULL "\"\\"]`},
		"a list of numeric(p,s)":            {"SELECT ARRAY[1.5, -0.01]::numeric(9,2)[]", "list<decimal(9, 2)>", "[1.50 -0.01]"},
		"a list of wide numeric":            {"SELECT ARRAY[1.5, NULL]::numeric(40,2)[]", "list<utf8>", `["1.50" NULL]`},
		"a list of uuid":                    {"SELECT ARRAY['7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60']::uuid[]", "list<fixed_size_binary[16] arrow.uuid>", "[7d3cf1b40d114b7e9a4e1f2c3d4e5f60]"},
		"a list of jsonb":                   {`SELECT ARRAY['1', '{"a":2}']::jsonb[]`, "list<utf8 arrow.json>", `["1" "{\"a\": 2}"]`},
		"a list of money":                   {"SELECT ARRAY['1.10'::money]", "list<decimal(19, 2)>", "[1.10]"},
		"a list of timestamps":              {"SELECT ARRAY['1970-01-02'::timestamptz]", "list<timestamp[us, tz=UTC]>", "[86400000000]"},
		"a list of enums":                   {`SELECT ARRAY['ok', 'so, "so"', NULL]::public.mood[]`, "list<utf8>", `["ok" "so, \"so\"" NULL]`},
		"a list of addresses":               {"SELECT ARRAY['10.0.0.1', '::1']::inet[]", "list<utf8>", `["10.0.0.1" "::1"]`},
		"a list of boxes, their own commas": {"SELECT ARRAY['(1,2),(0,0)', '(3,4),(1,1)']::box[]", "list<utf8>", `["(1,2),(0,0)" "(3,4),(1,1)"]`},
		"a list of rows":                    {`SELECT ARRAY[ROW(1,'x "y"')::public.pair]`, "list<utf8>", `["(1,\"x \"\"y\"\"\")"]`},
		"a domain":                          {"SELECT 5::public.small", "int32", "5"},
		"a domain over numeric":             {"SELECT 5::public.price", "decimal(9, 2)", "5.00"},
		"a list of a domain":                {"SELECT ARRAY[5, NULL]::public.small[]", "list<int32>", "[5 NULL]"},
		"a list of a domain over numeric":   {"SELECT ARRAY[5]::public.price[]", "list<decimal(9, 2)>", "[5.00]"},
		"a domain over a list":              {"SELECT '{1,2}'::public.numbers", "list<int32>", "[1 2]"},
		"a list of a domain over a list":    {"SELECT ARRAY['{1,2}'::public.numbers]", "list<utf8>", `["{1,2}"]`},
		"a row type":                        {"SELECT ROW(1,'x')::public.pair", "utf8", `"(1,x)"`},
		"a row":                             {"SELECT ROW(1,'x')", "utf8", `"(1,x)"`},
		"a range":                           {"SELECT int4range(1,5)", "utf8", `"[1,5)"`},
		"an address":                        {"SELECT '10.0.0.0/8'::cidr", "utf8", `"10.0.0.0/8"`},
		"a point":                           {"SELECT point(1.5,2)", "utf8", `"(1.5,2)"`},
		"a text search vector":              {"SELECT 'a b a'::tsvector", "utf8", `"'a' 'b'"`},
		"a log position":                    {"SELECT '0/16B3748'::pg_lsn", "utf8", `"0/16B3748"`},
		"an old vector of oids":             {"SELECT '1 2'::oidvector", "utf8", `"1 2"`},
		"hstore":                            {"SELECT 'a=>1'::public.hstore", "utf8", `"\"a\"=>\"1\""`},
		"a type of an extension":            {"SELECT '(1,2)'::public.cube", "utf8", `"(1, 2)"`},
		"pgvector's vector":                 {"SELECT v::public.vector FROM (VALUES ('[1,-2.5,3]'), (NULL)) t(v)", "list<float32>", "[1 -2.5 3] NULL"},
		"pgvector's halfvec":                {"SELECT '[1,-2.5,65504]'::public.halfvec(3)", "list<float32>", "[1 -2.5 65504]"},
		"pgvector's sparsevec":              {"SELECT '{1:1.5}/4'::public.sparsevec", "utf8", `"{1:1.5}/4"`},
		"a list of vectors":                 {"SELECT ARRAY['[1,2]'::public.vector]", "list<utf8>", `["[1,2]"]`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			typ, values, err := value(t, e, c.sql)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(values, " "); typ != c.typ || got != c.values {
				t.Errorf("%s\n%s: %s\nwant\n%s: %s", c.sql, typ, got, c.typ, c.values)
			}
		})
	}
}

func TestRealWhatDoesNotFitIsARangeErrorThatNamesTheColumn(t *testing.T) {
	e := open(t)
	cases := map[string]struct{ sql, says string }{
		"numeric NaN":                     {"SELECT 'NaN'::numeric AS price", "NaN"},
		"numeric infinity":                {"SELECT 'Infinity'::numeric AS price", "infinite"},
		"numeric minus infinity":          {"SELECT '-Infinity'::numeric AS price", "infinite"},
		"a typed numeric NaN":             {"SELECT 'NaN'::numeric(9,2) AS price", "NaN"},
		"a third":                         {"SELECT 1::numeric/3 AS price", "18"},
		"the nineteenth digit":            {"SELECT 0.0000000000000000001::numeric AS price", "18"},
		"38 digits before the point":      {"SELECT 12345678901234567890123456789012345678::numeric AS price", "20"},
		"a hundred thousand digits":       {"SELECT 1e100000::numeric AS price", "20"},
		"a list of two dimensions":        {"SELECT ARRAY[[1,2],[3,4]] AS price", "dimensions"},
		"two dimensions of text":          {"SELECT ARRAY[['10.0.0.1','::1'],['::2','::3']]::inet[] AS price", "dimensions"},
		"a first index of 0":              {"SELECT '[0:1]={1,2}'::int[] AS price", "dimensions"},
		"a first index of 0, as text":     {"SELECT '[0:1]={10.0.0.1,::1}'::inet[] AS price", "dimensions"},
		"the last timestamp of the world": {"SELECT '294276-12-31'::timestamp AS price", "294246"},
		"with a time zone":                {"SELECT '294276-12-31'::timestamptz AS price", "294246"},
		"an infinite interval":            {"SELECT 'infinity'::interval AS price", "infinite"},
		"an interval of 300 years of h":   {"SELECT make_interval(hours => 2629800) AS price", "292"},
		"within a list":                   {"SELECT ARRAY['NaN'::numeric] AS price", "NaN"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, values, err := valueOf(t, e, statement{sql: c.sql, exact: true})
			f := fault.Public(err)
			if err == nil || f.Code != fault.Invalid || f.Kind != "range" {
				t.Fatalf("%v, %v", values, err)
			}
			if !strings.Contains(f.Msg, "column price") || !strings.Contains(f.Msg, c.says) || f.Hint == "" {
				t.Errorf("%q, hint %q", f.Msg, f.Hint)
			}
		})
	}
}
