package sqlguard

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// marks are words that stand in a tree of PostgreSQL's grammar for texts of DuckDB's, until it is text itself.
type marks struct {
	word  string   // random: nothing that a caller writes can be one
	texts []string // by the number of the mark
	forms []string // how the mark is written, with % for it: '%' in a literal
}

func newMarks() *marks {
	var random [12]byte
	_, _ = rand.Read(random[:]) // it never fails
	return &marks{word: "mark" + hex.EncodeToString(random[:]) + "n"}
}

// place notes a text and gives the mark for it.
func (k *marks) place(text, form string) string {
	k.texts, k.forms = append(k.texts, text), append(k.forms, form)
	return k.word + strconv.Itoa(len(k.texts)-1) + "x"
}

// splice puts the texts into a text that has each mark once.
func (k *marks) splice(sql string) (string, error) {
	var out strings.Builder
	seen := make([]bool, len(k.texts))
	for range k.texts {
		before, rest, found := strings.Cut(sql, k.word)
		digits, rest, ended := strings.Cut(rest, "x")
		n, err := strconv.Atoi(digits)
		if !found || !ended || err != nil || n < 0 || n >= len(seen) || seen[n] || strconv.Itoa(n) != digits {
			return "", changed()
		}
		seen[n] = true
		left, right, _ := strings.Cut(k.forms[n], "%")
		before, ok := strings.CutSuffix(before, left)
		rest, closed := strings.CutPrefix(rest, right)
		if !ok || !closed {
			return "", changed()
		}
		out.WriteString(before)
		out.WriteString(k.texts[n])
		sql = rest
	}
	if strings.Contains(sql, k.word) {
		return "", changed()
	}
	out.WriteString(sql)
	return out.String(), nil
}

// formNames are the names of a write's form, by their messages and fields: of tables, columns, constraints, indexes.
// queryNames are those of queries.
var (
	formNames = map[string][]string{
		"RangeVar": {"catalogname", "schemaname", "relname"}, "Alias": {"aliasname"}, "ResTarget": {"name"}, "ColumnDef": {"colname"}, "Constraint": {"conname"},
		"String": {"sval"}, "IndexStmt": {"idxname"}, "IndexElem": {"name"}, "AlterTableCmd": {"name"}, "RenameStmt": {"subname", "newname"},
	}
	queryNames = map[string][]string{
		"RangeVar": {"catalogname", "schemaname", "relname"}, "Alias": {"aliasname"}, "ResTarget": {"name"}, "CommonTableExpr": {"ctename"},
	}
)

// quote puts marks in the place of names. Each is written in quotes: what is a plain word to PostgreSQL may be one of
// DuckDB's grammar.
func (k *marks) quote(m protoreflect.Message, names map[string][]string) {
	kind := string(m.Descriptor().Name())
	switch c := m.Interface().(type) {
	case *pg_query.A_Const, *pg_query.TypeName:
		return // values, or marks already
	case *pg_query.ColumnRef:
		for _, f := range c.Fields {
			if s := f.GetString_(); s != nil {
				k.quoteName(s.ProtoReflect(), "sval")
			}
		}
		return
	}
	for _, name := range names[kind] {
		k.quoteName(m, name)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				k.quote(v.List().Get(i).Message(), names)
			}
		default:
			k.quote(v.Message(), names)
		}
		return true
	})
}

func (k *marks) quoteName(m protoreflect.Message, field string) {
	f := m.Descriptor().Fields().ByName(protoreflect.Name(field))
	if s := m.Get(f).String(); s != "" && !strings.HasPrefix(s, k.word) {
		m.Set(f, protoreflect.ValueOfString(k.place(`"`+strings.ReplaceAll(s, `"`, `""`)+`"`, "%")))
	}
}
