// Package store is the control store: what Sluice itself remembers, in one SQLite file. Users, logins and keys (hashes
// only), grants, runs of COPY TO LAKE, external tables, what the agent was asked, and the audit ledger. It never holds rows of a source.
//
// One connection writes, a few read (WAL), so readers never wait for a writer. A commit is on the disk when a method
// returns (synchronous=FULL): lakecopy relies on that when it publishes files. The file is the one owner of the state;
// the package keeps none beside it.
//
// Errors that a caller can act on are *fault.Error (NotFound, Conflict, and Conflict for a file that a newer program
// wrote); everything else is Internal.
//
//	opening, pragmas, migrations, versions  store.go, migrations/
//	who somebody is, what they may          accounts.go
//	users                                   user.go
//	passwords, argon2id                     password.go
//	logins, their tokens                    login.go
//	API keys and their secrets              key.go
//	grants                                  grant.go
//	runs of COPY                            run.go
//	external tables                         external.go
//	COPYs that agents asked for             copy_request.go
//	what the agent was asked, how much kept ask.go
//	marks, verified pairs                   learning.go    its SQL: learning.sql
//	the audit ledger: append, open          ledger.go
//	an entry, the bytes that are hashed     ledger_entry.go
//	the head outside the store, its key     ledger_head.go
//	the walk through it, what it may find   ledger_verify.go, ledger_rows.go (reading rows fast)
//	listing entries                         ledger_list.go
//	the SQL itself                          query.sql, from which sqlc v1.30.0 writes db/ (sqlc.yaml)
package store
