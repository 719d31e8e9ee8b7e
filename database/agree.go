package database

import (
	"context"
	"slices"
	"strings"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// agrees asks the engine which tables it finds in the approved text and compares with the gate's answer. The two can
// differ only when one of them is wrong about a name, such as which WITH it means; then nothing runs. It costs about
// 0.1 ms.
func (s *Source) agrees(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	c, err := connect(s.in.db)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "database.Approve", "database %s cannot be reached", s.cfg.Name)
	}
	defer c.close()
	defer c.watch(ctx)()
	found := duck.GetTableNames(c.c, a.SQL(), true)
	if ctx.Err() != nil {
		if found.Ptr != nil {
			duck.DestroyValue(&found)
		}
		return fault.Wrap(context.Cause(ctx), fault.Canceled, "database.Approve", "the statement was cancelled")
	}
	if found.Ptr == nil {
		// The text does not bind, and Run says why. Or it has a JOIN with USING or NATURAL, whose columns the engine does not
		// look up in this mode: for those there is no second opinion, and the gate's own stands alone.
		return nil
	}
	defer duck.DestroyValue(&found)
	behind := behindViews(c, cat, a)
	for _, text := range texts(found) {
		name := splitName(text)
		switch {
		case len(name) == 3 && strings.EqualFold(name[0], cat.Engine) && slices.Contains(a.Relations(), sqlguard.Relation{Schema: name[1], Name: name[2]}):
		case slices.Contains(behind, text):
		default:
			return fault.Bug("the engine finds %q in an approved statement, which the gate did not", name)
		}
	}
	return nil
}

// behindViews gives the names that the engine finds when it reads nothing but the statement's views: what the views
// read themselves, under the names they were made with.
func behindViews(c *conn, cat *sqlguard.Catalog, a sqlguard.Approved) []string {
	var out []string
	for _, t := range cat.Tables {
		if !t.View || !slices.Contains(a.Relations(), t.Relation) {
			continue
		}
		found := duck.GetTableNames(c.c, "SELECT * FROM "+quoteName(cat.Engine)+"."+quoteName(t.Schema)+"."+quoteName(t.Name), true)
		if found.Ptr != nil {
			out = append(out, texts(found)...)
			duck.DestroyValue(&found)
		}
	}
	return out
}

// texts copies a list of texts out of the engine.
func texts(list duck.Value) []string {
	var out []string
	for i := range duck.GetListSize(list) {
		v := duck.GetListChild(list, i)
		out = append(out, duck.GetVarchar(v))
		duck.DestroyValue(&v)
	}
	return out
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
