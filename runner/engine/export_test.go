package engine

import "context"

// OnDecode has f called after each decode call; nil ends that.
func (e *Engine) OnDecode(f func()) error {
	done, err := e.submit(context.Background(), func(_ context.Context, l *loop) error { l.decoded = f; return nil })
	if err != nil {
		return err
	}
	return <-done
}

// Close ends the loop, which else lives as long as the process.
func (e *Engine) Close() { close(e.jobs) }
