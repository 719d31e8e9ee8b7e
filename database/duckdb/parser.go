package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
	"sluice/sqlguard"
)

// parser is the engine's own parser behind sqlguard.Parser: json_serialize_sql and back, on an instance in memory that
// holds no data, may open no file and has no way out. A text is an argument there, never a statement.
type parser struct {
	db    duck.Database
	conns chan *conn // free connections for parsing and writing
	prune chan *conn // free connections for pruning, which evaluates a caller's terms and must not hold up the gate
}

// parserConns bounds how many statements are parsed at once, pruneConns how many are pruned.
const (
	parserConns = 4
	pruneConns  = 2
)

// Parser gives the process's one parser, which the gate asks. It is started at the first call and never closed.
func Parser() (sqlguard.Parser, error) { return sharedParser() }

var sharedParser = sync.OnceValues(newParser)

func newParser() (*parser, error) {
	failed := func(err error) (*parser, error) {
		return nil, fault.Wrap(err, fault.Internal, "database.parser", "the SQL parser cannot be started")
	}
	db, err := openInstance("", map[string]string{"allow_unsigned_extensions": "false", "memory_limit": "512MB", "threads": "1"})
	if err != nil {
		return failed(err)
	}
	p := &parser{db: db, conns: make(chan *conn, parserConns), prune: make(chan *conn, pruneConns)}
	for i := range parserConns + pruneConns {
		c, err := connect(db)
		if err != nil {
			return failed(err)
		}
		if i == 0 {
			for _, s := range append([]string{
				"SET autoinstall_known_extensions = false",
				"SET autoload_known_extensions = false",
				"SET allow_community_extensions = false",
				"SET allow_persistent_secrets = false",
				"SET GLOBAL TimeZone = 'UTC'",
				"SET temp_directory = ''",
			}, lockStatements...) {
				if err := c.exec(s); err != nil {
					return failed(err)
				}
			}
		}
		if i < parserConns {
			p.conns <- c
		} else {
			p.prune <- c
		}
	}
	return p, nil
}

// ask runs a query of ours with text arguments and gives its rows.
func (p *parser) ask(ctx context.Context, sql string, args ...string) ([][]*string, error) {
	return ask(ctx, p.conns, sql, args...)
}

func ask(ctx context.Context, free chan *conn, sql string, args ...string) ([][]*string, error) {
	var c *conn
	select {
	case c = <-free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { free <- c }()
	stop := c.watch(ctx)
	defer stop()
	rows, err := c.strings(sql, args...)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return rows, err
}

func (p *parser) one(ctx context.Context, sql, arg string) (string, error) {
	rows, err := p.ask(ctx, sql, arg)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || rows[0][0] == nil {
		return "", errors.New("database: the parser gave no answer")
	}
	return *rows[0][0], nil
}

// Parse gives the tree of a statement as the engine's parser sees it, or the engine's refusal in the same form.
func (p *parser) Parse(ctx context.Context, sql string) (json.RawMessage, error) {
	out, err := p.one(ctx, "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", sql)
	var e *engineError
	if errors.As(err, &e) {
		// Too deep, for one. It is the statement's fault and said in the parser's form.
		return json.Marshal(map[string]any{"error": true, "error_type": "parser", "error_message": "the statement cannot be parsed"})
	}
	return json.RawMessage(out), err
}

// Deparse writes a tree as a statement.
func (p *parser) Deparse(ctx context.Context, tree json.RawMessage) (string, error) {
	return p.one(ctx, "SELECT json_deserialize_sql(?::JSON)::VARCHAR", string(tree))
}

// Statements counts the statements of a text, which are taken apart and no more. It is asked only about texts that the
// gate's other grammar has read as one statement that writes: a PRAGMA would be worked out by the engine.
func (p *parser) Statements(sql string) (int, error) {
	c := <-p.conns
	defer func() { p.conns <- c }()
	var all duck.ExtractedStatements
	n := duck.ExtractStatements(c.c, sql, &all)
	defer duck.DestroyExtracted(&all)
	if n == 0 {
		return 0, &engineError{msg: duck.ExtractStatementsError(all)}
	}
	return int(n), nil
}

var (
	_ sqlguard.Parser           = (*parser)(nil)
	_ sqlguard.StatementCounter = (*parser)(nil)
)
