package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sluice/fault"
)

// LedgerConfig is what a Ledger needs besides the store.
type LedgerConfig struct {
	Head string // file of the head, outside the store; required
	Key  []byte // of the head's HMAC, see LedgerKey; required
	Now  func() time.Time
}

func (c LedgerConfig) validate() error {
	var errs []error
	if c.Head == "" {
		errs = append(errs, errors.New("Head is missing"))
	}
	if len(c.Key) < minLedgerKey {
		errs = append(errs, fmt.Errorf("Key has %d bytes; it needs %d", len(c.Key), minLedgerKey))
	}
	return errors.Join(errs...)
}

// Ledger is the audit ledger: entries in the store that are only ever added, each with a hash over itself and the hash
// before, and the head of the chain in a file outside the store. Its methods may be called from many goroutines.
//
// An append is these steps, each on the disk before the next begins:
//
//  1. the head file: the chain ends at A and is about to end at B
//  2. the entries up to B, in one transaction
//  3. the head file: the chain ends at B
//
// So after a death at any point the chain ends at A or at B, exactly. An end that the head does not explain is no crash.
// Callers who come while an append is under way go into the next one together.
type Ledger struct {
	store *Store
	cfg   LedgerConfig

	queue chan *waiting
	turn  chan struct{} // held by who writes, or takes a snapshot; it guards all below
	file  headFile
	head  head // as the file says it
	err   error

	settled string // what OpenLedger found amiss; never changed after
}

// waiting is a caller of Append.
type waiting struct {
	entry Entry
	done  chan error
}

// maxBatch is how many entries one transaction takes.
const maxBatch = 256

// OpenLedger opens the store's ledger, of which there may be one at a time. What a death left half done it settles; that the
// ledger is not as the head says it puts into the ledger, where Verify will find it for ever.
func (s *Store) OpenLedger(ctx context.Context, cfg LedgerConfig) (*Ledger, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("store: ledger: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Ledger{store: s, cfg: cfg, queue: make(chan *waiting, maxBatch), turn: make(chan struct{}, 1), file: headFile{path: cfg.Head, key: cfg.Key}}
	if err := l.settle(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store: ledger: %w", err), l.file.close())
	}
	return l, nil
}

// settle compares the chain's end with the head and writes a fresh head file.
func (l *Ledger) settle(ctx context.Context) error {
	end, err := chainEnd(ctx, l.store.read)
	if err != nil {
		return err
	}
	said, gen, half, err := readHead(l.cfg.Head, l.cfg.Key)
	var note *Event
	switch {
	case errors.Is(err, fs.ErrNotExist) && end.seq == 0:
		note, said = &Event{Kind: kindBegin}, head{}
	case errors.Is(err, fs.ErrNotExist):
		note, said = broken(Partial, 0, "the head was missing"), head{at: unknown}
	case errors.Is(err, errHead):
		note, said = broken(Partial, 0, err.Error()), head{at: unknown}
	case err != nil:
		return err
	case !said.explains(end, half):
		note = unexplained(said, end, half)
	default:
		if half || said.next.seq != 0 {
			note = &Event{Kind: kindRecover, Details: map[string]any{"seq": end.seq,
				"reason": "the server or its machine had died while an entry was written; the chain is whole"}}
		}
		said = head{at: end}
	}
	// A head that does not fit the chain stays as it is until the entry that says so is on the disk.
	if err := l.file.make(said, gen+1); err != nil {
		return err
	}
	l.head = said
	if note == nil {
		return nil
	}
	l.settled, _ = note.Details["reason"].(string)
	entry, err := note.entry()
	if err != nil {
		return err
	}
	return l.write(ctx, []Entry{entry})
}

// Settled tells what OpenLedger found amiss and put into the ledger, "" for nothing.
func (l *Ledger) Settled() string { return l.settled }

// broken is the entry that says how the ledger was not as the head said.
func broken(status Status, firstBad int64, reason string) *Event {
	details := map[string]any{"status": string(status), "reason": reason}
	if firstBad != 0 {
		details["first_bad"] = firstBad
	}
	return &Event{Kind: kindBreak, Details: details}
}

// unexplained says how a chain that ends at end is not as the head said.
func unexplained(said head, end mark, half bool) *Event {
	v := said.judge(end, half)
	return broken(v.Status, v.FirstBad, v.Reason)
}

// Append puts an event into the ledger. When it returns nil, the entry is on the disk. It does not stop half way for a ctx
// that ends.
func (l *Ledger) Append(ctx context.Context, e Event) error {
	entry, err := e.entry()
	if err != nil {
		return err
	}
	if len(e.Kind) >= len(ownKinds) && e.Kind[:len(ownKinds)] == ownKinds {
		return fault.Bug("store: only the ledger writes entries of the kind %s", e.Kind)
	}
	w := &waiting{entry: entry, done: make(chan error, 1)}
	select {
	case l.queue <- w:
	case <-ctx.Done():
		return fault.Wrap(context.Cause(ctx), fault.Canceled, "store.Append", "the request was cancelled")
	}
	select {
	case err = <-w.done:
	case l.turn <- struct{}{}:
		for { // whoever has the turn writes for all who wait, and at the latest with them is w
			select {
			case err = <-w.done:
				<-l.turn
				return wrap("append to the ledger", err)
			default:
				l.writeWaiting(context.WithoutCancel(ctx))
			}
		}
	}
	return wrap("append to the ledger", err)
}

// writeTimeout bounds one transaction of the ledger.
const writeTimeout = 30 * time.Second

// writeWaiting writes the entries of those who wait.
func (l *Ledger) writeWaiting(ctx context.Context) {
	var batch []*waiting
	for len(batch) < maxBatch {
		select {
		case w := <-l.queue:
			batch = append(batch, w)
			continue
		default:
		}
		break
	}
	entries := make([]Entry, len(batch))
	for i, w := range batch {
		entries[i] = w.entry
	}
	ctx, cancel := context.WithTimeoutCause(ctx, writeTimeout, fmt.Errorf("an entry of the ledger took over %s", writeTimeout))
	defer cancel()
	err := l.write(ctx, entries)
	for _, w := range batch {
		w.done <- err
	}
}

// write adds entries to the chain. Its caller has the turn.
func (l *Ledger) write(ctx context.Context, entries []Entry) error {
	if l.err != nil {
		return l.err
	}
	if len(entries) == 0 {
		return nil
	}
	tx, err := l.store.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	end, err := chainEnd(ctx, tx)
	if err != nil {
		return err
	}
	if l.head.explains(end, false) {
		l.head.at = end
	} else if entries[0].Kind != kindBreak {
		// Somebody changed the table under this server. The head goes on only with an entry that says so.
		entry, err := unexplained(l.head, end, false).entry()
		if err != nil {
			return err
		}
		entries = append([]Entry{entry}, entries...)
	}
	now, last := l.cfg.Now(), end
	for i := range entries {
		last = entries[i].after(last, now)
	}
	if err := l.say(head{at: l.head.at, next: last}); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, insertEntry)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, e := range entries {
		if _, err := insert.ExecContext(ctx, e.Seq, micros(e.Time), e.Kind, e.Principal, e.RequestID, string(e.Details), e.Prev[:], e.Hash[:]); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err // perhaps it is there all the same: the next one looks
	}
	return l.say(head{at: last})
}

// say writes the head. A write that failed is final: what is on the disk then, nobody knows.
func (l *Ledger) say(h head) error {
	if err := l.file.write(h); err != nil {
		l.err = &fault.Error{Code: fault.Internal, Op: "store.Ledger", Msg: "the head of the audit ledger cannot be written; nothing is recorded until the server starts again", Err: err}
		return l.err
	}
	l.head = h
	return nil
}

// Close waits for the append that is under way and lets no more begin.
func (l *Ledger) Close() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.err == nil {
		l.err = errors.New("the ledger is closed")
	}
	return l.file.close()
}

// The statements are here and not in query.sql: sqlc has no form for a walk without a list of all rows, nor for filters that
// may be absent.
const (
	insertEntry = "INSERT INTO ledger (seq, time, kind, principal, request_id, details, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	lastEntry   = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1"
)

// chainEnd reads where the chain ends.
func chainEnd(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (mark, error) {
	var m mark
	var hash []byte
	err := db.QueryRowContext(ctx, lastEntry).Scan(&m.seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return mark{}, nil
	}
	copy(m.hash[:], hash)
	return m, err
}
