// Package access decides what a principal may do. It is pure: no files, no database, no clock.
//
// Everything starts from "no". The zero Principal, the zero Role, a role this program does not know and an owner
// without rights are refused everywhere. A key has an owner, and its rights are what the owner may do, cut down to the
// key's role and to the key's own lists. There are no grants in this version, so the one owner with rights is the
// bootstrap user ([BootstrapOwner]), who as admin reads without grants.
//
// The package owns no state. Who the caller is, is read from the store for each request, by others.
//
//	roles, their names and order        role.go
//	what a principal may do             principal.go
//	paths below a lake's root           path.go
package access
