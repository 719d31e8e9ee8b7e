package access

import (
	"strings"
	"time"

	"sluice/fault"
)

// Kind is what a grant is about. The zero Kind is none and gives nothing.
type Kind string

// The kinds, as the contract spells them.
const (
	GrantDatabase   Kind = "database"   // all tables of a database, and COPY from it
	GrantTable      Kind = "table"      // one table of a database
	GrantLakeWrite  Kind = "lake_write" // COPY to a folder of a lake
	GrantLakeRead   Kind = "lake_read"  // external tables on a folder of a lake
	GrantAgentCopy  Kind = "agent_copy" // to have a copy that an agent asked for run to a folder
	GrantCollection Kind = "collection" // a collection of documents, to read or to write
	GrantModel      Kind = "model"      // a model: who has one such grant may use no others
)

// Grant is a right of a user. One of a key narrows it like its lists: a key with grants on databases or tables has only
// those of its owner's, one with grants on models only those. A key of an admin that may do less than he may needs the
// grants on lake folders itself. The zero Grant gives nothing.
type Grant struct {
	ID        string
	Principal string // the name of a user or the id of a key
	Kind      Kind

	Database   string
	Table      string // "table" for the default schema, or "schema.table"
	Connection string
	Path       string // a folder, as in a write_allowlist
	Name       string // of the collection or the model
	Access     string // of a collection: "read" or "write", which is both

	CreatedBy string // user
	CreatedAt time.Time
}

// fields says which fields a kind has, by their names on the wire.
var fields = map[Kind][]string{
	GrantDatabase: {"database"}, GrantTable: {"database", "table"}, GrantLakeWrite: {"connection", "path"}, GrantLakeRead: {"connection", "path"},
	GrantAgentCopy: {"connection", "path"}, GrantCollection: {"name", "access"}, GrantModel: {"name"},
}

// Check refuses a grant that says too little, too much or what no check could ever match.
func (g Grant) Check() error {
	const op = "access.Grant"
	needs, known := fields[g.Kind]
	if !known {
		return fault.New(fault.Invalid, op, "unknown kind of grant; the kinds are database, table, lake_write, lake_read, agent_copy, collection and model")
	}
	if g.Principal == "" {
		return fault.New(fault.Invalid, op, "principal is required: the name of a user or the id of a key")
	}
	given := map[string]string{"database": g.Database, "table": g.Table, "connection": g.Connection, "path": g.Path, "name": g.Name, "access": g.Access}
	for _, field := range needs {
		if given[field] == "" {
			return fault.New(fault.Invalid, op, "a grant of kind %s needs %s", g.Kind, strings.Join(needs, " and "))
		}
		delete(given, field)
	}
	for _, name := range []string{"database", "table", "connection", "path", "name", "access"} {
		if given[name] != "" {
			return fault.New(fault.Invalid, op, "a grant of kind %s has no %s: it has %s", g.Kind, name, strings.Join(needs, " and "))
		}
	}
	if g.Kind == GrantTable {
		if parts := strings.Split(g.Table, "."); len(parts) > 2 || parts[0] == "" || parts[len(parts)-1] == "" {
			return fault.New(fault.Invalid, op, "table is neither a table nor schema.table")
		}
	}
	if g.Kind == GrantCollection && g.Access != "read" && g.Access != "write" {
		return fault.New(fault.Invalid, op, "access is neither read nor write")
	}
	if g.Path != "" && g.Path != "/" && g.Path != "/*" {
		if _, err := Path(strings.TrimSuffix(g.Path, "/*")); err != nil {
			return fault.Wrap(err, fault.Invalid, op, "path names no folder: %s; write it relative to the connection's root, such as exports/2024, or / for all of it", fault.Public(err).Msg)
		}
	}
	return nil
}

// data says whether g is about tables.
func (g Grant) data() bool { return g.Kind == GrantDatabase || g.Kind == GrantTable }

func (g Grant) isModel() bool { return g.Kind == GrantModel }

// within says whether g gives something of a database.
func (g Grant) within(database string) bool {
	return g.data() && database != "" && g.Database == database
}

// whole says whether g gives all of a database.
func (g Grant) whole(database string) bool {
	return g.Kind == GrantDatabase && g.within(database)
}

// relation says whether g gives a table.
func (g Grant) relation(database, defaultSchema, schema, table string) bool {
	if g.whole(database) {
		return schema != "" && table != ""
	}
	return g.Kind == GrantTable && g.within(database) && names(g.Database+"."+g.Table, database, defaultSchema, schema, table)
}

// folder says whether g, of a kind that is about lakes, covers a folder.
func (g Grant) folder(kind Kind, f Folder) bool {
	return g.Kind == kind && f.Connection != "" && g.Connection == f.Connection && Covers(g.Path, f.Path)
}
