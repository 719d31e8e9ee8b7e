package scheduler

import (
	"slices"
	"time"

	"sluice/scheduler/fit"
)

// view is all that the policy looks at. It is a copy: the policy changes nothing.
type view struct {
	now       time.Time
	maxLoaded int // 0: as many as fit
	maxPass   int
	maxTurn   time.Duration

	runners []runnerView // all that are not gone: the least recently used first
	waiters []waiterView // in the order of their arrival; of those that ask for the same, the first

	memory *account                       // nil: it is not looked at
	loads  func(waiter int) []fit.Load    // the ways to load a waiter's model, the one with the most sequences first
	seen   func(waiter, runnerID int) int // how much of the waiter's prompt a runner has read
}

type runnerView struct {
	id       int
	path     string
	state    State
	inFlight int
	slots    int // leases at a time
	numCtx   int
	took     time.Duration // that its load lasted
	readyAt  time.Time
	lastUse  time.Time
	served   int  // leases that it got
	passed   int  // leases that it got while a request before them waited for room
	pinned   bool // never evicted for another model
}

func (r *runnerView) idle() bool { return r.state == Ready && r.inFlight == 0 }

type waiterView struct {
	path     string
	numCtx   int // 0: any
	since    time.Time
	remote   int           // 1 + index of a server elsewhere that takes it now; 0: none does
	offered  bool          // a server elsewhere has the model
	absent   bool          // the model cannot be loaded here: it is not installed, or it has failed and is to be had elsewhere
	short    time.Time     // since when other programs have had the memory that the model needs; zero: they have not
	replicas int           // runners of the model at most; 0: as many as there is free room for
	resting  bool          // a load of the model has failed a moment ago
	pause    time.Duration // absent for so long: then a load may be tried again; 0: whatever happens
}

type actionKind int

const (
	nothing actionKind = iota
	grant              // the waiter gets a lease on the runner
	away               // the waiter gets a lease on a server elsewhere
	load               // the waiter's model is loaded
	evict              // the runner goes, for the waiter
	refuse             // the waiter's model can never be loaded as it is asked for
	measure            // somebody waits for a reading of the devices
)

type action struct {
	kind    actionKind
	waiter  int // index
	runner  int // id
	passing bool
	reason  Reason        // with evict
	need    need          // with load: plan is where it goes now
	replica bool          // with load: the model has runners already
	short   *shortage     // with refuse
	again   time.Duration // with nothing and measure: when to ask again although nothing has happened; 0: never
	lacking []string      // with nothing: models whose memory other programs have
}

// How long things may take until something else is done about them.
const (
	replicaDelay = 500 * time.Millisecond // a request waits for a full model before another runner of it is worth a load
	settleFor    = 5 * time.Second        // what a runner had may come back late on a GPU; other programs may end
	failedSettle = time.Second            // the same after a load that failed
	settlePoll   = 250 * time.Millisecond // between readings meanwhile
	memoryPoll   = time.Second            // between readings while somebody waits for memory
)

// sparedLoads bounds for how many times what its load took an idle runner is spared. With fewer, hot models still push each other out;
// with more, waits grow and loads hardly fall any more (simulated as in TestSwaps, with 24 lists of requests and six machines).
const sparedLoads = 10

// decide gives the next thing to do; the owner does it and asks again, until there is nothing.
//
// Requests are served in the order of their arrival, with one exception: a request whose model is loaded, or for whose model
// there is room, may pass one that waits for more room, because swapping models for each request would cost everybody a
// load. The exception is bounded: when the runner in the way has got maxPass such leases, or maxTurn has gone by since it was
// ready and the waiting request was there, it takes no new lease; and after maxTurn nothing is loaded any more where the
// waiting request's model shall go. Its own later requests then queue behind the model that waited.
//
// A request for a larger context than its model is loaded with is one whose model is not loaded. What it has loaded takes the place of
// one of the model's runners, or of more when it needs them; the others serve on. Where GPUs without any of them have room for it, none goes.
//
// A runner goes when it is idle and nobody wants it, second runners of a model before the only one, the least recently used
// first, and only when its going helps; one with leases is never stopped, only kept from new ones.
//
// While others are served, a model's only runner is spared although it is idle: whoever used it may be back soon, and would have it
// loaded again. It is spared for what its load took, once for each request that it has served, sparedLoads times at most, from when it
// was used last or, when that is earlier over, from when the waiting request came; in that time others gather behind the waiting one,
// and one load serves them all. So one who asks two models in turn waits for what one load takes more at most, and the bound above
// holds. When nobody is served, whoever waits is all there is: the runner goes at once.
func decide(v view) action {
	t := newTable(v)
	for i, w := range v.waiters {
		if act := t.serve(i, w); act.kind != nothing {
			return act
		}
	}
	act := action{again: t.again, lacking: t.lacking}
	if t.stale {
		act.kind = measure
	}
	return act
}

// table is the view while decide goes through the queue.
type table struct {
	view
	of      map[string][]*runnerView
	wanted  map[int]bool    // runners that a waiter could use as they are
	waited  map[string]bool // models that somebody waits for
	looked  map[string]bool // models whose first waiter without a runner has been looked at
	grown   map[string]bool // models whose first waiter for a full runner has been looked at
	claims  rooms           // what earlier waiters will load when others have gone
	claimed int             // how many these are
	blocked bool            // somebody waits for room that nobody is making
	stale   bool            // somebody waits for a reading
	lacking []string
	again   time.Duration
}

func newTable(v view) *table {
	t := &table{view: v, of: map[string][]*runnerView{}, wanted: map[int]bool{}, waited: map[string]bool{}, looked: map[string]bool{}, grown: map[string]bool{}}
	if t.loads == nil {
		t.loads = func(int) []fit.Load { return []fit.Load{{}} }
	}
	for i := range v.runners {
		r := &v.runners[i]
		t.of[r.path] = append(t.of[r.path], r)
	}
	for _, w := range v.waiters {
		t.waited[w.path] = true
		for _, r := range t.of[w.path] {
			if w.numCtx <= r.numCtx {
				t.wanted[r.id] = true
			}
		}
	}
	if v.memory != nil {
		t.claims.free = make([]uint64, len(v.memory.devices))
	}
	return t
}

// wake asks for another look after d at the latest.
func (t *table) wake(d time.Duration) {
	if t.again == 0 || d < t.again {
		t.again = d
	}
}

// serve does what can be done for one waiter.
func (t *table) serve(i int, w waiterView) action {
	var full, loading, leaving bool
	var free *runnerView
	for _, r := range t.of[w.path] {
		fits := w.numCtx <= r.numCtx
		switch {
		case r.state == Loading:
			loading = true // with too small a context too: it is served first, then loaded again
		case r.state == Stopping, r.state == Draining:
			leaving = true
		case !fits: // room says whether it goes
		case r.inFlight >= r.slots:
			full = true
		case free == nil || t.better(i, r, free):
			free = r
		}
	}
	switch {
	case free != nil:
		return action{kind: grant, waiter: i, runner: free.id, passing: t.blocked}
	case w.remote > 0:
		return action{kind: away, waiter: i}
	case w.absent, loading:
		if w.absent && w.pause > 0 {
			t.wake(w.pause)
		}
		return action{}
	case full:
		return t.replica(i, w)
	case t.looked[w.path]:
		return action{}
	}
	t.looked[w.path] = true
	if t.unread() {
		return action{}
	}
	stays := t.pinned(w.path)
	n, short := t.memory.need(t.loads(i), stays)
	if short == nil {
		short = t.places(n.load, stays)
	}
	n.path, n.replicas = w.path, w.replicas
	switch {
	case short != nil && w.offered: // it waits for its turn there, and holds nobody up who asks for less
		t.looked[w.path] = false
	case short != nil && short.passing && (w.short.IsZero() || t.now.Sub(w.short) < settleFor):
		t.blocked = true
		t.lacking = append(t.lacking, w.path)
		t.wake(settlePoll)
	case short != nil:
		return action{kind: refuse, waiter: i, short: short}
	case leaving: // its own place becomes free
		if plan, ok := t.fits(n, t.leaving(true)); ok {
			n.plan = plan
		}
		t.claim(n)
	default:
		return t.room(i, w, n)
	}
	return action{}
}

// better tells whether a waiter is better off on r than on old, of the same model: with fewer others, then with more of its prompt
// read already, then where somebody was last, so that the other one can go.
func (t *table) better(waiter int, r, old *runnerView) bool {
	if r.inFlight != old.inFlight {
		return r.inFlight < old.inFlight
	}
	if t.seen != nil {
		if a, b := t.seen(waiter, r.id), t.seen(waiter, old.id); a != b {
			return a > b
		}
	}
	return true // runners come in the order of their use
}

// unread tells that memory must be looked at first, and asks for it.
func (t *table) unread() bool {
	if t.memory == nil || t.memory.fresh {
		return false
	}
	t.stale = true
	return true
}

// pinned tells which runners stay whatever happens, for a model that is to be loaded: its own would be loaded again.
func (t *table) pinned(path string) func(id int) bool {
	stay := map[int]bool{}
	for i := range t.runners {
		if r := &t.runners[i]; r.pinned && r.path != path && r.state != Draining && r.state != Stopping {
			stay[r.id] = true
		}
	}
	return func(id int) bool { return stay[id] }
}

// places tells that pinned models have all the places that there are for models.
func (t *table) places(load fit.Load, stays func(id int) bool) *shortage {
	n := 0
	for _, r := range t.runners {
		if stays(r.id) {
			n++
		}
	}
	if t.maxLoaded == 0 || n < t.maxLoaded {
		return nil
	}
	return &shortage{load: load, places: t.maxLoaded}
}

// met is how long a waiter has been there together with a runner that is ready.
func (t *table) met(w waiterView, r *runnerView) time.Duration {
	return min(t.now.Sub(w.since), t.now.Sub(r.readyAt))
}

// overdue tells that a waiter need not stand back for a runner any longer.
func (t *table) overdue(w waiterView, r *runnerView) bool {
	return r.passed >= t.maxPass || t.met(w, r) >= t.maxTurn
}

// spared tells that an idle runner stays a while longer although a waiter for another model could have its room, and asks for another
// look when that ends.
func (t *table) spared(w waiterView, r *runnerView) bool {
	if !r.idle() || !t.serving() || t.overdue(w, r) {
		return false
	}
	rest := time.Duration(min(r.served, sparedLoads))*r.took - max(t.now.Sub(r.lastUse), t.met(w, r))
	if rest <= 0 {
		return false
	}
	t.wake(rest)
	return true
}

// serving tells that somebody has a lease, or will have one soon.
func (t *table) serving() bool {
	return slices.ContainsFunc(t.runners, func(r runnerView) bool { return r.inFlight > 0 || r.state == Loading })
}

// replica loads a further runner of a model whose runners are all full: where there is free room for the whole of it, on GPUs that
// have none of it, when nobody waits for that room.
func (t *table) replica(i int, w waiterView) action {
	runners := t.of[w.path]
	if t.memory == nil || t.blocked || t.grown[w.path] || w.resting || w.replicas > 0 && len(runners) >= w.replicas {
		return action{}
	}
	for _, r := range runners {
		if r.state != Ready {
			return action{} // what comes or goes first
		}
	}
	t.grown[w.path] = true // only the oldest counts
	if waited := t.now.Sub(w.since); waited < replicaDelay {
		t.wake(replicaDelay - waited)
		return action{}
	}
	if !t.counts(nil) || t.unread() {
		return action{}
	}
	t.wake(memoryPoll)
	ways := t.loads(i)
	whole := len(ways[0].Model.Facts.Layout.Layers) + 1
	plan, ok := t.memory.place(ways[0], t.free(), t.without(runners))
	if !ok || whole == 1 || plan.Layers() < whole {
		return action{}
	}
	return action{kind: load, waiter: i, need: need{load: ways[0], plan: plan, layers: whole}, replica: true}
}
