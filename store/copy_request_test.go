package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

var copyNoon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func aCopyRequest(id string) access.CopyRequest {
	r := access.CopyRequest{ID: id, State: access.CopyPending, Statement: "COPY (SELECT " + id + ") TO LAKE 'a' WITH (CONNECTION = 'local')", Database: "shop",
		Folder: access.Folder{Connection: "local", Path: "a"}, SQL: "SELECT 1", Columns: []access.CopyRequestColumn{{Name: "x", Type: "INT64"}, {Name: "p", Partition: true}},
		Asker: access.CopyAsker{Key: "key_1", Owner: "ann", Login: true}, KeyName: "robot", Ask: "ask_1", CreatedAt: copyNoon, ExpiresAt: copyNoon.Add(access.CopyRequestLife)}
	r.Sum = access.CopyRequestSum(r.Statement, r.Database, r.Folder.Path)
	return r
}

func insertCopyRequest(t *testing.T, s *Store, r access.CopyRequest) {
	t.Helper()
	if _, made, err := s.InsertCopyRequest(t.Context(), r); err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
}

func TestACopyRequestIsKeptWhole(t *testing.T) {
	s, _ := opened(t)
	want := aCopyRequest("1")
	insertCopyRequest(t, s, want)
	got, err := s.CopyRequest(t.Context(), "1")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || !got.Bound() {
		t.Errorf("got  %+v\nwant %+v, %v", got, want, err)
	}
	want.State, want.DecidedBy, want.DecidedWith, want.DecidedAt, want.Reason = access.CopyApproved, "bob", "login_1", copyNoon.Add(time.Hour), "fine"
	if err := s.DecideCopyRequest(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := s.StartCopyRequest(t.Context(), "1", copyNoon.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.StartCopyRequest(t.Context(), "1", copyNoon.Add(2*time.Hour)); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("started twice: %v", err)
	}
	want.State, want.StartedAt, want.EndedAt, want.RunID, want.Kind, want.Error = access.CopyFailed, copyNoon.Add(2*time.Hour), copyNoon.Add(3*time.Hour), "run", "io", "no disk"
	if err := s.EndCopyRequest(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got, err = s.CopyRequest(t.Context(), "1"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v, %v", got, want, err)
	}
	if err := s.EndCopyRequest(t.Context(), want); err == nil {
		t.Error("ended twice")
	}
	if _, err := s.CopyRequest(t.Context(), "2"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}

// TestOneDecisionOnACopyRequest: of many at once one is made, and none after its time, of another sum, or twice.
func TestOneDecisionOnACopyRequest(t *testing.T) {
	s, _ := opened(t)
	r := aCopyRequest("1")
	insertCopyRequest(t, s, r)
	r.State, r.DecidedBy, r.DecidedAt = access.CopyApproved, "bob", copyNoon.Add(time.Hour)
	for sentence, change := range map[string]func(*access.CopyRequest){
		"after its time":    func(r *access.CopyRequest) { r.DecidedAt = r.ExpiresAt },
		"another statement": func(r *access.CopyRequest) { r.Statement += " " },
		"another one, whose sum fits": func(r *access.CopyRequest) {
			r.Statement += " "
			r.Sum = access.CopyRequestSum(r.Statement, r.Database, r.Folder.Path)
		},
		"one that is not there": func(r *access.CopyRequest) { r.ID = "2" },
	} {
		other := r
		change(&other)
		if err := s.DecideCopyRequest(t.Context(), other); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if err := s.StartCopyRequest(t.Context(), "1", copyNoon); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("started without approval: %v", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for i := range 40 {
		all.Go(func() {
			mine := r
			mine.State = []access.CopyRequestState{access.CopyApproved, access.CopyDenied, access.CopyWithdrawn}[i%3]
			err := s.DecideCopyRequest(t.Context(), mine)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				codes["made"]++
				return
			}
			codes[fault.CodeOf(err).String()]++
		})
	}
	all.Wait()
	if codes["made"] != 1 || codes["conflict"] != 39 {
		t.Errorf("%v", codes)
	}
}

func TestWhatIsAskedTwiceIsKeptOnce(t *testing.T) {
	s, _ := opened(t)
	insertCopyRequest(t, s, aCopyRequest("1"))
	again := aCopyRequest("1")
	again.ID = "2"
	if kept, made, err := s.InsertCopyRequest(t.Context(), again); err != nil || made || kept.ID != "1" {
		t.Errorf("kept %s, made %v, %v", kept.ID, made, err)
	}
	for id, change := range map[string]func(*access.CopyRequest){
		"3": func(r *access.CopyRequest) { r.Asker.Key = "key_2" },
		"4": func(r *access.CopyRequest) { r.Asker.Owner = "bob" },
		"5": func(r *access.CopyRequest) { r.CreatedAt = r.ExpiresAt; r.ExpiresAt = r.CreatedAt.Add(time.Hour) }, // the first is over then
	} {
		other := aCopyRequest("1")
		change(&other)
		other.ID = id
		insertCopyRequest(t, s, other)
	}
	unbound := aCopyRequest("6")
	unbound.Database = "other"
	if _, _, err := s.InsertCopyRequest(t.Context(), unbound); err == nil {
		t.Error("an unbound request is kept")
	}
}

func TestTooManyCopyRequestsWait(t *testing.T) {
	s, _ := opened(t)
	for i := range maxPendingCopyRequests {
		insertCopyRequest(t, s, aCopyRequest(fmt.Sprint(i)))
	}
	if _, _, err := s.InsertCopyRequest(t.Context(), aCopyRequest("more")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
	late := aCopyRequest("more")
	late.CreatedAt = late.ExpiresAt
	late.ExpiresAt = late.CreatedAt.Add(time.Hour)
	insertCopyRequest(t, s, late)
	seen := map[string]bool{}
	before := ""
	for {
		page, err := s.CopyRequests(t.Context(), before, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if seen[r.ID] {
				t.Errorf("%s twice", r.ID)
			}
			seen[r.ID], before = true, r.ID
		}
		if len(page) < 7 {
			break
		}
	}
	if len(seen) != maxPendingCopyRequests+1 {
		t.Errorf("%d in pages", len(seen))
	}
	if _, err := s.CopyRequests(t.Context(), "none", 7); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

// TestWhatADeadServerLeftOfCopyRequests: done when the lake has a committed run of it, else failed, and never to run again.
func TestWhatADeadServerLeftOfCopyRequests(t *testing.T) {
	s, _ := opened(t)
	approve := func(id string, start bool) {
		r := aCopyRequest(id)
		insertCopyRequest(t, s, r)
		r.State, r.DecidedBy, r.DecidedAt = access.CopyApproved, "bob", copyNoon
		if err := s.DecideCopyRequest(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if start {
			if err := s.StartCopyRequest(t.Context(), id, copyNoon); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(id, job string, state RunState) {
		if err := s.InsertRun(t.Context(), Run{ID: id, JobID: job, State: state, StartedAt: copyNoon}); err != nil {
			t.Fatal(err)
		}
	}
	approve("approved", false)
	approve("started", true)
	approve("aborted", true)
	run("run_a", "aborted", Aborted)
	approve("committed", true)
	run("run_c", "committed", Committed)
	insertCopyRequest(t, s, aCopyRequest("waits"))
	old := aCopyRequest("old")
	old.ExpiresAt = copyNoon.Add(time.Minute)
	insertCopyRequest(t, s, old)
	if err := s.SettleCopyRequests(t.Context(), copyNoon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"approved": "failed ", "started": "failed ", "aborted": "failed run_a", "committed": "done run_c", "waits": "pending ", "old": "expired "} {
		r, err := s.CopyRequest(t.Context(), id)
		if got := string(r.State) + " " + r.RunID; err != nil || got != want || strings.HasPrefix(want, "failed") != (r.Error != "") {
			t.Errorf("%s: %q (%s), want %q, %v", id, got, r.Error, want, err)
		}
		if err := s.StartCopyRequest(t.Context(), id, copyNoon); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s starts again: %v", id, err)
		}
	}
}
