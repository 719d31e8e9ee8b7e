package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// oracle is a world with a scheduler in it, and an account of what that may do. None of the scheduler's own rules are used: only what the
// machine has, what runners were told and did, and what requests got. What a load takes is fit.Estimate, times what the world makes of it.
// How both sides are compared is in oracle_compare_test.go.
type oracle struct {
	t     *testing.T
	m     *machine
	w     *world
	s     *Scheduler
	cfg   Config
	exact bool   // estimates are never too small, and nobody else takes memory
	again string // how to run it again

	kinds   []*kind
	byName  map[string]*kind
	remotes []*fakeRemote

	mu       sync.Mutex
	waiting  map[string]int
	holding  map[string]int
	wanted   map[string]time.Time // when somebody waited for a model or had a lease on it, last
	got      map[string]int
	oom      map[string]bool
	grew     map[string]time.Time // devices of which others took memory
	blind    time.Time            // readings failed until then
	changed  time.Time            // of a server elsewhere
	crashes  int
	excused  int
	longest  float64 // wait, as a part of its bound
	failures int
	states   map[int]string // by the log
	names    map[int]string
	drained  map[int]int // leases that it had last
}

func newOracle(t *testing.T, m *machine, r *rand.Rand, exact bool) *oracle {
	o := &oracle{
		t: t, m: m, w: newWorld(), exact: exact, byName: map[string]*kind{}, waiting: map[string]int{}, holding: map[string]int{}, wanted: map[string]time.Time{}, got: map[string]int{},
		oom: map[string]bool{}, grew: map[string]time.Time{}, states: map[int]string{}, names: map[int]string{}, drained: map[int]int{},
	}
	o.kinds = kindsFor(r, m)
	for _, k := range o.kinds {
		o.byName[k.name] = k
	}
	o.w.machine = m
	o.w.onKill = func(name string, n int) { o.fail("%s is stopped under %d leases", name, n) }
	o.w.onOOM = o.ranOut
	o.w.onReady = func(f *fake) { k := o.byName[f.name]; k.least = min(k.least, f.plan.takes) }
	for i, slots := range []int{1, 3} {
		remote := &fakeRemote{name: fmt.Sprint("remote", i), slots: slots, note: func(string, ...any) {}, changes: make(chan struct{}, 1), well: true}
		remote.models = append(remote.models, &models.Model{Name: o.kinds[len(o.kinds)-1].name}, &models.Model{Name: o.kinds[2+i].name})
		o.remotes = append(o.remotes, remote)
	}
	o.cfg = Config{
		Start: o.w.start, Inventory: m, Log: slog.New(o), MaxQueue: []int{40, 512}[r.IntN(2)], KeepAlive: time.Duration(1+r.IntN(60)) * time.Second,
		MaxTurn: time.Duration(1+r.IntN(10)) * time.Second, MaxPass: 1 + r.IntN(10), LoadTimeout: patienceOf, Grace: time.Hour, Threads: 8,
		MaxLoaded: []int{0, 0, 0, 3}[r.IntN(4)], Parallel: []int{0, 0, 1, 4}[r.IntN(4)], KVCacheType: []string{"", "q8_0"}[r.IntN(2)],
		GPUOverhead: []uint64{0, 512 << 20}[r.IntN(2)],
		Settings: func(m *models.Model) Settings {
			k := o.byName[strings.TrimSuffix(m.Name, "-alias")]
			s := k.settings
			if strings.HasSuffix(m.Name, "-alias") {
				s.NumCtx = k.usual
			}
			return s
		},
	}
	for _, r := range o.remotes {
		o.cfg.Remotes = append(o.cfg.Remotes, r)
	}
	if r.IntN(4) == 0 {
		o.cfg.Memory = m.devices[0].TotalBytes / 4 * 3
	}
	s, err := New(o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.s = s
	return o
}

// fail tells of a fault, and how to see it again.
func (o *oracle) fail(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failures++; o.failures <= 8 {
		o.t.Errorf(format+"\nagain: "+o.again, args...)
	}
}

// Enabled and the rest make it the scheduler's log, for the moves of runners.
func (o *oracle) Enabled(context.Context, slog.Level) bool { return true }
func (o *oracle) WithAttrs([]slog.Attr) slog.Handler       { return o }
func (o *oracle) WithGroup(string) slog.Handler            { return o }

func (o *oracle) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "runner" {
		return nil
	}
	has := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { has[a.Key] = a.Value.String(); return true })
	number := func(key string) int { n, _ := strconv.Atoi(has[key]); return n }
	id, inFlight, name := number("id"), number("in_flight"), strings.TrimSuffix(has["model"], "-alias")
	if has["event"] == "last-done" && inFlight > 0 {
		o.fail("%s#%d ends with %d leases", name, id, inFlight)
	}
	if has["event"] == "evict" && has["reason"] == string(ReasonRoom) {
		if o.byName[name].settings.Pin && !o.older(id, name) {
			o.fail("%s#%d is pinned, and goes for another model", name, id)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names[id], o.states[id] = name, has["to"]
	switch has["to"] {
	case "draining":
		o.drained[id] = inFlight
	case "gone":
		delete(o.states, id)
		delete(o.names, id)
		delete(o.drained, id)
	}
	return nil
}

// older tells whether the model has a runner that was there before.
func (o *oracle) older(id int, name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, state := range o.states {
		if other < id && o.names[other] == name && (state == "ready" || state == "loading") {
			return true
		}
	}
	return false
}

// ranOut judges a load that found too little memory, under world.mu: is it the world's fault?
func (o *oracle) ranOut(name, where string) {
	o.mu.Lock()
	o.oom[name] = true
	grew, blind := o.grew[where], o.blind
	o.mu.Unlock()
	f := o.w.last[name]
	const reading = 2 * time.Second // its age at most, when it is slow
	excuse := !blind.IsZero() && !blind.Before(f.begun.Add(-reading)) || grew.After(f.begun.Add(-reading))
	for _, other := range o.w.all {
		if !other.ended && other.plan.takes > o.byName[other.name].least && (other.readyAt.IsZero() || other.readyAt.After(f.begun.Add(-reading))) {
			excuse = true
		}
	}
	if !excuse {
		var there strings.Builder
		for _, other := range o.w.all {
			if !other.ended {
				fmt.Fprintf(&there, "\n%s began %s ago, ready %t, stopped %t, has %.0f%% of %v, placed %s", other.name, time.Since(other.begun), !other.readyAt.IsZero(), other.stopped, 100*other.part, other.has, placement(other.req.Placement))
			}
		}
		o.m.mu.Lock()
		fmt.Fprintf(&there, "\ntaken %v, others %v", o.m.taken, o.m.other)
		o.m.mu.Unlock()
		o.fail("%s is loaded where it does not fit: on %s, it wants %v; there are%s", name, where, truth(f.plan, f.req), there.String())
	}
	o.mu.Lock()
	o.excused++
	o.mu.Unlock()
}

// crash ends a runner.
func (o *oracle) crash(which int) {
	o.w.mu.Lock()
	var alive []*fake
	for _, f := range o.w.all {
		if !f.ended {
			alive = append(alive, f)
		}
	}
	o.w.mu.Unlock()
	if len(alive) > 0 {
		o.mu.Lock()
		o.crashes++
		o.mu.Unlock()
		alive[which%len(alive)].crash()
	}
}

// others has other programs take a part of what nobody has on a device, or give back what they have.
func (o *oracle) others(device int, part float64) {
	d := o.m.devices[device]
	o.m.mu.Lock()
	free := int64(d.TotalBytes) - o.m.taken[d.ID] - o.m.other[d.ID]
	if part < 0.4 || free < 0 {
		o.m.other[d.ID] = 0
	} else {
		o.m.other[d.ID] += int64(float64(free) * (part - 0.4))
	}
	o.m.mu.Unlock()
	o.mu.Lock()
	o.grew[d.ID] = time.Now()
	o.mu.Unlock()
}

// moved notes that a server elsewhere changes.
func (o *oracle) moved() {
	o.mu.Lock()
	o.changed = time.Now()
	o.mu.Unlock()
}

// couldFit looks for any place on the empty machine where the model would fit with room to spare, by trying.
func (o *oracle) couldFit(k *kind, want Want) bool {
	numCtx := want.Options.NumCtx
	if numCtx == 0 {
		s := o.cfg.Settings(want.Model)
		if numCtx = s.NumCtx; numCtx == 0 {
			numCtx = 4096
		}
	}
	trained := k.model.Facts.ContextLength
	numCtx = min(numCtx, trained)
	parallel := k.settings.Parallel
	if parallel == 0 {
		parallel = max(1, o.cfg.Parallel)
	}
	load := fit.Load{Model: k.plan.model, NumCtx: numCtx, Parallel: parallel, NumBatch: 512, KVCacheType: o.cfg.KVCacheType, Mmap: want.Options.UseMmap, Factor: 1.4}
	if k.model.Facts.Pooling {
		load.NumBatch = numCtx
	}
	blocks := len(k.model.Facts.Layout.Layers)
	most := blocks + 1
	if n := want.Options.NumGPU; n >= 0 {
		most = min(most, n)
	}
	if blocks == 0 {
		most = 0
	}
	only := k.settings.Devices
	allowed := func(id string) bool { return len(only) == 0 || slices.Contains(only, id) }
	try := func(shares []runner.Share, layers int) bool {
		if !allowed(runner.CPU) && layers <= blocks {
			return false
		}
		has, all := map[string]uint64{}, uint64(0)
		for _, m := range fit.Estimate(load, shares) {
			has[m.Device] += m.Bytes()
			all += m.Bytes()
			if o.m.integrated(m.Device) {
				has[runner.CPU] += m.Bytes()
			}
		}
		for _, d := range o.m.devices {
			spare := o.cfg.GPUOverhead
			if d.ID == runner.CPU {
				spare = 1 << 30
			}
			if has[d.ID]+spare > d.TotalBytes {
				return false
			}
		}
		return o.cfg.Memory == 0 || all <= o.cfg.Memory
	}
	if try(nil, 0) {
		return true
	}
	for _, d := range o.m.devices {
		for n := 1; n <= most && d.ID != runner.CPU && allowed(d.ID); n++ {
			if try([]runner.Share{{Device: d.ID, Layers: n}}, n) {
				return true
			}
		}
	}
	return false
}
