package registry

import (
	"context"
	"errors"

	"sluice/models"
)

var (
	// errPublished: the blob came into the store by another process.
	errPublished = errors.New("the blob is in the store")
	// errNobody: the last one who waited for a blob has left.
	errNobody = errors.New("nobody waits for the blob any more")
)

// flight is the one download of a blob, shared by all pulls that want it. One that succeeded is kept until the last of them ended, so
// that no second one begins on a file that is about to become a blob; one that failed ends at once.
type flight struct {
	*download
	fetched chan struct{} // all bytes are there, perhaps not good ones
	done    chan struct{} // err is set
	gone    chan struct{} // the file is closed
	err     error

	cancel context.CancelCauseFunc
	refs   int // pulls; guarded by Client.mu
}

// join gives the flight of a blob, and starts it when there is none.
func (c *Client) join(ctx context.Context, r *remote, b models.Blob) (*flight, error) {
	path, err := c.cfg.Store.PartialPath(b.Digest)
	if err != nil {
		return nil, err
	}
	for {
		c.mu.Lock()
		f := c.flights[b.Digest]
		switch {
		case f == nil:
			f = c.start(ctx, r, b, path)
			c.mu.Unlock()
			return f, nil
		case f.refs > 0 && !f.failed():
			f.refs++
			c.mu.Unlock()
			return f, nil
		}
		c.mu.Unlock()
		select { // its last pull is leaving
		case <-f.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *flight) failed() bool {
	select {
	case <-f.done:
		return f.err != nil
	default:
		return false
	}
}

// start is called with c.mu held.
func (c *Client) start(ctx context.Context, r *remote, b models.Blob, path string) *flight {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // the others stay when the first one leaves
	f := &flight{
		download: &download{remote: r, blob: b, path: path},
		fetched:  make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}),
		cancel: cancel, refs: 1,
	}
	c.flights[b.Digest] = f
	go func() {
		f.err = f.run(ctx, func() { close(f.fetched) })
		if errors.Is(f.err, errPublished) {
			f.err = nil
		}
		failed := f.err != nil
		close(f.done)
		if failed { // the next pull need not wait until all who know of it have told their callers
			c.end(f)
		}
	}()
	return f
}

// leave ends one pull's interest. With the last one the download ends, before leave returns.
func (c *Client) leave(f *flight) {
	c.mu.Lock()
	f.refs--
	last := f.refs == 0
	c.mu.Unlock()
	if !last {
		return
	}
	f.cancel(errNobody)
	<-f.done
	if f.err != nil {
		<-f.gone
		return
	}
	c.end(f)
}

// end gives the file free.
func (c *Client) end(f *flight) {
	f.cancel(nil)
	f.close()
	c.mu.Lock()
	delete(c.flights, f.blob.Digest)
	c.mu.Unlock()
	close(f.gone)
}
