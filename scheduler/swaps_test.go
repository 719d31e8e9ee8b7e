package scheduler

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSwaps plays the scene of bench/sched in simulated time: three models of which two fit, and clients that take the next request of a
// list when their last one has ended. The policy must need fewer loads than Ollama's, which waits until nobody uses its victim however
// long that lasts. Which of two runs needs fewer is luck; over these lists, whose first is the bench's, it is not: about 25 against 30
// for each.
func TestSwaps(t *testing.T) {
	const lists = 12
	ours, peers := 0, 0
	for seed := range uint64(lists) {
		list := swapList(seed + 1)
		synctest.Test(t, func(t *testing.T) {
			c := &cores{last: time.Now()}
			loads := 0
			s := started(t, Config{MaxLoaded: 2, Parallel: 4, Threads: 2, Start: func(context.Context) (Runner, error) {
				return &swapRunner{cores: c, loads: &loads, done: make(chan struct{})}, nil
			}})
			playSwaps(c, list, func(model string) (release func()) {
				lease, err := s.Lease(t.Context(), Want{Model: testModel(model, 0), Options: options(0)})
				if err != nil {
					t.Error(err)
					return func() {}
				}
				return lease.Release
			})
			ours += loads
		})
		synctest.Test(t, func(t *testing.T) {
			c := &cores{last: time.Now()}
			p := newPeer(c)
			defer close(p.pending)
			playSwaps(c, list, p.lease)
			peers += p.loads
		})
	}
	t.Logf("%d loads, %d by Ollama's rules, for %d lists", ours, peers, lists)
	if ours > peers {
		t.Errorf("%d loads, over the %d of Ollama's rules", ours, peers)
	}
	if ours < lists*len(swapModels) {
		t.Errorf("%d loads for %d lists of %d models: nothing was evicted", ours, lists, len(swapModels))
	}
}

// swapModel says what a model of the scene takes of the cores when it has them for itself, in seconds. The figures are near those of the
// bench's machine, and so are the loads and waits that follow from them.
type swapModel struct{ load, answer float64 }

var swapModels = map[string]swapModel{"q05": {0.4, 0.53}, "smol": {0.2, 0.19}, "gemma": {0.3, 0.33}}

// swapList is bench/sched's list of a seed, as the names of the models.
func swapList(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, seed))
	names := []string{"q05", "q05", "q05", "q05", "q05", "smol", "smol", "smol", "gemma", "gemma"}
	list := make([]string, 300)
	for i := range list {
		list[i] = names[r.IntN(len(names))]
		r.IntN(8) // the text
		r.IntN(3)
	}
	return list
}

// playSwaps has the clients ask, in five pieces with a pause after each: the bench asks both servers in turn.
func playSwaps(c *cores, list []string, lease func(model string) (release func())) {
	const clients, pieces = 8, 5
	for piece := range pieces {
		next := make(chan string)
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for model := range next {
					release := lease(model)
					c.work(model, swapModels[model].answer)
					release()
				}
			})
		}
		for _, model := range list[piece*len(list)/pieces : (piece+1)*len(list)/pieces] {
			next <- model
		}
		close(next)
		all.Wait()
		<-time.After(30 * time.Second)
	}
}
