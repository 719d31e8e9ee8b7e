// Package pgtest gives tests a real PostgreSQL: a database of their own and roles in it, both dropped when the test ends.
//
// The server's superuser URL is SLUICE_TEST_POSTGRES, which `make test` sets. Several tests may use one server at the same
// time; nothing here changes what others see of it.
//
//	a database, roles, connections   pgtest.go
package pgtest
