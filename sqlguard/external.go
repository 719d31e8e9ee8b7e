package sqlguard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// externalUse is one place where a statement reads an external table.
type externalUse struct {
	node      node // the BASE_TABLE, replaced in place
	alias     string
	table     *Table
	source    *source
	safe      bool // rows that WHERE drops may be left out before it
	conjuncts []any
}

// partitionConjuncts gives those terms of a WHERE clause that depend on nothing but this table's partition columns.
func (u *externalUse) partitionConjuncts(where any, sc *scope) []any {
	if !u.safe || where == nil {
		return nil
	}
	n, _ := where.(node)
	terms := []any{where}
	if str(n, "class") == "CONJUNCTION" && str(n, "type") == "CONJUNCTION_AND" {
		terms = list(n, "children")
	}
	var out []any
	for _, t := range terms {
		if c, found, ok := u.onPartitions(t, sc); ok && found {
			out = append(out, c)
		}
	}
	return out
}

// prunable are the expressions that give the same value on the private connection as in the statement.
var prunable = []string{"BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "OPERATOR"}

// onPartitions copies an expression with its columns unqualified. found tells that it has a column, ok that it has no
// column but this table's partition columns and that its value does not depend on a clock or session.
func (u *externalUse) onPartitions(v any, sc *scope) (copied any, found, ok bool) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			c, f, ok := u.onPartitions(e, sc)
			if !ok {
				return nil, false, false
			}
			out[i], found = c, found || f
		}
		return out, found, true
	case node:
		class := str(v, "class")
		switch {
		case class == "COLUMN_REF":
			return u.partitionColumn(v, sc)
		case class != "" && !slices.Contains(prunable, class), class == "FUNCTION" && !duckPure[fold(str(v, "function_name"))]:
			return nil, false, false
		case strings.HasSuffix(str(v, "id"), "WITH TIME ZONE"):
			return nil, false, false // depends on the session's time zone
		}
		out := node{}
		for k, e := range v {
			c, f, ok := u.onPartitions(e, sc)
			if !ok {
				return nil, false, false
			}
			out[k], found = c, found || f
		}
		return out, found, true
	}
	return v, false, true
}

func (u *externalUse) partitionColumn(n node, sc *scope) (any, bool, bool) {
	names := strs(n, "column_names")
	switch len(names) {
	case 1:
		// Another relation with such a column, or with unknown ones, may be meant.
		for _, src := range sc.sources {
			if src != u.source && (src.cols.open || src.cols.has(names[0])) {
				return nil, false, false
			}
		}
	case 2:
		if fold(names[0]) != fold(u.alias) {
			return nil, false, false
		}
		names = names[1:]
	default:
		return nil, false, false
	}
	for _, p := range u.table.External.Partitions {
		if fold(p.Name) == fold(names[0]) && !strings.Contains(strings.ToUpper(p.Type), "TIMESTAMPTZ") && !strings.Contains(strings.ToUpper(p.Type), "TIME ZONE") {
			return node{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": []any{p.Name}}, true, true
		}
	}
	return nil, false, false
}

// replaceExternals puts a scan of the files that are left in the place of each external table.
func (w *walker) replaceExternals(ctx context.Context, g *Gate) ([]Scan, error) {
	var scans []Scan
	listed := map[*Table][]ExternalFile{} // a table that is named twice is read as of one moment
	for _, u := range w.externals {
		all, ok := listed[u.table]
		if !ok {
			var err error
			if all, err = u.table.External.Files(ctx); err != nil {
				return nil, fmt.Errorf("sqlguard: list the files of %s.%s: %w", u.table.Schema, u.table.Name, err)
			}
			listed[u.table] = all
		}
		keep := make([]bool, len(all))
		for i := range keep {
			keep[i] = true
		}
		if len(u.conjuncts) > 0 && len(all) > 0 {
			var terms []json.RawMessage
			for _, c := range u.conjuncts {
				raw, err := json.Marshal(c)
				if err != nil {
					return nil, err
				}
				terms = append(terms, raw)
			}
			pruned, err := g.parser.Prune(ctx, u.table.External.Partitions, all, terms)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err == nil && len(pruned) == len(keep):
				keep = pruned
			}
			// A failure to prune reads more files than needed; the statement's own WHERE still decides on the rows.
		}
		var files []string
		for i, f := range all {
			if keep[i] {
				files = append(files, f.Path)
			}
		}
		var types []any
		if len(files) == 0 {
			var err error
			if types, err = w.castTypes(ctx, g, u.table); err != nil {
				return nil, err
			}
		}
		u.replace(files, types)
		scans = append(scans, Scan{Relation: u.table.Relation, Opened: len(files), Total: len(all)})
	}
	return scans, nil
}

// emptyExternals puts an empty result of the same columns in the place of each external table, until restore is called.
func (w *walker) emptyExternals(ctx context.Context, g *Gate) (restore func(), err error) {
	var undo []func()
	var empties [][]any
	for _, u := range w.externals {
		types, err := w.castTypes(ctx, g, u.table)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			types = make([]any, len(u.table.Columns)) // a type that no cast may name: text binds nearly everywhere
			for i := range types {
				types[i] = node{"id": "VARCHAR", "type_info": nil}
			}
		}
		empties = append(empties, types)
	}
	for i, u := range w.externals {
		was := maps.Clone(u.node)
		undo = append(undo, func() {
			clear(u.node)
			maps.Copy(u.node, was)
		})
		u.replace(nil, empties[i])
	}
	return func() {
		for _, u := range undo {
			u()
		}
	}, nil
}

// replace turns the table's node into a subquery with exactly the table's columns, so that what read_parquet adds of
// its own (filename, row numbers) has no name in the statement. Without files it is an empty result of the given types.
func (u *externalUse) replace(files []string, types []any) {
	var items []any
	from := node{"type": "EMPTY", "alias": "", "sample": nil}
	var where any
	if len(files) == 0 {
		for i, c := range u.table.Columns {
			items = append(items, node{"class": "CAST", "type": "OPERATOR_CAST", "alias": c.Name, "child": constant("NULL", nil), "cast_type": types[i], "try_cast": false})
		}
		where = node{"class": "COMPARISON", "type": "COMPARE_EQUAL", "alias": "", "left": constant("INTEGER", json.Number("1")), "right": constant("INTEGER", json.Number("0"))}
	} else {
		for _, c := range u.table.Columns {
			items = append(items, node{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": []any{c.Name}})
		}
		from = u.scan(files)
	}
	sample, aliases := u.node["sample"], u.node["column_name_alias"]
	clear(u.node)
	u.node["type"], u.node["alias"], u.node["sample"], u.node["column_name_alias"] = "SUBQUERY", u.alias, sample, aliases
	u.node["subquery"] = node{"named_param_map": []any{}, "node": node{
		"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": node{"map": []any{}}, "select_list": items, "from_table": from,
		"where_clause": where, "group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING",
		"having": nil, "sample": nil, "qualify": nil,
	}}
}

// scan is read_parquet(files, …). The types of the partition columns are the table's, not guessed from the paths.
func (u *externalUse) scan(files []string) node {
	var paths, types []any
	for _, f := range files {
		paths = append(paths, constant("VARCHAR", f))
	}
	for _, p := range u.table.External.Partitions {
		t := constant("VARCHAR", p.Type)
		t["alias"] = p.Name
		types = append(types, t)
	}
	args := []any{call("list_value", paths), named("union_by_name", boolean(true)), named("hive_partitioning", boolean(len(types) > 0))}
	if len(types) > 0 {
		args = append(args, named("hive_types", call("struct_pack", types)))
	}
	return node{"type": "TABLE_FUNCTION", "alias": "", "sample": nil, "function": call("read_parquet", args),
		"column_name_alias": []any{}, "with_ordinality": "WITHOUT_ORDINALITY"}
}

func constant(typ string, v any) node {
	value := node{"type": node{"id": typ, "type_info": nil}, "is_null": v == nil}
	if v != nil {
		value["value"] = v
	}
	return node{"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "value": value}
}

func boolean(b bool) node {
	return node{"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "child": constant("VARCHAR", strconv.FormatBool(b)[:1]),
		"cast_type": node{"id": "BOOLEAN", "type_info": nil}, "try_cast": false}
}

// named makes a named argument, name := v.
func named(name string, v node) node {
	v["alias"] = name
	return v
}

func call(name string, args []any) node {
	return node{"class": "FUNCTION", "type": "FUNCTION", "alias": "", "function_name": name, "schema": "", "catalog": "", "children": args,
		"filter": nil, "order_bys": node{"type": "ORDER_MODIFIER", "orders": []any{}}, "distinct": false, "is_operator": false, "export_state": false}
}

// castTypes asks the engine's parser for the trees of the types of a table's columns. The names come from a catalogue, but
// what they became is checked like a caller's: each must be one type and nothing else.
func (w *walker) castTypes(ctx context.Context, g *Gate, t *Table) ([]any, error) {
	if types, ok := w.empty[t]; ok {
		return types, nil
	}
	var text strings.Builder
	for i, c := range t.Columns {
		text.WriteString([]string{"SELECT ", ", "}[min(i, 1)] + "CAST(NULL AS " + c.Type + ")")
	}
	stmt, err := g.parse(ctx, text.String())
	if err != nil {
		return nil, err
	}
	items := list(under(stmt, "node"), "select_list")
	if len(items) != len(t.Columns) {
		return nil, refuse(noPlace, kindQuery, "", "the table %q has a column whose type is none", t.Name)
	}
	types := make([]any, len(items))
	for i, e := range items {
		cast, _ := e.(node)
		types[i] = cast["cast_type"]
		if str(cast, "class") != "CAST" || types[i] == nil {
			return nil, refuse(noPlace, kindQuery, "", "%q is not a type", t.Columns[i].Type)
		}
		if err := w.typ(types[i], noPlace); err != nil {
			return nil, err
		}
	}
	if w.empty == nil {
		w.empty = map[*Table][]any{}
	}
	w.empty[t] = types
	return types, nil
}
