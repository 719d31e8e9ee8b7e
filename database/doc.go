// Package database opens the databases that questions are asked of, and runs what the gate approved.
//
// A Source is one database, whatever its kind: what the rest of the program sees. It passes statements through the gate of
// its dialect and hands what was approved, and nothing else, to the engine behind it. Rows stream as Arrow record
// batches, a few thousand at a time.
//
//	what an engine must do               engine.go
//	DuckDB's                             duckdb/
//	PostgreSQL's                         postgres/
//	which engine opens what              open.go
//	approving, running                   source.go
//	running a write                      write.go
//	statements that passed before        seen.go
//	tables that are files in a lake      external.go
//	SQL type names, JSON values          types.go, values.go
//	a whole result as JSON, under caps   collect.go
//	the gate without a database          offline.go
package database
