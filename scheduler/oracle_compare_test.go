package scheduler

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing/synctest"

	"sluice/runner"
)

// check waits until everybody waits, and compares.
func (o *oracle) check() {
	synctest.Wait()
	if err := o.s.Inspect(context.Background(), o.compare); err != nil {
		o.fail("inspect: %v", err)
	}
}

// item is a loaded runner as both sides must tell of it.
type item struct {
	path, memory, placement string
	numCtx, parallel, users int
}

func lines(memory []runner.DeviceMemory) string {
	return fmt.Sprint(memory)
}

// compare holds ps, the charges and the counters against the world.
func (o *oracle) compare(ps []Loaded, charges map[string]uint64, leases map[int]int, stats Stats) {
	mine, theirs := map[item]int{}, map[item]int{}
	var loading, alone, there int
	o.w.mu.Lock()
	started := o.w.started
	for _, f := range o.w.all {
		switch {
		case f.ended || f.stopped:
		case f.readyAt.IsZero():
			if loading++; f.beside == 0 {
				alone++
			}
		default:
			mine[item{f.name, lines(reported(f.has)), placement(f.req.Placement), f.req.NumCtx, f.req.Parallel, f.users}]++
		}
	}
	o.w.all = slices.DeleteFunc(o.w.all, func(f *fake) bool { return f.ended })
	o.w.mu.Unlock()

	waits, pins := map[string]int{}, map[string]int{}
	sum := map[string]uint64{}
	for _, l := range ps {
		if l.Remote != "" {
			continue
		}
		there++
		name := filepath.Base(l.Model.Path)
		waits[name] = l.Waiting
		overhead := uint64(0)
		switch l.State {
		case "ready", "draining":
			theirs[item{name, lines(l.Memory), placement(l.Placement), l.NumCtx, l.Report.Parallel, l.InFlight}]++
		case "loading":
			loading--
			if l.Waiting == 0 && alone > 0 && !slices.ContainsFunc(ps, func(b Loaded) bool { return b.Model.Path == l.Model.Path && b.State != "loading" }) && o.byName[name].settings.Replicas == 1 {
				o.fail("%s loads, and nobody waits for it", name)
			}
		}
		if l.Report.NumCtx > 0 { // it has reported
			overhead = 457 << 20
		}
		for _, m := range l.Memory {
			sum[m.Device] += m.Bytes()
			if m.Device != runner.CPU {
				sum[m.Device] += overhead
			}
		}
		if l.Pinned {
			pins[name]++
		}
		for _, s := range l.Placement {
			if only := o.byName[name].settings.Devices; len(only) > 0 && !slices.Contains(only, s.Device) {
				o.fail("%s is on %s, and may be on %v", name, s.Device, only)
			}
		}
	}
	for i, n := range mine {
		if theirs[i] != n {
			o.fail("there are %d runners %+v, ps says %d of them: %+v", n, i, theirs[i], theirs)
		}
	}
	for i, n := range theirs {
		if mine[i] != n {
			o.fail("ps says %d runners %+v, there are %d: %+v", n, i, mine[i], mine)
		}
	}
	if loading != 0 {
		o.fail("there are %d more runners that load than ps says", loading)
	}
	for name, n := range pins {
		if n > 1 || !o.byName[name].settings.Pin {
			o.fail("%s is pinned %d times", name, n)
		}
	}
	o.mu.Lock()
	waiting, total := map[string]int{}, 0
	for name, n := range o.waiting {
		waiting[name] = n
		total += n
	}
	for id, had := range o.drained {
		if leases[id] > had {
			defer o.fail("%s#%d drains, and has %d leases after %d", o.names[id], id, leases[id], had)
		}
		o.drained[id] = leases[id]
	}
	o.mu.Unlock()
	for name, n := range waits {
		if waiting[name] != n {
			o.fail("%d wait for %s, ps says %d", waiting[name], name, n)
		}
	}
	if stats.Waiting != total {
		o.fail("%d wait, the counters say %d", total, stats.Waiting)
	}
	o.memory(sum, charges, stats)
	o.counted(stats, started, there, ps)
}

// memory holds what is charged against ps and the devices.
func (o *oracle) memory(sum, charges map[string]uint64, stats Stats) {
	for id, n := range charges {
		if sum[id] != n {
			o.fail("%s: %d bytes are charged, ps has %d", id, n, sum[id])
		}
	}
	for _, d := range stats.Devices {
		if d.Used+d.Reserved != charges[d.ID] {
			o.fail("%s: the counters say %d + %d, %d are charged", d.ID, d.Used, d.Reserved, charges[d.ID])
		}
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	for _, d := range o.m.devices {
		if n := o.m.taken[d.ID] + o.m.other[d.ID]; n > int64(d.TotalBytes) {
			o.fail("%s is over its memory by %d", d.ID, n-int64(d.TotalBytes))
		}
		if o.exact && charges[d.ID] > d.TotalBytes {
			o.fail("%s: %d bytes are charged of %d", d.ID, charges[d.ID], d.TotalBytes)
		}
	}
}

// counted holds the counters against each other and against what was started.
func (o *oracle) counted(stats Stats, started, there int, ps []Loaded) {
	loads, unloads := 0, 0
	for _, n := range stats.Loads {
		loads += n
	}
	for _, n := range stats.Unloads {
		unloads += n
	}
	loading := 0
	for _, l := range ps {
		if l.State == "loading" {
			loading++
		}
	}
	if started != loads+loading {
		o.fail("%d runners were started; %v ended their load and %d load", started, stats.Loads, loading)
	}
	if started != unloads+there {
		o.fail("%d runners were started; %v went and %d are there", started, stats.Unloads, there)
	}
}

// empty is the world after the end.
func (o *oracle) empty() {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if o.w.alive != 0 {
		o.fail("%d runners are alive after the end", o.w.alive)
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	for id, n := range o.m.taken {
		if n != 0 {
			o.fail("%d bytes of %s are not given back", n, id)
		}
	}
}
