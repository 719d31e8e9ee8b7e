package duckdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
)

// constant is SQL text that stands in the source: other packages cannot name the type, so all that they can hand over is a
// literal or a constant of theirs, and never a text that was put together while the program runs.
type constant string

// Own is a file of Sluice's own, such as the embedded store of documents: no source, and never opened as one. What varies in
// its statements are text arguments, what they give are text columns. Its methods may be called by any goroutine.
type Own struct {
	db    duck.Database
	spill *spill
	key   string

	write sync.Mutex // one transaction that changes something at a time: two of the same rows would be conflicts

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// OpenOwn opens a file, or makes it, and runs its schema, which must be a script that may run again. A file that another
// process or a source has open is a Conflict. temp is where folders for what does not fit into memory are made.
func OpenOwn(ctx context.Context, path, temp string, schema constant) (_ *Own, err error) {
	const op = "duckdb.OpenOwn"
	path, err = ownPath(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "the folder of a file of ours cannot be found")
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.open[path] != nil {
		return nil, fault.New(fault.Conflict, op, "the file is open already")
	}
	o := &Own{key: path}
	if o.spill, err = newSpill(temp); err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "no folder for temporary files")
	}
	if err = o.open(ctx, schema); err != nil {
		duck.Close(&o.db)
		return nil, fault.Wrap(errors.Join(err, o.spill.remove()), fault.Conflict, op, "%s cannot be opened: another process may have it open, or it is damaged", filepath.Base(path))
	}
	registry.open[path] = &instance{key: path, setup: "own"} // so that no source opens it
	return o, nil
}

// ownPath is the path that the registry knows a file by, also of one that is not there yet.
func ownPath(path string) (string, error) {
	if real, err := filepath.EvalSymlinks(path); !errors.Is(err, os.ErrNotExist) {
		path = real
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(dir, filepath.Base(path)))
}

func (o *Own) open(ctx context.Context, schema constant) (err error) {
	if o.db, err = openInstance(o.key, closedSettings("1GB", "2")); err != nil {
		return err
	}
	c, err := connect(o.db)
	if err != nil {
		return err
	}
	defer c.close()
	for _, s := range append([]string{
		"SET allow_persistent_secrets = false",
		"SET GLOBAL TimeZone = 'UTC'",
		"SET temp_directory = " + quoteText(o.spill.dir),
		"SET allowed_paths = [" + quoteText(o.key) + ", " + quoteText(o.key+".wal") + "]",
	}, lockStatements...) {
		if err := c.exec(s); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.exec(string(schema))
}

// Close closes the file when whatever runs has ended. A second call does nothing.
func (o *Own) Close() error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil
	}
	o.closed = true
	o.mu.Unlock()
	o.running.Wait()
	registry.Lock()
	defer registry.Unlock()
	delete(registry.open, o.key)
	duck.Close(&o.db)
	return o.spill.remove()
}

// Tx is a transaction.
type Tx struct{ c *conn }

// Read runs statements that change nothing, all of which see the same state.
func (o *Own) Read(ctx context.Context, do func(Tx) error) error {
	return o.transact(ctx, "BEGIN TRANSACTION READ ONLY", do)
}

// Change runs statements, and keeps what they did only when do gives no error and ctx has not ended.
func (o *Own) Change(ctx context.Context, do func(Tx) error) error {
	o.write.Lock()
	defer o.write.Unlock()
	return o.transact(ctx, "BEGIN", do)
}

func (o *Own) transact(ctx context.Context, begin string, do func(Tx) error) error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return fault.New(fault.Conflict, "duckdb.Own", "the file is closed")
	}
	o.running.Add(1)
	o.mu.Unlock()
	defer o.running.Done()
	c, err := connect(o.db)
	if err != nil {
		return err
	}
	defer c.close() // which rolls back what is not committed
	stop := c.watch(ctx)
	defer stop()
	if err = c.exec(begin); err == nil {
		err = do(Tx{c})
	}
	stop() // from here on nobody interrupts: the commit happens whole, or fails
	if ctx.Err() != nil {
		return fault.Wrap(errors.Join(context.Cause(ctx), err), fault.Canceled, "duckdb.Own", "the request was cancelled")
	}
	if err != nil {
		return err
	}
	return c.exec("COMMIT")
}

// Query gives the rows of a statement whose columns are all VARCHAR. A NULL is nil.
func (tx Tx) Query(sql constant, args ...string) ([][]*string, error) {
	return tx.c.strings(string(sql), args...)
}

// Exec runs a statement and says how many rows it changed.
func (tx Tx) Exec(sql constant, args ...string) (int64, error) {
	st, err := tx.c.bound(string(sql), args)
	if err != nil {
		return 0, err
	}
	defer duck.DestroyPrepare(st)
	var res duck.Result
	defer duck.DestroyResult(&res)
	if duck.ExecutePrepared(*st, &res) != duck.StateSuccess {
		return 0, &engineError{kind: duck.ResultErrorType(&res), msg: duck.ResultError(&res)}
	}
	return int64(duck.RowsChanged(&res)), nil
}
