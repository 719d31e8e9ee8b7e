package sqlguard

import (
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// pgCosts decides on the cost of every call of an expression, the outer ones first, and writes what became of it.
func pgCosts(t *testing.T, expr string) (string, error) {
	t.Helper()
	tree, err := pg_query.Parse("SELECT " + expr)
	if err != nil {
		t.Fatal(err)
	}
	w := pgWalkerOf(ReadOnly)
	var walk func(m protoreflect.Message) error
	walk = func(m protoreflect.Message) error {
		if call, ok := m.Interface().(*pg_query.FuncCall); ok {
			if err := w.pgCost(call, call.Funcname[len(call.Funcname)-1].GetString_().Sval); err != nil {
				return err
			}
		}
		var err error
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.IsList() && f.Message() != nil:
				for i := 0; i < v.List().Len() && err == nil; i++ {
					err = walk(v.List().Get(i).Message())
				}
			case f.Message() != nil:
				err = walk(v.Message())
			}
			return err == nil
		})
		return err
	}
	if err := walk(tree.ProtoReflect()); err != nil {
		return "", err
	}
	out, err := pg_query.Deparse(tree)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pg_query.Parse(out)
	if err != nil || len(again.Stmts) != 1 {
		t.Fatalf("%s: %v", out, err)
	}
	return strings.TrimPrefix(out, "SELECT "), nil
}

func TestPgCost(t *testing.T) {
	cases := map[string]struct {
		expr    string
		becomes string // "" for the same
		refused string
	}{
		"a short repeat":                   {expr: "repeat('-', 40)"},
		"a long one":                       {expr: "repeat('x', 1000000000)", refused: "at most 10000"},
		"a long one in hexadecimal":        {expr: "repeat('x', 0x3B9ACA00)", refused: "at most 10000"},
		"a long one as a text":             {expr: "repeat('x', ' 1_000_000_000')", refused: "at most 10000"},
		"a long one by arithmetic":         {expr: "repeat('x', (10::int ^ 9)::int)", refused: "at most 10000"},
		"a long one by power":              {expr: "repeat('x', power(10, 9)::int4)", refused: "at most 10000"},
		"one that the rows tell":           {expr: "repeat('#', n / 10)", becomes: "repeat('#', (n / 10)::numeric(4, 0)::int)"},
		"less than nothing":                {expr: "repeat('x', -5)"},
		"two of them, one in the other":    {expr: "repeat(repeat('x', 10000), 10000)", refused: "multiplied"},
		"a long text many times":           {expr: "repeat('" + strings.Repeat("x", 200) + "', 10000)"},
		"padded":                           {expr: "lpad(id::text, 8, '0')"},
		"padded to a gigabyte":             {expr: "rpad('x', 1000000000)", refused: "at most 10000"},
		"padded twice, which adds nothing": {expr: "lpad(rpad('x', 5000), 6000)"},
		"padded to what the rows tell":     {expr: "lpad('x', depth)", becomes: "lpad('x', depth::numeric(4, 0)::int)"},
		"an array":                         {expr: "array_fill(0, ARRAY[10, 10])"},
		"a large array":                    {expr: "array_fill(0, ARRAY[100000, 1000])", refused: "at most 10000 elements"},
		"a large array from a text":        {expr: "array_fill(0, '{100000,1000}')", refused: "at most 10000 elements"},
		"a large array in another form":    {expr: "array_fill(0, '{0x5F5E100}'::int[])", refused: "must stand in the statement"},
		"an array of what the rows tell":   {expr: "array_fill(0, ARRAY[n])", becomes: "array_fill(0, ARRAY[n::numeric(4, 0)::int])"},
		"of two that the rows tell":        {expr: "array_fill(0, ARRAY[n, m])", refused: "at most 10000 elements"},
		"sizes in a column":                {expr: "array_fill(0, dims)", refused: "must stand in the statement"},
		"a factorial":                      {expr: "factorial(20)"},
		"a large factorial":                {expr: "factorial(32177)", refused: "at most 1000"},
		"a format":                         {expr: "format('%s <%s>', name, email)"},
		"a format with a width":            {expr: "format('%-20s|%5s', name, id)"},
		"a wide format":                    {expr: "format('%1000000000s', name)", refused: "widths may add up to 1000"},
		"a width from an argument":         {expr: "format('%*s', n, name)", refused: "without computed widths"},
		"a format with a percent sign":     {expr: "format('%s%%', share)"},
		"a format from a column":           {expr: "format(pattern, name)", refused: "must be a literal"},
		"one of two formats":               {expr: "format(CASE WHEN a THEN '%s' ELSE '%I' END, name)"},
		"an argument many times":           {expr: "format('" + strings.Repeat("%1$s", 200) + "', repeat('x', 9999))", refused: "multiplied"},
		"cleaning":                         {expr: "replace(name, ' ', '')"},
		"blowing up":                       {expr: "replace(repeat('a', 10000), 'a', '" + strings.Repeat("b", 200) + "')", refused: "multiplied"},
		"names for sizes":                  {expr: "repeat(string => 'x', number => 1000000000)", refused: "in their order"},
		"a bit string":                     {expr: "\"bit\"(1, 80000000)", refused: "at most 10000"},

		"a short series":               {expr: "generate_series(1, 12)"},
		"the days of a year":           {expr: "generate_series(DATE '2026-01-01', DATE '2026-12-31', interval '1 day')"},
		"minutes of ten years":         {expr: "generate_series('2016-01-01'::timestamp, '2026-01-01', '1 minute')"},
		"from the data":                {expr: "generate_series(min(d), max(d), '1 day')"},
		"to today":                     {expr: "generate_series('2020-01-01'::date, current_date, '1 day')"},
		"a bomb":                       {expr: "generate_series(1, 1000000000000)", refused: "more than 10000000 rows"},
		"downwards":                    {expr: "generate_series(1000000000, 1, -1)", refused: "more than"},
		"by arithmetic":                {expr: "generate_series(1, 1000000 * 1000000)", refused: "more than"},
		"in text":                      {expr: "generate_series(1, '1000000000000'::bigint)", refused: "more than"},
		"small steps":                  {expr: "generate_series(0, 1, 0.000000001)", refused: "more than"},
		"microseconds":                 {expr: "generate_series('2026-01-01'::timestamp, '2026-01-02', '1 microsecond')", refused: "more than"},
		"seconds of centuries":         {expr: "generate_series('0001-01-01'::timestamp, '9999-01-01', interval '1' second)", refused: "more than"},
		"clock notation":               {expr: "generate_series('0001-01-01'::timestamp, '9999-01-01', '00:00:30')", refused: "more than"},
		"without end":                  {expr: "generate_series('2026-01-01'::timestamp, 'infinity', '1 day')", refused: "more than"},
		"without end, from the data":   {expr: "generate_series(placed_at, 'infinity', '1 day')", refused: "more than"},
		"the wrong way, which is none": {expr: "generate_series(1000000000000, 1)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := pgCosts(t, c.expr)
			said := refusal(t, err)
			switch {
			case c.refused != "" || said != "":
				if c.refused == "" || !strings.Contains(said, c.refused) {
					t.Errorf("got %q, want %q", said, c.refused)
				}
			case c.becomes != "" && got != c.becomes:
				t.Errorf("got %s", got)
			case c.becomes == "":
				want, err := pg_query.Parse("SELECT " + c.expr)
				if err != nil {
					t.Fatal(err)
				}
				text, err := pg_query.Deparse(want)
				if err != nil || "SELECT "+got != text {
					t.Errorf("got %s, want %s (%v)", got, text, err)
				}
			}
		})
	}
}

func TestPgTypeSize(t *testing.T) {
	cases := map[string]bool{"char(10)": true, "char(10485760)": false, "bit(80000000)": false, "varchar(10485760)": true, "numeric(10, 2)": true, "text": true, "bit(8)": true,
		"date(2)": false, "text(10)": false, "float8(2)": false, "timestamp(3)": true, "time(0)": true, "interval second(2)": true, "varchar(5)[]": true, "pg_catalog.int4(4)": false}
	for typ, want := range cases {
		t.Run(typ, func(t *testing.T) {
			tree, err := pg_query.Parse("SELECT NULL::" + typ)
			if err != nil {
				t.Fatal(err)
			}
			n := tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val.GetTypeCast().TypeName
			err = pgTypeSize(n.Names[len(n.Names)-1].GetString_().Sval, n.Typmods, 0)
			if (refusal(t, err) == "") != want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRealTypesOfASize(t *testing.T) {
	var got string
	if err := pgServer(t).QueryRow(t.Context(), "SELECT string_agg(typname, ' ' ORDER BY typname) FROM pg_type WHERE typmodin <> 0 AND typcategory <> 'A' AND typnamespace = 'pg_catalog'::regnamespace").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(pgSized, " "); got != want {
		t.Errorf("the server's are %s, ours %s", got, want)
	}
}

// A gate of generate_series counts what the server makes, as far as it can read the arguments.
func TestRealSeriesHaveAsManyRows(t *testing.T) {
	conn := pgServer(t)
	for _, args := range []string{"1, 12", "12, 1, -3", "1, 100, 7", "0, 1, 0.001", "5, '50'", "1e2, 1e3", "2 * 5, power(10, 3)::int, (2 ^ 1)::int", "1, 0x1F4", "1, 1_000",
		"'2026-01-01'::timestamp, '2026-12-31', '1 day'", "DATE '2020-02-01', DATE '2026-02-01', INTERVAL '1 month'",
		"'2026-01-01 10:00'::timestamptz, '2026-01-01 22:30', '15 minutes'", "'2026-01-01'::timestamp, '2026-01-03', '00:00:30'",
		"'2026-01-05'::timestamp, '2026-01-01', '-1 hour'", "'2026-01-01'::timestamp, '2026-02-01', INTERVAL '6' HOUR",
		"'2026-01-01'::timestamp, '2026-01-01 00:00:01', '1 ms'", "'1999-12-31'::timestamp, '2001-01-01', '1 week 12 hours'"} {
		t.Run(args, func(t *testing.T) {
			var want float64
			if err := conn.QueryRow(t.Context(), "SELECT count(*)::float8 FROM generate_series("+args+")").Scan(&want); err != nil {
				t.Fatal(err)
			}
			tree, err := pg_query.Parse("SELECT generate_series(" + args + ")")
			if err != nil {
				t.Fatal(err)
			}
			got, ok := pgSeries(tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val.GetFuncCall().Args)
			if !ok || got < want*0.9-2 || got > want*1.1+2 {
				t.Errorf("got %v rows (%v), the server makes %v", got, ok, want)
			}
		})
	}
}

// What the gate writes around a computed size must give what the size gave, and fail beyond.
func TestRealNarrowedSizes(t *testing.T) {
	conn := pgServer(t)
	for expr, want := range map[string]string{
		"repeat('ab', n)": "ababab", "lpad('x', n * 2, '-')": "-----x", "array_fill(7, ARRAY[n])::text": "{7,7,7}", "factorial(n)::text": "6",
	} {
		text, err := pgCosts(t, expr)
		if err != nil || !strings.Contains(text, "numeric(4, 0)") {
			t.Fatalf("%s: %s, %v", expr, text, err)
		}
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT "+text+" FROM (VALUES (3::bigint)) v(n)").Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
		if err := conn.QueryRow(t.Context(), "SELECT "+text+" FROM (VALUES (10000::bigint)) v(n)").Scan(&got); err == nil {
			t.Errorf("%s runs with a size of 10000", text)
		}
	}
}
