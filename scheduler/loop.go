package scheduler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice/fault"
	"sluice/runner"
)

// waiter is a request in the queue.
type waiter struct {
	want   Want
	path   string
	numCtx int // 0: none asked for
	since  time.Time
	left   <-chan struct{} // the caller has gone
	reply  chan answer     // see answer
}

type answer struct {
	lease  *Lease
	untold []<-chan struct{} // to be closed before the lease is used, see settle
	err    error
}

// answer hands the caller its answer. The channel is unbuffered: a send that lands proves the caller is still there.
// Otherwise a lease would be counted for someone who left, and its runner could never be evicted again.
func (w *waiter) answer(a answer) bool {
	select {
	case w.reply <- a:
		return true
	case <-w.left:
		return false
	}
}

// loop is the owner's state. Only the goroutine in run touches it.
type loop struct {
	s       *Scheduler
	cfg     Config
	runners map[string]*instance              // by model file; none is gone
	failed  map[string]*failure               // by model file: not to be loaded again at once
	idle    *simplelru.LRU[string, *instance] // ready without a lease, in the order of use
	queue   []*waiter                         // in the order of arrival
	lives   sync.WaitGroup
	closing bool // no new leases
}

func newLoop(s *Scheduler) (*loop, error) {
	idle, err := simplelru.NewLRU[string, *instance](max(1, s.cfg.MaxLoaded), nil)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &loop{s: s, cfg: s.cfg, runners: map[string]*instance{}, failed: map[string]*failure{}, idle: idle}, nil
}

// run answers until ctx has ended and every runner is gone.
func (l *loop) run(ctx context.Context) {
	wake, grace := time.NewTimer(time.Hour), (<-chan time.Time)(nil)
	defer wake.Stop()
	ended := ctx.Done()
	for {
		l.schedule()
		l.shareCores()
		if l.closing && len(l.runners) == 0 {
			break
		}
		wake.Reset(l.untilExpiry())
		select {
		case question := <-l.s.asks:
			question(l)
		case <-wake.C:
		case <-ended:
			ended = nil
			l.close()
			grace = time.After(l.cfg.Grace)
		case <-grace:
			l.graceOver()
		}
	}
	l.lives.Wait()
}

// schedule does what the policy says until it says nothing more, then lets go whose keep_alive is over.
func (l *loop) schedule() {
	for {
		v := l.view()
		act := decide(v)
		switch act.kind {
		case grant:
			l.grant(act)
		case load:
			l.load(l.queue[act.waiter], contextFor(act.path, v.waiters, capCtx(l.queue[act.waiter].want.Model, l.cfg.NumCtx)))
		case evict:
			l.evict(l.runners[act.path], act.reason)
		case nothing:
			if !l.expire() {
				return
			}
		}
	}
}

// view copies what the policy needs.
func (l *loop) view() view {
	v := view{now: time.Now(), maxLoaded: l.cfg.MaxLoaded, maxPass: l.cfg.MaxPass, maxTurn: l.cfg.MaxTurn}
	for _, w := range l.queue {
		v.waiters = append(v.waiters, waiterView{path: w.path, numCtx: w.numCtx, since: w.since})
	}
	// the idle ones in the order that the LRU keeps, then the others, those that got a lease longest ago first
	order := l.idle.Values()
	var rest []*instance
	for _, in := range l.runners {
		if !l.idle.Contains(in.path) {
			rest = append(rest, in)
		}
	}
	slices.SortFunc(rest, func(a, b *instance) int { return a.lastUse.Compare(b.lastUse) })
	for _, in := range append(order, rest...) {
		v.runners = append(v.runners, runnerView{
			path: in.path, state: in.seen(), inFlight: in.inFlight, slots: in.slots, numCtx: in.numCtx, readyAt: in.readyAt, passed: in.passed,
		})
	}
	return v
}

// move is the only place where a runner changes its state.
func (l *loop) move(in *instance, e Event, reason string) bool {
	to, ok := next[in.state][e]
	if !ok {
		onBug(fault.Bug("scheduler: a %s runner cannot %s", in.state, e))
		return false
	}
	log := l.cfg.Log.Debug
	if to == Loading || to == Ready || e == Evict || e == Failed || (e == Exited && in.state != Stopping) {
		log = l.cfg.Log.Info
	}
	log("runner", "model", in.model.Name, "from", in.state.String(), "event", e.String(), "to", to.String(), "reason", reason, "in_flight", in.inFlight)
	in.state = to
	if to != Ready {
		l.idle.Remove(in.path)
	}
	switch to {
	case Stopping:
		in.cancel(ErrEvicted)
		close(in.stop)
	case Gone:
		in.cancel(nil)
		delete(l.runners, in.path)
	}
	return true
}

func (l *loop) load(w *waiter, numCtx int) {
	ctx, cancel := context.WithCancelCause(context.Background())
	req := l.cfg.loadRequest(w.want, numCtx)
	in := &instance{
		model: w.want.Model, path: w.path, numCtx: numCtx, slots: req.Parallel, keepAlive: l.cfg.KeepAlive, lastUse: time.Now(),
		mostThreads: req.NumThread, tune: make(chan tuning, 1), cancel: cancel, stop: make(chan struct{}),
	}
	l.runners[in.path] = in
	l.move(in, Load, "a request")
	req.NumThread = min(req.NumThread, share(l.cfg.Threads, l.computing())) // it counts already
	in.threads = req.NumThread
	l.lives.Go(func() { l.s.live(ctx, in, req) })
}

func (l *loop) loaded(in *instance, r Runner, report runner.LoadReport) {
	if in.state != Loading { // evicted in the meantime; it is being stopped
		return
	}
	in.runner, in.report, in.readyAt = r, report, time.Now()
	in.numCtx = max(in.numCtx, report.NumCtx)
	if report.Parallel > 0 {
		in.slots = report.Parallel
	}
	l.healed(in)
	l.move(in, LoadDone, "")
	l.becomesIdle(in)
}

// exited notes that a runner's process has ended; err says why when nobody asked it to.
func (l *loop) exited(in *instance, err error) {
	reason := "stopped"
	if err != nil {
		reason = err.Error()
		l.cfg.Log.Error("a runner died", "model", in.model.Name, "in_flight", in.inFlight, "error", err)
	}
	l.move(in, Exited, reason)
}

// refuse answers those in the queue that match with an error.
func (l *loop) refuse(match func(*waiter) bool, err error) {
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		if !match(w) {
			return false
		}
		w.answer(answer{err: err}) // who has left needs no error
		return true
	})
}

func (l *loop) arrive(w *waiter) {
	if l.closing {
		w.answer(answer{err: errStopped()})
		return
	}
	if err := l.braked(w); err != nil {
		w.answer(answer{err: err})
		return
	}
	in := l.runners[w.path]
	atOnce := in != nil && in.state == Ready && w.numCtx <= in.numCtx && in.inFlight < in.slots
	if len(l.queue) >= l.cfg.MaxQueue && !atOnce {
		// the text is Ollama's, both spaces too: clients look for it
		w.answer(answer{err: &fault.Error{
			Code: fault.Busy, Op: "scheduler.Lease", RetryAfter: retryAfter,
			Msg: "server busy, please try again.  maximum pending requests exceeded",
		}})
		return
	}
	l.queue = append(l.queue, w)
}

// leave takes a caller that has gone out of the queue, and ends a load that nobody waits for any more.
func (l *loop) leave(w *waiter) {
	l.queue = slices.DeleteFunc(l.queue, func(have *waiter) bool { return have == w })
	if in := l.runners[w.path]; in != nil && in.state == Loading && !l.isAwaited(w.path) {
		l.move(in, Evict, "nobody waits for it any more")
	}
}

func (l *loop) isAwaited(path string) bool {
	return slices.ContainsFunc(l.queue, func(w *waiter) bool { return w.path == path })
}

func (l *loop) grant(act action) {
	w, in := l.queue[act.waiter], l.runners[act.path]
	l.queue = slices.Delete(l.queue, act.waiter, act.waiter+1)
	lease := &Lease{runner: in.runner, report: in.report, loading: max(0, in.readyAt.Sub(w.since))}
	lease.release = func() { l.s.tell(func(l *loop) { l.release(in) }) }
	in.inFlight++ // so that it counts among those who share the cores
	if !w.answer(answer{lease: lease, untold: l.shareCores()}) {
		in.inFlight--
		return
	}
	if w.want.KeepAlive != nil {
		in.keepAlive = *w.want.KeepAlive
	}
	if act.passing {
		in.passed++
	} else {
		in.passed = 0
	}
	in.lastUse, in.expiresAt = time.Now(), time.Time{}
	l.idle.Remove(in.path)
}

func (l *loop) release(in *instance) {
	in.inFlight--
	in.lastUse = time.Now()
	if in.inFlight > 0 {
		return
	}
	switch in.state {
	case Ready:
		l.becomesIdle(in)
	case Draining:
		l.move(in, LastDone, "")
	}
}

// becomesIdle starts the keep_alive: it counts from the end of the last request.
func (l *loop) becomesIdle(in *instance) {
	in.expiresAt = expiry(in.keepAlive)
	if in.unload {
		in.expiresAt = time.Now()
	}
	l.idle.Add(in.path, in)
}

// expiry is when a model that became idle now goes; zero is never.
func expiry(keepAlive time.Duration) time.Time {
	if keepAlive < 0 {
		return time.Time{}
	}
	return time.Now().Add(keepAlive)
}

func (l *loop) evict(in *instance, reason string) {
	if !l.move(in, Evict, reason) {
		return
	}
	if in.state == Draining && in.inFlight == 0 {
		l.move(in, LastDone, reason)
	}
}

// expire evicts the idle runners whose keep_alive is over, and tells whether there were any.
func (l *loop) expire() (any bool) {
	now := time.Now()
	for _, in := range l.idle.Values() {
		if !in.expiresAt.IsZero() && !in.expiresAt.After(now) {
			l.evict(in, "keep_alive is over")
			any = true
		}
	}
	return any
}

// untilExpiry is how long the owner may sleep.
func (l *loop) untilExpiry() time.Duration {
	d := time.Hour
	for _, in := range l.idle.Values() {
		if !in.expiresAt.IsZero() {
			d = min(d, time.Until(in.expiresAt))
		}
	}
	return max(0, d)
}

func (l *loop) unload(path string) {
	in := l.runners[path]
	if in == nil {
		return
	}
	switch in.state {
	case Loading: // those who wait are served first
		in.unload = true
	case Ready:
		l.evict(in, "unload was asked for")
	}
}

// close begins the shutdown: no new leases, and whoever has none goes.
func (l *loop) close() {
	l.closing = true
	l.refuse(func(*waiter) bool { return true }, errStopped())
	for _, in := range l.runners {
		if in.state == Loading || in.state == Ready {
			l.evict(in, "shutdown")
		}
	}
}

// graceOver ends the runners that still have leases. Their streams end with an error.
func (l *loop) graceOver() {
	for _, in := range l.runners {
		if in.state == Draining {
			l.move(in, GraceOver, "the grace of the shutdown is over")
		}
	}
}

// forever is how far in the future a model is said to expire that is kept for ever. Ollama's clients show it as Forever.
const forever = time.Duration(math.MaxInt64)

func (l *loop) snapshot() []Loaded {
	now := time.Now()
	out := make([]Loaded, 0, len(l.runners))
	for _, in := range l.runners {
		item := Loaded{Model: in.model, State: in.state.String(), Report: in.report, InFlight: in.inFlight, ExpiresAt: in.expiresAt}
		switch {
		case in.state == Draining || in.state == Stopping: // a time that has passed is shown as Stopping...
			item.ExpiresAt = now
		case in.expiresAt.IsZero():
			// in use or loading: were it to end now, it would expire then
			if item.ExpiresAt = expiry(in.keepAlive); in.keepAlive < 0 {
				item.ExpiresAt = now.Add(forever)
			}
		}
		out = append(out, item)
	}
	slices.SortFunc(out, func(a, b Loaded) int {
		if c := b.ExpiresAt.Compare(a.ExpiresAt); c != 0 {
			return c
		}
		return strings.Compare(a.Model.Name, b.Model.Name)
	})
	return out
}
