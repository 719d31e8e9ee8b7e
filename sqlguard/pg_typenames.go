package sqlguard

import (
	"maps"
	"slices"
	"strings"
)

// castable decides on a type by its names, as TypeName.names has them: {"pg_catalog", "int4"} for int, {"text"}, {"vector"}.
// schema is where it is. Modifiers (numeric(10, 2)) and bounds of arrays are the caller's to walk. The error is a refusal.
//
// Types of users are refused, and so are the row types of relations: NULL::salaries tells of a relation that the caller may
// not read, and the input of a domain runs its CHECK.
func (w *pgWalker) castable(names []string, at int) (schema string, err error) {
	vector := w.req.Catalog.Extensions[pgVector]
	name := ""
	if len(names) > 0 {
		name = names[len(names)-1]
	}
	switch {
	case len(names) == 1 || len(names) == 2 && names[0] == "pg_catalog":
		switch reach, known := pgTypes[name]; {
		case reach == argumentsOnly, reach == readsMore && w.req.Profile != RestrictedRead:
			return "pg_catalog", nil
		case known:
			return "", refuse(at, kindQuery, "compare names as text", "a cast to %s is not allowed: it looks names up in the server's catalogue", name)
		}
		if len(names) == 1 && vector != "" && pgVectorTypes[name] {
			return vector, nil
		}
	case len(names) == 2 && vector != "" && names[0] == vector && pgVectorTypes[name]:
		return vector, nil
	}
	if len(names) == 1 && pgVectorTypes[name] {
		return "", refuse(at, kindQuery, "this source does not have the extension pgvector", "the type %s is not allowed", name)
	}
	hint := typeInstead[name]
	if hint == "" {
		hint = nearest(name, slices.Sorted(maps.Keys(pgTypes)))
	}
	if hint == "" {
		hint = "PostgreSQL's own types are allowed; compare a value of another type with a text"
	}
	return "", refuse(at, kindQuery, hint, "the type %s is not on the list of allowed types", strings.Join(names, "."))
}

// typeInstead are the names of types in other dialects.
var typeInstead = map[string]string{
	"datetime": "use timestamp", "string": "use text", "double": "use double precision", "number": "use numeric", "tinyint": "use smallint",
	"hugeint": "use numeric", "blob": "use bytea", "varbinary": "use bytea", "unsigned": "use bigint", "float32": "use real", "float64": "use double precision",
	"int32": "use integer", "int64": "use bigint", "nvarchar": "use text", "long": "use bigint", "signed": "use bigint", "date32": "use date",
}
