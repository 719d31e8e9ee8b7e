package database

import (
	"slices"
	"strings"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// agrees asks the engine which tables it finds in the approved text and compares with the gate's answer. The two can
// differ only when one of them is wrong about a name, such as which WITH it means; then nothing runs. It costs about
// 0.1 ms.
func (s *Source) agrees(cat *sqlguard.Catalog, a sqlguard.Approved) error {
	c, err := connect(s.in.db)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "database.Approve", "database %s cannot be reached", s.cfg.Name)
	}
	defer c.close()
	found := duck.GetTableNames(c.c, a.SQL(), true)
	if found.Ptr == nil {
		return nil // the text does not bind, so it cannot run either; Run says why
	}
	defer duck.DestroyValue(&found)
	view := slices.ContainsFunc(cat.Tables, func(t sqlguard.Table) bool { return t.View && slices.Contains(a.Relations(), t.Relation) })
	for i := range duck.GetListSize(found) {
		v := duck.GetListChild(found, i)
		name := splitName(duck.GetVarchar(v))
		duck.DestroyValue(&v)
		switch {
		case len(name) == 3 && strings.EqualFold(name[0], cat.Engine) && slices.Contains(a.Relations(), sqlguard.Relation{Schema: name[1], Name: name[2]}):
		case view: // what the view itself reads, under the names it was made with
		default:
			return fault.Bug("the engine finds %q in an approved statement, which the gate did not", name)
		}
	}
	return nil
}

// splitName takes a dotted name apart, with or without quotes around its parts. The engine writes " AS alias" behind
// some names.
func splitName(s string) []string {
	var out []string
	var part strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			return append(out, part.String())
		case '.':
			out = append(out, part.String())
			part.Reset()
		case '"':
			for i++; i < len(s); i++ {
				if s[i] == '"' {
					if i+1 == len(s) || s[i+1] != '"' {
						break
					}
					i++
				}
				part.WriteByte(s[i])
			}
		default:
			part.WriteByte(s[i])
		}
	}
	return append(out, part.String())
}
