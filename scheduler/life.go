package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// ErrEvicted is the cause with which a load is cancelled when nobody waits for it any more, or the scheduler stops.
var ErrEvicted = errors.New("scheduler: runner evicted")

// instance is one runner, from the decision to load it until its process has ended. All fields but the channels belong to
// the owner.
type instance struct {
	id        int
	model     *models.Model // for which it was loaded; other names of the same file share it
	path      string
	settings  Settings
	state     State
	reason    Reason // why it goes; "" while it stays
	numCtx    int
	slots     int
	keepAlive time.Duration
	unload    bool // goes when it becomes idle, whatever keep_alive says

	load     fit.Load
	plan     fit.Plan
	charge   []runner.DeviceMemory // what it takes: as estimated, then as reported
	second   *secondTry            // it is loaded once more, because memory ran out the first time; nil: it is not
	replica  bool                  // others of the model were there before it
	warning  string
	progress atomic.Uint32 // of the load: the bits of a float32

	inFlight  int
	served    int // leases that it got
	passed    int
	lastUse   time.Time
	begun     time.Time     // its load
	took      time.Duration // that lasted; 0 until then
	readyAt   time.Time
	expiresAt time.Time                        // while idle; zero: never
	prefixes  *simplelru.LRU[uint64, struct{}] // beginnings of prompts that it read; nil: none

	runner Runner
	report runner.LoadReport

	threads     int             // that it was told last
	mostThreads int             // that the request which loaded it allows
	tune        chan tuning     // holds what it shall be told next; of length 1
	told        <-chan struct{} // closed when it knows threads; nil: it always did

	cancel context.CancelCauseFunc // ends the load
	stop   chan struct{}           // closed when it shall end
}

// expiryReason is why a runner goes whose time is over.
func (in *instance) expiryReason() Reason {
	if in.unload {
		return ReasonAsked
	}
	return ReasonIdle
}

// seen is the state as the policy must see it. A process that has died takes no lease, although the word of it (exited)
// may still be on its way: the client whose stream it carried can be back with its next request before that.
func (in *instance) seen() State {
	if in.state != Ready && in.state != Draining {
		return in.state
	}
	select {
	case <-in.runner.Done():
		return Stopping
	default:
		return in.state
	}
}

// live runs a runner's life beside the owner: start, load, watch, stop. It tells the owner each step, and returns when the
// process is gone.
func (s *Scheduler) live(ctx context.Context, in *instance, req runner.LoadRequest) {
	r, report, err := s.loadModel(ctx, in, req)
	if err != nil {
		s.tell(func(l *loop) { l.loadFailed(in, err, r != nil) })
		if r != nil {
			s.stopRunner(in, r)
		}
		s.tell(func(l *loop) { l.exited(in, nil) })
		return
	}
	s.tell(func(l *loop) { l.loaded(in, r, report) })
	tuning, endTuning := context.WithCancel(context.Background())
	var tuner sync.WaitGroup
	tuner.Go(func() { s.tuned(tuning, in, r) })
	defer tuner.Wait()
	defer endTuning()
	select {
	case <-in.stop:
		s.stopRunner(in, r)
		s.tell(func(l *loop) { l.exited(in, nil) })
	case <-r.Done():
		err := r.Err()
		if err == nil {
			err = errors.New("the runner ended by itself")
		}
		s.tell(func(l *loop) { l.exited(in, err) })
	}
}

// loadModel starts a runner and loads the model into it. The runner is given with an error too, when there is one to stop.
// What the error says to callers does not name the model: the name is that of the first who asked, and others, who know the
// file by another name and may not know this one, get the error too.
func (s *Scheduler) loadModel(ctx context.Context, in *instance, req runner.LoadRequest) (Runner, runner.LoadReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := &fault.Error{
		Code: fault.Busy, Op: "scheduler.load", RetryAfter: retryAfter,
		Msg: fmt.Sprintf("loading the model made no progress for %s", s.cfg.LoadTimeout),
	}
	timer := time.AfterFunc(s.cfg.LoadTimeout, func() { cancel(stalled) })
	defer timer.Stop()
	fail := func(err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // why it was given up says more than that it was
		}
		return fmt.Errorf("scheduler: loading %s: %w", in.model.Name, loadDeath(err))
	}
	r, err := s.cfg.Start(ctx)
	if err != nil {
		return nil, runner.LoadReport{}, fail(err)
	}
	best := float32(-1)
	report, err := r.Load(ctx, req, func(p float32) {
		if p > best {
			best = p
			in.progress.Store(math.Float32bits(p))
			timer.Reset(s.cfg.LoadTimeout)
		}
	})
	if err != nil {
		return r, report, fail(err)
	}
	return r, report, nil
}

// loadDeath says of a runner that died while it loaded what that means for who asked. Other errors stay as they are.
func loadDeath(err error) error {
	var exit *runner.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	f := &fault.Error{Op: "scheduler.load", Err: err}
	if exit.Signal == syscall.SIGKILL.String() {
		f.Code, f.RetryAfter, f.Kind = fault.Busy, retryAfter, runner.KindMemory
		f.Msg = "the model could not be loaded: the system killed its process, most likely because memory ran out"
		f.Hint = advice + ", or free memory"
		return f
	}
	f.Code = fault.Invalid // the same file crashes it the next time too
	f.Msg = fmt.Sprintf("the model could not be loaded: the engine crashed on it (%s); its file is damaged or of a kind that the engine "+
		"cannot run, or memory ran out; the server's log has the engine's last lines", exit.Reason())
	return f
}

// stopRunner ends a runner. It has a limit of its own: whoever wanted the model may have left long ago.
func (s *Scheduler) stopRunner(in *instance, r Runner) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.cfg.StopTimeout,
		fmt.Errorf("stopping %s took over %s", in.model.Name, s.cfg.StopTimeout))
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		s.cfg.Log.Warn("a runner did not stop cleanly", "model", in.model.Name, "error", err)
	}
}
