package sqlguard

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PostgreSQL's sum of BIGINT is a numeric that does not say how many digits it has, and such a one becomes a
// DECIMAL(38,18). Where the argument is known to be a BIGINT the sum is written as sum(x)::numeric(38, 0), so that it is a
// whole number for whoever gets it. Inside WITH RECURSIVE the two arms must have one type to the digit, so it stays there.

// sum notes a call of sum over a BIGINT.
func (w *pgWalker) sum(m *pg_query.FuncCall, sc *scope) {
	name, _ := lastName(m.Funcname)
	if name != "sum" || len(m.Args) != 1 || w.recursing > 0 || !isBigint(m.Args[0], sc) {
		return
	}
	if w.sums == nil {
		w.sums = map[*pg_query.FuncCall]bool{}
	}
	w.sums[m] = true
}

// isBigint tells of an expression that it is a BIGINT: a column of the catalogue, or a cast.
func isBigint(n *pg_query.Node, sc *scope) bool {
	if c := n.GetTypeCast(); c != nil {
		name, _ := lastName(c.TypeName.GetNames())
		return name == "int8" && len(c.TypeName.GetArrayBounds()) == 0
	}
	names, err := pgNames(n.GetColumnRef().GetFields())
	if err != nil || len(names) == 0 {
		return false
	}
	column := names[len(names)-1]
	var src *source
	if len(names) > 1 {
		src = sc.pgSource(names[:len(names)-1])
	} else {
		src = sc.owner(column)
	}
	if src == nil || src.table == nil {
		return false
	}
	i := slices.Index(src.cols.names, column)
	return i >= 0 && i < len(src.table.Columns) && src.table.Columns[i].Type == "bigint"
}

// owner finds the relation of a plain name, nil when a join has taken the column over.
func (s *scope) owner(column string) *source {
	for ; s != nil; s = s.parent {
		for _, src := range s.sources {
			if !src.merged && slices.Contains(src.cols.names, column) {
				if src.name != "" {
					return src
				}
				return s.behind(column)
			}
		}
	}
	return nil
}

// behind finds the one relation of a join that has a column.
func (s *scope) behind(column string) (found *source) {
	for _, src := range s.sources {
		if src.merged && slices.Contains(src.cols.names, column) {
			if found != nil {
				return nil
			}
			found = src
		}
	}
	return found
}

// castSums writes the casts below a message and tells whether there are any. cast says that the message has a cast to
// numeric already, which stays the only one.
func (w *pgWalker) castSums(m protoreflect.Message, cast bool) (changed bool) {
	if len(w.sums) == 0 {
		return false
	}
	n, isNode := m.Interface().(*pg_query.Node)
	if isNode && w.sums[n.GetFuncCall()] {
		w.sums[n.GetFuncCall()] = false
		if cast {
			return false
		}
		size := []*pg_query.Node{pg_query.MakeAConstIntNode(38, -1), pg_query.MakeAConstIntNode(0, -1)}
		n.Node = &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{Arg: &pg_query.Node{Node: n.Node},
			TypeName: &pg_query.TypeName{Names: pgStrings(pgCatalogSchema, "numeric"), Typmods: size, Typemod: -1}}}
		return true
	}
	under := false
	if c, ok := m.Interface().(*pg_query.TypeCast); ok {
		name, _ := lastName(c.TypeName.GetNames())
		under = name == "numeric"
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				changed = w.castSums(v.List().Get(i).Message(), false) || changed
			}
		default:
			changed = w.castSums(v.Message(), under) || changed
		}
		return true
	})
	return changed
}
