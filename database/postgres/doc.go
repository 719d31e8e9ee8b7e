// Package postgres is a PostgreSQL server as a source behind database.Source: its catalogue, its second opinion on approved
// statements, and their rows as Arrow record batches.
//
// An Engine keeps a small pool of connections (pool.go) and needs none to open: a server that is down is Busy at each use
// and heals by itself. Every use is one transaction that pins its settings (session.go), read-only and rolled back but for Write's; then
// the session is reset, so nothing of one statement is there for the next. A caller's text goes through the extended
// protocol only, which takes one statement; the simple protocol carries constants of this package. A connection whose
// statement was cancelled or left early is never used again.
//
//	configuration, opening, closing     engine.go
//	the URL, connecting                 connect.go
//	connections: taking, giving back    pool.go
//	transaction, pinned settings        session.go
//	tables, columns, keys, privileges   catalog.go, catalog_sql.go
//	when the catalogue is read anew     fresh.go
//	the second opinion                  check.go
//	running, rows while they stream     reader.go
//	changing rows and tables            write.go
//	values for parameters               params.go
//	what an error of the server tells   errors.go
//	PostgreSQL types to Arrow           types.go, lookup.go
//	values: plain, numeric, lists       values.go, numeric.go, list.go
package postgres
