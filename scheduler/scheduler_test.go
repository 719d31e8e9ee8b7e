package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/fault"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// started runs a scheduler until the test ends.
func started(t *testing.T, cfg Config) *Scheduler {
	t.Helper()
	cfg.Log = quiet()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

// TestRandomWorkload throws everything at the scheduler at once and holds what must hold whatever happens.
func TestRandomWorkload(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomWorkload(t, seed) })
		})
	}
}

func randomWorkload(t *testing.T, seed uint64) {
	const requests, kinds = 1500, 6
	rnd := rand.New(rand.NewPCG(seed, 1))
	cfg := Config{
		MaxLoaded: 1 + rnd.IntN(3), MaxQueue: 20 + rnd.IntN(200), Parallel: 1 + rnd.IntN(4), KeepAlive: time.Duration(rnd.IntN(20)) * time.Second,
		MaxPass: 1 + rnd.IntN(8), MaxTurn: time.Duration(1+rnd.IntN(10)) * time.Second, LoadTimeout: 4 * time.Second, Grace: time.Hour,
		Threads: 1 + rnd.IntN(8),
	}
	w := newWorld()
	cfg.Start = w.start
	w.onKill = func(name string, n int) { t.Errorf("%s is stopped under %d leases", name, n) }
	for i := range kinds {
		p := plan{
			took: time.Duration(rnd.IntN(5000)) * time.Millisecond, stop: time.Duration(rnd.IntN(500)) * time.Millisecond,
			tune: time.Duration(rnd.IntN(400)) * time.Millisecond, gpu: i == kinds-2,
		}
		if i == kinds-1 {
			p.fail = "it cannot be loaded"
		}
		w.plans[fmt.Sprint("m", i)] = p
	}
	s := started(t, cfg)

	var ended, granted, refused, cancelled, failed atomic.Int64
	var all sync.WaitGroup
	for range requests {
		name := fmt.Sprint("m", min(rnd.IntN(kinds), rnd.IntN(kinds+2))) // the first ones are hot
		want := Want{Model: testModel(name, 32768), Options: options([]int{0, 0, 0, 2048, 8192, 1 << 20}[rnd.IntN(6)])}
		if rnd.IntN(4) == 0 {
			keep := time.Duration(rnd.IntN(10)-1) * time.Second
			want.KeepAlive = &keep
		}
		patience := time.Duration(1+rnd.IntN(200)) * time.Second
		hold := time.Duration(rnd.IntN(3000)) * time.Millisecond
		all.Go(func() {
			defer ended.Add(1)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			defer time.AfterFunc(patience, cancel).Stop()
			lease, err := s.Lease(ctx, want)
			switch code := fault.CodeOf(err); {
			case err == nil:
			case code == fault.Busy:
				refused.Add(1)
				return
			case code == fault.Canceled:
				cancelled.Add(1)
				return
			default:
				failed.Add(1)
				return
			}
			f := lease.Runner().(*fake)
			f.use(1)
			granted.Add(1)
			if threads, computing := w.threadsInUse(); threads > max(cfg.Threads, computing) {
				t.Errorf("%d threads of %d runners compute on %d cores", threads, computing, cfg.Threads)
			}
			if f.name != want.Model.Name {
				t.Errorf("asked for %s, got %s", want.Model.Name, f.name)
			}
			if got := lease.Report().NumCtx; got < min(want.Options.NumCtx, 32768) {
				t.Errorf("asked for a context of %d, got %d", want.Options.NumCtx, got)
			}
			<-time.After(hold)
			f.use(-1)
			lease.Release()
		})
		<-time.After(time.Duration(rnd.IntN(600)) * time.Millisecond)
		switch rnd.IntN(60) {
		case 0:
			if f := w.fake(name); f != nil {
				f.crash()
			}
		case 1:
			if err := s.Unload(t.Context(), want.Model); err != nil {
				t.Error(err)
			}
		case 2:
			if _, err := s.Loaded(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	all.Wait()
	if ended.Load() != requests {
		t.Errorf("%d of %d requests ended", ended.Load(), requests)
	}
	if granted.Load() < requests/10 {
		t.Errorf("only %d of %d requests got a lease: the workload tests nothing", granted.Load(), requests)
	}
	synctest.Wait() // a load that nobody waits for any more may be starting
	if w.most > cfg.MaxLoaded {
		t.Errorf("%d runners were alive at once, with room for %d", w.most, cfg.MaxLoaded)
	}
	t.Logf("granted %d, busy %d, cancelled %d, failed %d", granted.Load(), refused.Load(), cancelled.Load(), failed.Load())
	list, err := s.Loaded(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, l := range list {
		if l.InFlight != 0 || (l.State != "ready" && l.State != "stopping") {
			t.Errorf("after all requests: %s is %s with %d leases", l.Model.Name, l.State, l.InFlight)
		}
	}
}

// TestSteadyStreamStarvesNobody holds the bound: a stream on the loaded model must not keep another model out (Ollama
// #17408, where a loop of requests on one model keeps the loader of another blocked for ever).
func TestSteadyStreamStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.plans["hot"] = plan{took: time.Second}
		w.plans["cold"] = plan{took: time.Second}
		s := started(t, Config{Start: w.start, Parallel: 2, MaxPass: 1000, MaxTurn: 10 * time.Second})
		ctx, cancel := context.WithCancel(context.Background())
		var streams sync.WaitGroup
		keep := 5 * time.Minute
		for range 5 { // five clients that ask for the hot model again and again, each with a keep_alive of its own
			streams.Go(func() {
				for ctx.Err() == nil {
					lease, err := s.Lease(ctx, Want{Model: testModel("hot", 0), KeepAlive: &keep})
					if err != nil {
						return
					}
					<-time.After(700 * time.Millisecond)
					lease.Release()
				}
			})
		}
		<-time.After(30 * time.Second)
		for range 3 {
			begin := time.Now()
			lease, err := s.Lease(ctx, Want{Model: testModel("cold", 0)})
			if err != nil {
				t.Fatal(err)
			}
			// the turn, the lease in flight, the load
			if bound := 12 * time.Second; time.Since(begin) > bound {
				t.Errorf("the cold model waited %s, over the bound of %s", time.Since(begin), bound)
			}
			lease.Release()
			<-time.After(5 * time.Second)
		}
		cancel()
		streams.Wait()
	})
}

// TestGoneCallerIsNotCounted cancels each wait at the very moment of its grant. A lease that is given to someone who left
// would make its runner one that can never be evicted.
func TestGoneCallerIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.plans["a"] = plan{took: time.Second}
		s := started(t, Config{Start: w.start, Parallel: 100})
		for range 200 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // as long as the load takes
			lease, err := s.Lease(ctx, Want{Model: testModel("a", 0)})
			if err == nil {
				lease.Release()
			}
			cancel()
			if err := s.Unload(t.Context(), testModel("a", 0)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			list, err := s.Loaded(t.Context())
			if err != nil || len(list) != 0 {
				t.Fatalf("after the unload: %+v, %v", list, err)
			}
		}
	})
}

func TestStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.startErr = errors.New("no such binary")
		s := started(t, Config{Start: w.start})
		_, err := s.Lease(t.Context(), Want{Model: testModel("a", 0)})
		if err == nil || !strings.Contains(err.Error(), "no such binary") {
			t.Fatalf("got %v", err)
		}
		w.mu.Lock()
		w.startErr = nil
		w.mu.Unlock()
		lease, err := s.Lease(t.Context(), Want{Model: testModel("a", 0)})
		if err != nil {
			t.Fatalf("the next request does not try again: %v", err)
		}
		lease.Release()
	})
}

// TestWaitingForOthersIsNotLoading: load_duration of a request that waits behind another one on a loaded model is 0.
func TestWaitingForOthersIsNotLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.plans["a"] = plan{took: 2 * time.Second}
		s := started(t, Config{Start: w.start, Parallel: 1})
		want := Want{Model: testModel("a", 0)}
		first, err := s.Lease(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if first.LoadDuration() != 2*time.Second {
			t.Errorf("the first waited %s for a load of 2s", first.LoadDuration())
		}
		go func() {
			<-time.After(time.Minute)
			first.Release()
		}()
		begin := time.Now()
		second, err := s.Lease(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if second.LoadDuration() != 0 || time.Since(begin) != time.Minute {
			t.Errorf("after %s in the queue of a loaded model, %s count as loading", time.Since(begin), second.LoadDuration())
		}
		second.Release()
	})
}

// TestADeadlineIsBusyWhateverItIsCalled: a time limit that has a cause of its own is still a time limit.
func TestADeadlineIsBusyWhateverItIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.plans["a"] = plan{took: time.Hour}
		s := started(t, Config{Start: w.start, LoadTimeout: 2 * time.Hour})
		for name, cause := range map[string]error{
			"none": nil, "a sentence": errors.New("the ask took too long"), "a fault": fault.New(fault.Denied, "test", "no"), "a cancel": context.Canceled,
		} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			_, err := s.Lease(ctx, Want{Model: testModel("a", 0)})
			cancel()
			if fault.CodeOf(err) != fault.Busy {
				t.Errorf("the cause is %s: %v", name, err)
			}
			synctest.Wait()
		}
	})
}

func TestForeverAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := started(t, Config{Start: w.start, MaxLoaded: 3})
		for name, keep := range map[string]time.Duration{"short": time.Minute, "for-ever": -1, "long": time.Hour} {
			lease, err := s.Lease(t.Context(), Want{Model: testModel(name, 0), KeepAlive: &keep})
			if err != nil {
				t.Fatal(err)
			}
			lease.Release()
		}
		synctest.Wait()
		list, err := s.Loaded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range list {
			names = append(names, l.Model.Name)
		}
		if got := strings.Join(names, " "); got != "for-ever long short" {
			t.Errorf("order is %q, want the latest expiry first", got)
		}
		if list[0].ExpiresAt.Year() < 2200 || list[0].ExpiresAt.Year() > 9999 {
			t.Errorf("for ever is %s, which clients cannot show", list[0].ExpiresAt)
		}
		if list[0].Report.Bytes() != 7 {
			t.Error("the report of the load is missing")
		}
	})
}

func TestMisuse(t *testing.T) {
	if _, err := New(Config{MaxLoaded: -1, Grace: -1}); err == nil {
		t.Error("no Start and negative values are taken")
	} else {
		for _, part := range []string{"Start", "MaxLoaded", "Grace"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %s: all mistakes are reported at once", err, part)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := started(t, Config{Start: newWorld().start})
		synctest.Wait()
		if err := s.Run(t.Context()); fault.CodeOf(err) != fault.Internal || err == nil {
			t.Errorf("a second Run: %v", err)
		}
		if _, err := s.Lease(t.Context(), Want{}); err == nil {
			t.Error("a lease without a model is given")
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.Lease(gone, Want{Model: testModel("a", 0)}); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("a caller that has left: %v", err)
		}
	})
}
