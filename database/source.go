package database

import (
	"context"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/fault"
	"sluice/sqlguard"
)

// Source is one open database: its catalogue, its gate and the only way to run something on it. Its methods may be called
// by any goroutine.
type Source struct {
	cfg     Config
	ext     Externals
	engine  engine
	dialect sqlguard.Dialect
	gate    *sqlguard.Gate
	seen    seen
}

// Name is the configured name.
func (s *Source) Name() string { return s.cfg.Name }

// DefaultSchema is where a name without a schema is looked for first.
func (s *Source) DefaultSchema() string {
	if s.dialect == sqlguard.DuckDB {
		return "main"
	}
	return s.cfg.Schemas[0]
}

// Dialect is the source's SQL dialect.
func (s *Source) Dialect() sqlguard.Dialect { return s.dialect }

// Catalog lists the tables and views of the source and its external tables, with columns, comments and keys.
func (s *Source) Catalog(ctx context.Context) (*sqlguard.Catalog, error) {
	own, err := s.engine.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return s.withExternals(ctx, own)
}

// Approve passes a statement through the gate, against the catalogue of now. The profile Write is refused where the database
// is not writable.
func (s *Source) Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	if profile == sqlguard.Write && !s.Writable() {
		return sqlguard.Approved{}, s.notWritable()
	}
	cat, err := s.Catalog(ctx)
	if err != nil {
		return sqlguard.Approved{}, err
	}
	if a, ok := s.seen.find(sql, profile, cat, may); ok {
		return a, nil
	}
	request := sqlguard.Request{SQL: sql, Database: s.cfg.Name, Profile: profile, Catalog: cat, May: may, Types: s.engine.Types}
	a, err := s.gate.Check(ctx, request)
	if fault.CodeOf(err) == fault.Refused {
		if again, changed := s.looksAgain(ctx, cat); changed {
			request.Catalog = again
			a, err = s.gate.Check(ctx, request)
		}
	}
	if err != nil {
		return sqlguard.Approved{}, err
	}
	if profile == sqlguard.Write {
		if err := s.checkParts(ctx, request.Catalog, a); err != nil {
			return sqlguard.Approved{}, err
		}
		return a, nil
	}
	if err := s.engine.Check(ctx, request.Catalog, a); err != nil {
		return sqlguard.Approved{}, err
	}
	s.seen.keep(sql, request.Catalog, a)
	return a, nil
}

// looksAgain gives the catalogue of now after a refusal, when the engine keeps it for a while and it is another by now:
// the statement may name what was made a moment ago.
func (s *Source) looksAgain(ctx context.Context, old *sqlguard.Catalog) (*sqlguard.Catalog, bool) {
	f, ok := s.engine.(freshener)
	if !ok {
		return nil, false
	}
	now, err := f.Fresh(ctx, old)
	return now, err == nil && now != old
}

// Run executes an approved statement and streams its rows with bounded memory. Cancelling ctx interrupts the engine.
// The caller must Release the reader; its Err reports a failure in mid-stream.
func (s *Source) Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error) {
	return s.RunParams(ctx, a, nil)
}

// RunParams is Run with values for the statement's parameters: nil, bool, int64, float64 or string, in the order of
// their numbers.
func (s *Source) RunParams(ctx context.Context, a sqlguard.Approved, params []any) (array.RecordReader, error) {
	if err := s.mayRun(a, a.Profile() != sqlguard.Write, params); err != nil {
		return nil, err
	}
	return s.engine.Run(ctx, a, params)
}

// mayRun says whether an approved statement may run here, with these values.
func (s *Source) mayRun(a sqlguard.Approved, kind bool, params []any) error {
	if !a.Valid() || a.Database() != s.cfg.Name || !kind {
		return fault.New(fault.Refused, "database.Run", "the statement was not approved for the database %s", s.cfg.Name)
	}
	for _, p := range a.Patterns() {
		if err := p.Allows(func(name string) string { return textParam(params, name) }); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the source after running statements ended.
func (s *Source) Close() error {
	if err := s.engine.Close(); err != nil {
		return fmt.Errorf("database: close %s: %w", s.cfg.Name, err)
	}
	return nil
}

// textParam gives the text that is bound to a parameter of that number.
func textParam(params []any, name string) string {
	i, err := strconv.Atoi(name)
	if err != nil || i < 1 || i > len(params) {
		return ""
	}
	s, _ := params[i-1].(string)
	return s
}
