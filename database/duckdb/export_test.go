package duckdb

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/sqlguard"
)

// What the tests in package duckdb_test reach of the engine. They stand outside because they go through the front, package
// database, which imports this one.

var (
	TranslateSchema = translateSchema
	QuoteName       = quoteName
	QuoteText       = quoteText
	ErrPruneTime    = errPruneTime
	NewSpill        = newSpill
)

const (
	ParserConns = parserConns
	PruneTime   = pruneTime
	SpillLock   = spillLock
)

// NewParser gives a parser of the test's own.
func NewParser() (sqlguard.Parser, error) { return newParser() }

// AskParser runs a query of the test on a parser's instance.
func AskParser(ctx context.Context, p sqlguard.Parser, sql string) ([][]*string, error) {
	return p.(*parser).ask(ctx, sql)
}

// Raw runs a text that no gate has seen, in the read-only transaction that approved ones get.
func (e *Engine) Raw(ctx context.Context, sql string, params []any) (array.RecordReader, error) {
	r, err := e.start(ctx, sql, params, about{})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Exec runs a text on a bare connection: no gate, no transaction.
func (e *Engine) Exec(sql string) error {
	c, err := connect(e.in.db)
	if err != nil {
		return err
	}
	defer c.close()
	return c.exec(sql)
}

// Path is the file's real path, SpillDir where it writes what does not fit into memory.
func (e *Engine) Path() string     { return e.in.key }
func (e *Engine) SpillDir() string { return e.in.spill.dir }

// Dir and Remove of a spill folder.
func (s *spill) Dir() string   { return s.dir }
func (s *spill) Remove() error { return s.remove() }

// Behind gives the tables that the views of a statement read.
func (e *Engine) Behind(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) ([]string, error) {
	found, err := e.in.behindViews(ctx, cat, a)
	var tables []string
	for _, s := range found {
		tables = append(tables, s.table)
	}
	return tables, err
}

// Plan is what the engine says to a text that it binds: "", or why there is no plan, and whether that makes it a wrong text.
func (e *Engine) Plan(ctx context.Context, sql string) (failed, text string, fails bool, err error) {
	p, err := e.in.planOf(ctx, sql)
	return p.failed, p.text, p.fails(), err
}

// ExecUnlocked runs texts on an instance in memory with nothing locked, to make files for a test.
func ExecUnlocked(t *testing.T, sql ...string) {
	t.Helper()
	db, err := openInstance("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer duck.Close(&db)
	c, err := connect(db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, s := range sql {
		if err := c.exec(s); err != nil {
			t.Fatal(err)
		}
	}
}
