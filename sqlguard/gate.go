package sqlguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"sluice/fault"
)

// Dialect is the SQL dialect of a source; each is gated by its own engine's parser.
type Dialect string

// The dialects.
const (
	DuckDB   Dialect = "duckdb"
	Postgres Dialect = "postgres"
)

// Profile is what kind of statement may pass. The zero value lets nothing through.
type Profile int

// The profiles.
const (
	NoProfile      Profile = iota
	ReadOnly               // queries, DESCRIBE, SUMMARIZE, EXPLAIN; functions that compute on their arguments, and clocks
	CopySource             // queries, with the same functions
	RestrictedRead         // queries, DESCRIBE, SUMMARIZE; no function that reads anything beside its arguments but CURRENT_DATE
	Write                  // one statement that changes rows or tables of the source itself, and no query
)

// Parser is the source engine's own parser. It parses one SELECT into the engine's own tree and back; it refuses
// whatever is not a SELECT. `database` implements it for DuckDB with json_serialize_sql.
type Parser interface {
	// Parse gives the engine's answer, which is a tree or says itself that there is none. An error means that the parser
	// could not be asked.
	Parse(ctx context.Context, sql string) (tree json.RawMessage, err error)
	Deparse(ctx context.Context, tree json.RawMessage) (sql string, err error)
	// Prune evaluates boolean expressions of the tree (all over the given partition columns alone) on each file's
	// values and returns, for each file, whether it may hold rows.
	Prune(ctx context.Context, partitions []Column, files []ExternalFile, exprs []json.RawMessage) ([]bool, error)
}

// Request is one statement to decide on.
type Request struct {
	SQL      string
	Database string // name of the source, which the Approved is bound to
	Profile  Profile
	Catalog  *Catalog
	May      func(Relation) bool // whether the caller may read it; nil refuses all

	// Types has the source bind a text and tells the types of its marked expressions, CASE WHEN 'mark…' IS NOT NULL THEN x
	// END, by what stands behind the mark. A text that does not bind has none: running it says why. nil keeps the engine's
	// own types of sums.
	Types func(ctx context.Context, sql, mark string) (map[string][]string, error)
}

// Gate decides which statements may run on sources of one dialect.
type Gate struct {
	dialect Dialect
	parser  Parser
}

// New makes the gate of a dialect. PostgreSQL's needs no parser: its own is linked into this package.
func New(dialect Dialect, parser Parser) *Gate { return &Gate{dialect: dialect, parser: parser} }

// Check parses, decides and deparses. It returns a *fault.Error with code Refused and a position when the statement
// may not run; a relation that the caller may not read gets the same answer as one that does not exist. The Kind of a
// refusal is "syntax" when the text is not one query, else "query".
func (g *Gate) Check(ctx context.Context, req Request) (Approved, error) {
	switch {
	case g.dialect != DuckDB && g.dialect != Postgres:
		return Approved{}, fault.New(fault.Unimplemented, "sqlguard.Check", "this version has no gate for the dialect %s", g.dialect)
	case req.Profile != ReadOnly && req.Profile != CopySource && req.Profile != RestrictedRead && req.Profile != Write:
		return Approved{}, refuse(noPlace, kindQuery, "", "no profile allows this statement")
	case req.Catalog == nil || req.Database == "":
		return Approved{}, fault.Bug("sqlguard: a request without catalogue or database")
	}
	if err := checkBytes(req.SQL); err != nil {
		return Approved{}, err
	}
	if req.Profile == Write {
		return g.checkWrite(ctx, req)
	}
	if g.dialect == Postgres {
		return checkPostgres(ctx, req)
	}
	text, explain := stripExplain(req.SQL)
	if explain {
		if err := req.mayExplain(); err != nil {
			return Approved{}, err
		}
	}
	stmt, err := g.parse(ctx, text)
	if err != nil {
		return Approved{}, err
	}
	w := &walker{req: req}
	if err := w.statement(stmt); err != nil {
		return Approved{}, err
	}
	if err := req.views(w.relations, explain, w.raises); err != nil {
		return Approved{}, err
	}
	return g.approve(ctx, w, stmt, explain)
}

// mayExplain refuses the plan to those who get rows only.
func (r Request) mayExplain() error {
	switch r.Profile {
	case CopySource:
		return refuse(0, kindSyntax, "copy a SELECT", "EXPLAIN cannot be copied")
	case ReadOnly:
		return nil
	}
	return refuse(0, kindQuery, "run it without EXPLAIN", "a restricted reader gets rows, not plans")
}

// approve writes a statement that may run: as people see it, as the source can bind it beforehand, and as it runs.
func (g *Gate) approve(ctx context.Context, w *walker, stmt node, explain bool) (Approved, error) {
	a := Approved{database: w.req.Database, profile: w.req.Profile, relations: w.relations, patterns: w.patterns, explain: explain}
	mend(stmt)
	var err error
	if len(w.externals) > 0 || len(w.sums) > 0 || len(w.narrows) > 0 {
		if a.shown, err = g.write(ctx, stmt); err != nil {
			return Approved{}, err
		}
	}
	if err := w.findNames(ctx, g); err != nil {
		return Approved{}, err
	}
	if err := w.askSums(ctx, g, stmt); err != nil {
		return Approved{}, err
	}
	w.setNames(w.sums)
	w.castSums()
	w.castSizes()
	if len(w.externals) > 0 || len(list(stmt, "named_param_map")) > 0 {
		if a.bindable, err = w.bindable(ctx, g, stmt); err != nil {
			return Approved{}, err
		}
	}
	if a.scans, err = w.replaceExternals(ctx, g); err != nil {
		return Approved{}, err
	}
	if a.sql, err = g.deparse(ctx, stmt); err != nil {
		return Approved{}, err
	}
	if a.shown == "" {
		a.shown = a.sql
	}
	return a, nil
}

// parse gives the one statement of the text, as the engine's parser has it.
func (g *Gate) parse(ctx context.Context, text string) (node, error) {
	raw, err := g.parser.Parse(ctx, text)
	if err != nil {
		return nil, err
	}
	tree, err := decode(raw)
	if err != nil {
		return nil, refuse(noPlace, kindSyntax, "write a simpler statement", "the statement's tree cannot be read")
	}
	if failed, _ := tree["error"].(bool); failed {
		return nil, notParsed(text, tree)
	}
	stmts, _ := tree["statements"].([]any)
	switch len(stmts) {
	case 1:
	case 0:
		return nil, refuse(noPlace, kindSyntax, "send one SELECT", "there is no statement")
	default:
		return nil, notQuery(noPlace, "send them one by one", "there are %d statements; only one may be sent", len(stmts))
	}
	for k := range tree {
		if k != "error" && k != "statements" {
			return nil, refuse(noPlace, kindQuery, "", "the parser's answer has a part %q that the gate does not know", k)
		}
	}
	stmt, ok := stmts[0].(node)
	if !ok {
		return nil, refuse(noPlace, kindQuery, "", "the parser's answer is not a statement")
	}
	return stmt, nil
}

// notParsed says why the parser gave no tree.
func notParsed(text string, tree node) error {
	msg, _ := tree["error_message"].(string)
	at := noPlace
	if p, ok := tree["position"].(string); ok {
		at = number(json.Number(p))
	}
	if kind, _ := tree["error_type"].(string); kind == "not implemented" {
		word := firstWord(text)
		if word == "" || word == "SELECT" || word == "WITH" || word == "FROM" || word == "VALUES" || word == "(" {
			return notQuery(at, oneQuery, "only one query that reads may run here, and this is something else or more")
		}
		if word == "PIVOT" || word == "UNPIVOT" {
			return refuse(0, kindQuery, "write FROM (PIVOT t ON c IN ('a', 'b') USING sum(x))", "%s must name its values: ON column IN (…)", word)
		}
		return notQuery(0, oneQuery, "%s is not allowed: only queries that read may run here", word)
	}
	if strings.Contains(msg, "Max expression depth") || strings.Contains(msg, "memory exhausted") {
		return refuse(at, kindQuery, "nest less deeply", "the statement nests too deeply")
	}
	return refuse(at, kindSyntax, "", "syntax error: %s", strings.TrimSpace(msg))
}

// decode reads a tree and keeps every number as it is written: 64-bit places and wide integers must come back unchanged.
func decode(raw []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree node
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("sqlguard: text after the tree")
	}
	return tree, nil
}

// noPlace is the place of a refusal that is about the whole statement.
const noPlace = -1

// The kinds of a refusal, which are also those of a failed COPY.
const (
	kindSyntax = "syntax"
	kindQuery  = "query"
)

// ErrNotQuery is the cause of a refusal of what is well-formed but not one query that reads: a write, a setting, several
// statements. A caller can tell it from a slip of the pen.
var ErrNotQuery = errors.New("sqlguard: not one query that reads")

const oneQuery = "send one SELECT, WITH, VALUES or FROM query"

func notQuery(at int, hint, format string, args ...any) *fault.Error {
	err := refuse(at, kindSyntax, hint, format, args...)
	err.Err = ErrNotQuery
	return err
}

// refuse makes the gate's answer. at is the 0-based place in the caller's text, or noPlace.
func refuse(at int, kind, hint, format string, args ...any) *fault.Error {
	err := fault.New(fault.Refused, "sqlguard.Check", format, args...)
	err.Kind, err.Hint = kind, hint
	if at >= 0 {
		err.Position = at + 1
	}
	return err
}
