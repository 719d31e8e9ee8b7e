// Package sqlguard is the gate: the only way for SQL text of a caller, a model or a document to become something that a
// source database runs.
//
// Check takes a text and gives an [Approved], or refuses with a sentence, a position and what is allowed instead. The text
// is parsed by the source engine's own parser (behind [Parser]), every node and every field of the tree must be known
// here, relations and columns are resolved against the source's catalogue and the caller's grants, functions against a
// list generated from the engine. What runs is the text made from the checked tree, never the caller's, and that text is
// parsed once more and compared with the tree.
//
// A Gate has no state: everything about one statement lives in one walker, on one goroutine.
//
//	the order of the steps                   gate.go
//	what a statement became                  approved.go   only the gate can make one
//	what the gate is told of a database      catalog.go
//	size, NUL, UTF-8, odd spaces             bytes.go
//	which nodes and fields may stand         shape.go     unknown = refused
//	walking expressions, types               expr.go
//	queries, CTE scopes, output columns      query.go
//	FROM: tables, joins, table functions     from.go
//	column names                             columns.go
//	which functions may be called            functions.go, functions_duckdb.gen.go (generated)
//	what a call may cost                     cost.go, span.go, pattern.go, fold.go
//	sums of INTEGER are BIGINT               sums.go
//	what would show more than a view does    view.go
//	external tables: pruning, replacing      external.go
//	deparse, and is it still the same tree   deparse.go
//	COPY TO LAKE, EXTERNAL TABLE syntax      statement.go, options.go, tokens.go (the one file that imports pg_query)
package sqlguard
