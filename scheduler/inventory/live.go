package inventory

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// live keeps a reading that may hang: a driver whose GPU fell off the bus can block a call for ever, and no such call can be
// interrupted. At most one goroutine is in it, whoever asks, and nobody waits for longer than the limit.
type live struct {
	read  func() ([]GPU, error)
	limit time.Duration

	mu      sync.Mutex
	pending chan struct{} // closed when the reading that is under way ends; nil: none is
	since   time.Time     // it began
	last    []GPU         // of the last reading that ended
	err     error
}

// lateError says that the driver does not answer.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("NVIDIA's driver has not answered for %s", e.limit)
}

// get gives a reading. When it takes too long, or ctx ends, it is the last one with an error.
func (l *live) get(ctx context.Context) ([]GPU, error) {
	l.mu.Lock()
	if l.pending == nil {
		l.pending, l.since = make(chan struct{}), time.Now()
		go l.run(l.pending)
	}
	pending, last, left := l.pending, l.last, l.limit-time.Since(l.since)
	l.mu.Unlock()

	timer := time.NewTimer(max(left, 0))
	defer timer.Stop()
	select {
	case <-pending:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last, l.err
	case <-timer.C:
		return last, &lateError{l.limit}
	case <-ctx.Done():
		return last, context.Cause(ctx)
	}
}

func (l *live) run(pending chan struct{}) {
	gpus, err := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if err == nil || gpus != nil {
		l.last = gpus
	} else {
		l.last = nil // the driver answered, and what it said before holds no more
	}
	l.pending = nil
	close(pending)
}
