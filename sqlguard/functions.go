package sqlguard

import (
	"slices"
)

// The list of functions_duckdb.gen.go is written by a test of package database, which asks the live engine and fails when
// the committed file differs.
//
//go:generate go test ../database -run TestFunctionListIsTheEngines -count=1 -rewrite

// function decides on the name of a scalar, aggregate or window function call.
func (w *walker) function(n node) error {
	name := str(n, "function_name")
	if !builtinSchema(n) {
		return refuse(place(n), kindQuery, "call a built-in function by its plain name", "the function %s.%s is not allowed", str(n, "schema"), name)
	}
	if duckFunctions[fold(name)] {
		return nil
	}
	hint := ""
	if builtin(name) {
		hint = "use a function that only computes on its arguments"
	} else {
		var names []string
		for f := range duckFunctions {
			names = append(names, f)
		}
		slices.Sort(names)
		hint = nearest(name, names)
	}
	return refuse(place(n), kindQuery, hint, "the function %s is not on the list of allowed functions", name)
}

// builtinSchema tells that a call is unqualified or names the schema of the built-in functions, as the engine's own
// parser does for some constructs. x.lower() is a call of a function of the schema x, so it is refused.
func builtinSchema(n node) bool {
	schema, catalog := fold(str(n, "schema")), fold(str(n, "catalog"))
	return (schema == "" && catalog == "") || (schema == "main" && (catalog == "" || catalog == "system"))
}

// builtin tells whether DuckDB has a function of this name, allowed or not.
func builtin(name string) bool {
	_, ok := duckFunctions[fold(name)]
	return ok
}
