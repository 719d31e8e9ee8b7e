package postgres

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice/fault"
	"sluice/sqlguard"
)

// How long a catalogue is believed without asking: usually, and when somebody missed a name in it.
const (
	trusted = 2 * time.Second
	hurried = 200 * time.Millisecond
)

// fresh keeps the catalogue. Whoever holds the turn reads or changes it.
type fresh struct {
	turn    chan struct{}
	have    *relations
	checked time.Time
}

func newFresh() fresh { return fresh{turn: make(chan struct{}, 1)} }

// Catalog lists the relations that the role may read in the configured schemas: the same pointer as long as nothing
// changed. A change is seen after two seconds at most, or by Fresh.
func (e *Engine) Catalog(ctx context.Context) (*sqlguard.Catalog, error) {
	have, err := e.relations(ctx, trusted)
	if err != nil {
		return nil, err
	}
	return have.catalog, nil
}

// Fresh gives the catalogue of now for who missed a name in an old one, and the
// same one when nothing changed. It asks the server five times a second at most.
func (e *Engine) Fresh(ctx context.Context, _ *sqlguard.Catalog) (*sqlguard.Catalog, error) {
	have, err := e.relations(ctx, hurried)
	if err != nil {
		return nil, err
	}
	return have.catalog, nil
}

// guarded says whether a statement reads what may hide rows. What the catalogue does not have any more may have been.
func (e *Engine) guarded(ctx context.Context, read []sqlguard.Relation) (bool, error) {
	if len(read) == 0 {
		return false, nil
	}
	have, err := e.relations(ctx, trusted)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(read, func(r sqlguard.Relation) bool {
		return have.guarded[r] || !slices.ContainsFunc(have.catalog.Tables, func(t sqlguard.Table) bool { return t.Relation == r })
	}), nil
}

// forget makes the next use ask the server: it said that a name is not there.
func (e *Engine) forget() {
	select {
	case e.fresh.turn <- struct{}{}:
		e.fresh.checked = time.Time{}
		<-e.fresh.turn
	default: // somebody is asking already
	}
}

func (e *Engine) relations(ctx context.Context, age time.Duration) (*relations, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, fault.New(fault.Conflict, "postgres.Catalog", "the database %s is closed", e.cfg.Name)
	}
	ctx, stop := context.WithTimeoutCause(ctx, e.own, errSilent)
	defer stop()
	f := &e.fresh
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, e.over(ctx, "postgres.Catalog")
	}
	defer func() { <-f.turn }()
	if f.have != nil && time.Since(f.checked) < age {
		return f.have, nil
	}
	asked := time.Now()
	l, err := e.take(ctx, false, transaction{snapshot: true, timeout: ownTimeout})
	if err != nil {
		return nil, err
	}
	read := false
	defer func() { // a panic keeps no connection either
		if read {
			l.done()
			return
		}
		l.abandon()
	}()
	got, err := e.reread(ctx, l.conn, f.have)
	if err != nil {
		return nil, e.catalogError(ctx, err)
	}
	read = true
	f.have, f.checked = got, asked
	return got, nil
}

// reread gives the old catalogue when nothing changed, and also when what changed does not show in it.
func (e *Engine) reread(ctx context.Context, c *conn, old *relations) (*relations, error) {
	row, err := c.queryOne(ctx, changesQuery, 5, textArray(e.cfg.Schemas))
	if err != nil {
		return nil, err
	}
	stamp := strings.Join(row, " ")
	if old != nil && old.stamp == stamp {
		return old, nil
	}
	got, err := e.readCatalog(ctx, c)
	if err != nil {
		return nil, err
	}
	got.stamp = stamp
	if old != nil && reflect.DeepEqual(old.catalog, got.catalog) {
		got.catalog = old.catalog
	}
	return got, nil
}

func (e *Engine) catalogError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return e.over(ctx, "postgres.Catalog")
	}
	known := e.statementError(err, "postgres.Catalog", true, false)
	if code := fault.CodeOf(known); code == fault.Busy || code == fault.TooLarge {
		return known
	}
	return fault.Wrap(err, fault.Internal, "postgres.Catalog", "the catalogue of database %s cannot be read", e.cfg.Name)
}
