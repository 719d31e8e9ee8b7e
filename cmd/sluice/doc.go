// Command sluice is the server and its command line.
//
// Only `serve`, `gate` and `load` do work of their own; every other command is a client of a running server (SLUICE_URL,
// SLUICE_KEY) and never opens its files. (`eval` builds databases of its own and has the server's model.) This is the only package that reads the environment and wires
// the rooms together.
//
//	what starts, in what order, and stops    serve.go; serve_models.go and serve_databases.go (what has to do with them)
//	what SIGHUP takes over                   reload.go
//	the catalogue: settings, what fits       catalogue.go
//	where models are pulled from             sources.go
//	serve --pull-defaults                    defaults.go
//	the model of an ask that names none      default.go
//	the interfaces that rooms state          wire.go
//	the first admin key                      bootstrap.go
//	documents: the store, vectors, its model serve_rag.go
//	the audit ledger, COPY's entries in it   audit_wire.go
//	typing a password                        password.go
//	talking to a server                      client.go
//	what libraries may log                   strangers.go
//	exit codes and error texts               main.go
//	pull and push, their progress            transfer.go, bars.go
//	a command                                the file of its name, or models.go
package main
