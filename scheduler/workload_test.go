package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/models"
)

// TestMemoryStarvesNobody holds the bound where memory is what is waited for: streams on models that are loaded, and that fit beside
// each other, must not keep out one that needs the room of them all.
//
// The bound follows from the rules. For MaxTurn after it came others may still be loaded into its room (claims begin then); the last of
// these may have begun just before, and takes one load. From when that one is ready it has a turn of MaxTurn; then it drains for as long
// as a lease is held, and the waiting model is loaded: 2 turns, 1 lease, 2 loads. Models that waited before it and do not fit beside it are
// served first, in rounds of as many as fit together: a turn, a lease and a load each. MaxPass is out of reach, stops take no time, and a
// second is for readings.
func TestMemoryStarvesNobody(t *testing.T) {
	rows := map[string]struct {
		hot   []uint64 // GiB
		ahead int      // rounds of those before it: of five models two fit at a time, so three wait, for two rounds
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
					bound := 2*turn + hold + 2*took + time.Duration(row.ahead)*(turn+hold+took) + time.Second
					if waited := time.Since(begin); waited > bound {
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
