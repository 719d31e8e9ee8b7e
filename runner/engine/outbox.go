package engine

import (
	"sync"

	"sluice/runner"
)

// outboxRoom is how many chunks an answer may be ahead of a slow reader. Then the answer waits, and the others go on.
const outboxRoom = 1024

// outbox carries the chunks of a request from the loop, which never waits, to the goroutine that the caller is in.
type outbox struct {
	ready chan struct{} // has room for one: there is something to take

	mu     sync.Mutex
	chunks []runner.Chunk
	done   bool
	err    error
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

func (o *outbox) put(c runner.Chunk) {
	o.mu.Lock()
	o.chunks = append(o.chunks, c)
	o.mu.Unlock()
	o.signal()
}

// finish says that nothing more comes. The first call counts.
func (o *outbox) finish(err error) {
	o.mu.Lock()
	if !o.done {
		o.done, o.err = true, err
	}
	o.mu.Unlock()
	o.signal()
}

// full says whether the reader is too far behind.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.chunks) >= outboxRoom
}

// take gives what has come since the last time.
func (o *outbox) take() (chunks []runner.Chunk, done bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	chunks, o.chunks = o.chunks, nil
	return chunks, o.done, o.err
}

func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}
