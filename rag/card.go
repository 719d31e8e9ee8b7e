package rag

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sluice/sqlguard"
)

// Bounds of what a card tells, in characters, of values in bytes. A comment may be a page, and a card is read by a small model.
const (
	maxComment  = 240
	maxShown    = 8  // values of a column that are all shown
	maxInList   = 24 // the longest value of such a list
	maxExamples = 2
	maxExample  = 40
	maxType     = 40
)

// Card writes the relations, or all for nil, as CREATE TABLE statements, with comments, values and joins. Tables are sorted,
// whatever order they are asked for in, and equal inputs give equal bytes: the engine reuses what it has read of them.
//
// Comments and values are data. Each stands on one line behind "--", bounded and without what could end the line or the
// turn of a chat.
func (k *Knowledge) Card(only []sqlguard.Relation) string {
	return k.card(only, func(ColumnRef) detail { return noted })
}

// FocusCard writes the tables of a question, within so many bytes where that is possible without leaving out a column: what
// the columns that the question does not name have beside their names goes first, the comments and then the values.
func (k *Knowledge) FocusCard(f Focus, most int) string {
	card := ""
	for _, rest := range []detail{noted, valued, bare} {
		card = k.card(f.Tables, func(c ColumnRef) detail {
			if f.ColumnScore[c] > 0 {
				return noted
			}
			return rest
		})
		if len(card) <= most {
			break
		}
	}
	return card
}

// detail is how much a card says of a column.
type detail int

const (
	noted  detail = iota // its comment and its values
	valued               // its values
	bare
)

func (k *Knowledge) card(only []sqlguard.Relation, of func(ColumnRef) detail) string {
	in := map[sqlguard.Relation]bool{}
	for _, t := range k.tables {
		in[t.Relation] = only == nil || slices.Contains(only, t.Relation)
	}
	var b strings.Builder
	for i, t := range k.tables {
		if in[t.Relation] {
			k.create(&b, i, in, of)
		}
	}
	return b.String()
}

func (k *Knowledge) create(b *strings.Builder, i int, in map[sqlguard.Relation]bool, of func(ColumnRef) detail) {
	t := k.tables[i]
	if t.Comment != "" {
		b.WriteString("-- " + OneLine(t.Comment, maxComment) + "\n")
	}
	b.WriteString("CREATE TABLE " + OneLine(k.Name(t.Relation), 0) + " (\n")
	constraints := k.constraints(t, in)
	for c, column := range t.Columns {
		line := "  " + k.shown(column.Name) + " " + shortType(column.Type)
		if len(t.PrimaryKey) == 1 && t.PrimaryKey[0] == column.Name {
			line += " PRIMARY KEY"
		}
		if to, ok := k.reference(ColumnRef{t.Relation, column.Name}, in); ok {
			line += " REFERENCES " + OneLine(k.Name(to.Relation), 0) + "(" + k.shown(to.Column) + ")"
		}
		if c < len(t.Columns)-1 || len(constraints) > 0 {
			line += ","
		}
		if note := k.note(i, c, of(ColumnRef{t.Relation, column.Name})); note != "" {
			line += " -- " + note
		}
		b.WriteString(line + "\n")
	}
	if len(constraints) > 0 {
		b.WriteString("  " + strings.Join(constraints, ",\n  ") + "\n")
	}
	b.WriteString(");\n")
}

// constraints are the keys of more than one column.
func (k *Knowledge) constraints(t sqlguard.Table, in map[sqlguard.Relation]bool) []string {
	var out []string
	if len(t.PrimaryKey) > 1 {
		out = append(out, "PRIMARY KEY ("+k.shownList(t.PrimaryKey)+")")
	}
	for _, f := range t.Foreign {
		if len(f.Columns) > 1 && in[f.References] {
			out = append(out, "FOREIGN KEY ("+k.shownList(f.Columns)+") REFERENCES "+OneLine(k.Name(f.References), 0)+"("+k.shownList(f.Referenced)+")")
		}
	}
	slices.Sort(out[min(len(out), 1):])
	return out
}

func (k *Knowledge) reference(c ColumnRef, in map[sqlguard.Relation]bool) (ColumnRef, bool) {
	for _, j := range k.joins {
		if j.From == c && in[j.To.Relation] {
			return j.To, true
		}
	}
	return ColumnRef{}, false
}

// note is what stands behind a column: its comment, and what its values are. A list that is not whole says of how many it
// is.
func (k *Knowledge) note(table, column int, much detail) string {
	var notes []string
	if c := k.tables[table].Columns[column].Comment; c != "" && much == noted {
		notes = append(notes, OneLine(c, maxComment))
	}
	if f := k.facts[table]; f != nil && much != bare {
		if n := valuesNote(f.columns[column]); n != "" {
			notes = append(notes, n)
		}
	}
	return strings.Join(notes, "; ")
}

func valuesNote(f columnFacts) string {
	if f.min != "" && f.max != "" {
		return "from " + OneLine(f.min, maxExample) + " to " + OneLine(f.max, maxExample)
	}
	if len(f.values) == 0 {
		return ""
	}
	if f.complete && len(f.values) <= maxShown && !slices.ContainsFunc(f.values, func(v string) bool { return !plain(v, maxInList) }) {
		all := slices.Sorted(slices.Values(f.values))
		return "values: " + literals(all)
	}
	var examples []string
	for _, v := range f.values {
		if len(examples) < maxExamples && plain(v, maxExample) {
			examples = append(examples, v)
		}
	}
	if len(examples) == 0 {
		return ""
	}
	over := ""
	if f.sampled {
		over = "over "
	}
	return fmt.Sprintf("%d of %s%d values: %s", len(examples), over, f.distinct, literals(examples))
}

// plain says whether a value is short and shown exactly as it is stored.
func plain(v string, most int) bool { return len(v) <= most && v != "" && OneLine(v, 0) == v }

func literals(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	return strings.Join(out, ", ")
}

func (k *Knowledge) shown(name string) string { return OneLine(k.Identifier(name), 0) }

func (k *Knowledge) shownList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = k.shown(n)
	}
	return strings.Join(out, ", ")
}

// OneLine makes a text of others fit for a prompt: on one line, without control characters, with nothing that a chat
// template or a code fence would take for its own, and of at most that many characters, with "…" where it was cut; 0 cuts
// nothing.
func OneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for _, mark := range []string{"<|", "|>", "```"} {
		s = strings.ReplaceAll(s, mark, mark[:1]+" "+mark[1:])
	}
	if r := []rune(s); most > 0 && len(r) > most {
		s = strings.TrimSpace(string(r[:most])) + "…"
	}
	return s
}

// shortType writes a type in the shortest usual form: what a model needs is the kind, not the width.
func shortType(typ string) string {
	switch classOf(typ) {
	case textClass:
		return "TEXT"
	case wholeClass:
		return "INT"
	case numberClass:
		if head := strings.ToLower(typ); strings.HasPrefix(head, "decimal") || strings.HasPrefix(head, "numeric") {
			return "DECIMAL"
		}
		return "FLOAT"
	case dateClass:
		if strings.EqualFold(typ, "date") {
			return "DATE"
		}
		return "TIMESTAMP"
	case boolClass:
		return "BOOLEAN"
	}
	return strings.ToUpper(OneLine(typ, maxType))
}
