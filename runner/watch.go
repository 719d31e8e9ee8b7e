package runner

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Defaults of Config.
const (
	defaultSilence   = time.Minute
	defaultPingEvery = 5 * time.Second
)

// watchdog replaces a child that has stopped answering. A child that hangs looks alive from outside: its socket takes
// connections, and every caller would wait for its own time limit, for ever where it has none. So while there are calls, and
// once after each, the child is pinged. The engine answers a ping between two batches, however long the answers take that it
// works on; no answer within Config.Silence, and no work done in that time, means that it never will be between two batches
// again, and it is killed.
type watchdog struct {
	mu      sync.Mutex
	calls   int  // in flight
	fresh   bool // a call has come since the last ping
	running bool // the goroutine in watch
	ended   bool // the child has ended: nothing is watched any more

	life    context.Context // ends with the child
	end     context.CancelFunc
	watches sync.WaitGroup
}

// begin notes a call; the function that it gives notes its end.
func (p *Process) begin() (end func()) {
	w := &p.dog
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.fresh = true
	if !w.running && !w.ended {
		w.running = true
		w.watches.Go(p.watch)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls--
	}
}

// watch pings the child until there is nothing to watch over.
func (p *Process) watch() {
	w := &p.dog
	tick := time.NewTicker(p.pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.life.Done():
			return
		}
		w.mu.Lock()
		if w.calls == 0 && !w.fresh {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.fresh = false
		w.mu.Unlock()
		if !p.answers() {
			p.silence()
			return
		}
	}
}

// answers pings the child until it answers, whatever it answers, or has been silent for too long. One that works through a
// long batch on few cores, or reads a large file into memory, is slow and not silent: it gets patience times as long.
func (p *Process) answers() bool {
	ctx, cancel := context.WithCancel(p.dog.life)
	defer cancel()
	answered := make(chan struct{})
	p.dog.watches.Go(func() {
		if p.ping(ctx) {
			close(answered)
		}
	})
	before := workOf(p.PID())
	for range patience {
		late := time.NewTimer(p.maxSilence)
		defer late.Stop()
		select {
		case <-answered:
			return true
		case <-p.dog.life.Done():
			return true // it has ended: others tell
		case <-late.C:
		}
		now := workOf(p.PID())
		if !now.since(before).busy(p.maxSilence) {
			break
		}
		before = now
	}
	return false
}

// patience is how many times Config.Silence a child may take for one batch as long as it works.
const patience = 10

// ping sends pings until one is answered or ctx ends. A connection that breaks or is refused is no sign of life, but may be
// a moment's trouble.
func (p *Process) ping(ctx context.Context) (answered bool) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runner"+pathPing, strings.NewReader("{}"))
		if err != nil {
			return true // not the child's fault
		}
		resp, err := p.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return true
		}
		again := time.NewTimer(p.pingEvery)
		select {
		case <-ctx.Done():
			again.Stop()
			return false
		case <-again.C:
		}
	}
}

// silence kills a child that does not answer.
func (p *Process) silence() {
	p.mu.Lock()
	p.silent = p.maxSilence
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
}

// close ends the watch. It is called once, when the child has ended.
func (w *watchdog) close() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.end()
	w.watches.Wait()
}
