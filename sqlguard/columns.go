package sqlguard

import (
	"slices"
	"strings"
)

// columns are the column names of a relation. open tells that it may have more that the gate does not know: then a
// name that is not found passes here, and the engine finds it or fails.
type columns struct {
	names []string
	open  bool
	types map[string]pgType // in PostgreSQL: of the columns whose type decides something
}

func (c columns) has(name string) bool {
	return slices.ContainsFunc(c.names, func(n string) bool { return fold(n) == fold(name) })
}

// maxColumns bounds the names that are kept of one relation. Stars over WITH queries that read one another twice would
// double them each time.
const maxColumns = 5000

// capped gives the columns with no more names than that; the others may be there.
func (c columns) capped() columns {
	if len(c.names) > maxColumns {
		return columns{names: slices.Clone(c.names[:maxColumns]), open: true}
	}
	return c
}

// renamed gives the columns under an alias list, which may be shorter than they are.
func (c columns) renamed(alias []string) columns {
	if len(alias) == 0 {
		return c
	}
	out := columns{names: slices.Clone(alias), open: c.open}
	if len(alias) < len(c.names) {
		out.names = append(out.names, c.names[len(alias):]...)
	}
	out.types = c.typesOf(out.names)
	return out
}

// source is one thing in FROM.
type source struct {
	name    string // alias or table name
	schema  string // of a table of the catalogue
	catalog string
	cols    columns
	table   *Table
	merged  bool // in PostgreSQL: a join has taken its columns over, and they need its name
}

// scope is what names mean at one place: the sources of a query, its select list's aliases, a lambda's parameters, and
// all of the queries around it.
type scope struct {
	parent    *scope
	ctes      *cteScope
	sources   []*source
	aliases   []string
	lambda    []string
	externals []*externalUse
}

func (s *scope) add(src *source) { s.sources = append(s.sources, src) }

func (s *scope) hasSource(name string) bool {
	for ; s != nil; s = s.parent {
		for _, src := range s.sources {
			if fold(src.name) == fold(name) || src.name == "" {
				return true
			}
		}
	}
	return false
}

// valueFunctions are names that DuckDB takes for a function call when there is no such column.
var valueFunctions = []string{"current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
	"current_user", "localtime", "localtimestamp", "session_user", "user"}

// clocks are those of them that may be called.
var clocks = []string{"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}

// column decides on a column reference.
func (w *walker) column(n node, sc *scope) error {
	names := strs(n, "column_names")
	switch len(names) {
	case 0:
		return refuse(place(n), kindQuery, "", "the statement has a column without a name")
	case 1:
		return w.plainColumn(n, names[0], sc)
	}
	return w.qualifiedColumn(n, names, sc)
}

func (w *walker) plainColumn(n node, name string, sc *scope) error {
	known, open := sc.knows(name)
	if known {
		return nil
	}
	if slices.Contains(valueFunctions, fold(name)) {
		switch {
		case fold(name) == "current_date":
			return nil
		case slices.Contains(clocks, fold(name)) && w.req.Profile != RestrictedRead:
			return nil
		case slices.Contains(clocks, fold(name)):
			return refuse(place(n), kindQuery, restrictedHint, "%s is a clock, which a restricted reader may not read", name)
		}
		return refuse(place(n), kindQuery, "if it is a column, write its table's name before it", "%s is not allowed", name)
	}
	if open {
		return nil
	}
	return refuse(place(n), kindQuery, nearest(name, sc.columnNames()), "there is no column %q", name)
}

// knows looks a plain name up. open tells that some relation in reach may have it although the gate cannot see it.
func (s *scope) knows(name string) (known, open bool) {
	same := func(n string) bool { return fold(n) == fold(name) }
	for ; s != nil; s = s.parent {
		if slices.ContainsFunc(s.lambda, same) || slices.ContainsFunc(s.aliases, same) {
			return true, open
		}
		for _, src := range s.sources {
			switch {
			case src.cols.has(name), src.name != "" && same(src.name): // a table's name alone is its row
				return true, open
			case src.table != nil && src.table.External == nil && fold(name) == "rowid":
				return true, open
			}
			open = open || src.cols.open
		}
	}
	return false, open
}

func (s *scope) columnNames() []string {
	var out []string
	for ; s != nil; s = s.parent {
		for _, src := range s.sources {
			out = append(out, src.cols.names...)
		}
	}
	return out
}

// qualifiedColumn decides on a.b, a.b.c and a.b.c.d: a table with perhaps its schema and catalogue before the column, or
// a column with fields of a struct behind it.
func (w *walker) qualifiedColumn(n node, names []string, sc *scope) error {
	var missing *source
	open := false
	for s := sc; s != nil; s = s.parent {
		if slices.ContainsFunc(s.lambda, func(l string) bool { return fold(l) == fold(names[0]) }) {
			return nil
		}
		for _, src := range s.sources {
			if k := src.matches(names); k > 0 {
				if src.cols.has(names[k]) || src.cols.open || (src.table != nil && src.table.External == nil && fold(names[k]) == "rowid") {
					if k > 1 && src.table != nil && src.table.External != nil {
						// Its node becomes a subquery with the alias alone.
						n["column_names"] = toAny(append([]string{src.name}, names[k:]...))
					}
					return nil
				}
				missing = src
			}
			if src.cols.has(names[0]) {
				return nil
			}
			open = open || src.cols.open
		}
		if slices.ContainsFunc(s.aliases, func(a string) bool { return fold(a) == fold(names[0]) }) {
			return nil
		}
	}
	switch {
	case missing != nil:
		return refuse(place(n), kindQuery, nearest(names[len(names)-1], missing.cols.names), "there is no column %q in %q", names[len(names)-1], missing.name)
	case open:
		return nil
	}
	return refuse(place(n), kindQuery, nearest(names[len(names)-1], sc.columnNames()), "there is no table %q in FROM", names[0])
}

// matches tells how many leading parts of a name are this source, 0 when it is another.
func (s *source) matches(names []string) int {
	if s.name == "" {
		return 0
	}
	for k, path := range [][]string{{s.name}, {s.schema, s.name}, {s.catalog, s.schema, s.name}} {
		if len(names) > k+1 && path[0] != "" && slices.EqualFunc(names[:k+1], path, func(a, b string) bool { return fold(a) == fold(b) }) {
			return k + 1
		}
	}
	return 0
}

func toAny(names []string) []any {
	out := make([]any, len(names))
	for i, s := range names {
		out[i] = s
	}
	return out
}

// output tells the columns that a select list makes.
func (s *scope) output(list []any) columns {
	var out columns
	for _, v := range list {
		item, _ := v.(node)
		class := str(item, "class")
		switch {
		case class == "STAR":
			cols := s.starred(item)
			out.names = append(out.names, cols.names...)
			out.open = out.open || cols.open
			out = out.capped()
		case class == "FUNCTION" && fold(str(item, "function_name")) == "unnest", class == "OPERATOR" && str(item, "type") == "OPERATOR_UNPACK":
			out.open = true // a struct becomes several columns
			if a := str(item, "alias"); a != "" {
				out.names = append(out.names, a)
			}
		case str(item, "alias") != "":
			out.names = append(out.names, str(item, "alias"))
		case class == "COLUMN_REF":
			if names := strs(item, "column_names"); len(names) > 0 {
				out.names = append(out.names, names[len(names)-1])
			}
		default:
			// The engine names it after the expression's text, which a query around it might use.
			out.open = true
		}
	}
	return out
}

// starred tells the columns of a star.
func (s *scope) starred(item node) columns {
	if isTrue(item, "columns") || item["expr"] != nil || len(list(item, "rename_list")) > 0 || len(list(item, "qualified_exclude_list")) > 0 {
		return columns{open: true}
	}
	excluded := strs(item, "exclude_list")
	var out columns
	for _, src := range s.sources {
		if rel := str(item, "relation_name"); rel != "" && fold(rel) != fold(src.name) {
			continue
		}
		for _, c := range src.cols.names {
			if !slices.ContainsFunc(excluded, func(e string) bool { return fold(e) == fold(c) }) {
				out.names = append(out.names, c)
			}
		}
		out.open = out.open || src.cols.open
		out = out.capped()
	}
	return out
}

// nearest makes a hint of the names most like a wrong one.
func nearest(name string, names []string) string {
	type near struct {
		name string
		dist int
	}
	var found []near
	for _, n := range names {
		d := distance(fold(name), fold(n))
		if d <= max(2, len(name)/3) && !slices.ContainsFunc(found, func(f near) bool { return f.name == n }) {
			found = append(found, near{n, d})
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.dist - b.dist })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		out = append(out, f.name)
	}
	return "did you mean " + strings.Join(out, ", ") + "?"
}

// distance is the Levenshtein distance in bytes; names longer than 64 bytes are far from all others.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := prev
			if a[i-1] != b[j-1] {
				cost = 1 + min(prev, row[j], row[j-1])
			}
			prev, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
