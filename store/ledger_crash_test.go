package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// childHome names the variable that makes the test's binary the child: a process that appends until it is killed.
const childHome = "SLUICE_LEDGER_CHILD"

// appendForEver appends from several goroutines and prints the id of each entry whose Append returned.
func appendForEver(dir string) int {
	ctx := context.Background()
	l, err := home{dir}.open(ctx, ledgerKey)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				if err := l.Append(ctx, Event{Kind: "test", RequestID: id, Details: map[string]any{"i": i}}); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				mu.Lock()
				fmt.Println(id)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return 1
}

// kills is how often the child is killed: 50 times, or SLUICE_TEST_KILLS.
func kills(t *testing.T) int {
	text := os.Getenv("SLUICE_TEST_KILLS")
	if text == "" {
		return 50
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whenever the process dies, every entry that was told of is there and the ledger is intact.
func TestLedgerSurvivesKills(t *testing.T) {
	h := newHome(t)
	told := map[string]bool{}
	for range kills(t) {
		for _, id := range killedAfter(t, h, rand.IntN(40)) {
			told[id] = true
		}
	}
	l := openLedger(t, h)
	v := l.verify(t)
	want(t, "after all kills", v, Intact, 0)
	entries, err := l.Entries(t.Context(), EntryFilter{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	recovered := 0
	for _, e := range entries {
		delete(told, e.RequestID)
		if e.Kind == kindRecover {
			recovered++
		}
		if e.Kind == kindBreak {
			t.Errorf("entry %d: %s", e.Seq, e.Details)
		}
	}
	if len(told) != 0 || v.Entries != int64(len(entries)) {
		t.Errorf("%d entries were told of and are not there; %d are counted, %d listed", len(told), v.Entries, len(entries))
	}
	t.Logf("%d entries, %d deaths in the middle of an append", v.Entries, recovered)
}

// killedAfter runs the child until it has told of n entries, kills it, and gives all of which it told.
func killedAfter(t *testing.T, h home, n int) (told []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childHome+"="+h.dir)
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		told = append(told, lines.Text())
		if len(told) == n+1 {
			_ = child.Process.Kill()
		}
	}
	if err := child.Wait(); len(told) <= n || complaints.Len() > 0 {
		t.Fatalf("the child told of %d entries and ended with %v: %s", len(told), err, complaints.String())
	}
	return told
}

// A death between each two steps of an append, made by hand, leaves an intact ledger that says so.
func TestLedgerSettlesEachStep(t *testing.T) {
	for sentence, row := range map[string]struct {
		die  func(l *openedLedger) // leaves the files as a death would
		note bool
	}{
		"nothing under way":       {func(l *openedLedger) {}, false},
		"head written, entry not": {func(l *openedLedger) { l.file.write(head{at: l.head.at, next: mark{seq: l.head.at.seq + 1}}) }, true},
		"entry written, head not": {func(l *openedLedger) {
			before := l.head.at
			if err := l.Append(t.Context(), Event{Kind: "test"}); err != nil {
				t.Fatal(err)
			}
			l.file.write(head{at: before, next: l.head.at})
		}, true},
		"first slot torn": {func(l *openedLedger) { tear(t, l, -1) }, true},
		"last slot torn":  {func(l *openedLedger) { tear(t, l, 0) }, true},
	} {
		h := newHome(t)
		l := openLedger(t, h)
		l.fill(t, 20)
		row.die(l)
		l.shut(t)
		again := openLedger(t, h)
		want(t, sentence, again.verify(t), Intact, 0)
		if noted := again.kinds(t)[0] == kindRecover; noted != row.note || (again.Settled() != "") != row.note {
			t.Errorf("%s: noted %v (%q), want %v", sentence, noted, again.Settled(), row.note)
		}
		again.fill(t, 30)
		want(t, sentence+", and on", again.verify(t), Intact, 0)
	}
}

// tear writes half a slot: the newest, or with -1 the other.
func tear(t *testing.T, l *openedLedger, which int) {
	t.Helper()
	slot := (int64(l.file.gen) - int64(which)) % 2
	if _, err := l.file.file.WriteAt(make([]byte, slotSize/2), slot*slotSize+slotSize/2); err != nil {
		t.Fatal(err)
	}
	if _, err := l.file.file.WriteAt([]byte("half"), slot*slotSize+100); err != nil {
		t.Fatal(err)
	}
}

// kinds are those of all entries, newest first.
func (l *openedLedger) kinds(t testing.TB) (out []string) {
	t.Helper()
	entries, err := l.Entries(context.Background(), EntryFilter{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Kind)
	}
	return out
}
