// Package store is the control store: what Sluice itself remembers, in one SQLite file. Keys (their hashes only), runs
// of COPY TO LAKE, external tables, and what the agent was asked. It never holds rows of a source.
//
// One connection writes, a few read (WAL), so readers never wait for a writer. A commit is on the disk when a method
// returns (synchronous=FULL): lakecopy relies on that when it publishes files. The file is the one owner of the state;
// the package keeps none beside it.
//
// Errors that a caller can act on are *fault.Error (NotFound, Conflict, and Conflict for a file that a newer program
// wrote); everything else is Internal.
//
//	opening, pragmas, migrations, versions  store.go, migrations/
//	API keys and their secrets              key.go
//	runs of COPY                            run.go
//	external tables                         external.go
//	the agent's record                      ask.go
//	the SQL itself                          query.sql, from which sqlc v1.30.0 writes db/ (sqlc.yaml)
package store
