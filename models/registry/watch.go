package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"time"
)

// stallWatch cancels a request when no byte came, or went, for Config.Stall.
type stallWatch struct {
	ctx    context.Context //nolint:containedctx // it is the request's, and ends with it
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

func (c *Client) watch(ctx context.Context) (context.Context, *stallWatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &stallWatch{ctx: ctx, cancel: cancel, stall: c.cfg.Stall}
	w.timer = time.AfterFunc(c.cfg.Stall, func() { cancel(errStalled) })
	return ctx, w
}

func (w *stallWatch) alive() { w.timer.Reset(w.stall) }

func (w *stallWatch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// why gives the reason for an error of a read: that the connection was given up, when it was.
func (w *stallWatch) why(err error) error {
	if cause := context.Cause(w.ctx); cause != nil && !errors.Is(err, io.EOF) {
		return cause
	}
	return bare(err)
}

// reader tells the watch of every byte.
func (w *stallWatch) reader(r io.Reader) io.Reader { return &watched{w, r} }

type watched struct {
	w *stallWatch
	r io.Reader
}

// Read reads, and says so.
func (r *watched) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.alive()
	}
	return n, err
}

// stopping is a body whose end is the end of the watch too.
type stopping struct {
	io.ReadCloser
	watch *stallWatch
}

// Close closes the body.
func (s *stopping) Close() error {
	defer s.watch.stop()
	return s.ReadCloser.Close()
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
