package inventory

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/runner"
)

// engine is a list of devices that counts who asks for it.
type engine struct {
	asked atomic.Int32
	list  func(ctx context.Context, n int32) ([]runner.Device, error)
}

func (e *engine) devices(ctx context.Context) ([]runner.Device, error) {
	return e.list(ctx, e.asked.Add(1))
}

func oneGPU(free uint64) []runner.Device {
	return []runner.Device{
		{ID: runner.CPU, Library: "cpu", Threads: 8},
		{ID: "CUDA0", Library: "cuda", PCI: "0000:1b:00.0", TotalBytes: 24 * gib, FreeBytes: free},
	}
}

// withGPU is a machine with one GPU of the engine's and what NVIDIA's library says.
func withGPU(t *testing.T, log *bytes.Buffer, e *engine, gpus func() ([]GPU, error)) *Machine {
	t.Helper()
	if e.list == nil {
		e.list = func(context.Context, int32) ([]runner.Device, error) { return oneGPU(1 * gib), nil }
	}
	return onHost(t, "plain", 8, log, func(c *Config) { c.List, c.gpus = e.devices, gpus })
}

func free(t *testing.T, m *Machine) (uint64, error) {
	t.Helper()
	list, err := m.Devices(t.Context())
	if len(list) == 0 {
		return 0, err
	}
	if len(list) != 2 || list[0].ID != "CUDA0" || list[1].ID != runner.CPU || list[1].FreeBytes != 56*gib {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0].FreeBytes, err
}

func TestNumbersAreLiveWithoutAskingTheEngineAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e engine
		left := uint64(20 * gib)
		m := withGPU(t, &bytes.Buffer{}, &e, func() ([]GPU, error) { return []GPU{gpu("0000:1b:00.0", 24*gib, left)}, nil })
		for left > 16*gib {
			if n, err := free(t, m); err != nil || n != left {
				t.Fatalf("%d free, %v", n, err)
			}
			left -= gib
			time.Sleep(time.Minute)
		}
		if n := e.asked.Load(); n != 1 {
			t.Errorf("the engine was asked %d times", n)
		}
		if err := m.Refresh(t.Context()); err != nil || e.asked.Load() != 2 {
			t.Errorf("on demand: %v, %d times", err, e.asked.Load())
		}
	})
}

func TestWithoutLiveNumbersTheEngineIsAskedAgainWhenTheyAreOld(t *testing.T) {
	for name, gpus := range map[string]func() ([]GPU, error){
		"no driver":      func() ([]GPU, error) { return nil, ErrNoDriver },
		"a broken one":   func() ([]GPU, error) { return nil, errors.New("driver/library version mismatch") },
		"a foreign card": func() ([]GPU, error) { return []GPU{gpu("0000:99:00.0", 24*gib, gib)}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				e := engine{list: func(_ context.Context, n int32) ([]runner.Device, error) { return oneGPU(uint64(n) * gib), nil }}
				m := withGPU(t, &log, &e, gpus)
				for _, want := range []uint64{1, 1, 2, 2, 3} { // every 3 s, of which 5 s are fresh enough
					if n, err := free(t, m); err != nil || n != want*gib {
						t.Fatalf("%d free, want %d GiB, %v", n, want, err)
					}
					time.Sleep(3 * time.Second)
				}
				warnings := strings.Count(log.String(), "level=WARN")
				if broken := name == "a broken one"; broken && warnings != 1 || !broken && warnings != 0 {
					t.Errorf("log: %s", &log)
				}
			})
		})
	}
}

func TestAHungDriverGivesTheLastReadingAndAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var e engine
		var calls atomic.Int32
		hung := make(chan struct{})
		m := withGPU(t, &log, &e, func() ([]GPU, error) {
			if n := calls.Add(1); n == 2 {
				<-hung
			}
			return []GPU{gpu("0000:1b:00.0", 24*gib, uint64(9+calls.Load())*gib)}, nil
		})
		if n, err := free(t, m); err != nil || n != 10*gib {
			t.Fatalf("%d, %v", n, err)
		}
		for i, wait := range []time.Duration{2 * time.Second, 0, 0} { // the first waits for the limit, nobody after it waits again
			begun := time.Now()
			n, err := free(t, m)
			if n != 10*gib || err == nil || !strings.Contains(err.Error(), "has not answered for 2s") {
				t.Errorf("%d: %d, %v", i, n, err)
			}
			if took := time.Since(begun); took != wait { // synctest's clock: exact
				t.Errorf("%d: it took %s, want %s", i, took, wait)
			}
		}
		if calls.Load() != 2 || e.asked.Load() != 1 {
			t.Errorf("%d calls pile up in the driver, %d in the engine", calls.Load(), e.asked.Load())
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("log: %s", &log)
		}
		close(hung)
		synctest.Wait()
		if n, err := free(t, m); err != nil || n != 12*gib {
			t.Errorf("after it woke up: %d, %v", n, err)
		}
	})
}

func TestAHungDriverIsNotAskedThroughTheEngineEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e engine
		hung := make(chan struct{})
		m := withGPU(t, &bytes.Buffer{}, &e, func() ([]GPU, error) { <-hung; return nil, ErrNoDriver })
		for range 3 {
			if n, err := free(t, m); err == nil || n != gib {
				t.Errorf("%d, %v", n, err)
			}
			time.Sleep(time.Minute)
		}
		if n := e.asked.Load(); n != 1 {
			t.Errorf("the engine was asked %d times: it would hang too", n)
		}
		close(hung)
	})
}

func TestWhoAsksCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listing, gone := make(chan struct{}), errors.New("the client left")
		e := engine{list: func(ctx context.Context, n int32) ([]runner.Device, error) {
			if n > 1 {
				return oneGPU(gib), nil
			}
			close(listing)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		m := withGPU(t, &bytes.Buffer{}, &e, func() ([]GPU, error) { return nil, ErrNoDriver })
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { _, err := m.Devices(ctx); ended <- err }()
		<-listing
		late := make(chan error)
		waiting, leave := context.WithCancelCause(t.Context())
		go func() { _, err := m.Devices(waiting); late <- err }() // behind the first
		synctest.Wait()
		leave(gone)
		if err := <-late; !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		cancel(gone)
		if err := <-ended; !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		if n, err := free(t, m); err != nil || n != gib { // their leaving is no failure of the engine's
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestAnEngineThatCannotListIsNotAskedByEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine{list: func(_ context.Context, n int32) ([]runner.Device, error) {
			switch n {
			case 1:
				return nil, errors.New("no such file")
			case 2:
				return nil, nil
			}
			return oneGPU(gib), nil
		}}
		m := withGPU(t, &bytes.Buffer{}, &e, func() ([]GPU, error) { return nil, ErrNoDriver })
		for range 5 {
			if list, err := m.Devices(t.Context()); list != nil || err == nil || !strings.Contains(err.Error(), "no such file") {
				t.Fatalf("%v, %v", list, err)
			}
		}
		if n := e.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(5 * time.Second)
		if list, err := m.Devices(t.Context()); list != nil || err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%v, %v", list, err)
		}
		if err := m.Refresh(t.Context()); err != nil {
			t.Errorf("on demand it is asked at once: %v", err)
		}
		if n, err := free(t, m); err != nil || n != gib {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestAListThatTakesTooLongIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine{list: func(ctx context.Context, _ int32) ([]runner.Device, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		m := withGPU(t, &bytes.Buffer{}, &e, func() ([]GPU, error) { return nil, ErrNoDriver })
		if list, err := m.Devices(t.Context()); list != nil || err == nil || !strings.Contains(err.Error(), "it took over 1m0s") {
			t.Errorf("%v, %v", list, err)
		}
	})
}

func TestAGPUInMainMemoryHasWhatIsFreeThere(t *testing.T) {
	m := onHost(t, "slice2", 8, &bytes.Buffer{}, func(c *Config) {
		c.List = func(context.Context) ([]runner.Device, error) {
			return []runner.Device{{ID: "Vulkan0", Library: "vulkan", Integrated: true, TotalBytes: 16 * gib, FreeBytes: 15 * gib}, {ID: runner.CPU}}, nil
		}
	})
	list, err := m.Devices(t.Context())
	if err != nil || list[0].FreeBytes != 2*gib {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestWhoChangesTheListChangesItForNobodyElse(t *testing.T) {
	m := withGPU(t, &bytes.Buffer{}, &engine{}, func() ([]GPU, error) { return nil, ErrNoDriver })
	list, err := m.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list[0].ID = "changed"
	if _, err := free(t, m); err != nil {
		t.Fatal(err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{Cores: -1})
	for _, want := range []string{"List is required", "must not be negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// This machine's own library, whatever it says: it must answer within the limit, and a machine without a driver must say just that.
func TestTheRealLibrary(t *testing.T) {
	l := live{read: (&nvidia{}).read, limit: 20 * time.Second}
	for range 2 {
		gpus, err := l.get(t.Context())
		switch {
		case errors.Is(err, ErrNoDriver):
			if gpus != nil {
				t.Errorf("%v", gpus)
			}
		case err != nil:
			t.Errorf("a driver is there and broken: %v", err)
		}
		for _, g := range gpus {
			if g.Total == 0 || g.Free > g.Total || g.UUID == "" {
				t.Errorf("%+v", g)
			}
		}
	}
}
