package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// retryAfter is what a refused caller is told. It is a guess: one request of a hot model takes about that long.
const retryAfter = 5 * time.Second

// Want says what a lease is asked for.
type Want struct {
	Model     *models.Model
	Options   models.Options
	KeepAlive *time.Duration // nil: sticky, else the default; 0 unloads at the last release; negative keeps for ever
	// Prefix is a chain of hashes of what the prompt will begin with, each of one message more than the one before. Of several
	// runners of the model, an equally loaded one that saw most of the chain answers. nil: nothing is known.
	Prefix []uint64
}

// Loaded describes one runner, for /api/ps.
type Loaded struct {
	Model     *models.Model
	State     string // loading, ready, draining, stopping
	Report    runner.LoadReport
	Memory    []runner.DeviceMemory // as allocated; while it loads, as estimated
	Placement []runner.Share        // of layers on GPUs
	Layers    int                   // of the model, the output among them; 0: not known
	NumCtx    int                   // tokens of one sequence
	Progress  float32               // of the load, 0..1
	ExpiresAt time.Time             // far in the future when kept for ever; now when it is on its way out
	InFlight  int
	Waiting   int    // requests in the queue for this model
	Pinned    bool   // never evicted for another model
	Remote    string // name of the server elsewhere that it runs on; "" here
	Warning   string // what an operator should know, such as layers that found no room on a GPU
}

// Stats are counters since the start.
type Stats struct {
	Loads   map[string]int // by outcome: ready, failed, abandoned
	Unloads map[Reason]int // runners that went, by reason
	Refused map[string]int // requests: full (the queue), timeout, failed (the load), memory (there is too little), unreachable (a server elsewhere)
	Waiting int            // in the queue now
	Devices []DeviceUse    // as of the last reading
}

// DeviceUse is a device and what is on it.
type DeviceUse struct {
	runner.Device
	Limit    uint64 // bytes that models may have of it
	Used     uint64 // bytes that loaded models have, as allocated
	Reserved uint64 // bytes that models which are loading will have, as estimated
	Models   []string
}

// Reason is why a runner went.
type Reason string

// The reasons.
const (
	ReasonIdle     Reason = "keep_alive" // it was idle for so long
	ReasonRoom     Reason = "room"       // another model needed its memory
	ReasonContext  Reason = "context"    // a request needed a larger context
	ReasonAsked    Reason = "asked"      // somebody stopped or deleted it
	ReasonLeft     Reason = "left"       // nobody waited for the load any more
	ReasonFailed   Reason = "failed"     // it could not be loaded
	ReasonDied     Reason = "died"       // its process ended by itself
	ReasonShutdown Reason = "shutdown"
)

// Scheduler decides which model is loaded, and for how long. One goroutine owns all its state.
type Scheduler struct {
	cfg     Config
	asks    chan func(*loop) // answered by the owner, in order
	started atomic.Bool
	done    chan struct{} // closed when the owner has ended
}

// New validates the configuration. Run must be called for anything to happen.
func New(cfg Config) (*Scheduler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{cfg: cfg, asks: make(chan func(*loop)), done: make(chan struct{})}, nil
}

// Run owns the state until ctx ends. Then it refuses new leases, waits for those in flight for up to Config.Grace, and stops
// all runners before it returns. It can be called once.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return fault.Bug("scheduler: Run is called twice")
	}
	defer close(s.done)
	l, err := newLoop(s)
	if err != nil {
		return err
	}
	l.run(ctx)
	return nil
}

// ask hands a question to the owner. After the owner has ended it gives errStopped.
func (s *Scheduler) ask(ctx context.Context, question func(*loop)) error {
	select {
	case s.asks <- question:
		return nil
	case <-s.done:
		return errStopped()
	case <-ctx.Done():
		return waitError(ctx)
	}
}

// tell is an ask that must arrive, whoever has left: a release or a cancel that got lost would count for ever.
func (s *Scheduler) tell(question func(*loop)) {
	select {
	case s.asks <- question:
	case <-s.done:
	}
}

func errStopped() error {
	return &fault.Error{Code: fault.Busy, Op: "scheduler", Msg: "the server is stopping", RetryAfter: retryAfter}
}

// waitError classifies the end of a caller's wait.
func waitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the cause may be a name for this time limit
		return &fault.Error{
			Code: fault.Busy, Op: "scheduler.Lease", Msg: "no model became free in time, please try again", RetryAfter: retryAfter, Err: cause,
		}
	}
	if errors.As(cause, new(*fault.Error)) {
		return fmt.Errorf("scheduler: %w", cause)
	}
	return fault.Wrap(cause, fault.Canceled, "scheduler.Lease", "the request was cancelled")
}

// Lease waits for a ready runner of the model, here or elsewhere. Busy with RetryAfter when the queue is full, the deadline of ctx
// has passed, the scheduler stops, or pinned models or other programs have the memory; TooLarge with Kind runner.KindMemory when the
// machine could not hold the model even if it were empty; Canceled when ctx is cancelled; the load's error when the model cannot be
// loaded. The caller must Release the lease.
func (s *Scheduler) Lease(ctx context.Context, want Want) (*Lease, error) {
	return s.lease(ctx, want, nil)
}

// lease is Lease without the servers that have failed with this request already.
func (s *Scheduler) lease(ctx context.Context, want Want, without []Remote) (*Lease, error) {
	if want.Model == nil {
		return nil, fault.Bug("scheduler: a lease without a model")
	}
	if ctx.Err() != nil {
		return nil, waitError(ctx)
	}
	w := &waiter{
		want: want, path: fileKey(want.Model), numCtx: askedCtx(want.Model, want.Options), since: time.Now(),
		without: without, left: ctx.Done(), reply: make(chan answer),
	}
	if installed(want.Model) {
		w.projector, w.adapters = want.Model.Beside() // here, because it asks the file system
	}
	if err := s.ask(ctx, func(l *loop) { l.arrive(w) }); err != nil {
		return nil, err
	}
	select {
	case a := <-w.reply:
		if a.err == nil {
			if a.err = a.lease.prepared(ctx, a.untold); a.err != nil {
				a.lease.Release()
				a.lease = nil
			}
		}
		return a.lease, a.err
	case <-ctx.Done():
		timeout := errors.Is(ctx.Err(), context.DeadlineExceeded)
		s.tell(func(l *loop) { l.leave(w, timeout) })
		return nil, waitError(ctx)
	}
}

// Unload lets a model go when its last lease ends, and returns at once. It is no error when it is not loaded. Whoever deletes
// a model calls it. Names of the same files share a runner: the others load it again with their next request.
func (s *Scheduler) Unload(ctx context.Context, m *models.Model) error {
	if m == nil {
		return fault.Bug("scheduler: an unload without a model")
	}
	return s.ask(ctx, func(l *loop) { l.unload(m) })
}

// Loaded is a snapshot by the owner, latest expiry first.
func (s *Scheduler) Loaded(ctx context.Context) ([]Loaded, error) {
	out := make(chan []Loaded, 1)
	if err := s.ask(ctx, func(l *loop) { out <- l.snapshot() }); err != nil {
		return nil, err
	}
	return <-out, nil // the owner answers in the same step
}

// Stats is a snapshot by the owner.
func (s *Scheduler) Stats(ctx context.Context) (Stats, error) {
	out := make(chan Stats, 1)
	if err := s.ask(ctx, func(l *loop) { out <- l.stats() }); err != nil {
		return Stats{}, err
	}
	return <-out, nil
}

// Offered are the models of the servers elsewhere, each name once.
func (s *Scheduler) Offered() []*models.Model {
	var out []*models.Model
	seen := map[string]bool{}
	for _, r := range s.cfg.Remotes {
		for _, m := range r.Models() {
			if !seen[m.Name] {
				seen[m.Name] = true
				out = append(out, m)
			}
		}
	}
	return out
}
