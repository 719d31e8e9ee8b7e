// Package gateoracle holds the gate's verdicts to a real server. It has only tests.
//
// Whatever PostgreSQL's gate admits is run, in its deparsed form, as a role that may read exactly what was granted, in a
// read-only transaction, and the server tells three times what it was: by the tree of a function with that body (which
// functions, operators, types and relations by their OIDs, also those of a CTE that no plan has), by the locks, and by what
// is left behind. The caller's own text must give the same columns and rows.
//
// The tests named TestReal… need SLUICE_TEST_POSTGRES. The fuzz targets run without it too, and then hold the gate to what it
// says itself: that a refusal is one, that it names nothing secret, that what is admitted was granted.
//
//	the server with its grants, its traps         oracle_postgres_test.go
//	what the tree names                           oracle_postgres_tree_test.go
//	running it, locks, traces, errors             oracle_postgres_run_test.go
//	what the oracle must find                     oracle_postgres_evil_test.go
//	the case files, with a superuser's rows       oracle_postgres_cases_test.go
//	every function, operator and type there is    oracle_postgres_catalog_test.go
//	what gates fell for, and costly texts         oracle_postgres_attacks_test.go, testdata/attacks.sql
//	statements that nest                          oracle_postgres_deep_test.go
//	statements made and changed, minutes long     fuzz_postgres_test.go
//	the grammar of those that are made            fuzz_postgres_grammar_test.go, _from_test.go, _expr_test.go
package gateoracle
