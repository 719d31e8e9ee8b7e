// Package database opens the databases that questions are asked of, and runs what the gate approved.
//
// A Source is one DuckDB file, opened once in the process, READ_ONLY unless it is writable, and locked down before the
// first statement: no extension is fetched, no file opened but the database and the lake roots, no setting changed.
// Run takes a sqlguard.Approved and nothing else. Its rows stream as Arrow record batches, a few thousand at a time, and
// a read-only transaction stands around them.
//
// Each Run and each catalogue read has a connection of its own; the instance belongs to the registry in instance.go. The
// engine's parser, which the gate asks, lives on a private in-memory instance (parser.go) that holds no data.
//
// It drives duckdb-go-bindings directly, because the database/sql driver keeps a whole result in memory.
//
//	opening, approving, running          source.go
//	lock-down, one instance a file       instance.go
//	folders for what outgrows memory     spill.go
//	the engine's second opinion          agree.go, plan.go
//	statements that passed before        seen.go
//	the C calls                          engine.go, arrow.go
//	rows while they stream, cancelling   reader.go
//	tables, comments, keys               catalog.go
//	parsing for the gate                 parser.go
//	which files of a partitioned table   prune.go
//	the engine's packings to plain Arrow convert.go, maps.go
//	SQL type names, JSON values          types.go, values.go
//	a whole result as JSON, under caps   collect.go
//	sample files, `sluice gate`          create.go, offline.go
package database
