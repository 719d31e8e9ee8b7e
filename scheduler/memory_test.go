package scheduler

import (
	"errors"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler/fit"
)

const gib = 1 << 30

// charge is memory on devices by name, in GiB.
func charge(on map[string]uint64) (list []runner.DeviceMemory) {
	for id, n := range on {
		list = append(list, runner.DeviceMemory{Device: id, Weights: n * gib})
	}
	return list
}

func TestAccount(t *testing.T) {
	type on = map[string]uint64
	rows := map[string]struct {
		free              on // as read; else all of it
		charges           map[int]on
		unseen            map[int]bool
		lag               on
		limit, overhead   uint64
		stays             func(int) bool // for with; nil: all
		now, with, others uint64         // of the GPU
		total             uint64         // of now, with a limit
	}{
		"an empty GPU":                          {now: 24, with: 24},
		"what is kept free is nobody's":         {overhead: 2, now: 22, with: 22},
		"a loaded one counts":                   {free: on{"gpu0": 14}, charges: map[int]on{1: {"gpu0": 10}}, now: 14, with: 14},
		"gone, it gives its memory back":        {free: on{"gpu0": 14}, charges: map[int]on{1: {"gpu0": 10}}, stays: func(int) bool { return false }, now: 14, with: 24},
		"another program too":                   {free: on{"gpu0": 9}, charges: map[int]on{1: {"gpu0": 10}}, now: 9, with: 9, others: 5},
		"less is taken than was charged":        {free: on{"gpu0": 20}, charges: map[int]on{1: {"gpu0": 10}}, now: 14, with: 14},
		"one loads and nothing shows yet":       {charges: map[int]on{1: {"gpu0": 10}}, unseen: map[int]bool{1: true}, now: 14, with: 14},
		"one loads and the half of it shows":    {free: on{"gpu0": 19}, charges: map[int]on{1: {"gpu0": 10}}, unseen: map[int]bool{1: true}, now: 9, with: 14},
		"one went and nothing came back":        {free: on{"gpu0": 14}, lag: on{"gpu0": 10}, now: 14, with: 24},
		"one went, another program has the GPU": {free: on{"gpu0": 4}, lag: on{"gpu0": 10}, now: 4, with: 14, others: 10},
		"less than nothing is nothing":          {free: on{"gpu0": 0}, charges: map[int]on{1: {"gpu0": 30}}, now: 0, with: 0},
		"a limit of all together":               {limit: 20, free: on{"gpu0": 14}, charges: map[int]on{1: {"gpu0": 10, "cpu": 4}}, now: 14, with: 14, total: 6},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			devices := []runner.Device{{ID: "gpu0", TotalBytes: 24 * gib, FreeBytes: 24 * gib}, {ID: runner.CPU, TotalBytes: 64 * gib, FreeBytes: 64 * gib}}
			if free, ok := row.free["gpu0"]; ok {
				devices[0].FreeBytes = free * gib
			}
			charges := map[int][]runner.DeviceMemory{}
			for id, c := range row.charges {
				charges[id] = charge(c)
			}
			a := newAccount(devices, row.overhead*gib, row.limit*gib, charges, row.unseen, charge(row.lag))
			stays := row.stays
			if stays == nil {
				stays = func(int) bool { return true }
			}
			now, with := a.now(), a.with(stays)
			if now.free[0] != row.now*gib || with.free[0] != row.with*gib || a.devices[0].other != row.others*gib || now.total != row.total*gib {
				t.Errorf("now %d, with %d, others %d, total %d", now.free[0]/gib, with.free[0]/gib, a.devices[0].other/gib, now.total/gib)
			}
			if now.free[0] > with.free[0] && row.stays == nil {
				t.Error("there is more now than there will be: a waiter could wait for ever")
			}
			if reserve := uint64(1); now.free[1] > (64-reserve)*gib {
				t.Error("nothing of main memory is left to the system")
			}
		})
	}
}

func TestSharedMainMemory(t *testing.T) {
	devices := []runner.Device{{ID: "gpu0", Integrated: true, TotalBytes: 16 * gib, FreeBytes: 16 * gib}, {ID: runner.CPU, TotalBytes: 16 * gib, FreeBytes: 10 * gib}}
	a := newAccount(devices, 0, 0, map[int][]runner.DeviceMemory{1: charge(map[string]uint64{"gpu0": 6})}, nil, nil)
	now := a.now()
	if now.free[0] != now.free[1] || now.free[1] != 10*gib-gib/2 {
		t.Errorf("free %d and %d MiB: what is on the GPU is in main memory", now.free[0]>>20, now.free[1]>>20)
	}
	if got := a.bytes(a.charges[1]); got != 6*gib {
		t.Errorf("its %d GiB count twice", got/gib)
	}
}

// TestATotalThatNobodyKnows: what is free and what is ours is all there is.
func TestATotalThatNobodyKnows(t *testing.T) {
	devices := []runner.Device{{ID: "gpu0", FreeBytes: 10 * gib}, {ID: runner.CPU, TotalBytes: 16 * gib, FreeBytes: 16 * gib}}
	a := newAccount(devices, 0, 0, map[int][]runner.DeviceMemory{1: charge(map[string]uint64{"gpu0": 6})}, nil, nil)
	if whole, now := a.whole().free[0], a.now().free[0]; whole != 16*gib || now != 10*gib {
		t.Errorf("%d GiB, %d of them free", whole/gib, now/gib)
	}
}

// TestDecideByMemory is the policy on one GPU of 24 GiB and little main memory: whoever has 10 GiB fits twice.
func TestDecideByMemory(t *testing.T) {
	model := testModel("any", 4096)
	model.Facts.Layout = layout(10, 9*gib, 1<<10)
	ways := func(int) []fit.Load {
		return []fit.Load{{Model: model, NumCtx: 256, Parallel: 1, NumBatch: 128, Layers: -1}}
	}
	ready := func(path string, inFlight int) runnerView {
		return runnerView{path: path, state: Ready, inFlight: inFlight, slots: 1, numCtx: 4096}
	}
	in := func(s State, r runnerView) runnerView { r.state = s; return r }
	pin := func(r runnerView) runnerView { r.pinned = true; return r }
	rows := map[string]struct {
		runners []runnerView
		waiters []waiterView
		stale   bool
		want    actionKind
		victim  string
	}{
		"there is room: it is loaded beside the other":    {runners: []runnerView{ready("a", 1)}, waiters: []waiterView{{path: "b"}}, want: load},
		"the reading is old: a new one first":             {waiters: []waiterView{{path: "b"}}, stale: true, want: measure},
		"an old reading holds up no lease":                {runners: []runnerView{ready("a", 0)}, waiters: []waiterView{{path: "b"}, {path: "a"}}, stale: true, want: grant},
		"there is none: the least recently used goes":     {runners: []runnerView{ready("a", 0), ready("c", 0)}, waiters: []waiterView{{path: "b"}}, want: evict, victim: "a"},
		"in flight it stays, and the next one goes":       {runners: []runnerView{ready("a", 1), ready("c", 0)}, waiters: []waiterView{{path: "b"}}, want: evict, victim: "c"},
		"pinned it stays":                                 {runners: []runnerView{pin(ready("a", 0)), ready("c", 0)}, waiters: []waiterView{{path: "b"}}, want: evict, victim: "c"},
		"pinned all of them: it is said":                  {runners: []runnerView{pin(ready("a", 0)), pin(ready("c", 1))}, waiters: []waiterView{{path: "b"}}, want: refuse},
		"one stops already: it is waited for":             {runners: []runnerView{ready("a", 0), in(Stopping, ready("c", 0))}, waiters: []waiterView{{path: "b"}}},
		"two wait: each gets a place of its own":          {runners: []runnerView{ready("a", 0), in(Stopping, ready("c", 0))}, waiters: []waiterView{{path: "b"}, {path: "d"}}, want: evict, victim: "a"},
		"the place of who waited first is not taken":      {runners: []runnerView{ready("a", 1), in(Stopping, ready("c", 0))}, waiters: []waiterView{{path: "b"}, {path: "d"}}},
		"who waits for its own place has it":              {runners: []runnerView{in(Stopping, ready("b", 0)), ready("c", 0)}, waiters: []waiterView{{path: "b"}, {path: "d"}}, want: evict, victim: "c"},
		"a second runner goes before the only one":        {runners: []runnerView{ready("a", 0), ready("c", 0), ready("c", 1)}, waiters: []waiterView{{path: "b"}}, want: evict, victim: "c"},
		"a pinned one's own larger context is no bar":     {runners: []runnerView{pin(ready("a", 0)), ready("c", 1)}, waiters: []waiterView{{path: "a", numCtx: 8192}}, want: evict, victim: "a"},
		"elsewhere is taken before a load":                {waiters: []waiterView{{path: "b", remote: 1}}, want: away},
		"what is here is taken before elsewhere":          {runners: []runnerView{ready("b", 0)}, waiters: []waiterView{{path: "b", remote: 1}}, want: grant},
		"what is not installed is not loaded":             {waiters: []waiterView{{path: "b", absent: true}}},
		"full, and elsewhere is free":                     {runners: []runnerView{ready("b", 1)}, waiters: []waiterView{{path: "b", remote: 1}}, want: away},
		"a larger context behind those for a full runner": {runners: []runnerView{{path: "b", state: Ready, inFlight: 1, slots: 1, numCtx: 4096, passed: 8}}, waiters: []waiterView{{path: "b"}, {path: "b", numCtx: 8192}}, want: evict, victim: "b"},
		"full: no second runner where the first one is":   {runners: []runnerView{ready("b", 1)}, waiters: []waiterView{{path: "b"}}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			charges := map[int][]runner.DeviceMemory{}
			free := uint64(24 * gib)
			for i := range row.runners {
				row.runners[i].id = i + 1
				charges[i+1] = charge(map[string]uint64{"gpu0": 10})
				free = less(free, 10*gib)
			}
			devices := []runner.Device{{ID: "gpu0", TotalBytes: 24 * gib, FreeBytes: free}, {ID: runner.CPU, TotalBytes: 4 * gib, FreeBytes: 4 * gib}}
			v := view{maxPass: 8, maxTurn: 1 << 40, runners: row.runners, waiters: row.waiters, loads: ways, memory: newAccount(devices, 0, 0, charges, nil, nil)}
			v.memory.fresh = !row.stale
			act := decide(v)
			victim := ""
			if act.kind == evict {
				victim = row.runners[act.runner-1].path
			}
			if act.kind != row.want || victim != row.victim {
				t.Errorf("got %d of %q, want %d of %q", act.kind, victim, row.want, row.victim)
			}
		})
	}
}

// TestAShortageIsToldByNumbers: what is needed, what there is, who has it; never by names.
func TestAShortageIsToldByNumbers(t *testing.T) {
	s := shortage{load: fit.Load{NumCtx: 8192, Parallel: 2}, needs: []runner.DeviceMemory{{Weights: 30 * gib, KV: 5 * gib}}, has: 24 * gib}
	for want, change := range map[string]func(*shortage){
		"the model needs 35 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; the machine has 24 GiB for models":                                               func(*shortage) {},
		"the model needs 35 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; models may have 24 GiB":                                                          func(s *shortage) { s.limited = true },
		"the model needs 35 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; the machine has 24 GiB for models, but 7 GiB are held by models that are pinned": func(s *shortage) { s.pinned = 7 * gib },
		"the model needs 35 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; the machine has 24 GiB for models, but 3 GiB are held by other programs":         func(s *shortage) { s.other = 3 * gib },
	} {
		changed := s
		change(&changed)
		if got := publicText(changed.error()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAShortageNamesDevices that the model's setting has and the machine has not: they are the operator's own words.
func TestAShortageNamesDevices(t *testing.T) {
	for name, row := range map[string]struct {
		devices, absent []string
		pinned          uint64
		code            fault.Code
		want            string
	}{
		"none of them is there": {
			devices: []string{"CUDA7", "CUDA8"}, absent: []string{"CUDA7", "CUDA8"}, code: fault.Conflict,
			want: "the model may be loaded on no other devices than CUDA7, CUDA8, and none of them is there",
		},
		"one is, and is too small": {
			devices: []string{"CUDA0", "CUDA7"}, absent: []string{"CUDA7"}, code: fault.TooLarge,
			want: "the model needs 30 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; its devices have 24 GiB for models; of its devices CUDA7 is not there",
		},
		"one is, and is pinned": {
			devices: []string{"CUDA0", "CUDA7", "CUDA8"}, absent: []string{"CUDA7", "CUDA8"}, pinned: 20 * gib, code: fault.Busy,
			want: "the model needs 30 GiB of memory at num_ctx 8192 × 2 parallel, 30 GiB of which are its weights; its devices have 24 GiB for models, but 20 GiB are held by models that are pinned; of its devices CUDA7, CUDA8 are not there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			load := fit.Load{NumCtx: 8192, Parallel: 2, Devices: row.devices}
			s := shortage{load: load, needs: []runner.DeviceMemory{{Weights: 30 * gib}}, has: 24 * gib, pinned: row.pinned, absent: row.absent}
			var f *fault.Error
			if !errors.As(s.error(), &f) || f.Code != row.code || f.Msg != row.want || !strings.Contains(f.Hint, "sluice doctor") {
				t.Errorf("got %+v\nwant %s", f, row.want)
			}
		})
	}
}

// TestAClaimIsOfTheLimitToo: what earlier waiters will load is missing on its device, and of what all may have together.
func TestAClaimIsOfTheLimitToo(t *testing.T) {
	devices := []runner.Device{{ID: "gpu0", TotalBytes: 24 * gib, FreeBytes: 24 * gib}, {ID: runner.CPU, TotalBytes: 64 * gib, FreeBytes: 64 * gib}}
	table := newTable(view{memory: newAccount(devices, 0, 30*gib, nil, nil, nil)})
	table.claim(need{plan: fit.Plan{Memory: charge(map[string]uint64{"gpu0": 10, "cpu": 2})}})
	if r := table.rest(nil); r.free[0] != 14*gib || r.total != 18*gib {
		t.Errorf("%d GiB of the GPU and %d of the limit are left", r.free[0]/gib, r.total/gib)
	}
}
