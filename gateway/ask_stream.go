package gateway

import (
	"sync"
	"time"
)

// silence is for how long an ask may say nothing before a comment says that it is being worked on: proxies take a silent
// stream for dead.
const silence = 15 * time.Second

// askStream writes the events of an ask, and comments while there are none. Nothing goes out before the first event.
type askStream struct {
	mu     sync.Mutex
	events sseStream
	quiet  *time.Timer
	done   chan struct{}
	ended  chan struct{}
}

// newAskStream begins to watch for silence; end ends that, and must be called.
func newAskStream(events sseStream) *askStream {
	a := &askStream{events: events, quiet: time.NewTimer(silence), done: make(chan struct{}), ended: make(chan struct{})}
	go a.watch()
	return a
}

func (a *askStream) watch() {
	defer close(a.ended)
	for {
		select {
		case <-a.done:
			return
		case <-a.quiet.C:
			a.mu.Lock()
			if a.events.started {
				_ = a.events.comment("still at it") // a client that is gone ends the request's context, and with it the work
			}
			a.quiet.Reset(silence)
			a.mu.Unlock()
		}
	}
}

func (a *askStream) send(name string, v any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet.Reset(silence)
	return a.events.send(name, v)
}

func (a *askStream) started() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events.started
}

// end waits until nothing more is written by itself.
func (a *askStream) end() {
	close(a.done)
	<-a.ended
	a.quiet.Stop()
}
