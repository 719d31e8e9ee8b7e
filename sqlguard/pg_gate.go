package sqlguard

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"
)

// checkPostgres is Check for PostgreSQL, after the checks of the bytes: parse, walk, write back.
func checkPostgres(ctx context.Context, req Request) (Approved, error) {
	if err := ctx.Err(); err != nil {
		return Approved{}, err
	}
	tree, explain, err := pgStatement(req.SQL)
	if err != nil {
		return Approved{}, err
	}
	if explain {
		if err := req.mayExplain(); err != nil {
			return Approved{}, err
		}
	}
	w := &pgWalker{req: req}
	if _, err := w.query(pgRoot(tree), nil, nil); err != nil {
		return Approved{}, err
	}
	if err := req.views(w.relations, explain, nil); err != nil {
		return Approved{}, err
	}
	a := Approved{database: req.Database, profile: req.Profile, relations: w.relations, explain: explain}
	if a.shown, err = pgDeparse(tree, w.bare); err != nil {
		return Approved{}, err
	}
	a.sql = a.shown
	if w.castSums(tree.ProtoReflect(), false) {
		if a.sql, err = pgDeparse(tree, w.bare); err != nil {
			return Approved{}, err
		}
	}
	return a, nil
}

// maxSyntaxText bounds the parser's sentence about an error, in bytes.
const maxSyntaxText = 120

const onePgQuery = "send one SELECT, WITH, VALUES or TABLE query"

// pgRoot gives the query of a tree of pgStatement.
func pgRoot(tree *pg_query.ParseResult) *pg_query.SelectStmt {
	if len(tree.GetStmts()) != 1 {
		return nil
	}
	return tree.Stmts[0].GetStmt().GetSelectStmt()
}

// pgStatement gives the tree of a text that is one query, perhaps with EXPLAIN before it, which the tree does not have.
func pgStatement(sql string) (tree *pg_query.ParseResult, explain bool, err error) {
	tree, err = pgParse(sql)
	if err != nil {
		return nil, false, pgNotParsed(sql, err)
	}
	switch len(tree.Stmts) {
	case 1:
	case 0:
		return nil, false, refuse(noPlace, kindSyntax, onePgQuery, "there is no statement")
	default:
		return nil, false, notQuery(int(tree.Stmts[1].StmtLocation), "send them one by one", "there are %d statements; only one may be sent", len(tree.Stmts))
	}
	raw := tree.Stmts[0]
	if err := pgFits("the statement", raw.ProtoReflect(), pgStatementShape); err != nil {
		return nil, false, err
	}
	if ex := raw.Stmt.GetExplainStmt(); ex != nil {
		if len(ex.Options) > 0 {
			// VERBOSE and the options in parentheses are lost when the engine is asked for the plan, and ANALYZE runs it.
			return nil, false, refuse(0, kindSyntax, "write EXPLAIN before a query, without options", "EXPLAIN with options is not allowed")
		}
		if err := pgFits("EXPLAIN", ex.ProtoReflect(), pgExplainShape); err != nil {
			return nil, false, err
		}
		raw.Stmt, explain = ex.Query, true
	}
	if pgRoot(tree) == nil {
		return nil, false, notQuery(0, onePgQuery, "%s is not allowed: only queries that read may run here", firstWord(sql))
	}
	return tree, explain, nil
}

// pgNotParsed says why the parser gave no tree.
func pgNotParsed(sql string, err error) error {
	var p *parser.Error
	switch {
	case !errors.As(err, &p), strings.Contains(p.Message, "stack depth"), strings.Contains(p.Message, "memory exhausted"):
		return refuse(noPlace, kindQuery, "nest less deeply", "the statement nests too deeply to be read")
	}
	msg := strings.TrimPrefix(strings.TrimPrefix(p.Message, "syntax error"), " ")
	if len(msg) > maxSyntaxText {
		msg = strings.ToValidUTF8(msg[:maxSyntaxText], "") + "…" // it repeats the text from the error on
	}
	return refuse(bytePlace(sql, p.Cursorpos), kindSyntax, "", "syntax error: %s", msg)
}

// bytePlace turns the parser's place of an error, which counts characters from 1, into a 0-based place in bytes.
func bytePlace(sql string, cursor int) int {
	if cursor <= 0 {
		return noPlace
	}
	at := 0
	for ; cursor > 1 && at < len(sql); cursor-- {
		_, n := utf8.DecodeRuneInString(sql[at:])
		at += n
	}
	return at
}

// unreadable refuses a tree that the parser is not known to make.
func unreadable(what string) error {
	return refuse(noPlace, kindQuery, "write it in a simpler way", "the statement has %s, which the gate cannot read", what)
}
