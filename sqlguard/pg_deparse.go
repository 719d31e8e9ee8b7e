package sqlguard

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxMessages bounds the nesting of a tree's messages. A level of a statement is a Node, what it holds, and at times a
// helper between them, so the walk's bound comes first; libpg_query's writer kills the process at 9200.
const maxMessages = 4 * maxDepth

// pgDeparse writes the checked tree as text, parses that text again and compares: what the writer loses or turns around
// would run unchecked otherwise.
//
// The writer prints the names of windows as they are, so it is given them in quotes.
func pgDeparse(tree *pg_query.ParseResult, windows []*pg_query.WindowDef) (string, error) {
	stmt := pgRoot(tree)
	if deeper(stmt.ProtoReflect(), maxMessages) {
		return "", refuse(noPlace, kindQuery, "nest less deeply", "the statement nests more than %d levels deep", maxDepth)
	}
	want := placeless(stmt)
	for _, d := range windows {
		plain := d.Name
		d.Name = `"` + strings.ReplaceAll(plain, `"`, `""`) + `"`
		defer func() { d.Name = plain }()
	}
	sql, err := pg_query.Deparse(tree)
	if err != nil || strings.IndexByte(sql, 0) >= 0 {
		return "", changed()
	}
	again, err := pg_query.Parse(sql)
	if err != nil || !proto.Equal(want, placeless(pgRoot(again))) {
		return "", changed()
	}
	return sql, nil
}

func changed() error {
	return refuse(noPlace, kindQuery, "write it in a simpler way", "the statement cannot be written back without a change")
}

// deeper tells whether messages nest deeper than a bound.
func deeper(m protoreflect.Message, bound int) (deep bool) {
	if bound < 0 {
		return true
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				deep = deep || deeper(v.List().Get(i).Message(), bound-1)
			}
		default:
			deep = deeper(v.Message(), bound-1)
		}
		return !deep
	})
	return deep
}

// placeless copies a tree without the places of its parts in the text.
func placeless(stmt *pg_query.SelectStmt) *pg_query.SelectStmt {
	if stmt == nil {
		return nil
	}
	out := proto.Clone(stmt).(*pg_query.SelectStmt)
	forgetPlaces(out.ProtoReflect())
	return out
}

func forgetPlaces(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.Int32Kind && strings.HasSuffix(string(f.Name()), "location"):
			m.Clear(f)
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				forgetPlaces(v.List().Get(i).Message())
			}
		default:
			forgetPlaces(v.Message())
		}
		return true
	})
}
