package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkloads throws random requests at described machines, and at each step holds the scheduler's word against an account that the
// machine keeps by itself (oracle_test.go). What a run does follows from its seed. The two variables make it long:
//
//	SLUICE_TEST_WORKLOAD_REQUESTS=10000 SLUICE_TEST_WORKLOAD_SEEDS=1,2,3 go test ./scheduler -run TestWorkloads -timeout 60m
func TestWorkloads(t *testing.T) {
	machines := map[string]struct {
		opts map[string]string
		lag  time.Duration // of what GPUs show
	}{
		"CPU only with 8 GiB":  {map[string]string{"ram": "8GiB"}, 0},
		"CPU only with 64 GiB": {map[string]string{"ram": "64GiB"}, 0},
		"one GPU":              {map[string]string{"gpu": "24GiB", "ram": "64GiB"}, 2 * time.Second},
		"eight GPUs":           {map[string]string{"gpu": strings.Repeat("80GiB,", 7) + "80GiB", "ram": "512GiB"}, 0},
		"two unequal GPUs":     {map[string]string{"gpu": "24GiB,8GiB", "ram": "32GiB"}, time.Second},
		"a laptop":             {map[string]string{"gpu": "12GiB", "ram": "16GiB", "igpu": "1"}, 0},
	}
	requests, err := strconv.Atoi(cmp.Or(os.Getenv("SLUICE_TEST_WORKLOAD_REQUESTS"), "300"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(cmp.Or(os.Getenv("SLUICE_TEST_WORKLOAD_SEEDS"), "1,2"), ",") {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for name, row := range machines {
			t.Run(name+"/seed "+text, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, err := describe(row.opts)
					if err != nil {
						t.Fatal(err)
					}
					m.lag = row.lag
					newPlay(t, m, seed, requests).run(requests)
				})
			})
		}
	}
}

// play is one run.
type play struct {
	*oracle
	rnd *rand.Rand // only the driver draws from it: goroutines would in any order
	all sync.WaitGroup
}

func newPlay(t *testing.T, m *machine, seed uint64, requests int) *play {
	p := &play{rnd: rand.New(rand.NewPCG(seed, 1))}
	p.oracle = newOracle(t, m, p.rnd, seed%2 == 0)
	p.again = fmt.Sprintf("SLUICE_TEST_WORKLOAD_REQUESTS=%d SLUICE_TEST_WORKLOAD_SEEDS=%d go test ./scheduler -run '%s'",
		requests, seed, strings.ReplaceAll(t.Name()[:strings.LastIndex(t.Name(), "/")], "_", " "))
	p.w.vary = func(name string, n int) plan { return p.vary(seed, name, n) }
	return p
}

// run is the driver: bursts of requests, what happens besides, and a look at everything each time that all wait.
func (p *play) run(requests int) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.s.Run(ctx) }()
	synctest.Wait()
	for sent := 0; sent < requests; {
		burst := 1 + p.rnd.IntN(4)
		hot := p.kinds[min(p.rnd.IntN(len(p.kinds)), p.rnd.IntN(len(p.kinds)))]
		if p.rnd.IntN(12) == 0 {
			burst = 10 + p.rnd.IntN(30)
		}
		for range min(burst, requests-sent) {
			k := hot
			if p.rnd.IntN(3) == 0 {
				k = p.kinds[p.rnd.IntN(len(p.kinds))]
			}
			p.request(k)
			sent++
		}
		p.check()
		p.happens()
		p.check()
		for range 1 + p.rnd.IntN(2) {
			<-time.After(time.Duration(p.rnd.IntN(1+p.rnd.IntN(6000))) * time.Millisecond)
			p.check()
		}
	}
	p.calm()
	everybody := make(chan struct{})
	go func() { p.all.Wait(); close(everybody) }()
	select {
	case <-everybody:
	case <-time.After(5 * time.Hour):
		p.fail("after 5 hours requests still wait: %v", p.waiting)
		stop()
		<-everybody
	}
	p.check()
	p.sums()
	stop()
	if err := <-ended; err != nil {
		p.fail("Run: %v", err)
	}
	<-time.After(time.Minute) // what drivers give back late
	p.empty()
	p.t.Logf("%v; longest wait %.0f %% of its bound, %d loads ran out of memory that the world had promised otherwise", p.got, 100*p.longest, p.excused)
}

// request sends one.
func (p *play) request(k *kind) {
	r := p.rnd
	want := Want{Model: k.copy(r.IntN(5) == 0), Options: options([]int{0, 0, 0, 0, 2048, 8192, 32768, 131072}[r.IntN(8)])}
	if r.IntN(12) == 0 {
		want.Options.NumGPU = []int{0, 5, 999}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		keep := []time.Duration{0, -1, time.Second, 10 * time.Second, time.Minute, time.Hour}[r.IntN(6)]
		want.KeepAlive = &keep
	}
	if r.IntN(2) == 0 {
		want.Prefix = []uint64{r.Uint64N(3), r.Uint64N(30)}
	}
	hold := time.Duration(r.IntN(2000)) * time.Millisecond
	if r.IntN(30) == 0 {
		hold = time.Duration(r.Int64N(int64(mostHeld)))
	}
	patience := time.Duration(r.IntN(1+r.IntN(90_000))) * time.Millisecond
	how := []end{served, served, cancelled, late}[r.IntN(4)]
	p.all.Go(func() { p.lease(k, want, how, patience, hold) })
}

// happens does what is not a request.
func (p *play) happens() {
	r := p.rnd
	switch r.IntN(16) {
	case 0:
		p.crash(r.IntN(1 << 20))
	case 1, 2:
		if err := p.s.Unload(p.t.Context(), p.kinds[r.IntN(len(p.kinds))].copy(false)); err != nil {
			p.fail("unload: %v", err)
		}
	case 3, 4:
		if !p.exact {
			p.others(r.IntN(len(p.m.devices)), r.Float64())
		}
	case 5, 6:
		p.moved()
		p.remotes[r.IntN(len(p.remotes))].set(r.IntN(3) > 0)
	case 7:
		p.m.mu.Lock()
		was := p.m.fails
		p.m.fails = !p.exact && r.IntN(3) == 0
		p.m.slow = []time.Duration{0, 0, 100 * time.Millisecond, time.Second}[r.IntN(4)]
		fails := p.m.fails
		p.m.mu.Unlock()
		p.mu.Lock()
		if fails {
			p.blind = time.Now().Add(1000 * time.Hour)
		} else if was {
			p.blind = time.Now()
		}
		p.mu.Unlock()
	}
}

// calm ends what the world does against the scheduler.
func (p *play) calm() {
	p.m.mu.Lock()
	p.m.fails = false
	clear(p.m.other)
	p.m.mu.Unlock()
	p.moved()
	for _, r := range p.remotes {
		r.set(true)
	}
}
