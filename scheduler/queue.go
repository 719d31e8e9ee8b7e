package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sluice/fault"
	"sluice/models"
)

// waiter is a request in the queue.
type waiter struct {
	want     Want
	settings Settings
	path     string
	shape    shape
	numCtx   int // 0: none asked for
	since    time.Time
	without  []Remote // servers that have failed with this request already

	projector, adapters uint64 // bytes of the files that are loaded beside the model

	same  *sameWaiters    // while it is in the queue
	left  <-chan struct{} // the caller has gone
	reply chan answer     // see answer
}

// usualCtx is the context for who asks for none.
func (w *waiter) usualCtx(c Config) int {
	return capCtx(w.want.Model, cmp.Or(w.settings.NumCtx, c.NumCtx))
}

// loadCtx is the context that its model is loaded with for it.
func (w *waiter) loadCtx(c Config) int { return cmp.Or(w.numCtx, w.usualCtx(c)) }

// shape is what requests must ask for in the same way to wait for the same load, but for the context: the largest is loaded.
type shape struct {
	layers, batch, parallel int
	mmap                    bool
	devices                 string
}

func shapeOf(o models.Options, s Settings) shape {
	return shape{layers: max(-1, o.NumGPU), batch: o.NumBatch, parallel: s.Parallel, mmap: o.UseMmap, devices: strings.Join(s.Devices, "\x00")}
}

// class is all that the policy can tell waiters apart by, but for their age. A burst of thousands has few of them.
type class struct {
	path, name    string
	numCtx, usual int
	shape         shape
	replicas      int
	alone         *waiter // one that servers have failed with
}

// sameWaiters are those in the queue of a class.
type sameWaiters struct {
	key  class
	n    int
	view int // the last one that had the first of them
}

func (l *loop) enqueue(w *waiter) {
	c := l.classOf(w)
	if l.classes[c] == nil {
		l.classes[c] = &sameWaiters{key: c}
	}
	w.same = l.classes[c]
	w.same.n++
	l.same = w.same.n > 1 // the policy could do nothing for the first of them
	l.queue = append(l.queue, w)
}

func (l *loop) classOf(w *waiter) class {
	c := class{path: w.path, name: w.want.Model.Name, numCtx: w.numCtx, usual: w.usualCtx(l.cfg), shape: w.shape, replicas: w.settings.Replicas}
	if len(w.without) > 0 {
		c.alone = w
	}
	return c
}

// dequeue takes those that match out of the queue.
func (l *loop) dequeue(match func(*waiter) bool) {
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		if !match(w) {
			return false
		}
		if w.same.n--; w.same.n == 0 {
			delete(l.classes, w.same.key)
		}
		return true
	})
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
	l.dequeue(func(w *waiter) bool {
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
	w.shape = shapeOf(w.want.Options, w.settings)
	if l.atOnce(w) {
		l.enqueue(w)
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
	l.enqueue(w)
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
	l.dequeue(func(have *waiter) bool { return have == w })
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
	for c, same := range l.classes {
		if c.path == path {
			n += same.n
		}
	}
	return n
}

// tooMuch refuses a waiter whose load has no place on this machine, and those who ask for the same or for more, but nobody who asks for less
// or otherwise.
func (l *loop) tooMuch(first *waiter, short *shortage) {
	err := short.error()
	if again := l.second[first.path]; again != nil { // what was tried says more than the guess that followed
		err = l.remember(first.path, short.load.NumCtx, again.err)
		delete(l.second, first.path)
	}
	l.refuse(refusedMemory, func(w *waiter) bool {
		return w.path == first.path && w.shape == first.shape && w.loadCtx(l.cfg) >= short.load.NumCtx && len(l.offersTo(w)) == 0
	}, err)
}
