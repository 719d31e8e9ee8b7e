package scheduler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// bench is a described machine with models, for what went wrong once.
type bench struct {
	t *testing.T
	m *machine
	w *world
	s *Scheduler
}

// on starts a scheduler on a machine, in synctest. A server elsewhere has one slot, and models with these names.
func on(t *testing.T, machine map[string]string, cfg Config, run func(t *testing.T, b *bench), there ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := describe(machine)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, m: m, w: newWorld()}
		b.w.machine = m
		if len(there) > 0 {
			cfg.Remotes = []Remote{elsewhereWith(1, there...)}
		}
		cfg.Start, cfg.Inventory, cfg.Threads = b.w.start, m, 8
		b.s = started(t, cfg)
		synctest.Wait()
		run(t, b)
	})
}

// model of so many GiB that takes so long to load. kv is KiB for a token.
func (b *bench) model(name string, gibs, kv uint64, took time.Duration) *models.Model {
	m := testModel(name, 131072)
	m.Facts.Layout = layout(32, gibs*gib, kv<<10)
	b.w.plans[name] = plan{model: m, took: took}
	return m
}

// got is how a lease that was asked for in the background ends.
type got struct {
	lease *Lease
	err   error
	after time.Duration
}

func (b *bench) ask(want Want) <-chan got {
	out, begin := make(chan got, 1), time.Now()
	go func() {
		lease, err := b.s.Lease(b.t.Context(), want)
		out <- got{lease, err, time.Since(begin)}
	}()
	synctest.Wait()
	return out
}

func (b *bench) ps(name string) (list []Loaded) {
	synctest.Wait()
	all, err := b.s.Loaded(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, l := range all {
		if l.Model.Name == name && l.Remote == "" {
			list = append(list, l)
		}
	}
	return list
}

func elsewhereWith(slots int, names ...string) *fakeRemote {
	r := &fakeRemote{name: "away", slots: slots, note: func(string, ...any) {}, changes: make(chan struct{}, 1), well: true}
	for _, name := range names {
		r.models = append(r.models, &models.Model{Name: name})
	}
	return r
}

func wants(m *models.Model, numCtx int) Want { return Want{Model: m, Options: options(numCtx)} }

func alias(m *models.Model, name string) *models.Model {
	other := *m
	other.Name = name
	return &other
}

var oneGPU = map[string]string{"gpu": "24GiB", "ram": "4GiB"}

// TestASecondTryLosesItsWaiter: a server elsewhere serves the only one who waits, and the load runs out of memory again. The owner
// fell over it; now the load ends as soon as nobody waits.
func TestASecondTryLosesItsWaiter(t *testing.T) {
	on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
		m := b.model("a", 8, 16, 10*time.Second)
		p := b.w.plans["a"]
		p.trys = []string{"oom", "oom"}
		b.w.plans["a"] = p
		there, err := b.s.Lease(t.Context(), wants(m, 512))
		if err != nil || there.Remote() == "" {
			t.Fatal(err)
		}
		next := b.ask(wants(m, 512))
		<-time.After(15 * time.Second)
		if list := b.ps("a"); len(list) != 1 || list[0].State != "loading" || b.w.loads["a"] != 2 {
			t.Fatalf("the second try is not under way: %+v", list)
		}
		there.Release()
		g := <-next
		if g.err != nil || g.lease.Remote() == "" {
			t.Fatal(g.err)
		}
		if list := b.ps("a"); len(list) != 0 {
			t.Errorf("nobody waits, and it is still %s", list[0].State)
		}
		<-time.After(time.Minute)
		g.lease.Release()
	}, "a")
}

// TestAFailureDoesNotMakeAModelLarger: a guess that no load has borne out must not stay, or a model that just fits is refused for ever.
func TestAFailureDoesNotMakeAModelLarger(t *testing.T) {
	on(t, map[string]string{"gpu": "24GiB", "ram": "1GiB"}, Config{}, func(t *testing.T, b *bench) {
		m := b.model("a", 21, 1, 10*time.Second)
		p := b.w.plans["a"]
		p.trys = []string{"oom"}
		b.w.plans["a"] = p
		if g := <-b.ask(wants(m, 512)); g.err == nil || !strings.Contains(publicText(g.err), "ran out") {
			t.Fatalf("the first load ran out of memory, and what is left is too little: %v", g.err)
		}
		<-time.After(2 * time.Minute)
		g := <-b.ask(wants(m, 512))
		if g.err != nil {
			t.Fatalf("it fits: %v", g.err)
		}
		g.lease.Release()
	})
}

// TestAPauseEndsByItself: a model that failed, and is to be had elsewhere, is tried here again when its pause is over and all slots
// there are still taken.
func TestAPauseEndsByItself(t *testing.T) {
	on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
		m := b.model("a", 1, 1, time.Second)
		p := b.w.plans["a"]
		p.fail = "it broke"
		b.w.plans["a"] = p
		there, err := b.s.Lease(t.Context(), wants(m, 512))
		if err != nil {
			t.Fatal(err)
		}
		next := b.ask(wants(m, 512))
		<-time.After(1500 * time.Millisecond)
		b.w.mu.Lock()
		p.fail = ""
		b.w.plans["a"] = p
		b.w.mu.Unlock()
		g := <-next
		if g.err != nil || g.after > firstPause+3*time.Second {
			t.Fatalf("after %s: %v", g.after, g.err)
		}
		g.lease.Release()
		there.Release()
	}, "a")
}

// TestAFurtherRunnerGivesWay: it was worth a load when its model's others were full; now nobody waits for it, and another model does.
func TestAFurtherRunnerGivesWay(t *testing.T) {
	on(t, map[string]string{"gpu": "24GiB,24GiB", "ram": "4GiB"}, Config{Parallel: 1}, func(t *testing.T, b *bench) {
		hot := b.model("hot", 16, 1, 4*time.Minute)
		p := b.w.plans["hot"]
		p.tick = time.Second
		b.w.plans["hot"] = p
		first := <-b.ask(wants(hot, 512))
		if first.err != nil {
			t.Fatal(first.err)
		}
		second := b.ask(wants(hot, 512))
		<-time.After(time.Second)
		first.lease.Release()
		g := <-second
		if list := b.ps("hot"); g.err != nil || len(list) != 2 {
			t.Fatalf("%v; it goes on, for the next burst: %+v", g.err, list)
		}
		other := <-b.ask(wants(b.model("other", 16, 1, time.Second), 512))
		if other.err != nil || other.after > 10*time.Second {
			t.Errorf("after %s: %v", other.after, other.err)
		}
		other.lease.Release()
		g.lease.Release()
	})
}

// TestAWarningKnowsWhatWasAsked: who asks for 10 layers misses none when 10 are loaded, at the second try either.
func TestAWarningKnowsWhatWasAsked(t *testing.T) {
	on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
		m := b.model("a", 2, 1, time.Second)
		p := b.w.plans["a"]
		p.trys = []string{"oom"}
		b.w.plans["a"] = p
		want := wants(m, 512)
		want.Options.NumGPU = 10
		g := <-b.ask(want)
		if g.err != nil {
			t.Fatal(g.err)
		}
		list := b.ps("a")
		if len(list) != 1 || !strings.HasPrefix(list[0].Warning, "8 layers are on GPUs, 10 would be") {
			t.Errorf("%+v", list)
		}
		g.lease.Release()
	})
}

// TestUnreadDevices: what is loaded while the devices cannot be read counts when they can; and what went meanwhile is not taken for what other
// programs have.
func TestUnreadDevices(t *testing.T) {
	machine := map[string]string{"ram": "32GiB"}
	fails := func(b *bench, now bool) {
		b.m.mu.Lock()
		b.m.fails = now
		b.m.mu.Unlock()
	}
	t.Run("what is loaded counts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, err := describe(machine)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, m: m, w: newWorld()}
			b.w.machine, m.fails = m, true
			b.s = started(t, Config{Start: b.w.start, Inventory: m, Threads: 8})
			loading := b.ask(wants(b.model("a", 8, 1, time.Minute), 512))
			<-time.After(2 * time.Second)
			fails(b, false)
			<-time.After(5 * time.Second)
			if err := b.s.Inspect(t.Context(), func(_ []Loaded, charges map[string]uint64, _ map[int]int, _ Stats) {
				if charges[runner.CPU] < 8*gib {
					t.Errorf("%d bytes are charged for 8 GiB that are being loaded", charges[runner.CPU])
				}
			}); err != nil {
				t.Fatal(err)
			}
			(<-loading).lease.Release()
		})
	})
	t.Run("what went is nobody else's", func(t *testing.T) {
		on(t, machine, Config{}, func(t *testing.T, b *bench) {
			g := <-b.ask(wants(b.model("a", 20, 1, time.Second), 512))
			g.lease.Release()
			<-time.After(2 * time.Second)
			if _, err := b.s.Stats(t.Context()); err != nil { // a reading that has seen it
				t.Fatal(err)
			}
			synctest.Wait()
			fails(b, true)
			next := <-b.ask(wants(b.model("b", 20, 1, time.Second), 512))
			if next.err != nil || next.after > 5*time.Second {
				t.Fatalf("after %s: %v", next.after, next.err)
			}
			next.lease.Release()
		})
	})
}

// TestABurstIsFewQuestions: of thousands that wait for the same the policy looks at one, or the owner would answer nobody meanwhile.
func TestABurstIsFewQuestions(t *testing.T) {
	const requests, kinds = 5000, 30
	on(t, oneGPU, Config{MaxQueue: 2 * requests}, func(t *testing.T, b *bench) {
		busy, err := b.s.Lease(t.Context(), wants(b.model("busy", 20, 1, time.Second), 512))
		if err != nil {
			t.Fatal(err)
		}
		for i := range kinds {
			b.model(fmt.Sprint("m", i), 8, 1, 10*time.Millisecond)
		}
		var waiting []<-chan got
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for i := range requests {
			m := b.w.plans[fmt.Sprint("m", i%kinds)].model
			out := make(chan got, 1)
			go func() {
				_, err := b.s.Lease(ctx, wants(m, 512))
				out <- got{err: err}
			}()
			waiting = append(waiting, out)
		}
		synctest.Wait()
		seen := make(chan int, 1)
		if err := b.s.ask(t.Context(), func(l *loop) { seen <- len(l.view().waiters) }); err != nil {
			t.Fatal(err)
		}
		if n := <-seen; n != kinds {
			t.Errorf("the policy looks at %d requests, %d ask for different things", n, kinds)
		}
		leave()
		for _, c := range waiting {
			if g := <-c; fault.CodeOf(g.err) != fault.Canceled {
				t.Fatal(g.err)
			}
		}
		busy.Release()
		if err := b.s.ask(t.Context(), func(l *loop) { seen <- len(l.classes) }); err != nil {
			t.Fatal(err)
		}
		if n := <-seen; n != 0 {
			t.Errorf("%d classes are remembered of an empty queue", n)
		}
	})
}

// TestMemoryGivenBackIsSeen: nothing happens here when another program ends; who waits for room is loaded all the same.
func TestMemoryGivenBackIsSeen(t *testing.T) {
	on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
		busy := <-b.ask(wants(b.model("busy", 12, 1, time.Second), 512))
		others := func(n int64) {
			b.m.mu.Lock()
			b.m.other["gpu0"] = n
			b.m.mu.Unlock()
		}
		others(6 * gib)
		<-time.After(time.Minute)
		waits := b.ask(wants(b.model("a", 8, 1, time.Second), 512))
		<-time.After(time.Minute)
		others(0)
		<-time.After(5 * time.Second)
		select {
		case g := <-waits:
			if g.err != nil {
				t.Fatal(g.err)
			}
			g.lease.Release()
		default:
			t.Error("there is room since 5 seconds, and it is not loaded")
		}
		busy.lease.Release()
	})
}
