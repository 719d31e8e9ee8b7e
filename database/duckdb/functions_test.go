package duckdb_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/database/duckdb"
)

// rewriting tells whether -rewrite is given: it is datadriven's flag, and writes the generated file too.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

// deniedThoughConsistent are scalar functions that the engine calls CONSISTENT and that do more than compute on their
// arguments, or are parts of the engine that no statement needs.
var deniedThoughConsistent = []string{
	"current_setting", "getvariable", "version", // settings and state
	"json_serialize_sql", "json_deserialize_sql", "json_serialize_plan", // SQL text; the last one binds it
	"parse_duckdb_log_message", "vector_type", "create_sort_key", "icu_sort_key", "timetz_byte_comparable", "remap_struct",
	"can_cast_implicitly", "cast_to_type", "make_type", "replace_type", "get_type",
	"combine", "finalize", "variant_bytes_to_variant", "variant_normalize", "variant_to_parquet_variant",
	"st_crs", "st_setcrs", // look up coordinate systems in the catalogue
}

// notPure are allowed scalar functions that the engine calls CONSISTENT and that look at a clock or the session's time
// zone, so that pruning must not evaluate them elsewhere.
var notPure = strings.Fields(`age current_localtime current_localtimestamp make_timestamptz strptime timezone timezone_hour timezone_minute
	to_timestamp try_strptime time_bucket`)

// costly are allowed scalar functions that the gate bounds (sqlguard/cost.go), and that pruning leaves to the statement
// itself, which has limits of its own.
var costly = strings.Fields(`repeat list_resize array_resize lpad rpad bitstring equi_width_bins range generate_series format printf
	levenshtein editdist3 jaro_similarity jaro_winkler_similarity damerau_levenshtein`)

// allowedWithinQuery are the clocks. The others of that stability tell about the session and the catalogue.
var allowedWithinQuery = []string{"current_date", "get_current_time", "get_current_timestamp", "now", "today", "transaction_timestamp"}

// readsMore are allowed functions that a restricted reader may not call: clocks, chance, and an error at will. The session's
// time zone, a constant of the source, is no reason: PostgreSQL's list (docs/GATE.md) draws the same line. age with one
// argument reads a clock too, and the gate tells by the argument.
var readsMore = strings.Fields(`ago current_localtime current_localtimestamp error get_current_time get_current_timestamp now today
	transaction_timestamp reservoir_quantile`)

// allowedMacros are the macros whose definitions were read: they call nothing but allowed functions.
var allowedMacros = strings.Fields(`ago array_append array_pop_back array_pop_front array_prepend array_push_back array_push_front array_reverse
	array_to_string array_to_string_comma_default date_add days_in_month fdiv fmod generate_subscripts geomean geometric_mean json
	json_group_array json_group_object json_group_structure list_any_value list_append list_approx_count_distinct list_avg list_bit_and
	list_bit_or list_bit_xor list_bool_and list_bool_or list_count list_entropy list_first list_histogram list_kurtosis list_kurtosis_pop
	list_last list_mad list_max list_median list_min list_mode list_prepend list_product list_reverse list_sem list_skewness list_stddev_pop
	list_stddev_samp list_string_agg list_sum list_var_pop list_var_samp map_contains_entry map_contains_value md5_number_lower
	md5_number_upper nullif regexp_split_to_table round_even roundbankers split_part wavg weighted_avg`)

// TestFunctionListIsTheEngines derives the gate's list from the live engine and compares it with the committed file.
func TestFunctionListIsTheEngines(t *testing.T) {
	p, err := duckdb.NewParser()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := duckdb.AskParser(t.Context(), p, `SELECT DISTINCT lower(function_name), function_type, coalesce(stability, ''), coalesce(macro_definition, '')
		FROM duckdb_functions() WHERE internal ORDER BY ALL`)
	if err != nil {
		t.Fatal(err)
	}
	allowedVolatile := "error"                                                          // raises an error and does nothing else
	allowed, pure := map[string]bool{"unnest": true, "unlist": true}, map[string]bool{} // unnest as a scalar is in the binder, not in the list
	count := map[string]int{}
	for _, r := range rows {
		name, kind, stability := *r[0], *r[1], *r[2]
		ok := false
		switch {
		case strings.HasPrefix(name, "__internal_"), strings.HasPrefix(name, "icu_collate_"), slices.Contains(deniedThoughConsistent, name):
		case kind == "aggregate", kind == "scalar" && stability == "CONSISTENT":
			ok = true
		case kind == "scalar" && name == allowedVolatile:
			ok = true
		case kind == "scalar" && stability == "CONSISTENT_WITHIN_QUERY":
			ok = slices.Contains(allowedWithinQuery, name)
		case kind == "macro":
			ok = slices.Contains(allowedMacros, name)
		case kind == "table", kind == "table_macro", kind == "pragma":
			// These cannot be called as a scalar, so they say nothing about a scalar of the same name.
			if _, seen := allowed[name]; !seen {
				allowed[name] = false
			}
			continue
		}
		if was, seen := allowed[name]; seen && was != ok && count[name] > 0 {
			ok = false // one overload that is not allowed takes the name
		}
		count[name]++
		allowed[name] = ok
		if kind == "scalar" {
			p, seen := pure[name]
			pure[name] = ok && stability == "CONSISTENT" && (p || !seen) && !slices.Contains(notPure, name) && !slices.Contains(costly, name)
		}
	}
	more := map[string]bool{}
	for name, ok := range allowed {
		more[name] = ok && slices.Contains(readsMore, name)
	}
	for _, r := range rows {
		// What the engine itself calls less than CONSISTENT is not for restricted readers, reviewed or not.
		if name := *r[0]; *r[1] == "scalar" && *r[2] != "CONSISTENT" && allowed[name] && name != "current_date" {
			more[name] = true
		}
	}
	for _, name := range readsMore {
		if !more[name] {
			t.Errorf("%s is reviewed but not an allowed function", name)
		}
	}
	collations, err := duckdb.AskParser(t.Context(), p, "SELECT lower(collname) FROM pragma_collations() UNION SELECT unnest(['c', 'posix', 'binary']) ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	got := functionsFile(t, allowed, pure, more, collations)
	path := filepath.Join("..", "..", "sqlguard", "functions_duckdb.gen.go")
	if rewriting() {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the engine has: run go generate ./sqlguard and read the difference", path)
	}
	for _, name := range []string{"current_user", "read_csv", "query", "getenv", "pg_sleep", "nextval", "write_log", "random", "uuid",
		"current_database", "json_execute_serialized_sql", "get_block_size", "json_serialize_plan", "current_setting"} {
		if allowed[name] {
			t.Errorf("%s is allowed", name)
		}
	}
	for _, name := range []string{"sum", "lower", "date_trunc", "row_number", "nullif", "strftime", "list_value", "now", "count_star"} {
		if !allowed[name] {
			t.Errorf("%s is not allowed", name)
		}
	}
}

func functionsFile(t *testing.T, allowed, pure, more map[string]bool, collations [][]*string) []byte {
	t.Helper()
	var b strings.Builder
	b.WriteString("package sqlguard\n\n// Code generated by go generate from DuckDB's duckdb_functions(). DO NOT EDIT.\n\n" +
		"// duckFunctions tells of every built-in function whether a statement may call it.\nvar duckFunctions = map[string]reach{\n")
	var names []string
	for n := range allowed {
		names = append(names, n)
	}
	slices.Sort(names)
	n := 0
	for _, name := range names {
		reach := "refused"
		switch {
		case more[name]:
			reach = "readsMore"
		case allowed[name]:
			reach = "argumentsOnly"
		}
		fmt.Fprintf(&b, "\t%q: %s,\n", name, reach)
		if allowed[name] {
			n++
		}
	}
	b.WriteString("}\n\n// duckPure are the allowed scalar functions that give the same value for the same arguments, whenever and wherever.\nvar duckPure = map[string]bool{\n")
	for _, name := range names {
		if pure[name] {
			fmt.Fprintf(&b, "\t%q: true,\n", name)
		}
	}
	b.WriteString("}\n\n// duckCollations are the engine's collations; several may be joined with dots.\nvar duckCollations = map[string]bool{\n")
	for _, c := range collations {
		fmt.Fprintf(&b, "\t%q: true,\n", *c[0])
	}
	b.WriteString("}\n")
	out, err := format.Source([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d function names are allowed", n, len(names))
	return out
}
