package scheduler

import (
	"cmp"
	"slices"
	"time"

	"sluice/fault"
)

// waiter is a request in the queue.
type waiter struct {
	want     Want
	settings Settings
	path     string
	numCtx   int // 0: none asked for
	since    time.Time
	without  []Remote // servers that have failed with this request already

	projector, adapters uint64 // bytes of the files that are loaded beside the model

	left  <-chan struct{} // the caller has gone
	reply chan answer     // see answer
}

// usualCtx is the context for who asks for none.
func (w *waiter) usualCtx(c Config) int {
	return capCtx(w.want.Model, cmp.Or(w.settings.NumCtx, c.NumCtx))
}

type answer struct {
	lease  *Lease
	untold []<-chan struct{} // to be closed before the lease is used, see settle
	err    error
}

// answer hands the caller its answer. The channel is unbuffered: a send that lands proves the caller is still there.
// Otherwise a lease would be counted for someone who left, and its runner could never be evicted again.
func (w *waiter) answer(a answer) bool {
	select {
	case w.reply <- a:
		return true
	case <-w.left:
		return false
	}
}

// refuse answers those in the queue that match with an error. as is what they are counted as.
func (l *loop) refuse(as string, match func(*waiter) bool, err error) {
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		if !match(w) {
			return false
		}
		if w.answer(answer{err: err}) && as != "" { // who has left needs no error
			l.counted.Refused[as]++
		}
		return true
	})
}

// reject answers one that does not get into the queue.
func (l *loop) reject(as string, w *waiter, err error) {
	if w.answer(answer{err: err}) {
		l.counted.Refused[as]++
	}
}

func (l *loop) arrive(w *waiter) {
	if l.closing {
		w.answer(answer{err: errStopped()})
		return
	}
	w.settings = l.cfg.Settings(w.want.Model)
	if l.atOnce(w) {
		l.queue = append(l.queue, w)
		return
	}
	if err := l.unserved(w); err != nil {
		l.reject(refusedAway, w, err)
		return
	}
	if err := l.braked(w); err != nil && len(l.offersTo(w)) == 0 {
		l.reject(refusedFailed, w, err)
		return
	}
	if len(l.queue) >= l.cfg.MaxQueue || l.waiting(w.path) >= l.cfg.perModel() {
		// the text is Ollama's, both spaces too: clients look for it
		l.reject(refusedFull, w, &fault.Error{
			Code: fault.Busy, Op: "scheduler.Lease", RetryAfter: retryAfter,
			Msg: "server busy, please try again.  maximum pending requests exceeded",
		})
		return
	}
	l.queue = append(l.queue, w)
}

// How refused requests are counted.
const (
	refusedFull    = "full"
	refusedTimeout = "timeout"
	refusedFailed  = "failed"
	refusedMemory  = "memory"      // larger than the machine, or than what is not pinned or other programs'
	refusedAway    = "unreachable" // the servers elsewhere that have the model are not well
)

// atOnce tells whether a request need not wait.
func (l *loop) atOnce(w *waiter) bool {
	for _, in := range l.of(w.path) {
		if in.seen() == Ready && w.numCtx <= in.numCtx && in.inFlight < in.slots {
			return true
		}
	}
	return l.freeServer(w) > 0
}

// leave takes a caller that has gone out of the queue, and ends a load that nobody waits for any more.
func (l *loop) leave(w *waiter, timeout bool) {
	n := len(l.queue)
	l.queue = slices.DeleteFunc(l.queue, func(have *waiter) bool { return have == w })
	if timeout && len(l.queue) < n {
		l.counted.Refused[refusedTimeout]++
	}
	if l.waiting(w.path) > 0 {
		return
	}
	delete(l.second, w.path)
	for _, in := range l.of(w.path) {
		if in.state == Loading {
			l.move(in, Evict, ReasonLeft, "nobody waits for it any more")
		}
	}
}

// waiting is how many requests wait for a model.
func (l *loop) waiting(path string) (n int) {
	for _, w := range l.queue {
		if w.path == path {
			n++
		}
	}
	return n
}

// tooMuch refuses those whose load has no place on this machine, and nobody who asks for less.
func (l *loop) tooMuch(path string, short *shortage) {
	err := short.error()
	if again := l.second[path]; again != nil { // what was tried says more than the guess that followed
		err = l.remember(path, short.load.NumCtx, again.err)
		delete(l.second, path)
	}
	l.refuse(refusedMemory, func(w *waiter) bool {
		return w.path == path && cmp.Or(w.numCtx, w.usualCtx(l.cfg)) >= short.load.NumCtx && len(l.offersTo(w)) == 0
	}, err)
}

// contextFor is the context to load a model with: enough for everybody who waits for it. usual is for those who ask for none.
func contextFor(asked []int, usual int) int {
	n := 0
	for _, ctx := range asked {
		n = max(n, cmp.Or(ctx, usual))
	}
	return n
}
