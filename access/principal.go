package access

import (
	"slices"
	"strings"

	"sluice/fault"
)

// BootstrapOwner is the user who owns the bootstrap admin key, and until there are users and grants the only owner
// with any rights: as admin, everything may be read without a grant.
const BootstrapOwner = "admin"

// Principal is who is calling: a key, with its owner's name. The zero Principal refuses everything.
type Principal struct {
	KeyID string // id of the API key, "" when nobody is authenticated
	Owner string // name of the user who owns it
	Name  string // the key's own name, for logs and the ledger
	Role  Role
	Agent bool // made for a program that acts for a person: never COPY, DML or external DDL

	// The key's own lists. nil does not narrow the owner's rights; an empty list allows nothing.
	Databases []string
	Tables    []string // "database.schema.table" or "database.table"
	Models    []string
}

// known says whether somebody with rights is behind the principal: an authenticated key with a role, whose owner has
// rights to hand on.
func (p Principal) known() bool {
	return p.KeyID != "" && p.Owner == BootstrapOwner && p.Role.AtLeast(Restricted)
}

// MayDatabase says whether p may read anything of a database. Restricted principals may not in this version: the gate
// has no profile yet that keeps them from functions reading beyond their arguments.
func MayDatabase(p Principal, database string) bool {
	return p.known() && p.Role.AtLeast(ReadOnly) && database != "" && allows(p.Databases, database)
}

// MayRead gives the test for the relations of one database. It never returns nil, and the names must be those of the
// catalogue, schema included: names are compared exactly, as a key's list is meant to narrow.
//
// An entry "database.table" means the default schema (main in DuckDB, public in PostgreSQL). A name that itself holds
// a dot cannot be told apart from a qualified one, so no entry matches it.
func MayRead(p Principal, database string) func(schema, table string) bool {
	if !MayDatabase(p, database) {
		return func(string, string) bool { return false }
	}
	if p.Tables == nil {
		return func(schema, table string) bool { return schema != "" && table != "" }
	}
	listed := slices.Clone(p.Tables)
	return func(schema, table string) bool {
		return slices.ContainsFunc(listed, func(entry string) bool { return names(entry, database, schema, table) })
	}
}

func names(entry, database, schema, table string) bool {
	if database == "" || schema == "" || table == "" || strings.Contains(database+schema+table, ".") {
		return false
	}
	switch parts := strings.Split(entry, "."); len(parts) {
	case 2:
		return parts[0] == database && parts[1] == table && (schema == "main" || schema == "public")
	case 3:
		return parts[0] == database && parts[1] == schema && parts[2] == table
	}
	return false
}

// MayModel says whether p may use a model. Names with and without the tag ":latest" are the same.
func MayModel(p Principal, model string) bool {
	if !p.known() || model == "" {
		return false
	}
	return p.Models == nil || slices.ContainsFunc(p.Models, func(m string) bool { return m != "" && tagged(m) == tagged(model) })
}

func tagged(model string) string {
	if strings.Contains(model[strings.LastIndex(model, "/")+1:], ":") {
		return model
	}
	return model + ":latest"
}

// MayCopy says whether p may land query results in a lake at all; the path has its own rules. The error has code
// Denied and Kind "auth".
func MayCopy(p Principal) error { return mayChange(p, "COPY") }

// MayExternal says whether p may create and drop external tables. The error has code Denied and Kind "auth".
func MayExternal(p Principal) error { return mayChange(p, "external tables") }

// mayChange holds what COPY and external DDL have in common: they make data visible to other readers than the caller,
// so neither a program acting for somebody nor a key that sees only some tables may do it.
func mayChange(p Principal, what string) error {
	switch {
	case !p.known():
		return refuse(what + " needs a key with rights")
	case p.Agent:
		return refuse(what + " is not open to agent keys: a person has to do it")
	case !p.Role.AtLeast(ReadWrite):
		return refuse(what + " needs the role read_write; this key has " + p.Role.String())
	case p.Tables != nil:
		return refuse(what + " is not open to keys that are restricted to some tables")
	case p.Databases != nil || !p.Role.AtLeast(Admin):
		// A lake is one for all databases, and there are no grants on its folders yet: whoever writes or reads one may
		// reach what another database landed there. Until there are, only those who may read everything do.
		return refuse(what + " needs an admin key that is not restricted to some databases, as this version has no grants on lake folders")
	}
	return nil
}

// MayManage says whether p may manage keys and models: admins only, never an agent. The error has code Denied and Kind
// "auth".
func MayManage(p Principal) error {
	switch {
	case !p.known() || !p.Role.AtLeast(Admin):
		return refuse("this needs an admin key")
	case p.Agent:
		return refuse("this is not open to agent keys")
	}
	return nil
}

func refuse(why string) error {
	return &fault.Error{Code: fault.Denied, Op: "access", Kind: "auth", Msg: why}
}

func allows(list []string, name string) bool { return list == nil || slices.Contains(list, name) }
