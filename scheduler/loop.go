package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice/fault"
	"sluice/models"
	"sluice/scheduler/fit"
)

// loop is the owner's state. Only the goroutine in run touches it.
type loop struct {
	s       *Scheduler
	cfg     Config
	runners []*instance                    // none is gone; in the order of their loads
	lastID  int                            // of a runner
	failed  map[string]*failure            // by model file: not to be loaded again at once
	idle    *simplelru.LRU[int, *instance] // ready without a lease, in the order of use
	queue   []*waiter                      // in the order of arrival; see enqueue
	classes map[class]*sameWaiters         // who is in the queue
	shown   []*waiter                      // those that the policy sees, as their view has them
	views   int                            // that have been made
	memory  readings
	learned *simplelru.LRU[string, float64] // by model file: what loads took, as a part of what was estimated
	second  map[string]*secondTry           // by model file: loads that memory ran out for, and that are tried once more
	servers []*elsewhere
	offered map[string][]offer   // by the name that was asked for; a cache
	lacking map[string]time.Time // by model file: since when other programs have had its memory
	counted Stats
	lives   sync.WaitGroup
	again   time.Time // when the policy wants to be asked again; zero: when something happens
	same    bool      // what was asked changes nothing for the policy
	closing bool      // no new leases
	expired bool      // the grace too is over
}

// learnedModels bounds of how many models is remembered what their loads took.
const learnedModels = 256

func newLoop(s *Scheduler) (*loop, error) {
	idle, err := simplelru.NewLRU[int, *instance](math.MaxInt32, nil)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	learned, err := simplelru.NewLRU[string, float64](learnedModels, nil)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	l := &loop{
		s: s, cfg: s.cfg, failed: map[string]*failure{}, idle: idle, learned: learned, second: map[string]*secondTry{}, offered: map[string][]offer{},
		lacking: map[string]time.Time{}, classes: map[class]*sameWaiters{},
		counted: Stats{Loads: map[string]int{}, Unloads: map[Reason]int{}, Refused: map[string]int{}},
	}
	for _, r := range s.cfg.Remotes {
		l.servers = append(l.servers, &elsewhere{remote: r, uses: map[string]*use{}})
	}
	return l, nil
}

// run answers until ctx has ended and every runner is gone.
func (l *loop) run(ctx context.Context) {
	wake, grace := time.NewTimer(time.Hour), (<-chan time.Time)(nil)
	defer wake.Stop()
	ended := ctx.Done()
	beside, endBeside := context.WithCancel(context.WithoutCancel(ctx)) // readings, and servers elsewhere
	defer endBeside()
	l.memory.read = l.reader(beside)
	l.watchServers(beside)
	l.measure() // so that there is something to show before the first load
	for {
		if !l.same {
			l.schedule()
			l.shareCores()
		}
		l.same = false
		if l.closing && len(l.runners) == 0 && !l.memory.reading && (l.expired || l.elsewhereInFlight() == 0) {
			break
		}
		wake.Reset(l.untilNext())
		select {
		case question := <-l.s.asks:
			question(l)
		case <-wake.C:
		case <-ended:
			ended = nil
			l.close()
			endBeside()
			grace = time.After(l.cfg.Grace)
		case <-grace:
			l.graceOver()
		}
	}
	l.lives.Wait()
}

// schedule does what the policy says until it says nothing more, then lets go whose keep_alive is over.
func (l *loop) schedule() {
	if l.memory.devices == nil && time.Since(l.memory.tried) > readAge {
		l.measure() // without a single reading nobody asks for one
	}
	for {
		act := decide(l.view())
		l.again = time.Time{}
		switch act.kind {
		case grant:
			l.grant(act)
		case away:
			l.grantAway(act)
		case load:
			l.load(l.shown[act.waiter], act.need, act.replica)
		case evict:
			l.evict(l.byID(act.runner), act.reason)
		case refuse:
			l.tooMuch(l.shown[act.waiter], act.short)
		case measure, nothing:
			if act.again > 0 {
				l.again = time.Now().Add(act.again)
			}
			if act.kind == measure {
				l.measure()
			} else {
				l.lacks(act.lacking)
			}
			if !l.abandon() && !l.expire() {
				return
			}
		}
	}
}

// view copies what the policy needs.
func (l *loop) view() view {
	v := view{
		now: time.Now(), maxLoaded: l.mostLoaded(), maxPass: l.cfg.MaxPass, maxTurn: l.cfg.MaxTurn,
		memory: l.account(), loads: l.loadsOf, seen: l.seen,
	}
	l.views++
	l.shown = l.shown[:0]
	for _, w := range l.queue {
		if w.same.view == l.views {
			continue // what the policy cannot do for the first it cannot do for this one
		}
		w.same.view = l.views
		l.shown = append(l.shown, w)
		f, offered := l.failed[w.path], len(l.offersTo(w)) > 0
		v.waiters = append(v.waiters, waiterView{
			path: w.path, numCtx: w.numCtx, since: w.since, remote: l.freeServer(w), offered: offered,
			absent: !installed(w.want.Model) || offered && l.braked(w) != nil, short: l.lacking[w.path],
			replicas: w.settings.Replicas, resting: f != nil && !f.over(v.now), pause: f.rest(v.now),
		})
	}
	// the idle ones in the order that the LRU keeps, then the others, those that got a lease longest ago first
	order := l.idle.Values()
	var rest []*instance
	for _, in := range l.runners {
		if !l.idle.Contains(in.id) {
			rest = append(rest, in)
		}
	}
	slices.SortStableFunc(rest, func(a, b *instance) int { return a.lastUse.Compare(b.lastUse) })
	for _, in := range append(order, rest...) {
		v.runners = append(v.runners, runnerView{
			id: in.id, path: in.path, state: in.seen(), inFlight: in.inFlight, slots: in.slots, numCtx: in.numCtx,
			took: in.took, readyAt: in.readyAt, lastUse: in.lastUse, served: in.served, passed: in.passed, pinned: l.isPinned(in),
		})
	}
	return v
}

// lacks notes which models wait for memory that other programs have.
func (l *loop) lacks(paths []string) {
	since := make(map[string]time.Time, len(paths))
	for _, path := range paths {
		since[path] = time.Now()
		if from, ok := l.lacking[path]; ok {
			since[path] = from
		}
	}
	l.lacking = since
}

// loadsOf gives the ways to load a model for a waiter and all who ask for the same: a load that others want otherwise is theirs to ask for.
func (l *loop) loadsOf(waiter int) []fit.Load {
	first := l.shown[waiter]
	n, offered := 0, len(l.offersTo(first)) > 0
	for _, w := range l.shown {
		if w.path == first.path && w.shape == first.shape && len(l.offersTo(w)) > 0 == offered {
			n = max(n, w.loadCtx(l.cfg))
		}
	}
	layers := -1
	factor, _ := l.learned.Get(first.path)
	if again := l.second[first.path]; again != nil {
		layers, factor = again.layers, again.factor
	}
	return l.cfg.loads(first, n, factor, layers)
}

func (l *loop) byID(id int) *instance {
	i := slices.IndexFunc(l.runners, func(in *instance) bool { return in.id == id })
	return l.runners[i]
}

// of are the runners of a model.
func (l *loop) of(path string) (list []*instance) {
	for _, in := range l.runners {
		if in.path == path {
			list = append(list, in)
		}
	}
	return list
}

// isPinned tells whether a runner is never evicted for another model: of several the one that was there first.
func (l *loop) isPinned(in *instance) bool {
	if !in.settings.Pin {
		return false
	}
	for _, other := range l.runners {
		if other.path == in.path && (other.state == Loading || other.state == Ready) {
			return other == in
		}
	}
	return false
}

// move is the only place where a runner changes its state.
func (l *loop) move(in *instance, e Event, reason Reason, why string) bool {
	to, ok := next[in.state][e]
	if !ok {
		onBug(fault.Bug("scheduler: a %s runner cannot %s", in.state, e))
		return false
	}
	if in.reason == "" {
		in.reason = reason // the first one is why it goes
	}
	log := l.cfg.Log.Debug
	if to == Loading || to == Ready || e == Evict || e == Failed {
		log = l.cfg.Log.Info
	}
	log("runner", "model", in.model.Name, "id", in.id, "from", in.state.String(), "event", e.String(), "to", to.String(), "reason", string(in.reason), "why", why, "in_flight", in.inFlight)
	in.state = to
	if to != Ready {
		l.idle.Remove(in.id)
	}
	switch to {
	case Stopping:
		in.cancel(ErrEvicted)
		close(in.stop)
	case Gone:
		in.cancel(nil)
		l.runners = slices.DeleteFunc(l.runners, func(have *instance) bool { return have == in })
		l.gone(in)
	}
	return true
}

// gone counts a runner that went.
func (l *loop) gone(in *instance) {
	l.counted.Unloads[in.reason]++
	l.memory.left(in)
	for _, other := range l.of(in.path) {
		if l.isPinned(other) && !other.unload {
			other.expiresAt = time.Time{} // the pin is now its
		}
	}
	l.cfg.Log.Info("unloaded", "model", in.model.Name, "id", in.id, "reason", string(in.reason), "bytes", bytesOf(in.charge))
}

func (l *loop) evict(in *instance, reason Reason) {
	if !l.move(in, Evict, reason, "") {
		return
	}
	if in.state == Draining && in.inFlight == 0 {
		l.move(in, LastDone, reason, "")
	}
}

// expire evicts the idle runners whose keep_alive is over, and tells whether there were any.
func (l *loop) expire() (any bool) {
	now := time.Now()
	for _, in := range l.idle.Values() {
		if !in.expiresAt.IsZero() && !in.expiresAt.After(now) {
			l.evict(in, in.expiryReason())
			any = true
		}
	}
	return any
}

// abandon ends the loads that nobody waits for any more because a server elsewhere has served those who did, and tells whether there were
// any. A further runner of a model goes on: it was full a moment ago. It gives way when another model needs the room.
func (l *loop) abandon() (any bool) {
	for path := range l.second {
		if l.waiting(path) == 0 {
			delete(l.second, path)
		}
	}
	for _, in := range slices.Clone(l.runners) {
		if in.state == Loading && !in.replica && l.waiting(in.path) == 0 {
			l.move(in, Evict, ReasonLeft, "nobody waits for it any more")
			any = true
		}
	}
	return any
}

// untilNext is how long the owner may sleep.
func (l *loop) untilNext() time.Duration {
	d := time.Hour
	if !l.again.IsZero() {
		d = time.Until(l.again)
	}
	for _, in := range l.idle.Values() {
		if !in.expiresAt.IsZero() {
			d = min(d, time.Until(in.expiresAt))
		}
	}
	return max(0, d)
}

func (l *loop) unload(m *models.Model) {
	for _, in := range l.of(fileKey(m)) {
		switch in.state {
		case Loading: // those who wait are served first
			in.unload = true
		case Ready:
			l.evict(in, ReasonAsked)
		}
	}
}

// close begins the shutdown: no new leases, and whoever has none goes.
func (l *loop) close() {
	l.closing = true
	l.refuse("", func(*waiter) bool { return true }, errStopped())
	for _, in := range slices.Clone(l.runners) {
		if in.state == Loading || in.state == Ready {
			l.evict(in, ReasonShutdown)
		}
	}
}

// graceOver ends the runners that still have leases. Their streams end with an error.
func (l *loop) graceOver() {
	l.expired = true
	for _, in := range slices.Clone(l.runners) {
		if in.state == Draining {
			l.move(in, GraceOver, ReasonShutdown, "the grace of the shutdown is over")
		}
	}
}
