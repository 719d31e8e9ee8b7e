package duckdb

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	duck "github.com/duckdb/duckdb-go-bindings"
)

// engineError is an error as the engine gave it. Its text may show values and names, so it is a cause, for the log;
// what a caller sees is made of it in runError.
type engineError struct {
	kind duck.ErrorType
	msg  string
}

func (e *engineError) Error() string { return e.msg }

// conn is one connection. It is used by one goroutine at a time; interrupt may come from any.
type conn struct {
	c duck.Connection

	mu     sync.Mutex // guards closed against interrupt
	closed bool
}

// openInstance opens a database file, or "" for one in memory.
func openInstance(path string, settings map[string]string) (duck.Database, error) {
	var cfg duck.Config
	if duck.CreateConfig(&cfg) != duck.StateSuccess {
		return duck.Database{}, &engineError{msg: "no memory for a configuration"}
	}
	defer duck.DestroyConfig(&cfg)
	for k, v := range settings {
		if duck.SetConfig(cfg, k, v) != duck.StateSuccess {
			return duck.Database{}, &engineError{msg: "unknown setting " + k + " = " + v}
		}
	}
	var db duck.Database
	var msg string
	if duck.OpenExt(path, &db, cfg, &msg) != duck.StateSuccess {
		duck.Close(&db)
		return duck.Database{}, &engineError{msg: msg}
	}
	return db, nil
}

func connect(db duck.Database) (*conn, error) {
	c := &conn{}
	if duck.Connect(db, &c.c) != duck.StateSuccess {
		return nil, &engineError{msg: "cannot connect"}
	}
	return c, nil
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		duck.Disconnect(&c.c)
	}
}

func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		duck.Interrupt(c.c)
	}
}

// watch interrupts the connection when ctx ends, until stop is called, which waits for it. An interrupt that comes just
// before the engine starts a statement is forgotten by it, so it is repeated.
func (c *conn) watch(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			c.interrupt()
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

// exec runs a statement of ours. It must never see a caller's text.
func (c *conn) exec(sql string) error {
	var res duck.Result
	defer duck.DestroyResult(&res)
	if duck.Query(c.c, sql, &res) != duck.StateSuccess {
		return &engineError{kind: duck.ResultErrorType(&res), msg: duck.ResultError(&res)}
	}
	return nil
}

// prepare makes a statement ready; the caller destroys it.
func (c *conn) prepare(sql string) (*duck.PreparedStatement, error) {
	var st duck.PreparedStatement
	if duck.Prepare(c.c, sql, &st) != duck.StateSuccess {
		err := &engineError{msg: duck.PrepareError(st)}
		duck.DestroyPrepare(&st)
		return nil, err
	}
	return &st, nil
}

// bound makes a statement of ours ready, with text arguments; the caller destroys it.
func (c *conn) bound(sql string, args []string) (*duck.PreparedStatement, error) {
	st, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	for i, a := range args {
		if duck.BindVarchar(*st, duck.IdxT(i+1), a) != duck.StateSuccess {
			duck.DestroyPrepare(st)
			return nil, &engineError{msg: "cannot bind argument " + strconv.Itoa(i+1)}
		}
	}
	return st, nil
}

// strings runs a statement of ours whose columns are all VARCHAR, with text arguments, and gives its rows. A NULL is nil.
func (c *conn) strings(sql string, args ...string) ([][]*string, error) {
	st, err := c.bound(sql, args)
	if err != nil {
		return nil, err
	}
	defer duck.DestroyPrepare(st)
	var res duck.Result
	defer duck.DestroyResult(&res)
	if duck.ExecutePrepared(*st, &res) != duck.StateSuccess {
		return nil, &engineError{kind: duck.ResultErrorType(&res), msg: duck.ResultError(&res)}
	}
	cols := int(duck.ColumnCount(&res))
	for i := range cols {
		if duck.ColumnType(&res, duck.IdxT(i)) != duck.TypeVarchar { // its memory would be read as something that it is not
			return nil, &engineError{msg: "column " + strconv.Itoa(i+1) + " is not VARCHAR"}
		}
	}
	var out [][]*string
	for {
		chunk := duck.FetchChunk(res)
		if chunk.Ptr == nil {
			if msg := duck.ResultError(&res); msg != "" {
				return nil, &engineError{kind: duck.ResultErrorType(&res), msg: msg}
			}
			return out, nil
		}
		out = append(out, chunkStrings(chunk, cols)...)
		duck.DestroyDataChunk(&chunk)
	}
}

// chunkStrings copies a chunk of VARCHAR columns.
func chunkStrings(chunk duck.DataChunk, cols int) [][]*string {
	n := int(duck.DataChunkGetSize(chunk))
	rows := make([][]*string, n)
	for r := range rows {
		rows[r] = make([]*string, cols)
	}
	for col := range cols {
		vec := duck.DataChunkGetVector(chunk, duck.IdxT(col))
		valid := duck.VectorGetValidity(vec)
		data := stringData(vec, n)
		for r := range rows {
			if valid == nil || duck.ValidityMaskValueIsValid(valid, duck.IdxT(r)) {
				s := strings.Clone(duck.StringTData(&data[r]))
				rows[r][col] = &s
			}
		}
	}
	return rows
}

// quoteName writes an identifier.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// quoteText writes a string literal.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// stringData gives the string headers of a vector; they live as long as its chunk.
func stringData(vec duck.Vector, n int) []duck.StringT {
	return unsafe.Slice((*duck.StringT)(duck.VectorGetData(vec)), n)
}
