package scheduler

import (
	"context"
	"slices"
	"strings"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// elsewhere is a server that runs models for this one: always ready, with so many slots, and without memory of ours.
type elsewhere struct {
	remote   Remote
	inFlight int
	uses     map[string]*use // by the name that the server has for the model; those in use now
}

// use is what ps shows of it.
type use struct {
	model    *models.Model
	report   runner.LoadReport
	inFlight int
}

// offer is a server that has a model, as it calls it.
type offer struct {
	server int
	model  *models.Model
}

// watchServers runs the servers' own watching, and hears from it, until ctx ends.
func (l *loop) watchServers(ctx context.Context) {
	for _, e := range l.servers {
		r := e.remote
		l.lives.Go(func() {
			if err := r.Run(ctx); err != nil && ctx.Err() == nil {
				l.cfg.Log.Error("a server elsewhere is not watched any more", "remote", r.Name(), "error", err)
			}
		})
		l.lives.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case _, open := <-r.Changes():
					if !open || l.s.ask(ctx, func(l *loop) { l.serversChanged() }) != nil {
						return
					}
				}
			}
		})
	}
}

// serversChanged forgets who offers what, and answers those for whom nobody is left.
func (l *loop) serversChanged() {
	clear(l.offered)
	for _, w := range slices.Clone(l.queue) {
		if err := l.unserved(w); err != nil {
			l.refuse(refusedAway, func(have *waiter) bool { return have == w }, err)
		}
	}
}

// offers are the servers that have a model of this name.
func (l *loop) offers(name string) []offer {
	if len(l.servers) == 0 {
		return nil
	}
	if list, ok := l.offered[name]; ok {
		return list
	}
	var list []offer
	for i, e := range l.servers {
		for _, m := range e.remote.Models() {
			if models.SameName(m.Name, name) {
				list = append(list, offer{server: i, model: m})
				break
			}
		}
	}
	if len(l.offered) >= offeredNames {
		clear(l.offered)
	}
	l.offered[name] = list
	return list
}

// offeredNames bounds the cache of offers: names come from callers.
const offeredNames = 1024

// offersTo are the servers that may take a request.
func (l *loop) offersTo(w *waiter) []offer {
	list := l.offers(w.want.Model.Name)
	if len(w.without) == 0 || len(list) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(o offer) bool { return slices.Contains(w.without, l.servers[o.server].remote) })
}

// unserved gives the error for a request that nobody can serve now, nil when somebody can.
func (l *loop) unserved(w *waiter) error {
	if installed(w.want.Model) || len(l.offersTo(w)) > 0 {
		return nil
	}
	return &fault.Error{
		Code: fault.Busy, Op: "scheduler.Lease", RetryAfter: retryAfter,
		Msg: "the model runs on another server, and that cannot be reached now, please try again",
	}
}

// freeServer gives 1 + the index of the server that takes the request now, the one with the fewest others; 0: none does.
func (l *loop) freeServer(w *waiter) (found int) {
	for _, o := range l.offersTo(w) {
		e := l.servers[o.server]
		if e.inFlight < e.remote.Slots() && (found == 0 || e.inFlight < l.servers[found-1].inFlight) {
			found = o.server + 1
		}
	}
	return found
}

// grantAway gives the waiter a lease on a server elsewhere.
func (l *loop) grantAway(act action) {
	w := l.shown[act.waiter]
	i := l.freeServer(w) - 1
	if i < 0 { // it has changed since the policy saw it: the names that are remembered are bounded
		l.serversChanged()
		return
	}
	e := l.servers[i]
	offers := l.offers(w.want.Model.Name)
	m := offers[slices.IndexFunc(offers, func(o offer) bool { return o.server == i })].model
	l.dequeue(func(have *waiter) bool { return have == w })
	lease := &Lease{sched: l.s, want: w.want, runner: e.remote.Runner(m), remote: e.remote, failed: w.without}
	key := strings.ToLower(m.Name)
	lease.release = func() { l.s.tell(func(*loop) { e.release(key) }) }
	if !w.answer(answer{lease: lease}) {
		return
	}
	u := e.uses[key]
	if u == nil {
		u = &use{model: m}
		e.uses[key] = u
	}
	e.inFlight++
	u.inFlight++
}

func (e *elsewhere) release(key string) {
	e.inFlight--
	u := e.uses[key]
	if u.inFlight--; u.inFlight == 0 {
		delete(e.uses, key)
	}
}

func (l *loop) elsewhereInFlight() (n int) {
	for _, e := range l.servers {
		n += e.inFlight
	}
	return n
}

// prepared makes a lease ready for use: those who compute already have made room, a server elsewhere has said how it runs the model.
func (l *Lease) prepared(ctx context.Context, untold []<-chan struct{}) error {
	if l.Remote() == "" {
		return settle(ctx, untold)
	}
	return l.whole(ctx, func(r Runner) error {
		if l.Remote() == "" {
			return nil // it has moved here
		}
		report, err := r.Load(ctx, runner.LoadRequest{}, func(float32) {})
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.report = report
		name, remote := l.want.Model.Name, l.remote
		l.mu.Unlock()
		l.sched.tell(func(o *loop) { o.reported(remote, name, report) })
		return nil
	})
}

// reported notes for ps how a server runs a model.
func (l *loop) reported(remote Remote, name string, report runner.LoadReport) {
	for _, e := range l.servers {
		for _, u := range e.uses {
			if e.remote == remote && models.SameName(u.model.Name, name) {
				u.report = report
			}
		}
	}
}
