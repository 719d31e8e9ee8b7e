package sqlguard

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL takes a.b for the call b(a) when a has no column b, and (x).b for b(x) when x has no field b. So a name
// behind a dot must be known to be a column or a field, however much a relation's columns are unknown; a plain name that is
// no column is an error of the server's, never a call.

// pgSystemColumns are what every table has besides its own columns: places on disk and transactions.
var pgSystemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// column decides on a column reference.
func (w *pgWalker) column(m *pg_query.ColumnRef, sc *scope) error {
	fields, at := m.Fields, int(m.Location)
	star := false
	if n := len(fields); n > 0 && fields[n-1].GetAStar() != nil {
		fields, star = fields[:n-1], true
	}
	names, err := pgNames(fields)
	switch {
	case err != nil:
		return err
	case len(names) == 0 && star && (sc == nil || len(sc.sources) == 0):
		return refuse(at, kindQuery, "add FROM and a table", "* stands for the columns of FROM, and there is none")
	case len(names) == 0 && star:
		return nil
	case len(names) == 0:
		return unreadable("a column without a name")
	case len(names) == 1 && !star:
		return w.plainColumn(names[0], at, sc)
	}
	path := names
	if !star {
		path = names[:len(names)-1]
	}
	if len(path) == 3 {
		// The text that runs names no catalogue, so the engine compares none.
		if w.req.Catalog.Engine == "" || path[0] != w.req.Catalog.Engine {
			return refuse(at, kindQuery, "write the table's alias before the column", "there is no table %q in FROM", path[0]+"."+path[1]+"."+path[2])
		}
		path, m.Fields = path[1:], m.Fields[1:]
	}
	src := sc.pgSource(path)
	if src == nil {
		return refuse(at, kindQuery, nearest(path[len(path)-1], sc.sourceNames()), "there is no table %q in FROM", path[len(path)-1])
	}
	if star || slices.Contains(src.cols.names, names[len(names)-1]) {
		return nil
	}
	return missingColumn(names[len(names)-1], src, at)
}

func (w *pgWalker) plainColumn(name string, at int, sc *scope) error {
	known, open := sc.pgKnows(name)
	switch {
	case known:
		return nil
	case slices.Contains(pgSystemColumns, name):
		return refuse(at, kindQuery, "name columns of the table itself", "the system column %s is not allowed", name)
	case open:
		return nil
	}
	return refuse(at, kindQuery, columnHint(name, sc.columnNames()), "there is no column %q", name)
}

// columnHint names the nearest columns, or some of those that there are.
func columnHint(name string, names []string) string {
	hint := nearest(name, names)
	if hint != "" || len(names) == 0 {
		return hint
	}
	more := ""
	if len(names) > 12 {
		names, more = names[:12], ", …"
	}
	return "the columns are " + strings.Join(names, ", ") + more
}

func missingColumn(name string, src *source, at int) error {
	if slices.Contains(pgSystemColumns, name) {
		return refuse(at, kindQuery, "name columns of the table itself", "the system column %s is not allowed", name)
	}
	hint := columnHint(name, src.cols.names)
	if src.cols.open {
		hint = "give its columns names, as in AS t(a, b)"
	}
	return refuse(at, kindQuery, hint, "there is no column %q in %q", name, src.name)
}

// pgKnows looks a plain name up: a column, nearest query first, else a relation, whose row it is.
func (s *scope) pgKnows(name string) (known, open bool) {
	for q := s; q != nil; q = q.parent {
		for _, src := range q.sources {
			if !src.merged && slices.Contains(src.cols.names, name) {
				return true, open
			}
			open = open || src.cols.open
		}
	}
	return s.pgSource([]string{name}) != nil, open
}

// pgSource finds the nearest relation of a name, or of a schema and a name; nil when there is none. As in PostgreSQL, the
// search ends at the first one, whether it has the column or not, and an alias hides the schema.
func (s *scope) pgSource(path []string) *source {
	for ; s != nil; s = s.parent {
		for _, src := range s.sources {
			switch {
			case src.name == "":
			case len(path) == 1 && src.name == path[0],
				len(path) == 2 && src.schema != "" && src.schema == path[0] && src.name == path[1]:
				return src
			}
		}
	}
	return nil
}

func (s *scope) sourceNames() []string {
	var out []string
	for ; s != nil; s = s.parent {
		for _, src := range s.sources {
			if src.name != "" {
				out = append(out, src.name)
			}
		}
	}
	return out
}

// indirection decides on (x).field, (x).* and x[1].
func (w *pgWalker) indirection(m *pg_query.A_Indirection, sc *scope) error {
	at := pgPlace(m.ProtoReflect())
	if inner, ok := pgInner(m.Arg.ProtoReflect()); ok {
		at = pgPlace(inner)
	}
	cols, known := w.fieldsOf(m.Arg, sc)
	for i, n := range m.Indirection {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_AIndices:
			if err := w.expr(n, sc); err != nil {
				return err
			}
			known = false
		case *pg_query.Node_AStar:
			if i < len(m.Indirection)-1 {
				return unreadable("a star before a field")
			}
		case *pg_query.Node_String_:
			field := x.String_.Sval
			switch {
			case !known:
				return refuse(at, kindQuery, "name the columns of a table, as in o.id", "the field %q of a value is not allowed here: it would be a call when there is no such field", field)
			case !slices.Contains(cols.names, field):
				return refuse(at, kindQuery, columnHint(field, cols.names), "there is no field %q in this value", field)
			}
			known = false
		default:
			return refuse(at, kindQuery, "", "the statement has a field that the gate cannot read")
		}
	}
	return nil
}

// fieldsOf tells the fields of an expression that is a row, when they are known.
func (w *pgWalker) fieldsOf(n *pg_query.Node, sc *scope) (columns, bool) {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_RowExpr:
		cols := columns{}
		for i := range x.RowExpr.Args {
			cols.names = append(cols.names, "f"+strconv.Itoa(i+1))
			cols.know(cols.names[i], w.typeOf(x.RowExpr.Args[i], sc))
		}
		return cols, true
	case *pg_query.Node_ColumnRef:
		fields := x.ColumnRef.Fields
		if n := len(fields); n > 1 && fields[n-1].GetAStar() != nil {
			fields = fields[:n-1]
		} else if n > 1 {
			return columns{}, false // a column
		}
		names, err := pgNames(fields)
		if err != nil || len(names) == 0 || len(names) > 2 {
			return columns{}, false
		}
		if len(x.ColumnRef.Fields) == 1 {
			for q := sc; q != nil; q = q.parent {
				for _, src := range q.sources {
					if !src.merged && (src.cols.open || slices.Contains(src.cols.names, names[0])) {
						return columns{}, false // a column, or perhaps one
					}
				}
			}
		}
		if src := sc.pgSource(names); src != nil {
			return src.cols, true
		}
	case *pg_query.Node_FuncCall:
		// The call itself is decided on when it is walked; a refused one has no fields here.
		if f, err := w.call(x.FuncCall); err == nil && len(f.columns) > 1 {
			return columns{names: f.columns}, true
		}
	}
	return columns{}, false
}
