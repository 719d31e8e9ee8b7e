package scheduler

import (
	"testing"
	"time"
)

// did is an action in the words of a row.
type did struct {
	kind    actionKind
	waiter  int
	path    string // of the runner, or of what is loaded
	passing bool
}

func TestDecide(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	ready := func(path string, inFlight int) runnerView {
		return runnerView{path: path, state: Ready, inFlight: inFlight, slots: 1, numCtx: 4096, readyAt: begin}
	}
	in := func(s State, path string, inFlight int) runnerView {
		r := ready(path, inFlight)
		r.state = s
		return r
	}
	passed := func(r runnerView, n int) runnerView { r.passed = n; return r }
	// used was loaded in a second and a half, and was in use until then
	used := func(r runnerView, served, until int) runnerView {
		r.took, r.served, r.lastUse = 1500*time.Millisecond, served, at(until)
		return r
	}
	slots := func(r runnerView, n int) runnerView { r.slots = n; return r }
	wait := func(path string, since int) waiterView { return waiterView{path: path, since: at(since)} }
	larger := func(path string, since int) waiterView { return waiterView{path: path, numCtx: 8192, since: at(since)} }

	rows := map[string]struct {
		max     int
		now     int
		runners []runnerView
		waiters []waiterView
		want    did
		again   time.Duration // until it is asked again; 0: whatever
	}{
		"nobody waits: nothing":                       {max: 1, runners: []runnerView{ready("a", 0)}, want: did{}},
		"room: it is loaded":                          {max: 1, waiters: []waiterView{wait("a", 0)}, want: did{kind: load, path: "a"}},
		"loaded: it is granted":                       {max: 1, runners: []runnerView{ready("a", 0)}, waiters: []waiterView{wait("a", 0)}, want: did{kind: grant, path: "a"}},
		"no slot is free: it waits":                   {max: 1, runners: []runnerView{ready("a", 1)}, waiters: []waiterView{wait("a", 0)}},
		"a second slot is free: it is granted":        {max: 1, runners: []runnerView{slots(ready("a", 1), 2)}, waiters: []waiterView{wait("a", 0)}, want: did{kind: grant, path: "a"}},
		"it loads already: it waits":                  {max: 2, runners: []runnerView{in(Loading, "a", 0)}, waiters: []waiterView{wait("a", 0), wait("a", 0)}},
		"it drains: no new lease":                     {max: 1, runners: []runnerView{slots(in(Draining, "a", 1), 4)}, waiters: []waiterView{wait("a", 0)}},
		"it stops, and there is room: it still waits": {max: 2, runners: []runnerView{in(Stopping, "a", 0)}, waiters: []waiterView{wait("a", 0)}},
		"the idle one used longest ago makes room": {
			max: 2, runners: []runnerView{ready("old", 0), ready("new", 0)}, waiters: []waiterView{wait("b", 0)},
			want: did{kind: evict, path: "old"},
		},
		"one in flight is not taken": {max: 1, runners: []runnerView{ready("a", 1)}, waiters: []waiterView{wait("b", 0)}},
		"of an old busy one and a new idle one the idle one goes": {
			max: 2, runners: []runnerView{ready("busy", 1), ready("idle", 0)}, waiters: []waiterView{wait("b", 0)},
			want: did{kind: evict, path: "idle"},
		},
		"one place is becoming free: no second victim": {
			max: 2, runners: []runnerView{ready("x", 0), in(Stopping, "y", 0)}, waiters: []waiterView{wait("b", 0)},
		},
		"two models wait, one place is becoming free: one victim": {
			max: 2, runners: []runnerView{ready("x", 0), in(Stopping, "y", 0)}, waiters: []waiterView{wait("b", 0), wait("c", 0)},
			want: did{kind: evict, waiter: 1, path: "x"},
		},
		"two wait for the same model: one victim": {
			max: 2, runners: []runnerView{ready("x", 0), in(Stopping, "y", 0)}, waiters: []waiterView{wait("b", 0), wait("b", 0)},
		},
		"one drains under a long request, another is idle: the idle one goes": {
			max: 2, runners: []runnerView{ready("idle", 0), in(Draining, "y", 1)}, waiters: []waiterView{wait("b", 0)},
			want: did{kind: evict, path: "idle"},
		},
		"the hot model passes while its turn lasts": {
			max: 1, now: 9, runners: []runnerView{ready("hot", 0)}, waiters: []waiterView{wait("b", 0), wait("hot", 8)},
			want: did{kind: grant, waiter: 1, path: "hot", passing: true},
		},
		"its leases are used up: it goes": {
			max: 1, runners: []runnerView{passed(ready("hot", 0), 8)}, waiters: []waiterView{wait("b", 0), wait("hot", 0)},
			want: did{kind: evict, path: "hot"},
		},
		"its time is used up: it goes, although in flight": {
			max: 1, now: 10, runners: []runnerView{slots(ready("hot", 1), 2)}, waiters: []waiterView{wait("b", 0), wait("hot", 9)},
			want: did{kind: evict, path: "hot"},
		},
		"it has only just come: it has its turn, however long the other waits": {
			max: 1, now: 100, runners: []runnerView{{path: "hot", state: Ready, slots: 1, numCtx: 4096, readyAt: at(95)}},
			waiters: []waiterView{wait("b", 0), wait("hot", 99)},
			want:    did{kind: grant, waiter: 1, path: "hot", passing: true},
		},
		"nobody else wants it: no turn, it goes at once": {
			max: 1, runners: []runnerView{ready("a", 0)}, waiters: []waiterView{wait("b", 0)}, want: did{kind: evict, path: "a"},
		},
		"an earlier request on the loaded model goes first": {
			max: 1, now: 50, runners: []runnerView{ready("a", 0)}, waiters: []waiterView{wait("a", 0), wait("b", 1)},
			want: did{kind: grant, path: "a"},
		},
		"a larger context: an idle one is loaded again": {
			max: 2, runners: []runnerView{ready("a", 0)}, waiters: []waiterView{larger("a", 0)}, want: did{kind: evict, path: "a"},
		},
		"a larger context: not under a request": {
			max: 2, now: 1, runners: []runnerView{ready("a", 1)}, waiters: []waiterView{larger("a", 0)},
		},
		"a larger context: others pass while their turn lasts": {
			max: 2, now: 1, runners: []runnerView{ready("a", 0)}, waiters: []waiterView{larger("a", 0), wait("a", 0)},
			want: did{kind: grant, waiter: 1, path: "a", passing: true},
		},
		"a larger context: it drains when the turn is over": {
			max: 2, now: 10, runners: []runnerView{ready("a", 1)}, waiters: []waiterView{larger("a", 0), wait("a", 0)},
			want: did{kind: evict, path: "a"},
		},
		"somebody who waits for one model does not hold up another": {
			max: 2, now: 1, runners: []runnerView{ready("x", 1), ready("y", 0)}, waiters: []waiterView{wait("x", 0), wait("y", 1)},
			want: did{kind: grant, waiter: 1, path: "y"},
		},
		"others are served: an idle one is spared for a load by one request": {
			max: 2, now: 7, runners: []runnerView{used(ready("idle", 0), 1, 6), ready("busy", 1)}, waiters: []waiterView{wait("b", 7)}, again: time.Second / 2,
		},
		"then it goes": {
			max: 2, now: 8, runners: []runnerView{used(ready("idle", 0), 1, 6), ready("busy", 1)}, waiters: []waiterView{wait("b", 7)},
			want: did{kind: evict, path: "idle"},
		},
		"by three requests, for three": {
			max: 2, now: 10, runners: []runnerView{used(ready("idle", 0), 3, 6), ready("busy", 1)}, waiters: []waiterView{wait("b", 7)}, again: time.Second / 2,
		},
		"by a hundred, for ten": {
			max: 2, now: 21, runners: []runnerView{used(ready("idle", 0), 100, 6), ready("busy", 1)}, waiters: []waiterView{wait("b", 21)},
			want: did{kind: evict, path: "idle"},
		},
		"from when the other one came, if it is used again meanwhile": {
			max: 2, now: 8, runners: []runnerView{used(ready("idle", 0), 1, 8), ready("busy", 1)}, waiters: []waiterView{wait("b", 6)},
			want: did{kind: evict, path: "idle"},
		},
		"not beyond its turn": {
			max: 2, now: 17, runners: []runnerView{used(ready("idle", 0), 9, 16), ready("busy", 1)}, waiters: []waiterView{wait("b", 7)},
			want: did{kind: evict, path: "idle"},
		},
		"nobody is served: none is spared": {
			max: 2, now: 6, runners: []runnerView{used(ready("idle", 0), 9, 6), used(ready("other", 0), 9, 6)}, waiters: []waiterView{wait("b", 6)},
			want: did{kind: evict, path: "idle"},
		},
		"somebody's model is loaded: it is spared": {
			max: 2, now: 6, runners: []runnerView{used(ready("idle", 0), 9, 6), in(Loading, "x", 0)}, waiters: []waiterView{wait("x", 6), wait("b", 6)},
		},
		"one used after it is not spared: that goes": {
			max: 3, now: 8, runners: []runnerView{used(ready("hot", 0), 9, 4), used(ready("cold", 0), 1, 5), ready("busy", 1)}, waiters: []waiterView{wait("b", 8)},
			want: did{kind: evict, path: "cold"},
		},
		"a second runner is not spared, the model stays": {
			max: 3, now: 7, runners: []runnerView{used(ready("x", 0), 9, 6), used(ready("x", 0), 9, 6), ready("busy", 1)}, waiters: []waiterView{wait("b", 7)},
			want: did{kind: evict, path: "x"},
		},
		"a larger context of the same model spares nobody": {
			max: 2, now: 7, runners: []runnerView{used(ready("a", 0), 9, 6), ready("busy", 1)}, waiters: []waiterView{larger("a", 7)},
			want: did{kind: evict, path: "a"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			for i := range row.runners {
				row.runners[i].id = i + 1
			}
			act := decide(view{
				now: at(row.now), maxLoaded: row.max, maxPass: 8, maxTurn: 10 * time.Second, runners: row.runners, waiters: row.waiters,
			})
			got := did{kind: act.kind, waiter: act.waiter, passing: act.passing}
			switch act.kind {
			case grant, evict:
				got.path = row.runners[act.runner-1].path
			case load:
				got.path = row.waiters[act.waiter].path
			}
			if got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
			if row.again > 0 && act.again != row.again {
				t.Errorf("it is asked again after %s, want %s", act.again, row.again)
			}
		})
	}
}
