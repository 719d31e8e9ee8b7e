package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler/fit"
	"sluice/units"
)

// need is how a model shall be loaded: as it would be with nothing in the way that can be evicted.
type need struct {
	load     fit.Load
	plan     fit.Plan
	layers   int    // on GPUs at least; fewer are no reason to hurry, because evicting or waiting gives more
	path     string // of the model, whose other runners it may not be loaded beside on the same GPUs
	replicas int    // runners of the model at most; 0: any number
}

// shortage is why a model cannot be loaded, whatever is evicted.
type shortage struct {
	load    fit.Load
	needs   []runner.DeviceMemory
	has     uint64   // that models may have of the devices, together
	limited bool     // by Config.Memory
	pinned  uint64   // held by runners that are never evicted
	other   uint64   // held by other programs
	absent  []string // devices that the model's setting names and that are not there
	places  int      // > 0: so many models may be loaded, and all of them are pinned
	passing bool     // without the other programs it could be loaded: they come and go
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
	short = &shortage{load: last, needs: plan.Memory, limited: a.limit > 0, absent: a.absent(last.Devices)}
	may := func(id string) bool { return len(last.Devices) == 0 || slices.Contains(last.Devices, id) }
	for i, d := range a.devices {
		counts := !d.device.Integrated || a.main < 0 // else what it has is main memory's
		if may(d.device.ID) && (counts || !may(runner.CPU)) {
			short.has += d.capacity
		}
		if i != a.main && !may(d.device.ID) {
			continue // it may not go there; main memory has its input in any case
		}
		if ok {
			short.other += d.other
		}
		for id, charge := range a.charges {
			if ok && pinned(id) && counts {
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

// absent are those of the devices with these ids that the machine has not got.
func (a *account) absent(ids []string) (list []string) {
	for _, id := range ids {
		if !slices.ContainsFunc(a.devices, func(d deviceAccount) bool { return d.device.ID == id }) {
			list = append(list, id)
		}
	}
	return list
}

// absentText tells of them. The ids are the operator's own words.
func absentText(ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("of its devices %s is not there", ids[0])
	}
	return fmt.Sprintf("of its devices %s are not there", strings.Join(ids, ", "))
}

// error is what the caller is told: numbers, and no names, because the others' models are not the caller's business.
func (s *shortage) error() error {
	if s.places > 0 {
		return &fault.Error{
			Code: fault.Busy, Op: "scheduler.Lease", RetryAfter: retryAfter, Hint: "raise max_loaded_models, or pin fewer models",
			Msg: fmt.Sprintf("no more than %d models may be loaded at a time, and all of these places are held by models that are pinned", s.places),
		}
	}
	if len(s.absent) > 0 && len(s.absent) == len(s.load.Devices) {
		return &fault.Error{
			Code: fault.Conflict, Op: "scheduler.Lease", Hint: devicesAdvice,
			Msg: fmt.Sprintf("the model may be loaded on no other devices than %s, and none of them is there", strings.Join(s.absent, ", ")),
		}
	}
	var all, weights uint64
	for _, m := range s.needs {
		all, weights = all+m.Bytes(), weights+m.Weights
	}
	size := func(n uint64) string { return units.Bytes(n).Memory() }
	msg := fmt.Sprintf("the model needs %s of memory at num_ctx %d × %d parallel, %s of which are its weights; ", size(all), s.load.NumCtx, s.load.Parallel, size(weights))
	has := fmt.Sprintf("the machine has %s for models", size(s.has))
	if len(s.load.Devices) > 0 {
		has = fmt.Sprintf("its devices have %s for models", size(s.has))
	}
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
	if len(s.absent) > 0 {
		f.Msg, f.Hint = f.Msg+"; "+absentText(s.absent), devicesAdvice
	}
	return f
}

// advice is what makes a model smaller.
const advice = "use a smaller num_ctx, fewer requests at a time (parallel), kv_cache_type q8_0, or a smaller model"

// devicesAdvice is for a setting that names what is not there.
const devicesAdvice = "`sluice doctor` lists the devices; correct devices in the model's settings"
