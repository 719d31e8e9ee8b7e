// Package duckdb is the engine behind a source that is a DuckDB file.
//
// An Engine is one file, opened once in the process, READ_ONLY unless it is writable, and locked down before the first
// statement: no extension is fetched, no file opened but the database and the lake roots, no setting changed. Its rows
// stream as Arrow record batches, a few thousand at a time, and a read-only transaction stands around them; a write has a
// transaction of its own. Package database stands before it: nothing else calls Run and Write.
//
// Each Run and each catalogue read has a connection of its own; the instance belongs to the registry in instance.go. The
// engine's parser, which the gate asks, lives on a private in-memory instance (parser.go) that holds no data.
//
// It drives duckdb-go-bindings directly, because the database/sql driver keeps a whole result in memory.
//
//	opening, running                     engine.go
//	changing rows and tables             write.go
//	lock-down, one instance a file       instance.go
//	folders for what outgrows memory     spill.go
//	the engine's second opinion          agree.go, plan.go
//	the C calls                          conn.go, arrow.go
//	rows while they stream, cancelling   reader.go
//	tables, comments, keys               catalog.go
//	parsing for the gate                 parser.go
//	which files of a partitioned table   prune.go
//	the engine's packings to plain Arrow convert.go, maps.go
//	sample files, `sluice gate`          create.go, offline.go
//	files of Sluice's own                own.go
package duckdb
