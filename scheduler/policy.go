package scheduler

import "time"

// view is all that the policy looks at. It is a copy: the policy changes nothing.
type view struct {
	now       time.Time
	maxLoaded int
	maxPass   int
	maxTurn   time.Duration

	runners []runnerView // all that are not gone: the least recently used first
	waiters []waiterView // in the order of their arrival
}

type runnerView struct {
	path     string
	state    State
	inFlight int
	slots    int // leases at a time
	numCtx   int
	readyAt  time.Time
	passed   int // leases that it got while a request before them waited for room
}

func (r *runnerView) idle() bool { return r.state == Ready && r.inFlight == 0 }

type waiterView struct {
	path   string
	numCtx int // 0: any
	since  time.Time
}

type actionKind int

const (
	nothing actionKind = iota
	grant              // the waiter gets a lease on the runner of its model
	load               // the waiter's model is loaded
	evict              // the runner goes, for the waiter
)

type action struct {
	kind    actionKind
	waiter  int    // index
	path    string // of the runner
	passing bool   // with grant: somebody before it waits for room
	reason  string // with evict
}

// decide gives the next thing to do; the owner does it and asks again, until there is nothing.
//
// Requests are served in the order of their arrival, with one exception: a request whose model is loaded may pass one
// that waits for room, because swapping models for each request would cost everybody a load. The exception is bounded:
// when the runner in the way has got maxPass such leases, or maxTurn has gone by since it was ready and the waiting
// request was there, it takes no new lease. Its own later requests then queue behind the model that waited.
//
// Room is a number of runners. A runner goes when it is idle and nobody wants it, the least recently used first; one with
// leases is never stopped, only kept from new ones.
func decide(v view) action {
	byPath := make(map[string]*runnerView, len(v.runners))
	free, leaving, draining := v.maxLoaded, 0, 0
	for i := range v.runners {
		r := &v.runners[i]
		byPath[r.path] = r
		free--
		switch r.state {
		case Stopping:
			leaving++
		case Draining:
			draining++
		}
	}
	wanted := map[string]bool{} // runners that a waiter could use as they are
	for _, w := range v.waiters {
		if r := byPath[w.path]; r != nil && w.numCtx <= r.numCtx {
			wanted[w.path] = true
		}
	}
	// overdue tells that a waiter need not stand back for a runner any longer.
	overdue := func(w waiterView, r *runnerView) bool {
		from := w.since
		if r.readyAt.After(from) {
			from = r.readyAt
		}
		return r.passed >= v.maxPass || v.now.Sub(from) >= v.maxTurn
	}

	needsRoom := map[string]bool{} // models whose first waiter has been looked at
	blocked := false               // somebody waits for a room that nobody is making
	for i, w := range v.waiters {
		r := byPath[w.path]
		if r != nil && r.state == Ready && w.numCtx <= r.numCtx {
			if r.inFlight < r.slots {
				return action{kind: grant, waiter: i, path: r.path, passing: blocked}
			}
			continue
		}
		if r != nil && r.state == Loading {
			continue
		}
		if needsRoom[w.path] {
			continue
		}
		needsRoom[w.path] = true
		switch {
		case r != nil && r.state == Stopping: // its own place becomes free
			leaving--
		case r != nil && r.state == Draining:
			draining--
		case r != nil: // loaded with too small a context
			if (r.idle() && !wanted[r.path]) || overdue(w, r) {
				return action{kind: evict, waiter: i, path: r.path, reason: "a request needs a larger context"}
			}
			blocked = true
		case free > 0:
			return action{kind: load, waiter: i, path: w.path}
		case leaving > 0:
			leaving--
		default:
			if r := victim(v, w, wanted, overdue, draining <= 0); r != nil {
				return action{kind: evict, waiter: i, path: r.path, reason: "room for another model"}
			}
			if draining > 0 {
				draining--
			} else {
				blocked = true
			}
		}
	}
	return action{}
}

// victim picks the runner that makes room for a waiter, or nil. With force, one that is still asked for may be taken too,
// once the waiter is overdue.
func victim(v view, w waiterView, wanted map[string]bool, overdue func(waiterView, *runnerView) bool, force bool) *runnerView {
	for i := range v.runners {
		if r := &v.runners[i]; r.idle() && !wanted[r.path] {
			return r
		}
	}
	if !force {
		return nil
	}
	var busy *runnerView
	for i := range v.runners {
		r := &v.runners[i]
		if r.state != Ready || !overdue(w, r) {
			continue
		}
		if r.idle() {
			return r
		}
		if busy == nil {
			busy = r
		}
	}
	return busy
}

// contextFor is the context to load a model with: enough for everybody who waits for it. fallback is for those who ask for
// none.
func contextFor(path string, waiters []waiterView, fallback int) int {
	n := 0
	for _, w := range waiters {
		if w.path != path {
			continue
		}
		if w.numCtx == 0 {
			n = max(n, fallback)
		}
		n = max(n, w.numCtx)
	}
	return n
}
