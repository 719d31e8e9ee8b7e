package sqlguard

import (
	"slices"
)

// The list of functions_duckdb.gen.go is written by a test of package database, which asks the live engine and fails when
// the committed file differs.
//
//go:generate go test ../database/duckdb -run TestFunctionListIsTheEngines -count=1 -rewrite

// reach is what a function may look at, as its engine's catalogue tells. Names that are not in the list are refused.
type reach int

const (
	refused       reach = iota
	readsMore           // a clock, chance, or an error at will: not for restricted readers
	argumentsOnly       // nothing but its arguments and the source's time zone, which is a constant
)

// function decides on the name of a scalar, aggregate or window function call.
func (w *walker) function(n node) error {
	name := str(n, "function_name")
	if !builtinSchema(n) {
		return refuse(place(n), kindQuery, "call a built-in function by its plain name", "the function %s.%s is not allowed", str(n, "schema"), name)
	}
	if duckFunctions[fold(name)] != refused {
		return w.restricted(n, name)
	}
	hint := ""
	if builtin(name) {
		hint = "use a function that only computes on its arguments"
	} else {
		var names []string
		for f, r := range duckFunctions {
			if r != refused {
				names = append(names, f)
			}
		}
		slices.Sort(names)
		hint = nearest(name, names)
	}
	return refuse(place(n), kindQuery, hint, "the function %s is not on the list of allowed functions", name)
}

// oneArgument are functions that read a clock when they are called with a single argument.
var oneArgument = []string{"age"}

// restricted refuses, for restricted readers, what is allowed to others and reads more than its arguments.
func (w *walker) restricted(n node, name string) error {
	if w.req.Profile != RestrictedRead {
		return nil
	}
	clock := slices.Contains(oneArgument, fold(name)) && len(list(n, "children")) == 1
	if duckFunctions[fold(name)] == argumentsOnly && !clock {
		return nil
	}
	return refuse(place(n), kindQuery, restrictedHint, "the function %s reads more than its arguments, which a restricted reader may not", name)
}

const restrictedHint = "functions of their arguments alone, CURRENT_DATE, DATE '2026-01-31' and INTERVAL are allowed"

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
