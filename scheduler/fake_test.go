package scheduler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

func TestMain(m *testing.M) {
	onBug = func(err error) { panic(err) }
	goleak.VerifyTestMain(m)
}

// plan says how a model behaves when it is loaded.
type plan struct {
	took time.Duration
	tick time.Duration // progress is reported so often; 0: never
	fail string
	dies string        // the signal that ends it instead of the load
	stop time.Duration // how long it takes to end
	tune time.Duration // how long it takes until it computes with another number of threads
	gpu  bool

	model *models.Model // with a layout, on a described machine
	takes float64       // as a part of what is estimated; 0 is 1
	trys  []string      // how the first loads end: "oom", "killed" or "ok"
}

// world starts fake runners, and sees what a machine would see.
type world struct {
	mu       sync.Mutex
	machine  *machine // nil: memory is not looked at
	loads    map[string]int
	plans    map[string]plan // by model name
	alive    int
	started  int
	most     int // alive at a time
	all      []*fake
	onOOM    func(name, where string) // a load finds too little memory
	onReady  func(*fake)
	last     map[string]*fake              // the latest of each model
	log      func(string, ...any)          // called for each load and end
	onKill   func(name string, n int)      // a runner with n users is stopped
	vary     func(name string, n int) plan // of the n-th load of a model; nil: plans
	startErr error
	threads  bool // log them
}

func newWorld() *world {
	return &world{loads: map[string]int{}, plans: map[string]plan{}, last: map[string]*fake{}, log: func(string, ...any) {}, onKill: func(string, int) {}, onOOM: func(string, string) {}, onReady: func(*fake) {}}
}

func (w *world) start(ctx context.Context) (Runner, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.startErr != nil {
		return nil, w.startErr
	}
	w.alive++
	w.most = max(w.most, w.alive)
	w.started++
	f := &fake{id: w.started, world: w, done: make(chan struct{})}
	w.all = append(w.all, f)
	return f, nil
}

func (w *world) fake(name string) *fake {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[name]
}

// threadsInUse counts the threads of the runners that have users and are not on a GPU.
func (w *world) threadsInUse() (threads, computing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.last {
		if f.users > 0 && !f.ended && !f.plan.gpu {
			threads += f.threads
			computing++
		}
	}
	return threads, computing
}

// fake is a runner made of channels. Only what the scheduler does with a runner is there; a request on it is a count.
type fake struct {
	Runner // Generate and the like: nobody calls them here
	world  *world
	id     int
	name   string
	plan   plan
	done   chan struct{}

	// all below under world.mu
	users   int
	threads int
	ended   bool
	err     error
	has     []runner.DeviceMemory // of the machine
	part    float64               // of it
	req     runner.LoadRequest
	begun   time.Time // of the load
	readyAt time.Time // zero: it is not
	beside  int       // runners of the model that were there
	stopped bool      // it is told to end
}

func (f *fake) Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error) {
	f.world.mu.Lock()
	f.name = filepath.Base(req.ModelPath)
	f.plan = f.world.plans[f.name]
	if f.world.vary != nil {
		f.plan = f.world.vary(f.name, f.world.loads[f.name])
	}
	f.req, f.begun = req, time.Now()
	for _, other := range f.world.all {
		if other != f && other.name == f.name && !other.ended {
			f.beside++
		}
	}
	f.world.last[f.name] = f
	f.threads = req.NumThread
	try := f.world.loads[f.name]
	f.world.loads[f.name]++
	machine := f.world.machine
	f.world.mu.Unlock()
	if machine != nil {
		f.world.log("load %s ctx=%d×%d %s", f.name, req.NumCtx, req.Parallel, placement(req.Placement))
		if err := f.take(machine, truth(f.plan, req), 0.5); err != nil {
			return runner.LoadReport{}, err
		}
	} else if f.world.threads {
		f.world.log("load %s ctx=%d threads=%d", f.name, req.NumCtx, req.NumThread)
	} else {
		f.world.log("load %s ctx=%d", f.name, req.NumCtx)
	}
	end := time.After(f.plan.took)
	var tick <-chan time.Time
	if f.plan.tick > 0 {
		t := time.NewTicker(f.plan.tick)
		defer t.Stop()
		tick = t.C
	}
	begin := time.Now()
	for {
		select {
		case <-end:
			if machine != nil {
				how := ""
				if try < len(f.plan.trys) {
					how = f.plan.trys[try]
				}
				switch how {
				case "oom":
					return runner.LoadReport{}, outOfMemory("its own account")
				case "killed":
					f.end("crashed", errors.New(how))
					return runner.LoadReport{}, fault.Wrap(&runner.ExitError{Signal: how, Code: -1}, fault.Busy, "runner", "the next request loads the model again")
				}
				if err := f.take(machine, f.has, 0.5); err != nil {
					return runner.LoadReport{}, err
				}
			}
			if f.plan.dies != "" {
				f.end("crashed", errors.New(f.plan.dies))
				return runner.LoadReport{}, fault.Wrap(&runner.ExitError{Signal: f.plan.dies, Code: -1}, fault.Busy, "runner", "the next request loads the model again")
			}
			if text, ok := strings.CutPrefix(f.plan.fail, "refused: "); ok {
				return runner.LoadReport{}, fault.New(fault.Invalid, "engine", "%s", text)
			}
			if f.plan.fail != "" {
				return runner.LoadReport{}, errors.New(f.plan.fail)
			}
			report := runner.LoadReport{NumCtx: req.NumCtx, Parallel: req.Parallel, Memory: []runner.DeviceMemory{{Device: runner.CPU, Weights: 7}}}
			if machine != nil {
				report.Memory = reported(f.has)
			} else if f.plan.gpu {
				report.Memory[0].Device = "CUDA0"
			}
			f.world.mu.Lock()
			f.readyAt = time.Now()
			f.world.onReady(f)
			f.world.mu.Unlock()
			return report, nil
		case <-tick:
			progress(float32(time.Since(begin)) / float32(f.plan.took))
		case <-f.done:
			return runner.LoadReport{}, errors.New("it died while it loaded")
		case <-ctx.Done():
			f.end("gave up the load of", nil)
			return runner.LoadReport{}, ctx.Err()
		}
	}
}

// take takes a part of its memory.
func (f *fake) take(m *machine, memory []runner.DeviceMemory, part float64) error {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	if f.ended {
		return errors.New("it died while it loaded")
	}
	if short := m.take(memory, part); short != "" {
		f.world.onOOM(f.name, short)
		return outOfMemory(short)
	}
	f.has, f.part = memory, f.part+part
	return nil
}

func outOfMemory(where string) error {
	return &fault.Error{Code: fault.TooLarge, Kind: runner.KindMemory, Op: "fake", Msg: "memory of " + where + " ran out while the model was loaded"}
}

func placement(shares []runner.Share) string {
	if len(shares) == 0 {
		return "cpu"
	}
	var list []string
	for _, s := range shares {
		list = append(list, fmt.Sprintf("%s:%d", s.Device, s.Layers))
	}
	return strings.Join(list, ",")
}

func (f *fake) SetThreads(ctx context.Context, n int) error {
	if f.plan.tune > 0 {
		select {
		case <-time.After(f.plan.tune):
		case <-f.done:
			return errors.New("it died")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f.world.mu.Lock()
	f.threads = n
	f.world.mu.Unlock()
	if f.world.threads {
		f.world.log("%s computes with %d threads", f.name, n)
	}
	return nil
}

func (f *fake) end(how string, err error) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	if f.ended {
		return
	}
	f.ended, f.err = true, err
	f.world.alive--
	if f.world.machine != nil {
		for part := f.part; part > 0; part -= 0.5 { // as it was taken, so that bytes are rounded in the same way
			f.world.machine.give(f.has, 0.5)
		}
	}
	f.world.log("%s %s", how, f.name)
	close(f.done)
}

func (f *fake) use(n int) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	f.users += n
}

func (f *fake) Done() <-chan struct{} { return f.done }

func (f *fake) Err() error {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	return f.err
}

func (f *fake) Stop(ctx context.Context) error {
	f.world.mu.Lock()
	users, ended := f.users, f.ended
	f.stopped = true
	f.world.mu.Unlock()
	if ended {
		return nil
	}
	if users > 0 {
		f.world.onKill(f.name, users)
	}
	select {
	case <-time.After(f.plan.stop):
		f.end("stopped", nil)
		return nil
	case <-ctx.Done():
		f.end("killed", nil)
		return context.Cause(ctx)
	}
}

func (f *fake) crash() { f.end("crashed", fmt.Errorf("%s was killed", f.name)) }

func testModel(name string, trained int) *models.Model {
	return &models.Model{Name: name, Path: "/models/" + name, Facts: models.Facts{ContextLength: trained}}
}

func options(numCtx int) models.Options {
	o := models.DefaultOptions()
	o.NumCtx = numCtx
	return o
}
