package scheduler

import (
	"fmt"
	"slices"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler/fit"
	"sluice/units"
)

// need is how a model shall be loaded: as it would be with nothing in the way that can be evicted.
type need struct {
	load   fit.Load
	plan   fit.Plan
	layers int // on GPUs at least; fewer are no reason to hurry, because evicting or waiting gives more
}

// shortage is why a model cannot be loaded, whatever is evicted.
type shortage struct {
	load    fit.Load
	needs   []runner.DeviceMemory
	has     uint64 // that models may have of the devices, together
	limited bool   // by Config.Memory
	pinned  uint64 // held by runners that are never evicted
	other   uint64 // held by other programs
	places  int    // > 0: so many models may be loaded, and all of them are pinned
	passing bool   // without the other programs it could be loaded: they come and go
}

// need picks among the ways to load a model: the one with the most layers on GPUs, and of these the one with the most sequences.
// pinned tells which runners stay whatever happens.
func (a *account) need(ways []fit.Load, pinned func(id int) bool) (n need, short *shortage) {
	if a == nil {
		return need{load: ways[0]}, nil
	}
	found := false
	for _, load := range ways {
		plan, ok := a.place(load, a.with(pinned), nil)
		if ok && (!found || plan.Layers() > n.layers) {
			n, found = need{load: load, plan: plan, layers: plan.Layers()}, true
		}
	}
	if found {
		return n, nil
	}
	last := ways[len(ways)-1] // the smallest
	plan, ok := a.place(last, a.whole(), nil)
	short = &shortage{load: last, needs: plan.Memory, limited: a.limit > 0}
	for i, d := range a.devices {
		if i != a.main && len(last.Devices) > 0 && !slices.Contains(last.Devices, d.device.ID) {
			continue // it may not go there
		}
		if !d.device.Integrated || a.main < 0 {
			short.has += d.capacity
		}
		if ok {
			short.other += d.other
		}
		for id, charge := range a.charges {
			if ok && pinned(id) && (!d.device.Integrated || a.main < 0) {
				short.pinned += charge[i]
			}
		}
	}
	if ok {
		_, short.passing = a.place(last, a.without(pinned), nil)
	}
	if !short.passing {
		short.other = 0 // they are not why: what is pinned is enough
	}
	if a.limit > 0 {
		short.has = min(short.has, a.limit)
	}
	return n, short
}

// error is what the caller is told: numbers, and no names, because the others' models are not the caller's business.
func (s *shortage) error() error {
	if s.places > 0 {
		return &fault.Error{
			Code: fault.Busy, Op: "scheduler.Lease", RetryAfter: retryAfter, Hint: "raise max_loaded_models, or pin fewer models",
			Msg: fmt.Sprintf("no more than %d models may be loaded at a time, and all of these places are held by models that are pinned", s.places),
		}
	}
	var all, weights uint64
	for _, m := range s.needs {
		all, weights = all+m.Bytes(), weights+m.Weights
	}
	size := func(n uint64) string { return units.Bytes(n).Memory() }
	msg := fmt.Sprintf("the model needs %s of memory at num_ctx %d × %d parallel, %s of which are its weights; ", size(all), s.load.NumCtx, s.load.Parallel, size(weights))
	has := fmt.Sprintf("the machine has %s for models", size(s.has))
	if s.limited {
		has = fmt.Sprintf("models may have %s", size(s.has))
	}
	f := &fault.Error{Op: "scheduler.Lease", Kind: runner.KindMemory, Hint: advice}
	switch {
	case s.pinned > 0 && s.other > 0:
		f.Code, f.RetryAfter = fault.Busy, retryAfter
		f.Msg = msg + fmt.Sprintf("%s, but %s are held by models that are pinned and %s by other programs", has, size(s.pinned), size(s.other))
	case s.pinned > 0:
		f.Code, f.RetryAfter = fault.Busy, retryAfter
		f.Msg = msg + fmt.Sprintf("%s, but %s are held by models that are pinned", has, size(s.pinned))
	case s.other > 0:
		f.Code, f.RetryAfter = fault.Busy, retryAfter
		f.Msg = msg + fmt.Sprintf("%s, but %s are held by other programs", has, size(s.other))
	default:
		f.Code, f.Msg = fault.TooLarge, msg+has
	}
	return f
}

// advice is what makes a model smaller.
const advice = "use a smaller num_ctx, fewer requests at a time (parallel), kv_cache_type q8_0, or a smaller model"
