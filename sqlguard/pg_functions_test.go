package sqlguard

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
)

func pgWalkerOf(p Profile) *pgWalker {
	return &pgWalker{req: Request{Profile: p, Catalog: &Catalog{Extensions: map[string]string{"vector": "ext"}}}}
}

// refusal gives what an error says and advises, "" for none.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var f *fault.Error
	if err != nil && (!errors.As(err, &f) || f.Code != fault.Refused) {
		t.Fatalf("not a refusal: %v", err)
	}
	if f == nil {
		return ""
	}
	return f.Msg + "; " + f.Hint
}

func TestPgCallable(t *testing.T) {
	cases := map[string]struct {
		name    string
		args    int
		profile Profile
		want    pgFunc // with schema "" for pg_catalog
		refused string // part of the refusal
	}{
		"a plain function":                            {name: "lower", args: 1, want: pgFunc{kind: 'f'}},
		"an aggregate":                                {name: "sum", args: 1, want: pgFunc{kind: 'a'}},
		"count of everything":                         {name: "count", args: 0, want: pgFunc{kind: 'a'}},
		"an ordered set":                              {name: "percentile_cont", args: 2, want: pgFunc{kind: 'a'}},
		"rank over a window":                          {name: "rank", args: 0, want: pgFunc{kind: 'w'}},
		"rank of a value that might be":               {name: "rank", args: 2, want: pgFunc{kind: 'a'}},
		"a window function":                           {name: "lag", args: 3, want: pgFunc{kind: 'w'}},
		"rows with two columns":                       {name: "jsonb_each", args: 1, want: pgFunc{kind: 'f', set: true, columns: []string{"key", "value"}}},
		"rows with a named column":                    {name: "jsonb_array_elements", args: 1, want: pgFunc{kind: 'f', set: true, columns: []string{"value"}}},
		"rows of one value":                           {name: "generate_series", args: 2, want: pgFunc{kind: 'f', set: true}},
		"unnest, whose columns depend on its type":    {name: "unnest", args: 1, want: pgFunc{kind: 'f', set: true}},
		"any number of arguments":                     {name: "concat", args: 30, want: pgFunc{kind: 'f'}},
		"named arguments that are left out":           {name: "make_interval", args: 1, want: pgFunc{kind: 'f'}},
		"what the grammar makes of EXTRACT":           {name: "extract", args: 2, want: pgFunc{kind: 'f'}},
		"what the grammar makes of TRIM":              {name: "btrim", args: 2, want: pgFunc{kind: 'f'}},
		"what the grammar makes of OVERLAPS":          {name: "overlaps", args: 4, want: pgFunc{kind: 'f'}},
		"what the grammar makes of AT TIME ZONE":      {name: "timezone", args: 2, want: pgFunc{kind: 'f'}},
		"what the grammar makes of SIMILAR TO":        {name: "similar_to_escape", args: 2, want: pgFunc{kind: 'f'}},
		"a hash of a text as bytes":                   {name: "convert_to", args: 2, want: pgFunc{kind: 'f'}},
		"a size for people":                           {name: "pg_size_pretty", args: 1, want: pgFunc{kind: 'f'}},
		"a distance of the extension":                 {name: "cosine_distance", args: 2, want: pgFunc{kind: 'f', schema: "ext"}},
		"text search in a named language":             {name: "to_tsvector", args: 2, profile: RestrictedRead, want: pgFunc{kind: 'f'}},
		"an immutable one for a restricted reader":    {name: "upper", args: 1, profile: RestrictedRead, want: pgFunc{kind: 'f'}},
		"time zone alone, for a restricted reader":    {name: "date_trunc", args: 2, profile: RestrictedRead, want: pgFunc{kind: 'f'}},
		"the looks of dates, for a restricted reader": {name: "to_char", args: 2, profile: RestrictedRead, want: pgFunc{kind: 'f'}},
		"a clock":          {name: "now", args: 0, want: pgFunc{kind: 'f'}},
		"a clock for COPY": {name: "now", args: 0, profile: CopySource, want: pgFunc{kind: 'f'}},

		"a clock for a restricted reader":         {name: "now", args: 0, profile: RestrictedRead, refused: "CURRENT_DATE"},
		"a type's labels for a restricted reader": {name: "enum_range", args: 1, profile: RestrictedRead, refused: "reads more than its arguments"},
		"a file":                                {name: "pg_read_file", args: 1, refused: "it does something"},
		"a setting":                             {name: "set_config", args: 3, refused: "it does something"},
		"a sequence":                            {name: "nextval", args: 1, refused: "row_number()"},
		"a lock":                                {name: "pg_try_advisory_lock", args: 1, refused: "it does something"},
		"chance":                                {name: "random", args: 0, refused: "md5(id::text)"},
		"chance in a UUID":                      {name: "gen_random_uuid", args: 0, refused: "chance is not allowed"},
		"a clock that runs on":                  {name: "clock_timestamp", args: 0, refused: "use now()"},
		"SQL in a text":                         {name: "query_to_xml", args: 4, refused: "sub-query"},
		"SQL in a text of a tsquery":            {name: "ts_rewrite", args: 2, refused: "it takes 3 arguments"},
		"a table by its name":                   {name: "table_to_xml", args: 4, refused: "its catalogue"},
		"a privilege":                           {name: "has_table_privilege", args: 2, refused: "its catalogue"},
		"a view's text":                         {name: "pg_get_viewdef", args: 1, refused: "its catalogue"},
		"a relation, though called immutable":   {name: "pg_partition_root", args: 1, refused: "its catalogue"},
		"roles, though called immutable":        {name: "aclitemeq", args: 2, refused: "its catalogue"},
		"a lookup of a name":                    {name: "to_regclass", args: 1, refused: "its catalogue"},
		"a cast to it as a call":                {name: "regclass", args: 1, refused: "its catalogue"},
		"a type's input":                        {name: "int4in", args: 1, refused: "machinery"},
		"support of an index":                   {name: "ginhandler", args: 1, refused: "not allowed"},
		"another spelling":                      {name: "LOWER", args: 1, refused: "did you mean lower"},
		"another database's function":           {name: "datediff", args: 3, refused: "gives days"},
		"an extension's that opens connections": {name: "dblink", args: 2, refused: "not on the list"},
		"support of the extension":              {name: "vector_in", args: 3, refused: "not on the list"},
		"too few arguments":                     {name: "split_part", args: 1, refused: "it takes 3 arguments"},
		"too many":                              {name: "round", args: 3, refused: "it takes 1 or 2 arguments"},
		"of two kinds, neither":                 {name: "string_agg", args: 1, refused: "it takes 2 arguments"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.profile == NoProfile {
				c.profile = ReadOnly
			}
			got, err := pgWalkerOf(c.profile).callable(c.name, c.args, 7)
			said := refusal(t, err)
			if c.refused != "" || said != "" {
				if c.refused == "" || !strings.Contains(said, c.refused) {
					t.Fatalf("got %q, want %q", said, c.refused)
				}
				return
			}
			if c.want.schema == "" {
				c.want.schema = "pg_catalog"
			}
			if got.kind != c.want.kind || got.set != c.want.set || got.schema != c.want.schema || !slices.Equal(got.columns, c.want.columns) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPgVectorNeedsItsExtension(t *testing.T) {
	without := &pgWalker{req: Request{Profile: ReadOnly, Catalog: &Catalog{}}}
	if _, err := without.callable("cosine_distance", 2, 0); err == nil {
		t.Error("a function of an extension that is not there is allowed")
	}
	if _, err := without.operator([]string{"<=>"}, 0); err == nil || !strings.Contains(refusal(t, err), "pgvector") {
		t.Errorf("<=>: %v", err)
	}
	if schema, err := without.operator([]string{"<->"}, 0); err != nil || schema != "" {
		t.Errorf("the distance of points: %q, %v", schema, err)
	}
	if _, err := without.castable([]string{"vector"}, 0); err == nil || !strings.Contains(refusal(t, err), "pgvector") {
		t.Errorf("vector: %v", err)
	}
	shadowed := pgWalkerOf(ReadOnly)
	shadowed.req.Catalog.Functions = []string{"l2_distance"}
	if _, err := shadowed.callable("l2_distance", 2, 0); err == nil {
		t.Error("a user's function could take the place of the extension's")
	}
}

func TestPgOperator(t *testing.T) {
	cases := map[string]struct {
		names  []string
		schema string
		no     bool
	}{
		"plain":                             {names: []string{"+"}},
		"of JSON":                           {names: []string{"->>"}},
		"with its schema":                   {names: []string{"pg_catalog", "+"}},
		"a distance of vectors":             {names: []string{"<=>"}, schema: "ext"},
		"one that PostgreSQL has as well":   {names: []string{"<->"}, schema: "ext"},
		"of points, said so":                {names: []string{"pg_catalog", "<->"}},
		"of vectors, said so":               {names: []string{"ext", "<+>"}, schema: "ext"},
		"another schema":                    {names: []string{"public", "+"}, no: true},
		"one that both have, said so":       {names: []string{"ext", "+"}, schema: "ext"}, // if an operand is a vector
		"another of the extension's schema": {names: []string{"ext", "<<"}, no: true},
		"an unknown one":                    {names: []string{"==="}, no: true},
		"three names":                       {names: []string{"db", "pg_catalog", "+"}, no: true},
		"none":                              {no: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			schema, err := pgWalkerOf(ReadOnly).operator(c.names, 0)
			if said := refusal(t, err); (said != "") != c.no || schema != c.schema {
				t.Errorf("got %q, %q", schema, said)
			}
		})
	}
}

func TestPgCastable(t *testing.T) {
	cases := map[string]struct {
		names   []string
		profile Profile
		schema  string
		refused string
	}{
		"int, as the grammar writes it":    {names: []string{"pg_catalog", "int4"}, schema: "pg_catalog"},
		"text":                             {names: []string{"text"}, schema: "pg_catalog"},
		"the one-byte char":                {names: []string{"char"}, schema: "pg_catalog"},
		"a range":                          {names: []string{"daterange"}, schema: "pg_catalog"},
		"an array by its own name":         {names: []string{"_int4"}, schema: "pg_catalog"},
		"a vector":                         {names: []string{"vector"}, schema: "ext"},
		"a vector with its schema":         {names: []string{"ext", "halfvec"}, schema: "ext"},
		"a configuration of text search":   {names: []string{"regconfig"}, schema: "pg_catalog"},
		"the same for a restricted reader": {names: []string{"regconfig"}, profile: RestrictedRead, refused: "looks names up"},
		"the name of a relation":           {names: []string{"regclass"}, refused: "looks names up"},
		"the same with its schema":         {names: []string{"pg_catalog", "regclass"}, refused: "looks names up"},
		"an array of names":                {names: []string{"_regrole"}, refused: "looks names up"},
		"names of roles":                   {names: []string{"aclitem"}, refused: "looks names up"},
		"the row type of a relation":       {names: []string{"hr", "salaries"}, refused: "not on the list"},
		"of a catalogue's relation":        {names: []string{"pg_class"}, refused: "not on the list"},
		"its array":                        {names: []string{"_pg_class"}, refused: "not on the list"},
		"a pseudo type":                    {names: []string{"record"}, refused: "not on the list"},
		"another pseudo type":              {names: []string{"pg_catalog", "cstring"}, refused: "not on the list"},
		"a user's type":                    {names: []string{"public", "evil_type"}, refused: "not on the list"},
		"a known name elsewhere":           {names: []string{"public", "text"}, refused: "not on the list"},
		"a type of another database":       {names: []string{"datetime"}, refused: "use timestamp"},
		"quoted in capitals":               {names: []string{"TEXT"}, refused: "did you mean text"},
		"nothing":                          {refused: "not on the list"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.profile == NoProfile {
				c.profile = CopySource
			}
			schema, err := pgWalkerOf(c.profile).castable(c.names, 0)
			said := refusal(t, err)
			if schema != c.schema || (said == "") != (c.refused == "") || !strings.Contains(said, c.refused) {
				t.Errorf("got %q, %q", schema, said)
			}
		})
	}
}

// A hint is for what is refused.
func TestPgInstead(t *testing.T) {
	for name := range pgInstead {
		if _, allowed := pgFunctions[name]; allowed && !slices.Contains(pgByCount, name) {
			t.Errorf("%s is allowed and has a hint", name)
		}
	}
}
