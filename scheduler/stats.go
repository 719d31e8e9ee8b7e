package scheduler

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// forever is how far in the future a model is said to expire that is kept for ever. Ollama's clients show it as Forever.
const forever = time.Duration(math.MaxInt64)

// snapshot is what there is, the latest expiry first.
func (l *loop) snapshot() []Loaded {
	l.same = true
	now := time.Now()
	out := make([]Loaded, 0, len(l.runners))
	for _, in := range l.runners {
		item := Loaded{
			Model: in.model, State: in.state.String(), Report: in.report, Memory: slices.Clone(in.charge), Placement: slices.Clone(in.plan.Shares),
			Layers: layers(in.load), NumCtx: in.numCtx, Progress: math.Float32frombits(in.progress.Load()), ExpiresAt: in.expiresAt, InFlight: in.inFlight,
			Waiting: l.waiting(in.path), Pinned: l.isPinned(in), Warning: in.warning,
		}
		if !in.readyAt.IsZero() {
			item.Progress = 1
			item.Memory = slices.Clone(in.report.Memory)
		}
		switch {
		case in.state == Draining || in.state == Stopping: // a time that has passed is shown as Stopping...
			item.ExpiresAt = now
		case item.Pinned:
			item.ExpiresAt = now.Add(forever)
		case in.expiresAt.IsZero():
			// in use or loading: were it to end now, it would expire then
			if item.ExpiresAt = expiry(in.keepAlive); in.keepAlive < 0 {
				item.ExpiresAt = now.Add(forever)
			}
		}
		out = append(out, item)
	}
	for _, e := range l.servers {
		for _, u := range e.uses {
			out = append(out, Loaded{
				Model: u.model, State: Ready.String(), Report: u.report, NumCtx: u.report.NumCtx, Progress: 1, ExpiresAt: now.Add(forever),
				InFlight: u.inFlight, Waiting: l.waitingFor(e, u), Remote: e.remote.Name(),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Loaded) int {
		if c := b.ExpiresAt.Compare(a.ExpiresAt); c != 0 {
			return c
		}
		if c := strings.Compare(a.Model.Name, b.Model.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Remote, b.Remote)
	})
	return out
}

// waitingFor is how many requests wait that a server could take.
func (l *loop) waitingFor(e *elsewhere, u *use) (n int) {
	for _, w := range l.queue {
		for _, o := range l.offers(w.want.Model.Name) {
			if l.servers[o.server] == e && o.model.Name == u.model.Name {
				n++
			}
		}
	}
	return n
}

// stats counts what there was, and what there is.
func (l *loop) stats() Stats {
	l.same = true
	if time.Since(l.memory.tried) > readAge {
		l.measure() // for who asks next
	}
	return Stats{
		Loads: maps.Clone(l.counted.Loads), Unloads: maps.Clone(l.counted.Unloads), Refused: maps.Clone(l.counted.Refused),
		Waiting: len(l.queue), Devices: l.devices(),
	}
}

// devices are those of the last reading with what is on them.
func (l *loop) devices() (list []DeviceUse) {
	for _, d := range l.memory.devices {
		use := DeviceUse{Device: d, Limit: less(d.TotalBytes, keep(d, l.cfg.GPUOverhead))}
		if l.cfg.Memory > 0 {
			use.Limit = min(use.Limit, l.cfg.Memory)
		}
		for _, in := range l.runners {
			var n uint64
			for _, m := range in.charge {
				if m.Device == d.ID {
					n += m.Bytes()
				}
			}
			if in.readyAt.IsZero() {
				use.Reserved += n
			} else {
				use.Used += n
			}
			if n > 0 && !slices.Contains(use.Models, in.model.Name) {
				use.Models = append(use.Models, in.model.Name)
			}
		}
		list = append(list, use)
	}
	return list
}
