package scheduler

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"sluice/runner"
)

// cores are shared evenly by those who compute: models that answer, each with all its requests, and loads, all of them as one.
type cores struct {
	mu    sync.Mutex
	last  time.Time
	jobs  []*job
	timer *time.Timer
}

type job struct {
	who  string
	left float64 // seconds with all cores
	rate float64
	done chan struct{}
}

// batched is how much faster a model is that answers so many at a time: in a batch they read the weights together.
var batched = []float64{0, 1, 1.35, 1.6, 1.8}

// work returns when so many seconds of the cores have been had.
func (c *cores) work(who string, seconds float64) {
	j := &job{who: who, left: seconds, done: make(chan struct{})}
	c.mu.Lock()
	c.step()
	c.jobs = append(c.jobs, j)
	c.share()
	c.mu.Unlock()
	<-j.done
}

// step accounts for the time since the last one.
func (c *cores) step() {
	passed := time.Since(c.last).Seconds()
	c.last = time.Now()
	var rest []*job
	for _, j := range c.jobs {
		if j.left -= passed * j.rate; j.left > 1e-7 {
			rest = append(rest, j)
		} else {
			close(j.done)
		}
	}
	c.jobs = rest
}

// share divides the cores anew, until somebody is done or comes.
func (c *cores) share() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if len(c.jobs) == 0 {
		return
	}
	n := map[string]int{}
	for _, j := range c.jobs {
		n[j.who]++
	}
	first := time.Hour
	for _, j := range c.jobs {
		j.rate = batched[min(n[j.who], len(batched)-1)] / float64(n[j.who]*len(n))
		first = min(first, time.Duration(j.left/j.rate*float64(time.Second))+1)
	}
	c.timer = time.AfterFunc(first, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.step()
		c.share()
	})
}

const swapStop = 100 * time.Millisecond // until a process has ended

// swapRunner is a runner whose load takes cores.
type swapRunner struct {
	Runner // Generate and the like: nobody calls them here
	cores  *cores
	loads  *int
	done   chan struct{}
	once   sync.Once
}

func (r *swapRunner) Load(_ context.Context, req runner.LoadRequest, _ func(float32)) (runner.LoadReport, error) {
	r.cores.work("a load", swapModels[filepath.Base(req.ModelPath)].load)
	r.cores.mu.Lock()
	*r.loads++
	r.cores.mu.Unlock()
	return runner.LoadReport{NumCtx: req.NumCtx, Parallel: req.Parallel}, nil
}

func (r *swapRunner) SetThreads(context.Context, int) error { return nil }
func (r *swapRunner) Done() <-chan struct{}                 { return r.done }
func (r *swapRunner) Err() error                            { return nil }

func (r *swapRunner) Stop(context.Context) error {
	<-time.After(swapStop)
	r.once.Do(func() { close(r.done) })
	return nil
}

// peer schedules as Ollama 0.17.4 does (server/sched.go) with OLLAMA_MAX_LOADED_MODELS=2, OLLAMA_NUM_PARALLEL=4 and one keep_alive for all:
// a request for a loaded model has it at once; one for another model waits in a queue whose head lets a victim end, the first idle one in
// the order of the files' names, or the first one, and then waits until nobody uses that any more. Its loads take longer than ours.
type peer struct {
	cores   *cores
	mu      sync.Mutex
	loaded  map[string]*peerModel
	pending chan peerRequest
	gone    chan struct{}
	loads   int
}

type peerModel struct {
	name   string
	refs   int
	goes   bool // when nobody uses it
	slots  chan struct{}
	loaded chan struct{} // closed then
}

type peerRequest struct {
	model string
	got   chan *peerModel
}

const peerLoad = 8 // times a load of ours, which makes its waits as long as they are measured; with 1 it needs as many loads

var peerOrder = []string{"q05", "gemma", "smol"} // as the digests of the bench's files are sorted

func newPeer(c *cores) *peer {
	p := &peer{cores: c, loaded: map[string]*peerModel{}, pending: make(chan peerRequest, 512), gone: make(chan struct{}, 1)}
	go func() {
		for r := range p.pending {
			p.serve(r)
		}
	}()
	return p
}

// serve gets one model loaded, while the others wait.
func (p *peer) serve(r peerRequest) {
	for {
		p.mu.Lock()
		m, there := p.loaded[r.model]
		if !there && len(p.loaded) == 2 {
			victim := p.victim()
			victim.goes = true
			p.end(victim)
			p.mu.Unlock()
			<-p.gone
			continue
		}
		if !there {
			m = &peerModel{name: r.model, slots: make(chan struct{}, 4), loaded: make(chan struct{})}
			p.loaded[r.model] = m
			p.loads++
		}
		m.refs++
		p.mu.Unlock()
		if !there {
			p.cores.work("a load", peerLoad*swapModels[r.model].load)
			close(m.loaded)
		}
		r.got <- m
		return
	}
}

func (p *peer) victim() (first *peerModel) {
	for _, name := range peerOrder {
		m := p.loaded[name]
		if m != nil && m.refs == 0 {
			return m
		}
		if first == nil {
			first = m
		}
	}
	return first
}

// end lets a model go that shall, when nobody uses it.
func (p *peer) end(m *peerModel) {
	if m.goes && m.refs == 0 {
		delete(p.loaded, m.name)
		time.AfterFunc(swapStop, func() { p.gone <- struct{}{} })
	}
}

func (p *peer) lease(model string) (release func()) {
	p.mu.Lock()
	m := p.loaded[model]
	if m != nil {
		m.refs++
	}
	p.mu.Unlock()
	if m == nil {
		r := peerRequest{model: model, got: make(chan *peerModel, 1)}
		p.pending <- r
		m = <-r.got
	}
	<-m.loaded
	m.slots <- struct{}{}
	return func() {
		<-m.slots
		p.mu.Lock()
		defer p.mu.Unlock()
		m.refs--
		p.end(m)
	}
}
