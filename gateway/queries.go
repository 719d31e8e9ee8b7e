package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
)

// The kinds of statements.
const (
	queryKind    = "query"    // a read that somebody sent
	askKind      = "ask"      // a read that a model wrote, as part of an ask
	copyKind     = "copy"     // COPY … TO LAKE, and what it would do
	externalKind = "external" // CREATE and DROP EXTERNAL TABLE
	writeKind    = "write"    // a change of rows or tables of a database
)

// statement is one that runs now. Only rows changes while it does.
type statement struct {
	id        string
	kind      string
	database  string
	text      string // as people may see it
	by        access.Principal
	requestID string
	startedAt time.Time
	rows      atomic.Int64 // that the database gave so far
	cancel    context.CancelCauseFunc
}

// running are the statements that run now. The lock is held for a look or a change only, never while something runs.
type running struct {
	mu  sync.Mutex
	all map[string]*statement
}

func newRunning() *running { return &running{all: map[string]*statement{}} }

func (r *running) add(st *statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[st.id] = st
}

func (r *running) remove(st *statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, st.id)
}

// find gives a statement that who may see, or nil: for one that is not there as for one of somebody else.
func (r *running) find(id string, who access.Principal) *statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st := r.all[id]; st != nil && access.MayStatement(who, st.by) {
		return st
	}
	return nil
}

// seen gives the statements that who may see, those first that began first.
func (r *running) seen(who access.Principal) []*statement {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.all))
	r.mu.Unlock()
	all = slices.DeleteFunc(all, func(st *statement) bool { return !access.MayStatement(who, st.by) })
	slices.SortFunc(all, func(a, b *statement) int { return cmp.Or(a.startedAt.Compare(b.startedAt), cmp.Compare(a.id, b.id)) })
	return all
}

func (r *running) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// cancelled is why a context ended whose statement somebody cancelled.
type cancelled struct{ by string }

func (e *cancelled) Error() string { return "gateway: the statement was cancelled by " + e.by }

// begin enters a statement of the request's caller into the list. cancel ends the context that it runs in. Whoever begins
// it calls done when it has ended.
func (s *server) begin(c *gin.Context, kind, database, text string, cancel context.CancelCauseFunc) (st *statement, done func()) {
	ctx := c.Request.Context()
	st = &statement{
		id: "query_" + rand.Text(), kind: kind, database: database, text: presentableText(text, traceOf(ctx).bearer), by: principal(c),
		requestID: RequestIDOf(ctx), startedAt: s.now(), cancel: cancel,
	}
	s.running.add(st)
	return st, func() { s.running.remove(st) }
}

// shown is an approved statement as people wrote it.
func shown(a sqlguard.Approved) string {
	if a.Explain() {
		return "EXPLAIN " + a.Shown()
	}
	return a.Shown()
}

// watched is the reader of a running statement. It counts rows, and calls end, where that is not nil, with the reader's error
// when its last holder has released it.
type watched struct {
	array.RecordReader
	st      *statement
	holders atomic.Int64
	end     func(error)
}

func watch(r array.RecordReader, st *statement, end func(error)) *watched {
	w := &watched{RecordReader: r, st: st, end: end}
	w.holders.Store(1)
	return w
}

func (w *watched) Next() bool {
	more := w.RecordReader.Next()
	if more {
		w.st.rows.Add(w.RecordBatch().NumRows())
	}
	return more
}

func (w *watched) Retain() {
	w.holders.Add(1)
	w.RecordReader.Retain()
}

func (w *watched) Release() {
	err, last := w.Err(), w.holders.Add(-1) == 0
	w.RecordReader.Release()
	if last && w.end != nil {
		w.end(err)
	}
}

type statementInfo struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Database  string    `json:"database"`
	Owner     string    `json:"owner"` // the user
	Key       string    `json:"key"`   // id of the key or login
	Name      string    `json:"name"`  // of the key; of a login the user's
	Statement string    `json:"statement"`
	StartedAt time.Time `json:"started_at"`
	Rows      *int64    `json:"rows,omitempty"` // that were read so far; of reads only
	RequestID string    `json:"request_id"`
}

// listQueries lists the running statements that the caller may see, those first that run longest.
func (s *server) listQueries(c *gin.Context, _ int) ([]statementInfo, error) {
	var all []statementInfo
	for _, st := range s.running.seen(principal(c)) {
		info := statementInfo{ID: st.id, Kind: st.kind, Database: st.database, Owner: st.by.Owner, Key: st.by.KeyID, Name: st.by.Name,
			Statement: st.text, StartedAt: st.startedAt, RequestID: st.requestID}
		if st.kind == queryKind || st.kind == askKind {
			rows := st.rows.Load()
			info.Rows = &rows
		}
		all = append(all, info)
	}
	return all, nil
}

// cancelQuery cancels a running statement. Its caller learns who did. That somebody cancels another's is put into the
// ledger before: what was asked for is not, as texts of queries stand there nowhere else.
func (s *server) cancelQuery(c *gin.Context) {
	who, id := principal(c), c.Param("id")
	missing := fault.New(fault.NotFound, "gateway.cancelQuery", "there is no running statement '%s'", printable(id, 200))
	st := s.running.find(id, who)
	if st == nil {
		s.fail(c, missing)
		return
	}
	do := func() error {
		if s.running.find(id, who) == nil { // it ended meanwhile
			return missing
		}
		st.cancel(&cancelled{by: who.Owner})
		return nil
	}
	var err error
	if st.by.Owner == who.Owner {
		err = do()
	} else {
		err = s.audited(c, "query.cancel", map[string]any{"query": st.id, "kind": st.kind, "database": st.database, "of": st.by.Owner, "of_key": st.by.KeyID,
			"of_request": st.requestID}, do)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"cancelled": st.id})
}
