package scheduler

import "sluice/scheduler/fit"

// room finds room for a model that has none: it loads it, waits for what leaves anyway, or lets somebody go.
func (t *table) room(i int, w waiterView, n need) action {
	if plan, ok := t.fitsNow(n); ok {
		n.plan = plan
		return action{kind: load, waiter: i, need: n}
	}
	t.wake(memoryPoll)
	if t.memory != nil && (t.memory.lagging || len(t.memory.unseen) > 0) {
		t.wake(settlePoll)
	}
	idle := t.candidates(func(r *runnerView) bool {
		return r.idle() && !t.wanted[r.id] || r.state == Loading && !t.waited[r.path] // a further one, whose waiters the others have served
	})
	for _, draining := range []bool{false, true} { // those that stop are gone soon, those that drain may take long
		gone := t.leaving(draining)
		if plan, ok := t.fits(n, gone); ok {
			t.claim(need{plan: plan}, rooms{})
			return action{}
		}
		if victim := t.victim(n, gone, idle); victim != nil {
			return action{kind: evict, waiter: i, runner: victim.id, reason: ReasonRoom}
		}
	}
	late := append(idle, t.candidates(func(r *runnerView) bool { return r.idle() && t.wanted[r.id] && t.overdue(w, r) })...)
	late = append(late, t.candidates(func(r *runnerView) bool { return r.state == Ready && r.inFlight > 0 && t.overdue(w, r) })...)
	if victim := t.victim(n, t.leaving(true), late); victim != nil {
		return action{kind: evict, waiter: i, runner: victim.id, reason: ReasonRoom}
	}
	t.blocked = true
	if t.now.Sub(w.since) >= t.maxTurn {
		t.claim(n, rooms{}) // nothing else is loaded there any more
	}
	return action{}
}

// candidates are the runners that may go and for which pick is true: second ones of their model first, then as they were used.
func (t *table) candidates(pick func(*runnerView) bool) (list []*runnerView) {
	staying := map[string]int{}
	for i := range t.runners {
		if r := &t.runners[i]; r.state == Ready || r.state == Loading {
			staying[r.path]++
		}
	}
	var only []*runnerView
	for i := range t.runners {
		r := &t.runners[i]
		switch {
		case r.pinned || !pick(r):
		case staying[r.path] > 1:
			staying[r.path]--
			list = append(list, r)
		default:
			only = append(only, r)
		}
	}
	return append(list, only...)
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

// rest is what there will be for a waiter once those that leave have gone, and earlier waiters have loaded theirs.
func (t *table) rest(draining bool) rooms {
	if t.memory == nil {
		return rooms{}
	}
	gone := t.leaving(draining)
	return t.memory.with(func(id int) bool { return !gone[id] }).minus(t.claims.free, t.claims.total)
}

// free is what there is at this moment without what earlier waiters wait for.
func (t *table) free() rooms { return t.memory.now().atMost(t.rest(true)) }

// fitsNow tells whether the model can be loaded at this moment, without taking from earlier waiters what they wait for.
func (t *table) fitsNow(n need) (fit.Plan, bool) {
	if t.maxLoaded > 0 && len(t.runners) >= t.maxLoaded || !t.counts(t.leaving(true)) {
		return fit.Plan{}, false
	}
	if t.memory == nil {
		return fit.Plan{}, true
	}
	plan, ok := t.memory.place(n.load, t.free(), nil)
	return plan, ok && plan.Layers() >= n.layers
}

// fits tells whether it can be loaded once gone have left.
func (t *table) fits(n need, gone map[int]bool) (fit.Plan, bool) {
	if !t.counts(gone) {
		return fit.Plan{}, false
	}
	if t.memory == nil {
		return fit.Plan{}, true
	}
	r := t.memory.with(func(id int) bool { return !gone[id] }).minus(t.claims.free, t.claims.total)
	plan, ok := t.memory.place(n.load, r, nil)
	return plan, ok && plan.Layers() >= n.layers
}

// claim keeps later waiters from what this one will load. r, where it is given, is where it will find room.
func (t *table) claim(n need, r rooms) {
	t.claimed++
	if t.memory == nil {
		return
	}
	plan := n.plan
	if r.free != nil {
		if p, ok := t.memory.place(n.load, r, nil); ok {
			plan = p
		}
	}
	charge := t.memory.vector(plan.Memory)
	for i, b := range charge {
		t.claims.free[i] += b
	}
	t.claims.total += t.memory.bytes(charge)
}
