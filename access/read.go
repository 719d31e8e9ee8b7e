package access

import (
	"slices"
	"strings"
)

// Reading is what kind of statement a principal may have run to read data: which relations it may name in it is another
// question, see MayRead. The zero Reading is none.
type Reading int

// The kinds of reading, in rising order.
const (
	NoReading         Reading = iota
	RestrictedReading         // queries that say nothing but what is in the tables: no clock, no chance, no plan of the engine
	FullReading               // all queries
)

// ReadingOf is the one place that says which kind of reading a principal may do: by the role that is its ceiling.
func ReadingOf(p Principal) Reading {
	switch ceiling := p.Ceiling(); {
	case ceiling.AtLeast(ReadOnly):
		return FullReading
	case ceiling == Restricted:
		return RestrictedReading
	}
	return NoReading
}

// MayQuery says whether p may have any SQL run. The error has code Denied and Kind "auth".
func MayQuery(p Principal) error {
	if ReadingOf(p) == NoReading {
		return refuse("this needs a login or a key with a role")
	}
	return nil
}

// MayDatabase says whether p may read anything of a database.
func MayDatabase(p Principal, database string) bool {
	if MayQuery(p) != nil || database == "" || !allows(p.Databases, database) {
		return false
	}
	within := func(g Grant) bool { return g.within(database) }
	return everyone(p, within) && narrow(p.Own, Grant.data, within)
}

// MayWhole says whether p may read all of a database, not only some of its tables.
func MayWhole(p Principal, database string) bool {
	whole := func(g Grant) bool { return g.whole(database) }
	return p.Tables == nil && MayDatabase(p, database) && everyone(p, whole) && narrow(p.Own, Grant.data, whole)
}

// everyone says whether all of p's holders are admins or have a grant of this sort.
func everyone(p Principal, sort func(Grant) bool) bool {
	return len(p.Holders) > 0 && !slices.ContainsFunc(p.Holders, func(h Holder) bool {
		return !h.admin() && !slices.ContainsFunc(h.Grants, sort)
	})
}

// narrow says whether a key's own grants leave a right: there are none of that family, or one gives it.
func narrow(own []Grant, family, sort func(Grant) bool) bool {
	return !slices.ContainsFunc(own, family) || slices.ContainsFunc(own, sort)
}

// MayRead gives the test for the relations of one database. It never returns nil, and the names must be those of the
// catalogue, schema included: names are compared exactly, as a grant or a key's list is meant to give what it says.
//
// An entry "database.table" means the schema that the database takes for a name without one: main in DuckDB, the first
// of its schemas in PostgreSQL. With an empty one no such entry gives anything. A name that itself holds a dot cannot be
// told apart from a qualified one, so no entry matches it.
func MayRead(p Principal, database, defaultSchema string) func(schema, table string) bool {
	if !MayDatabase(p, database) {
		return func(string, string) bool { return false }
	}
	p.Tables = slices.Clone(p.Tables)
	return func(schema, table string) bool {
		if schema == "" || table == "" {
			return false
		}
		if p.Tables != nil && !slices.ContainsFunc(p.Tables, func(entry string) bool { return names(entry, database, defaultSchema, schema, table) }) {
			return false
		}
		relation := func(g Grant) bool { return g.relation(database, defaultSchema, schema, table) }
		return everyone(p, relation) && narrow(p.Own, Grant.data, relation)
	}
}

func names(entry, database, defaultSchema, schema, table string) bool {
	if database == "" || schema == "" || table == "" || strings.Contains(database+schema+table, ".") {
		return false
	}
	switch parts := strings.Split(entry, "."); len(parts) {
	case 2:
		return parts[0] == database && parts[1] == table && schema == defaultSchema
	case 3:
		return parts[0] == database && parts[1] == schema && parts[2] == table
	}
	return false
}

// MayModel says whether p may use a model. A user without any grant on models may use all of them, one with such a grant
// only those that he has. Names with and without the tag ":latest" are the same.
func MayModel(p Principal, model string) bool {
	if !p.Known() || model == "" {
		return false
	}
	same := func(m string) bool { return m != "" && tagged(m) == tagged(model) }
	if p.Models != nil && !slices.ContainsFunc(p.Models, same) {
		return false
	}
	grant := func(g Grant) bool { return g.isModel() && same(g.Name) }
	for _, h := range p.Holders {
		if !h.admin() && !narrow(h.Grants, Grant.isModel, grant) {
			return false
		}
	}
	return narrow(p.Own, Grant.isModel, grant)
}

func tagged(model string) string {
	model = strings.ToLower(model)
	if strings.Contains(model[strings.LastIndex(model, "/")+1:], ":") {
		return model
	}
	return model + ":latest"
}

// MayCollection says whether p may read a collection of documents, or write to it. Only roles from read_write on write,
// and no agent does.
func MayCollection(p Principal, name string, write bool) bool {
	if !p.Known() || name == "" || write && (p.Agent || !p.Ceiling().AtLeast(ReadWrite)) {
		return false
	}
	is := func(g Grant) bool { return g.Kind == GrantCollection }
	grant := func(g Grant) bool {
		return is(g) && g.Name == name && (g.Access == "write" || !write && g.Access == "read")
	}
	return everyone(p, grant) && narrow(p.Own, is, grant)
}
