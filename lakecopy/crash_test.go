package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// Every step of a COPY fails once, alone or with the power cut, before or after it is done. What readers find is the old
// set or the new one, never between, at the latest after a restart.
func TestCrashLoop(t *testing.T) {
	for sentence, mode := range map[string]sqlguard.Mode{"overwrite": sqlguard.OverwritePartitions, "append": sqlguard.Append} {
		for name, kind := range map[string]steps{
			"a step fails": {}, "a step's answer is lost": {after: true},
			"the power is cut before a step": {cut: true}, "the power is cut after a step": {cut: true, after: true},
		} {
			t.Run(sentence+", "+name, func(t *testing.T) {
				l := newCrashLab(t)
				reached := 0
				for k := 1; ; k++ {
					s := kind
					s.failAt = k
					if !l.crashAt(fmt.Sprintf("t/%03d", k), mode, &s) {
						break
					}
					reached = k
				}
				if reached < 30 {
					t.Errorf("only %d steps were made to fail", reached)
				}
			})
		}
	}
}

// crashAt runs one COPY that fails at the step of s, and looks at what is left. It is false when the step is never reached.
func (l *crashLab) crashAt(target string, mode sqlguard.Mode, s *steps) bool {
	t := l.t
	t.Helper()
	setup := l.start(&steps{})
	base := regions(memory.DefaultAllocator, 1, "eu us eu")
	if _, err := setup.Copy(t.Context(), l.who, base, statement(target, "region"), "COPY"); err != nil {
		t.Fatal(err)
	}
	setup.Close()
	old := l.visible(target)
	l.now = l.now.Add(time.Second) // so that the runs sort

	service := l.start(s)
	stmt := statement(target, "region")
	stmt.Mode = mode
	result, err := service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, 10, "eu ap", "eu"), stmt, "COPY")
	service.Close()
	if s.n < s.failAt {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	at := fmt.Sprintf("step %d (%s)", s.failAt, s.last)
	if err == nil && s.last == "write" {
		t.Errorf("%s: the failure was not told", at)
	}
	runs, listErr := l.store.Runs(t.Context(), 1)
	if listErr != nil {
		t.Fatal(listErr)
	}
	run := runs[0]
	ours := len(run.ID) > 0 && run.StartedAt.Equal(l.now.Truncate(time.Microsecond).UTC()) && run.Path == target
	committed := ours && run.State == store.Committed

	now := l.visible(target)
	if !s.cut {
		switch {
		case err == nil && !l.isNew(now, old, mode, result.RunID):
			t.Errorf("%s: success, and visible are %v", at, names(now))
		case err != nil && !committed && !same(now, old):
			t.Errorf("%s: failed (%v), and visible are %v", at, err, names(now))
		case err != nil && !committed && strings.Contains(fmt.Sprint(names(l.visible(target))), "ap"):
			t.Errorf("%s: a folder was left", at)
		}
		if err != nil && errors.Is(err, errCut) && s.last != "insert run" && !strings.HasPrefix(s.last, "update run") && kindOf(err) != string(KindIO) {
			t.Errorf("%s: the error is %v", at, err)
		}
	}
	// A day later the server starts again.
	l.now = l.now.Add(25 * time.Hour)
	l.start(&steps{}).Close()
	now = l.visible(target)
	if !same(now, old) && !l.isNew(now, old, mode, run.ID) {
		t.Errorf("%s: after a restart visible are %v; old were %v", at, names(now), names(old))
	}
	if err == nil && !l.isNew(now, old, mode, result.RunID) {
		t.Errorf("%s: success was told, and after a restart visible are %v", at, names(now))
	}
	if left, err := l.store.UnsettledRuns(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%s: unsettled after a restart: %+v, %v", at, left, err)
	}
	return true
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, content := range a {
		if other, ok := b[name]; !ok || other != content {
			return false
		}
	}
	return true
}

// isNew says whether the visible files are exactly those that a committed run leaves.
func (l *crashLab) isNew(now, old map[string]string, mode sqlguard.Mode, run string) bool {
	want := map[string]bool{}
	for name := range old {
		if mode == sqlguard.Append || !strings.Contains(name, "region=eu") {
			want[name] = true
		}
	}
	fresh := map[string]int{}
	for name, content := range now {
		if strings.Contains(name, run) {
			fresh[strings.Split(name, "/")[2]]++
			if _, _, err := readBackBytes(content); err != nil {
				return false
			}
			continue
		}
		if !want[name] || old[name] != content {
			return false
		}
		delete(want, name)
	}
	return len(want) == 0 && len(fresh) == 2 && fresh["region=eu"] == 1 && fresh["region=ap"] == 1
}

// brokenJournal answers the commit with an error, having stored it or not, and then no more.
type brokenJournal struct {
	Journal
	stores bool
	broken bool
}

func (j *brokenJournal) UpdateRun(ctx context.Context, r store.Run) error {
	if r.State == store.Running && !j.broken {
		return j.Journal.UpdateRun(ctx, r)
	}
	if !j.broken && j.stores {
		if err := j.Journal.UpdateRun(ctx, r); err != nil {
			return err
		}
	}
	j.broken = true
	return errCut
}

// When nobody can say whether the commit is on the disk, no file is touched: the next start reads what the record says.
func TestAnUndecidedCommit(t *testing.T) {
	for sentence, stored := range map[string]bool{"the record was stored": true, "the record was not stored": false} {
		l := newCrashLab(t)
		service := l.start(&steps{})
		if _, err := service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, 1, "eu us"), statement("t/x", "region"), "COPY"); err != nil {
			t.Fatal(err)
		}
		old := l.visible("t/x")
		l.now = l.now.Add(time.Second)
		service.journal = &brokenJournal{Journal: l.store, stores: stored}
		_, err := service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, 10, "eu ap"), statement("t/x", "region"), "COPY")
		service.Close()
		if kindOf(err) != string(KindIO) || fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", sentence, err)
		}
		if now := l.visible("t/x"); len(now) != len(old)+2 {
			t.Errorf("%s: files were touched: %v", sentence, names(now))
		}
		l.start(&steps{}).Close()
		runs, err := l.store.Runs(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		now := l.visible("t/x")
		if stored && !l.isNew(now, old, sqlguard.OverwritePartitions, runs[0].ID) || !stored && !same(now, old) {
			t.Errorf("%s: after a restart visible are %v", sentence, names(now))
		}
	}
}

func TestWhatAFailureTellsAndRecords(t *testing.T) {
	l := newCrashLab(t)
	service := l.start(&steps{})
	defer service.Close()
	src := regions(memory.DefaultAllocator, 1, "eu us")
	src.err = fault.New(fault.Invalid, "database.Run", "boom")
	_, err := service.Copy(t.Context(), l.who, src, statement("t"), "COPY (…)")
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != "query" || e.Msg != "boom" {
		t.Errorf("error %v", err)
	}
	runs, err := service.Runs(t.Context(), 5)
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	r := runs[0]
	if r.State != store.Aborted || r.Kind != "query" || r.Error != "boom" || r.Statement != "COPY (…)" || r.Principal != "k1" || r.Path != "t" || r.EndedAt.IsZero() {
		t.Errorf("run %+v", r)
	}
	if files := names(snapshot(t, l.root)); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	src.err = errors.New("secret: row 17 of hr.salaries")
	_, err = service.Copy(t.Context(), l.who, src, statement("t"), "COPY (…)")
	if runs, _ = service.Runs(t.Context(), 1); fault.CodeOf(err) != fault.Internal || strings.Contains(runs[0].Error, "secret") {
		t.Errorf("an unclassified error: %v; recorded %q", err, runs[0].Error)
	}
}

func TestCancel(t *testing.T) {
	for sentence, cancelAt := range map[string]int{"before the first batch": 0, "between batches": 1, "at the end of the rows": 2} {
		l := newCrashLab(t)
		service := l.start(&steps{})
		ctx, cancel := context.WithCancel(t.Context())
		src := regions(memory.DefaultAllocator, 1, "eu us", "eu")
		src.onBatch = func(i int) {
			if i == cancelAt {
				cancel()
			}
		}
		_, err := service.Copy(ctx, l.who, src, statement("t", "region"), "COPY")
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("%s: %v", sentence, err)
		}
		if files := names(snapshot(t, l.root)); len(files) != 0 {
			t.Errorf("%s: left behind: %v", sentence, files)
		}
		if runs, err := service.Runs(t.Context(), 1); err != nil || runs[0].State != store.Aborted {
			t.Errorf("%s: run %+v, %v", sentence, runs, err)
		}
		service.Close()
	}
}

// A run that waits for another's publish lock gives up when its caller leaves; a sibling folder does not wait at all.
func TestPublishLock(t *testing.T) {
	l := newLocks()
	release, err := l.acquire(t.Context(), "/lake/a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, folder := range []string{"/lake/a", "/lake/a/b", "/lake"} {
		if _, err := l.acquire(gone, folder); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("%s was not busy: %v", folder, err)
		}
	}
	for _, folder := range []string{"/lake/ab", "/lake/b", "/other"} {
		other, err := l.acquire(gone, folder)
		if err != nil {
			t.Errorf("%s was busy: %v", folder, err)
			continue
		}
		other()
	}
	entered := make(chan error)
	go func() {
		next, err := l.acquire(t.Context(), "/lake/a/b")
		if err == nil {
			next()
		}
		entered <- err
	}()
	release()
	if err := <-entered; err != nil {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	last := ""
	for i := range 100 {
		id := newID(at.Add(time.Duration(i) * time.Millisecond))
		if len(id) != 26 || !validID(id) || id <= last {
			t.Fatalf("id %q after %q", id, last)
		}
		last = id
	}
	for _, bad := range []string{"", "../x", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "01arz3ndektsv4rrffq69g5fav", "01ARZ3NDEKTSV4RRFFQ69G5/AV"} {
		if validID(bad) {
			t.Errorf("%q is an id", bad)
		}
	}
}
