package database

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/fault"
	"sluice/sqlguard"
)

// Writable says whether statements of the profile Write may run: the settings say so, and the engine can.
func (s *Source) Writable() bool {
	w, ok := s.engine.(writer)
	return ok && s.cfg.Writable && w.Writable()
}

func (s *Source) notWritable() error {
	f := fault.New(fault.Refused, "database.Write", "the database %s is only read", s.cfg.Name)
	f.Kind, f.Hint = "query", "queries may run; whoever runs the server can set databases."+s.cfg.Name+".writable: true"
	return f
}

// Write runs an approved statement of the profile Write in a transaction of its own, and tells how many rows it changed; 0
// for one that changes tables. take gets the rows of RETURNING, of which it need not read all, and must not keep the reader;
// its error undoes the statement, and so does the end of ctx before the commit. Nothing of a statement that failed stays. A
// statement that met another's is a Conflict: it can be sent again.
func (s *Source) Write(ctx context.Context, a sqlguard.Approved, params []any, take func(array.RecordReader) error) (int64, error) {
	if err := s.mayRun(a, a.Profile() == sqlguard.Write, params); err != nil {
		return 0, err
	}
	w, ok := s.engine.(writer)
	if !ok || !s.Writable() {
		return 0, s.notWritable()
	}
	returned := int64(-1)
	n, err := w.Write(ctx, a, params, func(r array.RecordReader) error {
		c := &counted{RecordReader: r}
		if err := take(c); err != nil {
			return err
		}
		for c.Next() { // the statement is through when its last row is read
		}
		returned = c.rows
		return c.Err()
	})
	if err != nil {
		return 0, err
	}
	if returned >= 0 {
		n = returned
	}
	return n, nil
}

// checkParts has the engine look at what a write reads.
func (s *Source) checkParts(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error {
	for _, p := range a.Parts() {
		if err := s.engine.Check(ctx, cat, p); err != nil {
			return err
		}
	}
	return nil
}

// counted counts the rows that were read.
type counted struct {
	array.RecordReader
	rows int64
}

func (c *counted) Next() bool {
	more := c.RecordReader.Next()
	if more {
		c.rows += c.RecordBatch().NumRows()
	}
	return more
}
