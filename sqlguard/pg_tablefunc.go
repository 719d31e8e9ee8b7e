package sqlguard

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// xmlTable decides on XMLTABLE.
func (w *pgWalker) xmlTable(n *pg_query.RangeTableFunc, sc *scope) (*source, error) {
	if err := w.targets(n.Namespaces, sc); err != nil {
		return nil, err
	}
	cols := columns{}
	for _, node := range n.Columns {
		c := node.GetRangeTableFuncCol()
		if c == nil {
			return nil, unreadable("XMLTABLE without columns")
		}
		if err := pgFits("XMLTABLE", c.ProtoReflect(), pgXMLColumnShape); err != nil {
			return nil, err
		}
		if err := w.below(c.ProtoReflect(), pgXMLColumnShape, sc); err != nil {
			return nil, err
		}
		cols.names = append(cols.names, c.Colname)
	}
	return aliased(n.Alias, "xmltable", cols)
}

// jsonTable decides on JSON_TABLE.
func (w *pgWalker) jsonTable(n *pg_query.JsonTable, sc *scope) (*source, error) {
	if err := w.jsonPath(n.Pathspec, sc); err != nil {
		return nil, err
	}
	names, err := w.jsonColumns(n.Columns, sc)
	if err != nil {
		return nil, err
	}
	return aliased(n.Alias, "json_table", columns{names: names})
}

func (w *pgWalker) jsonPath(p *pg_query.JsonTablePathSpec, sc *scope) error {
	if p == nil {
		return nil
	}
	if err := pgFits("JSON_TABLE", p.ProtoReflect(), pgJSONPathShape); err != nil {
		return err
	}
	return w.below(p.ProtoReflect(), pgJSONPathShape, sc)
}

// jsonColumns decides on the columns and gives their names: those of NESTED come after the plain ones.
func (w *pgWalker) jsonColumns(list []*pg_query.Node, sc *scope) (names []string, err error) {
	if err := w.enter(noPlace); err != nil {
		return nil, err
	}
	defer w.leave()
	var nested []string
	for _, node := range list {
		c := node.GetJsonTableColumn()
		if c == nil {
			return nil, unreadable("JSON_TABLE without columns")
		}
		if err := pgFits("JSON_TABLE", c.ProtoReflect(), pgJSONColumnShape); err != nil {
			return nil, err
		}
		if err := w.jsonPath(c.Pathspec, sc); err != nil {
			return nil, err
		}
		if err := w.below(c.ProtoReflect(), pgJSONColumnShape, sc); err != nil {
			return nil, err
		}
		below, err := w.jsonColumns(c.Columns, sc)
		if err != nil {
			return nil, err
		}
		nested = append(nested, below...)
		if c.Coltype != pg_query.JsonTableColumnType_JTC_NESTED {
			names = append(names, c.Name)
		}
	}
	return append(names, nested...), nil
}
