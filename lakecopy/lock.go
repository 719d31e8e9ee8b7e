package lakecopy

import (
	"context"
	"strings"
	"sync"
	"time"

	"sluice/fault"
)

// locks are the publish locks of this process: one holder at a time for a folder, what is below it and what is above.
type locks struct {
	mu      sync.Mutex
	held    map[string]bool // absolute folders
	changed chan struct{}   // closed and replaced at each release
}

func newLocks() *locks { return &locks{held: map[string]bool{}, changed: make(chan struct{})} }

// acquire waits until no overlapping folder is held. The caller must call release.
func (l *locks) acquire(ctx context.Context, folder string) (release func(), err error) {
	for {
		l.mu.Lock()
		if !l.busy(folder) {
			l.held[folder] = true
			l.mu.Unlock()
			return func() { l.release(folder) }, nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, canceled(ctx)
		}
	}
}

func (l *locks) busy(folder string) bool {
	for other := range l.held {
		if other == folder || strings.HasPrefix(other, folder+"/") || strings.HasPrefix(folder, other+"/") {
			return true
		}
	}
	return false
}

func (l *locks) release(folder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, folder)
	close(l.changed)
	l.changed = make(chan struct{})
}

// runs counts the COPYs under way, so that Close can wait for them.
type runs struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when closed is set and n is 0
}

func newRuns() *runs { return &runs{idle: make(chan struct{})} }

// begin counts one more; the caller must call leave, once.
func (r *runs) begin() (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		busy := fault.New(fault.Busy, "lakecopy.Copy", "the server is stopping; ask again when it is back")
		busy.RetryAfter = 10 * time.Second
		return nil, busy
	}
	r.n++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.n--; r.n == 0 && r.closed {
			close(r.idle)
		}
	}, nil
}

// end lets none begin any more and waits for the others, but not longer than patience.
func (r *runs) end(patience time.Duration) error {
	r.mu.Lock()
	if !r.closed {
		if r.closed = true; r.n == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.idle:
		return nil
	case <-timer.C:
		return fault.New(fault.Busy, "lakecopy.Close", "a COPY still runs after %s; the next start settles it", patience)
	}
}
