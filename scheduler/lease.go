package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice/fault"
	"sluice/runner"
)

// Lease is the use of a loaded runner for one request. What it is on may change while nothing has been answered yet: a server
// elsewhere that cannot be reached is replaced.
type Lease struct {
	loading time.Duration
	want    Want
	sched   *Scheduler

	mu       sync.Mutex
	runner   Runner
	report   runner.LoadReport
	remote   Remote   // nil: here
	failed   []Remote // that it was on before
	release  func()
	released bool
}

// Runner that the lease is on.
func (l *Lease) Runner() Runner {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runner
}

// Report of the load.
func (l *Lease) Report() runner.LoadReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

// Remote is the name of the server elsewhere that the lease is on; "" here.
func (l *Lease) Remote() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remote == nil {
		return ""
	}
	return l.remote.Name()
}

// LoadDuration is how long this request waited until its model was loaded: 0 when it was, however long the request then
// waited for others on it.
func (l *Lease) LoadDuration() time.Duration { return l.loading }

// Release gives the lease back. Calling it again does nothing.
func (l *Lease) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released {
		l.released = true
		l.release()
	}
}

// attempt makes a call on the lease's runner. When that is a server elsewhere that fails before the first byte of its answer
// because it is not well, the call is made again on another runner of the model, within the same ctx. begun tells that a byte has
// gone out, usable whether the call can be made on a runner with this report.
func (l *Lease) attempt(ctx context.Context, call func(Runner, runner.LoadReport) error, begun func() bool, usable func(runner.LoadReport) bool) error {
	for {
		l.mu.Lock()
		on, report, remote := l.runner, l.report, l.remote
		l.mu.Unlock()
		err := call(on, report)
		if err == nil || remote == nil || begun() || ctx.Err() != nil || !unwell(err) {
			return err
		}
		if !l.elsewhere(ctx, remote, err, usable) {
			return err
		}
	}
}

// elsewhere moves the lease to another runner, because its server failed with err. It tells whether there was one.
func (l *Lease) elsewhere(ctx context.Context, remote Remote, err error, usable func(runner.LoadReport) bool) bool {
	remote.Failed(err)
	l.sched.tell(func(o *loop) { o.serversChanged() })
	l.mu.Lock()
	l.failed = append(l.failed, remote)
	without := slices.Clone(l.failed)
	l.mu.Unlock()
	next, nextErr := l.sched.lease(ctx, l.want, without)
	if nextErr != nil {
		return false // what the server said is nearer to the cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released || !usable(next.report) {
		next.Release()
		return false
	}
	l.release()
	l.runner, l.report, l.remote, l.release, l.failed = next.runner, next.report, next.remote, next.Release, next.failed
	return true
}

// unwell tells an error of a server from one of the request: the request would fail in the same way anywhere else.
func unwell(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Busy, fault.Internal, fault.NotFound: // NotFound: it has not got the model any more
		return true
	}
	return false
}

// grant gives the waiter a lease on a runner.
func (l *loop) grant(act action) {
	w, in := l.shown[act.waiter], l.byID(act.runner)
	l.dequeue(func(have *waiter) bool { return have == w })
	lease := &Lease{sched: l.s, want: w.want, runner: in.runner, report: in.report, loading: max(0, in.readyAt.Sub(w.since))}
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
	in.served++
	in.reads(w.want.Prefix)
	in.lastUse, in.expiresAt = time.Now(), time.Time{}
	l.idle.Remove(in.id)
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
		l.move(in, LastDone, in.reason, "")
	}
}

// becomesIdle starts the keep_alive: it counts from the end of the last request.
func (l *loop) becomesIdle(in *instance) {
	in.expiresAt = expiry(in.keepAlive)
	switch {
	case in.unload:
		in.expiresAt = time.Now()
	case l.isPinned(in):
		in.expiresAt = time.Time{}
	}
	l.idle.Add(in.id, in)
}

// expiry is when a model that became idle now goes; zero is never.
func expiry(keepAlive time.Duration) time.Time {
	if keepAlive < 0 {
		return time.Time{}
	}
	return time.Now().Add(keepAlive)
}

// prefixes bounds how many beginnings of prompts are remembered of a runner.
const prefixes = 1024

// reads notes the beginning of a prompt that the runner gets.
func (in *instance) reads(chain []uint64) {
	if len(chain) == 0 {
		return
	}
	if in.prefixes == nil {
		lru, err := simplelru.NewLRU[uint64, struct{}](prefixes, nil)
		if err != nil {
			onBug(err)
			return
		}
		in.prefixes = lru
	}
	for _, h := range chain {
		in.prefixes.Add(h, struct{}{})
	}
}

// seen is how much of a waiter's prompt a runner has read: each hash stands for all before it too.
func (l *loop) seen(waiter, id int) int {
	chain, in := l.shown[waiter].want.Prefix, l.byID(id)
	if in.prefixes == nil {
		return 0
	}
	for n := len(chain); n > 0; n-- {
		if in.prefixes.Contains(chain[n-1]) {
			return n
		}
	}
	return 0
}
