// Package sqlguard is the gate: the only way for SQL text of a caller, a model or a document to become something that a
// source database runs.
//
// Check takes a text and gives an [Approved], or refuses with a sentence, a position and what is allowed instead. The text
// is parsed by the source engine's own parser (DuckDB's behind [Parser], PostgreSQL's in pg_query), every node and every
// field of the tree must be known here, relations and columns are resolved against the source's catalogue and the caller's
// grants, functions against a list generated from the engine. What runs is the text made from the checked tree, never the
// caller's, and that text is parsed once more and compared with the tree.
//
// A Gate has no state: everything about one statement lives in one walker, on one goroutine. The two dialects have a walker
// each, because their trees differ; what a name means in a catalogue, scopes, refusals and depth are the same code.
//
//	the order of the steps                   gate.go, pg_gate.go
//	what a statement became                  approved.go   only the gate can make one
//	what the gate is told of a database      catalog.go
//	a relation's name in the catalogue       resolve.go    both dialects
//	depth, relations met                     reading.go    both dialects
//	size, NUL, UTF-8, odd spaces             bytes.go      both dialects
//	what would show more than a view does    view.go       both dialects
//	COPY TO LAKE, EXTERNAL TABLE syntax      statement.go, options.go, tokens.go
//
// DuckDB:
//
//	which nodes and fields may stand         shape.go      unknown = refused
//	walking expressions, types               expr.go
//	queries, CTE scopes, output columns      query.go
//	FROM: tables, joins, table functions     from.go
//	column names, nearest names              columns.go
//	which functions may be called            functions.go, functions_duckdb.gen.go (generated)
//	what a call may cost                     cost.go, span.go, pattern.go, fold.go
//	sums of INTEGER are BIGINT               sums.go
//	external tables: pruning, replacing      external.go
//	deparse, and is it still the same tree   deparse.go
//
// PostgreSQL:
//
//	which messages and fields may stand      pg_shape.go   unknown = refused
//	walking a message by its fields          pg_walker.go, pg_layout.go (how messages lie in memory)
//	calls, operators, types, collations      pg_expr.go
//	queries, WITH, what they put out         pg_query.go, pg_output.go
//	FROM: tables, joins, functions           pg_from.go, pg_tablefunc.go (XMLTABLE, JSON_TABLE)
//	column names, (x).field                  pg_columns.go
//	which functions may be called            pg_functions.go, pg_functions.gen.go (generated)
//	which operators and types                pg_operators.go, pg_operators_vector.go, pg_typenames.go
//	the type of an expression, where asked   pg_types.go
//	'now' and other clocks as texts          pg_clock.go
//	what a call may cost                     pg_cost.go, pg_span.go
//	sums of BIGINT are whole numbers         pg_sums.go
//	the parser's tree, its bytes             pg_tree.go, pg_bytes.go   held to the library's own by tests
//	deparse, and is it still the same tree   pg_deparse.go, pg_same.go, pg_mend.go (lost parentheses)
//	a catalogue from a schema file           pg_schema.go
//
// Writes, whose form PostgreSQL's grammar reads for both:
//
//	what is a write, what it became          write.go
//	the order, which statement, its target   pg_write.go
//	INSERT, UPDATE, DELETE, TRUNCATE         pg_write_rows.go
//	CREATE TABLE, INDEX                      pg_write_tables.go
//	ALTER TABLE, DROP                        pg_write_change.go
//	which messages and fields may stand      pg_write_shape.go
//	DuckDB's parts, each by its own gate     write_duckdb.go, write_marks.go (how they get into the text)
package sqlguard
