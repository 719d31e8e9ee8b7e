package rag

import (
	"slices"
	"strings"
)

// Table is a table or view as the model is to see it. Schema is empty for a table of the default schema.
type Table struct {
	Schema     string
	Name       string
	Comment    string
	Columns    []Column
	PrimaryKey []string
	Foreign    []ForeignKey
}

// Column is one column. Type is the SQL name in the source's dialect.
type Column struct {
	Name    string
	Type    string
	NotNull bool
	Comment string
}

// ForeignKey says that columns refer to those of another table.
type ForeignKey struct {
	Columns    []string
	Schema     string // of the other table, empty for the default schema
	Table      string
	Referenced []string
}

// Card writes tables as CREATE TABLE statements followed by their COMMENT ON lines. Tables are sorted by schema and
// name, whatever order they come in: the text must not change between two asks, or the engine reads all of it again.
func Card(tables []Table) string {
	sorted := slices.Clone(tables)
	slices.SortFunc(sorted, func(a, b Table) int {
		if c := strings.Compare(a.Schema, b.Schema); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	var b strings.Builder
	for _, t := range sorted {
		b.WriteString(create(t))
	}
	for _, t := range sorted {
		b.WriteString(comments(t))
	}
	return b.String()
}

func create(t Table) string {
	lines := make([]string, 0, len(t.Columns)+1)
	inline := map[string]ForeignKey{}
	var constraints []string
	foreign := slices.Clone(t.Foreign)
	slices.SortFunc(foreign, func(a, b ForeignKey) int { return strings.Compare(references(a), references(b)) })
	for _, f := range foreign {
		if len(f.Columns) == 1 {
			if _, taken := inline[f.Columns[0]]; !taken {
				inline[f.Columns[0]] = f
				continue
			}
		}
		constraints = append(constraints, "FOREIGN KEY ("+identifiers(f.Columns)+") "+references(f))
	}
	if len(t.PrimaryKey) > 1 {
		constraints = slices.Insert(constraints, 0, "PRIMARY KEY ("+identifiers(t.PrimaryKey)+")")
	}
	for _, c := range t.Columns {
		line := Identifier(c.Name) + " " + c.Type
		switch {
		case len(t.PrimaryKey) == 1 && t.PrimaryKey[0] == c.Name:
			line += " PRIMARY KEY" // says NOT NULL as well
		case c.NotNull:
			line += " NOT NULL"
		}
		if f, ok := inline[c.Name]; ok {
			line += " " + references(f)
		}
		lines = append(lines, line)
	}
	lines = append(lines, constraints...)
	return "CREATE TABLE " + qualified(t.Schema, t.Name) + " (\n  " + strings.Join(lines, ",\n  ") + "\n);\n"
}

func comments(t Table) string {
	var b strings.Builder
	name := qualified(t.Schema, t.Name)
	if t.Comment != "" {
		b.WriteString("COMMENT ON TABLE " + name + " IS " + literal(t.Comment) + ";\n")
	}
	for _, c := range t.Columns {
		if c.Comment != "" {
			b.WriteString("COMMENT ON COLUMN " + name + "." + Identifier(c.Name) + " IS " + literal(c.Comment) + ";\n")
		}
	}
	return b.String()
}

func references(f ForeignKey) string {
	s := "REFERENCES " + qualified(f.Schema, f.Table)
	if len(f.Referenced) > 0 {
		s += "(" + identifiers(f.Referenced) + ")"
	}
	return s
}

func qualified(schema, name string) string {
	if schema == "" {
		return Identifier(name)
	}
	return Identifier(schema) + "." + Identifier(name)
}

func identifiers(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = Identifier(n)
	}
	return strings.Join(quoted, ", ")
}

// literal writes a comment on one line: a line break in it would let a comment pass for a statement or an instruction.
func literal(s string) string {
	return "'" + strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "'", "''") + "'"
}
