// Package pgrole is about the role that Sluice logs in as on a PostgreSQL server: a script that makes one which only reads,
// and a look at the one that is in use. It is the operator's tool (`sluice doctor`), and no part of a source: no statement
// of a caller passes here.
//
//	the script       role.sql, script.go
//	what a role may  examine.go
package pgrole
