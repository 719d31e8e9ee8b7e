package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// end is how a request of a workload ends when nobody serves it.
type end int

const (
	served    end = iota // it waits for ever
	cancelled            // its caller leaves
	late                 // its time is over
)

// bound is how long a request may wait by the rules, since begin, when so many waited for the same model before it. A round is the turn
// of one model:
//
//	until its turn is over           MaxTurn, from when it was ready and the next one waited
//	until its last lease ends        mostHeld
//	until its memory is back         a stop, 5 s (settleFor) for what drivers or other programs give back, two slow readings
//	until the next one is loaded     one load; one more where memory may run out; where one may be stuck, until LoadTimeout
//
// Each other model that somebody wanted meanwhile may be ahead of it in each round but one: one whose load had begun. Each round serves at
// least one of those ahead of it for the same model; a crash takes a round.
func (o *oracle) bound(k *kind, begin time.Time, ahead, crashes int) time.Duration {
	load := mostLoading
	if !o.exact {
		load *= 2
	}
	turn := o.cfg.MaxTurn + mostHeld + 7*time.Second + load
	round := 2 * turn
	for _, other := range o.kinds {
		if other == k || o.waiting[other.name]+o.holding[other.name] > 0 || !o.wanted[other.name].Before(begin) {
			round += turn
			if other.flaky {
				round += patienceOf
			}
		}
	}
	return time.Duration(1+ahead)*round + time.Duration(crashes)*(turn+patienceOf)
}

// lease is one request, from its question to the release.
func (o *oracle) lease(k *kind, want Want, how end, patience, hold time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch how {
	case cancelled:
		defer time.AfterFunc(patience, cancel).Stop()
	case late:
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	begin := time.Now()
	o.mu.Lock()
	ahead, crashes, pinned := o.waiting[k.name], o.crashes, o.pinnedThere()
	o.waiting[k.name]++
	o.mu.Unlock()
	lease, err := o.s.Lease(ctx, want)
	o.mu.Lock()
	if err == nil {
		o.holding[k.name]++
		defer o.left(k)
	}
	o.waiting[k.name]--
	waited := time.Since(begin)
	bound := o.bound(k, begin, ahead, o.crashes-crashes)
	o.wanted[k.name] = time.Now()
	o.longest = max(o.longest, float64(waited)/float64(bound))
	o.mu.Unlock()
	if waited > bound {
		o.fail("%s waited %s, over the bound of %s", want.Model.Name, waited, bound)
	}
	if err != nil {
		o.refused(k, want, how, ctx, err, begin, pinned)
		return
	}
	o.count("lease")
	f, here := lease.Runner().(*fake)
	if !here {
		name := lease.Remote()
		i := slices.IndexFunc(o.remotes, func(r *fakeRemote) bool { return r.name == name })
		if i < 0 || !slices.ContainsFunc(o.remotes[i].models, func(m *models.Model) bool { return m.Name == want.Model.Name }) {
			o.fail("%s is served by %q, which has not got it", want.Model.Name, name)
		}
		<-time.After(hold)
		lease.Release()
		return
	}
	f.use(1)
	if f.name != k.name {
		o.fail("asked for %s, got %s", k.name, f.name)
	}
	if got, asked := lease.Report().NumCtx, min(want.Options.NumCtx, k.model.Facts.ContextLength); got < asked {
		o.fail("%s: asked for a context of %d, got %d", k.name, asked, got)
	}
	<-time.After(hold)
	f.use(-1)
	lease.Release()
}

// left notes the end of a request that got a lease.
func (o *oracle) left(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holding[k.name]--
	o.wanted[k.name] = time.Now()
}

func (o *oracle) crashed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.crashes > 0
}

func (o *oracle) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got[what]++
}

// pinnedThere counts the runners of pinned models.
func (o *oracle) pinnedThere() (n int) {
	for id, name := range o.names {
		if o.byName[name].settings.Pin && o.states[id] != "gone" {
			n++
		}
	}
	return n
}

// refused judges an error: is what it says true?
func (o *oracle) refused(k *kind, want Want, how end, ctx context.Context, err error, begin time.Time, pinned int) {
	var f *fault.Error
	if !errors.As(err, &f) {
		if says := err.Error(); !(k.flaky && strings.Contains(says, "it broke")) && !(o.crashed() && strings.Contains(says, "it died")) {
			o.fail("%s: an error without a class: %v", want.Model.Name, err)
		}
		o.count("failed")
		return
	}
	o.mu.Lock()
	pinned = max(pinned, o.pinnedThere())
	waiting, all := o.waiting[k.name]+1, 1
	for _, n := range o.waiting {
		all += n
	}
	oom, changed, crashes := o.oom[k.name], o.changed, o.crashes
	var otherLast time.Time
	for _, at := range o.grew {
		if at.After(otherLast) {
			otherLast = at
		}
	}
	o.mu.Unlock()
	says := func(part string) bool { return strings.Contains(f.Msg, part) }
	lie := func(why string) {
		o.fail("%s (num_ctx %d, num_gpu %d): %s: %s", want.Model.Name, want.Options.NumCtx, want.Options.NumGPU, why, f.Msg)
	}
	what := "failed"
	switch {
	case f.Code == fault.Canceled:
		what = "cancelled"
		if how != cancelled || ctx.Err() == nil {
			lie("nobody cancelled it")
		}
	case says("in time"):
		what = "timeout"
		if how != late || ctx.Err() == nil {
			lie("it had time")
		}
	case says("maximum pending"):
		what = "full"
		if waiting < o.cfg.MaxQueue*3/4 && all < o.cfg.MaxQueue {
			lie("the queue is not full")
		}
	case says("on another server"):
		what = "unreachable"
		if !k.away || changed.IsZero() {
			lie("the servers are well")
		}
	case says("places are held"):
		what = "memory"
		if o.cfg.MaxLoaded == 0 || pinned < o.cfg.MaxLoaded {
			lie("they are not")
		}
	case says("the model needs"):
		what = "memory"
		if f.Kind != runner.KindMemory {
			lie("it has no kind")
		}
		switch {
		case f.Code == fault.TooLarge:
			if o.couldFit(k, want) {
				lie("it fits on the empty machine")
			}
		case says("pinned") && pinned == 0:
			lie("nothing is pinned")
		case says("other programs") && otherLast.IsZero():
			lie("there are none")
		}
	case says("ran out while the model was loaded"):
		if !oom {
			lie("it did not")
		}
	case says("the file is damaged"):
		if !k.fails {
			lie("it is not")
		}
	case says("killed its process"), says("crashed on it"), says("made no progress"), says("it died"):
		if !k.flaky && crashes == 0 {
			lie("it did not")
		}
	default:
		lie("an unexpected error")
	}
	o.count(what)
}

// sums holds the counters at the end against what requests got.
func (o *oracle) sums() {
	stats, err := o.s.Stats(context.Background())
	if err != nil {
		o.fail("stats: %v", err)
		return
	}
	o.mu.Lock()
	got := maps.Clone(o.got)
	o.mu.Unlock()
	r := stats.Refused
	if r[refusedFull] != got["full"] || r[refusedAway] != got["unreachable"] || r[refusedFailed]+r[refusedMemory] != got["failed"]+got["memory"] || r[refusedTimeout] > got["timeout"] {
		o.fail("requests ended as %v, the counters say %v", got, r)
	}
	if got["lease"] < 10 {
		o.fail("only %d requests got a lease: the workload shows nothing", got["lease"])
	}
}
