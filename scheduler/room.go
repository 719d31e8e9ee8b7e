package scheduler

import (
	"slices"

	"sluice/scheduler/fit"
)

// room finds room for a model that has no runner with the context that is asked for: it loads it, waits for what leaves anyway, or lets
// somebody go, the model's own runners first.
func (t *table) room(i int, w waiterView, n need) action {
	if plan, ok := t.fitsNow(n); ok {
		n.plan = plan
		return action{kind: load, waiter: i, need: n}
	}
	t.wake(memoryPoll)
	if t.memory != nil && (t.memory.lagging || len(t.memory.unseen) > 0) {
		t.wake(settlePoll)
	}
	idle := t.candidates(w, func(r *runnerView) bool {
		return r.idle() && !t.wanted[r.id] || r.state == Loading && !t.waited[r.path] // a further one, whose waiters the others have served
	})
	for _, draining := range []bool{false, true} { // those that stop are gone soon, those that drain may take long
		gone := t.leaving(draining)
		if plan, ok := t.fits(n, gone); ok {
			t.claim(need{plan: plan})
			return action{}
		}
		if victim := t.victim(n, gone, idle); victim != nil {
			return victim.goes(i, w)
		}
	}
	late := append(idle, t.candidates(w, func(r *runnerView) bool { return r.idle() && t.wanted[r.id] && t.overdue(w, r) })...)
	late = append(late, t.candidates(w, func(r *runnerView) bool { return r.state == Ready && r.inFlight > 0 && t.overdue(w, r) })...)
	if victim := t.victim(n, t.leaving(true), late); victim != nil {
		return victim.goes(i, w)
	}
	t.blocked = true
	if t.now.Sub(w.since) >= t.maxTurn {
		t.claim(n) // nothing else is loaded there any more
	}
	return action{}
}

// goes is the eviction of a runner for a waiter.
func (r *runnerView) goes(i int, w waiterView) action {
	reason := ReasonRoom
	if r.path == w.path {
		reason = ReasonContext
	}
	return action{kind: evict, waiter: i, runner: r.id, reason: reason}
}

// candidates are the runners that may go for a waiter and for which pick is true: its own model's first, whose context is too small, then
// second ones of their model, then as they were used. A pinned one goes for its own model only, after the others of it. Those that are
// spared are not among them.
func (t *table) candidates(w waiterView, pick func(*runnerView) bool) (list []*runnerView) {
	staying := map[string]int{}
	for i := range t.runners {
		if r := &t.runners[i]; r.state == Ready || r.state == Loading {
			staying[r.path]++
		}
	}
	var pinned, second, only []*runnerView
	for i := range t.runners {
		r := &t.runners[i]
		switch {
		case !pick(r) || r.pinned && r.path != w.path:
		case r.path == w.path && r.pinned:
			pinned = append(pinned, r)
		case r.path == w.path:
			list = append(list, r)
		case staying[r.path] > 1:
			staying[r.path]--
			second = append(second, r)
		case !t.spared(w, r):
			only = append(only, r)
		}
	}
	return slices.Concat(list, pinned, second, only)
}

// victim gives one of the fewest candidates whose going makes the model fit once gone have left too; nil when all of them are
// not enough, because then none should go.
func (t *table) victim(n need, gone map[int]bool, candidates []*runnerView) *runnerView {
	set := make(map[int]bool, len(gone)+len(candidates))
	for id := range gone {
		set[id] = true
	}
	for k, c := range candidates {
		set[c.id] = true
		if _, ok := t.fits(n, set); !ok {
			continue
		}
		for j := k - 1; j >= 0; j-- { // those that do not help stay, the ones used last first
			delete(set, candidates[j].id)
			if _, ok := t.fits(n, set); !ok {
				set[candidates[j].id] = true
			}
		}
		for _, c := range candidates[:k+1] {
			if set[c.id] {
				return c // the others follow when decide is asked again
			}
		}
	}
	return nil
}

// leaving are the runners that are on their way out.
func (t *table) leaving(draining bool) map[int]bool {
	gone := map[int]bool{}
	for i := range t.runners {
		if r := &t.runners[i]; r.state == Stopping || draining && r.state == Draining {
			gone[r.id] = true
		}
	}
	return gone
}

// counts tells whether the number of runners allows one more once gone have left.
func (t *table) counts(gone map[int]bool) bool {
	return t.maxLoaded == 0 || len(t.runners)-len(gone)+t.claimed < t.maxLoaded
}

// rest is what there will be for a waiter once gone have left, and earlier waiters have loaded theirs.
func (t *table) rest(gone map[int]bool) rooms {
	return t.memory.with(func(id int) bool { return !gone[id] }).minus(t.claims.free, t.claims.total)
}

// free is what there is at this moment without what earlier waiters wait for.
func (t *table) free() rooms { return t.memory.now().atMost(t.rest(t.leaving(true))) }

// without tells which GPUs have none of the runners.
func (t *table) without(runners []*runnerView) func(device int) bool {
	return func(device int) bool {
		return !slices.ContainsFunc(runners, func(r *runnerView) bool { return t.memory.charges[r.id][device] > 0 })
	}
}

// place asks where a model goes when there are these rooms because gone have left. Beside another runner of it, it must go to GPUs that
// have none.
func (t *table) place(n need, r func() rooms, gone map[int]bool) (fit.Plan, bool) {
	var beside []*runnerView
	for _, other := range t.of[n.path] {
		if !gone[other.id] {
			beside = append(beside, other)
		}
	}
	var only func(device int) bool
	if len(beside) > 0 {
		if t.memory == nil || n.layers == 0 || n.replicas > 0 && len(beside) >= n.replicas {
			return fit.Plan{}, false
		}
		only = t.without(beside)
	}
	if t.memory == nil {
		return fit.Plan{}, true
	}
	plan, ok := t.memory.place(n.load, r(), only)
	return plan, ok && plan.Layers() >= n.layers
}

// fitsNow tells whether the model can be loaded at this moment, without taking from earlier waiters what they wait for.
func (t *table) fitsNow(n need) (fit.Plan, bool) {
	if t.maxLoaded > 0 && len(t.runners) >= t.maxLoaded || !t.counts(t.leaving(true)) {
		return fit.Plan{}, false
	}
	return t.place(n, t.free, nil)
}

// fits tells whether it can be loaded once gone have left.
func (t *table) fits(n need, gone map[int]bool) (fit.Plan, bool) {
	if !t.counts(gone) {
		return fit.Plan{}, false
	}
	return t.place(n, func() rooms { return t.rest(gone) }, gone)
}

// claim keeps later waiters from what this one will load.
func (t *table) claim(n need) {
	t.claimed++
	if t.memory == nil {
		return
	}
	charge := t.memory.vector(n.plan.Memory)
	for i, b := range charge {
		t.claims.free[i] += b
	}
	t.claims.total += t.memory.bytes(charge)
}
