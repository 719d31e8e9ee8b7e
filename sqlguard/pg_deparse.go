package sqlguard

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxMessages bounds the nesting of a tree's messages. A level of a statement is a Node, what it holds, and at times a
// helper between them, so the walk's bound comes first; libpg_query's writer kills the process at 9200.
const maxMessages = 4 * maxDepth

// pgDeparse writes the checked tree of one statement of any kind as text, parses that text again and compares: what the writer
// loses or turns around would run unchecked otherwise. What it loses of the parentheses is written in another way (pg_mend.go).
func pgDeparse(tree *pg_query.ParseResult, bare []*string) (string, error) {
	sql, err := pgWritten(tree, bare)
	if err != nil && mendOperands(tree.Stmts[0].Stmt.ProtoReflect()) {
		return pgWritten(tree, bare)
	}
	return sql, err
}

func pgWritten(tree *pg_query.ParseResult, bare []*string) (string, error) {
	root := tree.Stmts[0].Stmt
	if deeper(root.ProtoReflect(), maxMessages) {
		return "", refuse(noPlace, kindQuery, "nest less deeply", "the statement nests more than %d levels deep", maxDepth)
	}
	sql, err := pgPrint(tree, bare)
	if err != nil || strings.IndexByte(sql, 0) >= 0 {
		return "", changed()
	}
	if again, err := parser.ParseToJSON(sql); err != nil || !pgSame(again, root) {
		return "", changed()
	}
	return sql, nil
}

// pgPrint writes a tree as text. The writer prints some names as they are, so it is given them in quotes: those of windows, and
// the alias of USING.
func pgPrint(tree *pg_query.ParseResult, bare []*string) (string, error) {
	for _, name := range bare {
		plain := *name
		*name = `"` + strings.ReplaceAll(plain, `"`, `""`) + `"`
		defer func() { *name = plain }()
	}
	return pgPrinted(tree)
}

func changed() error {
	return refuse(noPlace, kindQuery, "write it in a simpler way", "the statement cannot be written back without a change")
}

// deeper tells whether messages nest deeper than a bound.
func deeper(m protoreflect.Message, bound int) bool {
	l, v := pgLayoutOf(m)
	return l.deeper(v, bound)
}
