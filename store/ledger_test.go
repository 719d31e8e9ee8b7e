package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"sluice/fault"
)

// 64 goroutines give one chain, in which each of them finds its own entries in its own order.
func TestLedgerAppendsFromManyGoroutines(t *testing.T) {
	l := openLedger(t, newHome(t))
	done := make(chan error, 64)
	for g := range 64 {
		go func() {
			for i := range 20 {
				if err := l.Append(context.Background(), Event{Kind: "test", Principal: fmt.Sprint(g), Details: map[string]any{"i": i}}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	want(t, "after all", l.verify(t), Intact, 0)
	entries, err := l.Entries(t.Context(), EntryFilter{Limit: 5000})
	if err != nil || len(entries) != 64*20+1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	slices.Reverse(entries)
	next := map[string]int{}
	for n, e := range entries {
		if e.Seq != int64(n+1) {
			t.Fatalf("entry %d has the number %d", n+1, e.Seq)
		}
		if n == 0 {
			continue
		}
		var details struct{ I int }
		if err := json.Unmarshal(e.Details, &details); err != nil || details.I != next[e.Principal] {
			t.Fatalf("entry %d of %s: %s, want %d", e.Seq, e.Principal, e.Details, next[e.Principal])
		}
		next[e.Principal]++
	}
}

func TestLedgerLists(t *testing.T) {
	h := newHome(t)
	s, err := Open(t.Context(), h.db())
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	l, err := s.OpenLedger(t.Context(), LedgerConfig{Head: h.head(), Key: []byte(ledgerKey), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	opened := &openedLedger{l, h}
	defer opened.shut(t)
	for i, e := range []Event{{Kind: "key.create", Principal: "a"}, {Kind: "key.delete", Principal: "b", RequestID: "r"}, {Kind: "keys", Principal: "a"}, {Kind: "copy.start", Principal: "b"}} {
		now = noon.Add(time.Duration(i+1) * time.Minute)
		e.Details = map[string]any{"i": i}
		if err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for sentence, row := range map[string]struct {
		f    EntryFilter
		want []int64
	}{
		"all":                       {EntryFilter{Limit: 10}, []int64{5, 4, 3, 2, 1}},
		"two":                       {EntryFilter{Limit: 2}, []int64{5, 4}},
		"the two before":            {EntryFilter{Limit: 2, Before: 4}, []int64{3, 2}},
		"a kind":                    {EntryFilter{Limit: 9, Kind: "key.create"}, []int64{2}},
		"kinds that begin so":       {EntryFilter{Limit: 9, Kind: "key."}, []int64{3, 2}},
		"of a principal":            {EntryFilter{Limit: 9, Principal: "b"}, []int64{5, 3}},
		"since a time":              {EntryFilter{Limit: 9, Since: noon.Add(3 * time.Minute)}, []int64{5, 4}},
		"all of these":              {EntryFilter{Limit: 9, Kind: "key.", Principal: "a", Since: noon, Before: 3}, []int64{2}},
		"a kind that nothing is of": {EntryFilter{Limit: 9, Kind: "key"}, nil},
	} {
		entries, err := l.Entries(t.Context(), row.f)
		var got []int64
		for _, e := range entries {
			got = append(got, e.Seq)
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, %v, want %v", sentence, got, err, row.want)
		}
	}
	one, err := l.Entries(t.Context(), EntryFilter{Limit: 1, Kind: "key.delete"})
	if err != nil || one[0].RequestID != "r" || !one[0].Time.Equal(noon.Add(2*time.Minute)) || string(one[0].Details) != `{"i":1}` || one[0].sum() != one[0].Hash {
		t.Errorf("the entry is %+v, %v", one, err)
	}
	if _, err := l.Entries(t.Context(), EntryFilter{}); err == nil {
		t.Error("a list without a limit")
	}
}

// The store's own triggers stop a mistake.
func TestLedgerTableTakesNoChange(t *testing.T) {
	l := openLedger(t, newHome(t))
	l.fill(t, 3)
	for _, query := range []string{
		"UPDATE ledger SET kind = 'x'", "UPDATE ledger SET seq = 9 WHERE seq = 3", "DELETE FROM ledger", "DELETE FROM ledger WHERE seq = 3",
		"INSERT OR REPLACE INTO ledger SELECT * FROM ledger WHERE seq = 3", "INSERT INTO ledger SELECT 0, time, kind, principal, request_id, details, prev, hash FROM ledger WHERE seq = 1",
	} {
		if _, err := l.store.write.Exec(query); err == nil {
			t.Errorf("%s was done", query)
		}
	}
	want(t, "after that", l.verify(t), Intact, 0)
}

// What cannot be recorded is an error, and leaves nothing that a later append would trip over.
func TestLedgerAppendFails(t *testing.T) {
	t.Run("the store takes nothing", func(t *testing.T) {
		l := openLedger(t, newHome(t))
		b := breakIn(t, l.home)
		b.do("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'disk full'); END")
		if err := l.Append(t.Context(), Event{Kind: "test"}); err == nil || fault.CodeOf(err) != fault.Internal {
			t.Errorf("%v", err)
		}
		want(t, "after the failure", l.verify(t), Intact, 0)
		b.do("DROP TRIGGER full")
		l.fill(t, 10)
		want(t, "when there is room again", l.verify(t), Intact, 0)
		if kinds := l.kinds(t); len(kinds) != 10 || slices.Contains(kinds, kindBreak) {
			t.Errorf("%v", kinds)
		}
	})
	t.Run("the head cannot be written", func(t *testing.T) {
		h := newHome(t)
		l := openLedger(t, h)
		l.fill(t, 5)
		l.file.file.Close()
		for range 2 {
			if err := l.Append(t.Context(), Event{Kind: "test"}); err == nil {
				t.Error("an entry without a head")
			}
		}
		v := l.verify(t)
		if v.Status != Partial || v.Entries != 5 {
			t.Errorf("%+v", v)
		}
		l.Close() // its file is closed already
		l.store.Close()
		want(t, "started again", openLedger(t, h).verify(t), Intact, 0)
	})
	t.Run("the caller left before", func(t *testing.T) {
		l := openLedger(t, newHome(t))
		l.turn <- struct{}{} // somebody writes, and the queue is full
		for range maxBatch {
			l.queue <- &waiting{done: make(chan error, 1)}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Append(ctx, Event{Kind: "test"}); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("%v", err)
		}
		for range maxBatch {
			<-l.queue
		}
		<-l.turn
	})
	t.Run("closed", func(t *testing.T) {
		l := openLedger(t, newHome(t))
		l.shut(t)
		if err := l.Append(t.Context(), Event{Kind: "test"}); err == nil {
			t.Error("a closed ledger took an entry")
		}
	})
}

// A home of before the ledger gets one.
func TestLedgerBeginsInAnOldHome(t *testing.T) {
	h := newHome(t)
	db, err := sql.Open("sqlite", "file:"+h.db())
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO api_keys (id, hash, owner, name, role, agent, created_at) VALUES ('k', x'00', 'admin', 'n', 'admin', 0, 0)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, h)
	if kinds := l.kinds(t); !slices.Equal(kinds, []string{kindBegin}) {
		t.Errorf("it has %v", kinds)
	}
	want(t, "begun", l.verify(t), Intact, 0)
	if n, err := l.store.CountKeys(t.Context()); err != nil || n != 1 {
		t.Errorf("%d keys, %v", n, err)
	}
}

func TestLedgerConfigNamesAllMistakes(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.OpenLedger(t.Context(), LedgerConfig{Key: []byte("short")})
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 2 {
		t.Errorf("%v", err)
	}
}
