package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the child that TestLedgerSurvivesKills kills.
func TestMain(m *testing.M) {
	if home := os.Getenv(childHome); home != "" {
		os.Exit(appendForEver(home))
	}
	goleak.VerifyTestMain(m)
}

// ledgerKey is the key of the heads of the tests.
const ledgerKey = "the key of the tests, of 32 bytes and more"

// home is a folder with a control store and a ledger.
type home struct{ dir string }

func newHome(t testing.TB) home { t.Helper(); return home{t.TempDir()} }

func (h home) db() string   { return filepath.Join(h.dir, "control.db") }
func (h home) head() string { return filepath.Join(h.dir, "ledger.head") }

// openedLedger is a ledger with its store.
type openedLedger struct {
	*Ledger
	home home
}

// open opens the home's ledger. The one who opens it closes it.
func (h home) open(ctx context.Context, key string) (*openedLedger, error) {
	s, err := Open(ctx, h.db())
	if err != nil {
		return nil, err
	}
	l, err := s.OpenLedger(ctx, LedgerConfig{Head: h.head(), Key: []byte(key)})
	if err != nil {
		s.Close()
		return nil, err
	}
	return &openedLedger{l, h}, nil
}

func openLedger(t testing.TB, h home) *openedLedger {
	t.Helper()
	l, err := h.open(context.Background(), ledgerKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.shut(t) })
	return l
}

// shut closes the ledger and its store; a second time it does nothing that matters.
func (l *openedLedger) shut(t testing.TB) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.store.Close(); err != nil {
		t.Error(err)
	}
}

// end is the number of the last entry.
func (l *openedLedger) end(t testing.TB) int64 {
	t.Helper()
	m, err := chainEnd(context.Background(), l.store.read)
	if err != nil {
		t.Fatal(err)
	}
	return m.seq
}

// fill appends until there are n entries, from several goroutines.
func (l *openedLedger) fill(t testing.TB, n int64) {
	t.Helper()
	var wait sync.WaitGroup
	todo := make(chan int64)
	for range 64 {
		wait.Go(func() {
			for i := range todo {
				err := l.Append(context.Background(), Event{Kind: []string{"key.create", "key.delete", "login"}[i%3], Principal: fmt.Sprintf("key_%d", i%7),
					RequestID: fmt.Sprintf("r%d", i), Details: map[string]any{"sql": fmt.Sprintf("SELECT %d FROM t WHERE name = 'Zoë'", i), "i": i}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := l.end(t) + 1; i <= n; i++ {
		todo <- i
	}
	close(todo)
	wait.Wait()
}

func (l *openedLedger) verify(t testing.TB) Verdict {
	t.Helper()
	v, err := l.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// want checks a verdict.
func want(t testing.TB, sentence string, v Verdict, status Status, firstBad int64) {
	t.Helper()
	if v.Status != status || v.FirstBad != firstBad || (v.Reason == "") != (status == Intact) {
		t.Errorf("%s: %s at %d (%s), want %s at %d", sentence, v.Status, v.FirstBad, v.Reason, status, firstBad)
	}
}

// burglar is somebody with the store's file in hand.
type burglar struct {
	t  testing.TB
	db *sql.DB
}

func breakIn(t testing.TB, h home) *burglar {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+h.db()+"?_pragma=busy_timeout(5000)&_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b := &burglar{t, db}
	t.Cleanup(func() { db.Close() })
	for _, trigger := range []string{"update", "delete", "replace"} {
		b.do("DROP TRIGGER IF EXISTS ledger_no_" + trigger)
	}
	return b
}

func (b *burglar) do(query string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(query, args...); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
}

// rawEntry is a row as it stands there.
type rawEntry struct {
	seq, time                         int64
	kind, principal, request, details []byte
	prev, hash                        []byte
}

const rawColumns = "seq, time, CAST(kind AS BLOB), CAST(principal AS BLOB), CAST(request_id AS BLOB), CAST(details AS BLOB), prev, hash"

func (b *burglar) read(seq int64) (e rawEntry) {
	b.t.Helper()
	err := b.db.QueryRow("SELECT "+rawColumns+" FROM ledger WHERE seq = ?", seq).
		Scan(&e.seq, &e.time, &e.kind, &e.principal, &e.request, &e.details, &e.prev, &e.hash)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// put writes a row with the bytes of e in place of the one with the number.
func (b *burglar) put(seq int64, e rawEntry) {
	b.t.Helper()
	b.do("UPDATE ledger SET seq = ?, time = ?, kind = CAST(? AS TEXT), principal = CAST(? AS TEXT), request_id = CAST(? AS TEXT), details = CAST(? AS TEXT), prev = ?, hash = ? WHERE seq = ?",
		e.seq, e.time, string(e.kind), string(e.principal), string(e.request), string(e.details), e.prev, e.hash, seq)
}

func (b *burglar) drop(seq int64) { b.t.Helper(); b.do("DELETE FROM ledger WHERE seq = ?", seq) }

func (b *burglar) insert(e rawEntry) {
	b.t.Helper()
	b.do("INSERT INTO ledger (seq, time, kind, principal, request_id, details, prev, hash) VALUES (?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?)",
		e.seq, e.time, string(e.kind), string(e.principal), string(e.request), string(e.details), e.prev, e.hash)
}
