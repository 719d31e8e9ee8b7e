package scheduler

import (
	"errors"
	"slices"
	"time"

	"sluice/fault"
)

// A model that could not be loaded is not tried again at once: a file that crashes the engine would cost everybody else a
// child, and their loaded models, with every request of a client that tries again. The pause doubles from failure to failure.
const (
	firstPause = 2 * time.Second
	mostPause  = time.Minute
	forgotten  = 10 * time.Minute // after the last failure
)

// failure is how a model could not be loaded, last.
type failure struct {
	err    error
	numCtx int // it was loaded with
	at     time.Time
	pause  time.Duration
}

// oneMore gives what is to be remembered after a failure; f is the one before, or nil.
func (f *failure) oneMore(now time.Time, numCtx int, err error) *failure {
	pause := firstPause
	if f != nil && !f.over(now) {
		pause = min(2*f.pause, mostPause)
	}
	return &failure{err: err, numCtx: numCtx, at: now, pause: pause}
}

// over tells that a failure is so long ago that it says nothing any more.
func (f *failure) over(now time.Time) bool { return now.Sub(f.at) >= forgotten }

// stops gives the error for a request that would load with numCtx, nil when it may try. One that asks for half the context or
// less may: too much memory is why most loads fail, and one client's huge context must not close the model to the others. Half,
// not one less, bounds how many loads a pause lets through.
func (f *failure) stops(now time.Time, numCtx int) error {
	left := f.at.Add(f.pause).Sub(now)
	if f.over(now) || left <= 0 || numCtx <= f.numCtx/2 {
		return nil
	}
	return f.answer(left)
}

// answer is the error as it was, with the time after which the model is tried again.
func (f *failure) answer(left time.Duration) error {
	var known *fault.Error
	if !errors.As(f.err, &known) || known.Code == fault.Internal {
		return f.err
	}
	again := *known
	again.RetryAfter, again.Err = left, f.err
	return &again
}

// heals tells whether a load with numCtx that went well says that this failure is past.
func (f *failure) heals(numCtx int) bool { return numCtx >= f.numCtx }

// rest is how long the pause after a failure still is.
func (f *failure) rest(now time.Time) time.Duration {
	if f == nil {
		return 0
	}
	return max(0, f.at.Add(f.pause).Sub(now))
}

// braked gives the error for a request that would only fail as the last one did; nil for one that needs no load.
func (l *loop) braked(w *waiter) error {
	f := l.failed[w.path]
	if f == nil || !installed(w.want.Model) {
		return nil
	}
	if l.served(w, nil) {
		return nil
	}
	numCtx := w.numCtx
	if numCtx == 0 {
		numCtx = w.usualCtx(l.cfg)
	}
	return f.stops(time.Now(), numCtx)
}

// served tells whether the model has a runner that is ready or loads, has the context that the waiter asks for, and is not but.
func (l *loop) served(w *waiter, but *instance) bool {
	return slices.ContainsFunc(l.of(w.path), func(in *instance) bool {
		return in != but && (in.state == Ready || in.state == Loading) && w.numCtx <= in.numCtx
	})
}

// loadFailed gives the error to all who wait for the model and whom no other runner of it serves, unless the load is tried once more. started tells that it is the
// model's, not one of starting a runner.
func (l *loop) loadFailed(in *instance, err error, started bool) {
	if in.state != Loading {
		l.counted.Loads[loadAbandoned]++
		return
	}
	l.counted.Loads[loadFailed]++
	again := started && l.onceMore(in, err)
	l.cfg.Log.Error("a model could not be loaded", "model", in.model.Name, "id", in.id, "error", err, "tried_again", again)
	l.move(in, Failed, ReasonFailed, err.Error())
	if again {
		return
	}
	if in.second != nil {
		delete(l.second, in.path)
	}
	err = l.withNumbers(in, err)
	if started {
		err = l.remember(in.path, in.numCtx, err)
	}
	l.refuse(refusedFailed, func(w *waiter) bool { return w.path == in.path && len(l.offersTo(w)) == 0 && !l.served(w, in) }, err)
}

// remember keeps a failure, and gives the error for those who waited for the load.
func (l *loop) remember(path string, numCtx int, err error) error {
	now := time.Now()
	f := l.failed[path].oneMore(now, numCtx, err)
	for other, old := range l.failed {
		if old.over(now) {
			delete(l.failed, other)
		}
	}
	l.failed[path] = f
	return f.answer(f.pause)
}

// healed forgets a failure that a load has shown to be past.
func (l *loop) healed(in *instance) {
	if f := l.failed[in.path]; f != nil && f.heals(in.numCtx) {
		delete(l.failed, in.path)
	}
}
