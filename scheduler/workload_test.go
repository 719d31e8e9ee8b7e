package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/fault"
	"sluice/models"
)

// TestMemoryWorkload throws requests at described machines and holds, at each step, what the scheduler says against what the
// machine says: no device over its memory, nobody evicted under a request, every request ended, ps and the charges true.
func TestMemoryWorkload(t *testing.T) {
	machines := map[string]struct {
		opts map[string]string
		lag  time.Duration // of what GPUs show
	}{
		"one GPU":          {map[string]string{"gpu": "24GiB", "ram": "64GiB"}, 2 * time.Second},
		"eight GPUs":       {map[string]string{"gpu": "80GiB,80GiB,80GiB,80GiB,80GiB,80GiB,80GiB,80GiB", "ram": "512GiB"}, 0},
		"two unequal GPUs": {map[string]string{"gpu": "24GiB,8GiB", "ram": "32GiB"}, time.Second},
		"CPU only":         {map[string]string{"ram": "32GiB"}, 0},
	}
	for name, row := range machines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := describe(row.opts)
				if err != nil {
					t.Fatal(err)
				}
				m.lag = row.lag
				memoryWorkload(t, m, 1, 500)
			})
		})
	}
}

func memoryWorkload(t *testing.T, m *machine, seed uint64, requests int) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	w := newWorld()
	w.machine = m
	w.onKill = func(name string, n int) { t.Errorf("%s is stopped under %d leases", name, n) }
	w.onOOM = func(name, where string) { t.Errorf("%s is loaded where it does not fit: %s", name, where) }
	const kinds = 8
	for i := range kinds {
		name := fmt.Sprint("m", i)
		model := testModel(name, 32768)
		model.Facts.Layout = layout(16+8*(i%3), uint64(1+rnd.IntN(16))<<30, uint64(16+rnd.IntN(112))<<10)
		w.plans[name] = plan{
			model: model, took: time.Duration(200+rnd.IntN(4000)) * time.Millisecond, stop: time.Duration(rnd.IntN(500)) * time.Millisecond,
		}
	}
	w.plans["m7"].model.Facts.Layout = layout(100, 2000<<30, 1<<20) // larger than every machine here
	cfg := Config{
		Start: w.start, Inventory: m, MaxQueue: 200, KeepAlive: time.Duration(5+rnd.IntN(60)) * time.Second, MaxTurn: time.Duration(1+rnd.IntN(10)) * time.Second,
		Threads: 8, Grace: time.Hour, LoadTimeout: time.Minute,
		Settings: func(m *models.Model) Settings { return Settings{Pin: m.Name == "m0", Replicas: 3} },
	}
	s := started(t, cfg)
	var ended, granted, refused, left, failed atomic.Int64
	var all sync.WaitGroup
	for range requests {
		name := fmt.Sprint("m", min(rnd.IntN(kinds), rnd.IntN(kinds)))
		model := *w.plans[name].model
		want := Want{Model: &model, Options: options([]int{0, 0, 0, 2048, 8192, 32768}[rnd.IntN(6)]), Prefix: []uint64{rnd.Uint64N(5), rnd.Uint64N(50)}}
		patience, hold := time.Duration(1+rnd.IntN(120))*time.Second, time.Duration(rnd.IntN(3000))*time.Millisecond
		all.Go(func() {
			defer ended.Add(1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			lease, err := s.Lease(ctx, want)
			switch code := fault.CodeOf(err); {
			case err == nil:
			case code == fault.Busy:
				refused.Add(1)
				return
			case code == fault.TooLarge && name == "m7":
				left.Add(1)
				return
			default:
				t.Errorf("%s: %v", name, err)
				failed.Add(1)
				return
			}
			f := lease.Runner().(*fake)
			f.use(1)
			granted.Add(1)
			<-time.After(hold)
			f.use(-1)
			lease.Release()
		})
		<-time.After(time.Duration(rnd.IntN(500)) * time.Millisecond)
		if rnd.IntN(40) == 0 {
			if err := s.Unload(t.Context(), want.Model); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		compare(t, s, w)
	}
	all.Wait()
	synctest.Wait()
	compare(t, s, w)
	if n := ended.Load(); n != int64(requests) {
		t.Errorf("%d of %d requests ended", n, requests)
	}
	if granted.Load() < int64(requests)/4 {
		t.Errorf("only %d of %d requests got a lease", granted.Load(), requests)
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Waiting != 0 {
		t.Errorf("%d wait at the end, %v", stats.Waiting, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("granted %d, busy %d, too large %d; %v %v %v, %d readings", granted.Load(), refused.Load(), left.Load(), stats.Loads, stats.Unloads, stats.Refused, m.read)
}

// TestMemoryStarvesNobody holds the bound where memory is what is waited for: streams on models that are loaded, and that fit beside
// each other, must not keep out one that needs the room of them all.
func TestMemoryStarvesNobody(t *testing.T) {
	rows := map[string]struct {
		hot   []uint64 // GiB
		ahead int      // turns of those that waited before it: of five, two fit at a time, and three wait
	}{
		"one large":            {hot: []uint64{14}},
		"three small":          {hot: []uint64{6, 6, 6}},
		"five that take turns": {hot: []uint64{9, 9, 9, 9, 9}, ahead: 2},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := describe(map[string]string{"gpu": "24GiB", "ram": "3GiB"})
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld()
				w.machine = m
				w.onOOM = func(name, where string) { t.Errorf("%s is loaded where it does not fit: %s", name, where) }
				const turn, hold, took = 5 * time.Second, 700 * time.Millisecond, time.Second
				model := func(name string, gibs uint64) *models.Model {
					m := testModel(name, 4096)
					m.Facts.Layout = layout(32, gibs*gib, 16<<10)
					w.plans[name] = plan{model: m, took: took}
					return m
				}
				var loaded []*models.Model
				for i, gibs := range row.hot {
					loaded = append(loaded, model(fmt.Sprint("hot", i), gibs))
				}
				cold := model("cold", 18)
				s := started(t, Config{Start: w.start, Inventory: m, Parallel: 2, MaxPass: 1000, MaxTurn: turn, Threads: 8})
				ctx, cancel := context.WithCancel(t.Context())
				var streams sync.WaitGroup
				for i := range 3 * len(loaded) {
					streams.Go(func() {
						for ctx.Err() == nil {
							lease, err := s.Lease(ctx, Want{Model: loaded[i%len(loaded)], Options: options(0)})
							if err != nil {
								return
							}
							<-time.After(hold)
							lease.Release()
						}
					})
				}
				<-time.After(20 * time.Second)
				for range 5 {
					begin := time.Now()
					lease, err := s.Lease(ctx, Want{Model: cold, Options: options(0)})
					if err != nil {
						t.Fatal(err)
					}
					// those ahead, its own turn and that of who was loaded last, each with its load and what it had in flight
					if waited, bound := time.Since(begin), time.Duration(2+row.ahead)*(turn+hold+took)+time.Second; waited > bound {
						t.Errorf("the cold model waited %s, over the bound of %s", waited, bound)
					}
					lease.Release()
					<-time.After(7 * time.Second)
				}
				cancel()
				streams.Wait()
			})
		})
	}
}

// compare holds ps and the charges against the fakes and the machine. Everybody waits.
func compare(t *testing.T, s *Scheduler, w *world) {
	t.Helper()
	if err := s.Inspect(t.Context(), func(list []Loaded, charges map[string]uint64) { compared(t, w, list, charges) }); err != nil {
		t.Fatal(err)
	}
}

func compared(t *testing.T, w *world, list []Loaded, charges map[string]uint64) {
	t.Helper()
	users, shown := map[string]int{}, map[string]int{}
	runners, listed := map[string]int{}, map[string]int{}
	has := map[string]uint64{}
	w.mu.Lock()
	for _, f := range w.all {
		if f.ended {
			continue
		}
		users[f.name] += f.users
		runners[f.name]++
		for _, m := range f.has {
			has[m.Device] += uint64(f.part * float64(m.Bytes()))
		}
	}
	w.mu.Unlock()
	for _, l := range list {
		shown[l.Model.Name] += l.InFlight
		listed[l.Model.Name]++
		if l.State == "ready" && len(l.Memory) == 0 {
			t.Errorf("ps does not tell where %s is", l.Model.Name)
		}
	}
	for name := range runners {
		if users[name] != shown[name] || runners[name] != listed[name] {
			t.Errorf("%s: ps says %d runners with %d leases, it has %d with %d", name, listed[name], shown[name], runners[name], users[name])
		}
	}
	for name := range listed {
		if runners[name] == 0 {
			t.Errorf("ps has %s, which is not there", name)
		}
	}
	for _, d := range w.machine.devices {
		if has[d.ID] > charges[d.ID]+uint64(len(w.all)) { // bytes are rounded
			t.Errorf("%s: %d bytes are charged, %d are taken", d.ID, charges[d.ID], has[d.ID])
		}
		if charges[d.ID] > d.TotalBytes {
			t.Errorf("%s: %d bytes are charged of %d", d.ID, charges[d.ID], d.TotalBytes)
		}
	}
}
