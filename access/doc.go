// Package access decides what a principal may do. It is pure: no files, no database, no clock.
//
// Everything starts from "no". The zero Principal, the zero Role, a role this program does not know and a user without
// grants are refused everywhere. A principal is a login or an API key; behind it stand one or two users ([Holder]): who
// logged in, or the key's owner, and with a key that acts for others the one for whom it does. What it may do is what
// each of them may, cut down to the key's own lists, under the lowest of all their roles. Grants give data; only a user
// with the role admin reads without them.
//
// The package owns no state. Who the caller is and what was granted is read from the store for each request, by others.
//
//	roles, their names and order            role.go
//	who is calling                          principal.go
//	what may be granted, and to what it goes grant.go
//	reading: what kind, databases, tables   read.go       models and collections too
//	whose running statements one sees       running.go
//	COPY, external tables, writes, freshness change.go
//	a COPY that an agent asked for          copyrequest.go
//	users, keys and logins, who manages them account.go
//	paths below a lake's root               path.go
package access
