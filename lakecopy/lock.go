package lakecopy

import (
	"context"
	"strings"
	"sync"
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
