package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler/fit"
	"sluice/units"
)

// secondTry is a load that memory ran out for, and that is tried once more.
type secondTry struct {
	err    error
	layers int     // on GPUs at most, this time; negative: as many as fit
	factor float64 // this time; a guess, which is learned only when the load goes well
}

// secondLayers is how many layers fewer go to GPUs when memory ran out: one in so many, rounded up.
const secondLayers = 8

// load starts a runner for a waiter's model, as the policy placed it.
func (l *loop) load(w *waiter, n need, replica bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	req := l.cfg.loadRequest(w.want, n.load.NumCtx)
	req.Parallel, req.Placement = n.load.Parallel, n.plan.Shares
	l.lastID++
	if n.plan.Memory == nil && l.cfg.Inventory != nil { // the devices cannot be read: what it takes counts when they can
		n.plan.Memory = fit.Estimate(n.load, nil)
	}
	in := &instance{
		id: l.lastID, model: w.want.Model, path: w.path, settings: w.settings, numCtx: n.load.NumCtx, slots: req.Parallel, keepAlive: l.keepAlive(w, replica),
		begun: time.Now(), lastUse: time.Now(), mostThreads: req.NumThread, tune: make(chan tuning, 1), cancel: cancel, stop: make(chan struct{}),
		load: n.load, plan: n.plan, charge: n.plan.Memory, second: l.second[w.path], replica: replica,
	}
	in.warning = l.warning(in, l.cfg.loads(w, n.load.NumCtx, n.load.Factor, -1)[0].Layers)
	l.runners = append(l.runners, in)
	why := "a request"
	if replica {
		why = "its other runners are full"
	}
	l.move(in, Load, "", why)
	if in.warning != "" {
		l.cfg.Log.Warn("a model is not wholly where it would be on the empty machine", "model", in.model.Name, "warning", in.warning)
	}
	req.NumThread = min(req.NumThread, share(l.cfg.Threads, l.computing())) // it counts already
	in.threads = req.NumThread
	l.lives.Go(func() { l.s.live(ctx, in, req) })
}

// keepAlive of a new runner. A further one has that of the first, so that it goes when nobody needs it.
func (l *loop) keepAlive(w *waiter, replica bool) time.Duration {
	switch {
	case replica:
		if all := l.of(w.path); len(all) > 0 {
			return all[0].keepAlive
		}
	case w.settings.KeepAlive != nil:
		return *w.settings.KeepAlive
	}
	return l.cfg.KeepAlive
}

// warning says why a model gets fewer layers on GPUs than the machine could give it, of those that were asked for, and which of its
// devices are not there; asked is negative when all layers were asked for.
func (l *loop) warning(in *instance, asked int) string {
	a := l.account()
	if a == nil {
		return ""
	}
	list := a.fewer(in, asked)
	if absent := a.absent(in.load.Devices); len(absent) > 0 {
		list = append(list, absentText(absent)+"; `sluice doctor` lists what is")
	}
	return strings.Join(list, "; ")
}

// fewer is the first part of a warning, where there is one.
func (a *account) fewer(in *instance, asked int) []string {
	load := in.load
	load.Layers = asked // not those of a second try
	best, ok := a.place(load, a.whole(), nil)
	if !ok || best.Layers() <= in.plan.Layers() {
		return nil
	}
	why := "other models or programs have the rest of the GPUs' memory"
	if in.second != nil {
		why = "memory ran out when more of them were loaded"
	} else if other := a.otherOnGPUs(); other > 0 {
		why = fmt.Sprintf("other programs have %s of the GPUs' memory", units.Bytes(other).Memory())
	}
	return []string{fmt.Sprintf("%d layers are on GPUs, %d would be on the empty machine: %s", in.plan.Layers(), best.Layers(), why)}
}

// otherOnGPUs is what other programs have of the GPUs.
func (a *account) otherOnGPUs() (n uint64) {
	for i, d := range a.devices {
		if i != a.main && !d.device.Integrated {
			n += d.other
		}
	}
	return n
}

func (l *loop) loaded(in *instance, r Runner, report runner.LoadReport) {
	if in.state != Loading { // evicted in the meantime; it is being stopped
		l.counted.Loads[loadAbandoned]++
		return
	}
	in.runner, in.report, in.readyAt, in.took = r, report, time.Now(), time.Since(in.begun)
	in.numCtx = max(in.numCtx, report.NumCtx)
	if report.Parallel > 0 {
		in.slots = report.Parallel
	}
	l.learn(in)
	if len(report.Memory) > 0 {
		in.charge = charged(report.Memory)
	}
	l.counted.Loads[loadReady]++
	l.healed(in)
	delete(l.second, in.path)
	l.move(in, LoadDone, "", "")
	l.becomesIdle(in)
}

// Outcomes of loads, as they are counted.
const (
	loadReady     = "ready"
	loadFailed    = "failed"
	loadAbandoned = "abandoned"
)

// charged is what a runner that reported this memory takes: on a GPU a process has more than it knows of.
func charged(report []runner.DeviceMemory) []runner.DeviceMemory {
	out := slices.Clone(report)
	for i := range out {
		if out[i].Device != runner.CPU {
			out[i].Compute += fit.GPUOverhead
		}
	}
	return out
}

// learn remembers what a model took, for its next load.
func (l *loop) learn(in *instance) {
	if took := fit.Allocated(in.report.Memory); took > 0 && in.plan.Bytes() > 0 {
		l.learned.Add(in.path, fit.Correct(in.load.Factor, in.plan.Bytes(), took))
	}
}

// onceMore prepares the second try of a load that memory ran out for. It tells whether there is one.
func (l *loop) onceMore(in *instance, err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != runner.KindMemory {
		return false
	}
	if in.second != nil || in.replica || l.cfg.Inventory == nil || l.closing || l.waiting(in.path) == 0 {
		return false
	}
	again := &secondTry{err: l.withNumbers(in, err), layers: -1, factor: fit.Raise(in.load.Factor)}
	if n := in.plan.Layers(); n > 0 {
		again.layers = n - (n+secondLayers-1)/secondLayers
	}
	l.second[in.path] = again
	return true
}

// withNumbers adds to an error of a load what it was thought to take.
func (l *loop) withNumbers(in *instance, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != runner.KindMemory || in.plan.Bytes() == 0 {
		return err
	}
	out := *f
	out.Err, out.Hint = err, cmp.Or(f.Hint, advice)
	out.Msg = fmt.Sprintf("%s; it was thought to need %s at num_ctx %d × %d parallel", f.Msg, units.Bytes(in.plan.Bytes()).Memory(), in.load.NumCtx, in.load.Parallel)
	return &out
}

// exited notes that a runner's process has ended; err says why when nobody asked it to.
func (l *loop) exited(in *instance, err error) {
	why := "stopped"
	if err != nil {
		why = err.Error()
		l.cfg.Log.Error("a runner died", "model", in.model.Name, "id", in.id, "in_flight", in.inFlight, "error", err)
		in.reason = ReasonDied
	}
	l.move(in, Exited, ReasonDied, why)
}

// layers of the model, the output among them; 0: not known.
func layers(load fit.Load) int {
	if load.Model == nil || len(load.Model.Facts.Layout.Layers) == 0 {
		return 0
	}
	return len(load.Model.Facts.Layout.Layers) + 1
}
