// Command sluice is the server and its command line.
//
// Only `serve`, `gate` and `load` do work of their own; every other command is a client of a running server (SLUICE_URL,
// SLUICE_KEY) and never opens its files. (`eval` builds databases of its own and has the server's model.) This is the only package that reads the environment and wires
// the rooms together.
//
//	what starts, in what order, and stops    serve.go
//	the interfaces that rooms state          wire.go
//	talking to a server                      client.go
//	what libraries may log                   strangers.go
//	exit codes and error texts               main.go
//	a command                                the file of its name
package main
