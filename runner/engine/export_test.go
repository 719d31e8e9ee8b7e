package engine

import "context"

// BatchPart is what a batch had of one slot.
type BatchPart struct {
	Slot, Tokens, Outputs, Drafted int
	Reading                        bool
}

// OnDecode has f called behind each batch, in the loop's goroutine; nil ends that.
func (e *Engine) OnDecode(f func([]BatchPart)) error {
	return e.onLoop(context.Background(), func(l *loop) {
		l.decoded = nil
		if f == nil {
			return
		}
		l.decoded = func(parts []part) {
			out := make([]BatchPart, len(parts))
			for i, p := range parts {
				out[i] = BatchPart{Tokens: len(p.in), Outputs: p.outputs, Drafted: p.drafted}
				if p.slot != nil {
					out[i].Slot, out[i].Reading = p.slot.id, p.slot.g.isReading
				}
			}
			f(out)
		}
	})
}

// State says how many slots hold an answer and how many requests wait.
func (e *Engine) State() (busy, waiting, threads int, err error) {
	err = e.onLoop(context.Background(), func(l *loop) {
		for _, s := range l.slots {
			if s.g != nil {
				busy++
			}
		}
		waiting, threads = len(l.queue)+len(l.packed), l.native.threads()
	})
	return busy, waiting, threads, err
}

// Close ends the loop, which else lives as long as the process.
func (e *Engine) Close() { close(e.work) }
