package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/models"
)

// TestARefusalTakesSomebody: the owner asked the policy again and again when a load was refused that nobody in the queue was refused for.
// It hangs when it fails.
func TestARefusalTakesSomebody(t *testing.T) {
	t.Run("names of one file have contexts of their own", func(t *testing.T) {
		settings := func(m *models.Model) Settings {
			if m.Name == "a" {
				return Settings{NumCtx: 131072, Parallel: 4}
			}
			return Settings{Parallel: 4}
		}
		on(t, oneGPU, Config{Settings: settings}, func(t *testing.T, b *bench) {
			m := b.model("a", 8, 256, time.Second)
			busy, err := b.s.Lease(t.Context(), wants(b.model("busy", 20, 1, time.Second), 512))
			if err != nil {
				t.Fatal(err)
			}
			first, second := b.ask(wants(m, 512)), b.ask(wants(alias(m, "b"), 0))
			busy.Release()
			for _, c := range []<-chan got{first, second} {
				if g := <-c; g.err != nil {
					t.Errorf("it would fit: %v", g.err)
				} else {
					g.lease.Release()
				}
			}
		})
	})
	t.Run("a server elsewhere has the larger one", func(t *testing.T) {
		on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
			m := b.model("a", 8, 256, time.Second)
			there, err := b.s.Lease(t.Context(), wants(alias(m, "b"), 0))
			if err != nil || there.Remote() == "" {
				t.Fatal(err)
			}
			larger := b.ask(wants(alias(m, "b"), 131072)) // here it does not fit, there all slots are taken
			if g := <-b.ask(wants(m, 512)); g.err != nil {
				t.Errorf("it would fit: %v", g.err)
			} else {
				g.lease.Release()
			}
			there.Release()
			g := <-larger
			if g.err != nil || g.lease.Remote() == "" {
				t.Fatal(g.err)
			}
			g.lease.Release()
		}, "b")
	})
}

// TestARefusalIsOnesOwn: who asks for main memory only is refused by himself.
func TestARefusalIsOnesOwn(t *testing.T) {
	on(t, oneGPU, Config{}, func(t *testing.T, b *bench) {
		m := b.model("a", 10, 16, time.Second)
		<-time.After(time.Minute)
		b.m.mu.Lock()
		b.m.slow = time.Second // both are there before anything is decided
		b.m.mu.Unlock()
		bad := wants(m, 512)
		bad.Options.NumGPU = 0
		refused, good := b.ask(bad), b.ask(wants(m, 512))
		if g := <-refused; fault.CodeOf(g.err) != fault.TooLarge {
			t.Errorf("10 GiB in 4 GiB of main memory: %v", g.err)
		}
		if g := <-good; g.err != nil {
			t.Errorf("it fits on the GPU: %v", g.err)
		} else {
			g.lease.Release()
		}
	})
}

// TestAShortageNamesWhoIsInTheWay: what others happen to have is no reason when pinned models alone are one.
func TestAShortageNamesWhoIsInTheWay(t *testing.T) {
	pins := func(m *models.Model) Settings { return Settings{Pin: m.Name == "p"} }
	on(t, oneGPU, Config{Memory: 20 * gib, Settings: pins}, func(t *testing.T, b *bench) {
		g := <-b.ask(wants(b.model("p", 4, 1, time.Second), 512))
		if g.err != nil {
			t.Fatal(g.err)
		}
		g.lease.Release()
		b.m.mu.Lock()
		b.m.other["gpu0"] = gib
		b.m.mu.Unlock()
		<-time.After(time.Minute)
		g = <-b.ask(wants(b.model("a", 17, 1, time.Second), 512))
		if text := publicText(g.err); fault.CodeOf(g.err) != fault.Busy || !strings.Contains(text, "pinned") || strings.Contains(text, "other programs") {
			t.Errorf("4 GiB of 20 are pinned, 17 are wanted: %v", g.err)
		}
	})
}

// TestAllPlacesArePinned: who waits for a place that never becomes free is told.
func TestAllPlacesArePinned(t *testing.T) {
	on(t, oneGPU, Config{MaxLoaded: 1, Settings: func(m *models.Model) Settings { return Settings{Pin: m.Name == "p"} }}, func(t *testing.T, b *bench) {
		g := <-b.ask(wants(b.model("p", 1, 1, time.Second), 512))
		if g.err != nil {
			t.Fatal(g.err)
		}
		g.lease.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := b.s.Lease(ctx, wants(b.model("a", 1, 1, time.Second), 512))
		if fault.CodeOf(err) != fault.Busy || !strings.Contains(publicText(err), "1 models may be loaded") {
			t.Errorf("the only place is pinned: %v", err)
		}
	})
}
