package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/runner"
)

// Config of a Machine. Zero fields take the defaults named.
type Config struct {
	List  func(context.Context) ([]runner.Device, error) // required: the devices that the engine sees; it starts a process
	Files fs.FS                                          // where proc and sys are; default: this machine's root
	Cores int                                            // that the process may run on; default runtime.NumCPU, which obeys its affinity
	Stale time.Duration                                  // the engine's numbers of a GPU, where no others are to be had, hold so long; default 5s
	Limit time.Duration                                  // for NVIDIA's driver to answer; default 2s
	Log   *slog.Logger                                   // default slog.Default()

	gpus func() ([]GPU, error) // tests; default: NVML
}

// listLimit bounds the engine's list: a driver that wakes up takes seconds, a hung one takes for ever.
const listLimit = time.Minute

func (c Config) withDefaults() Config {
	if c.Files == nil {
		c.Files = os.DirFS("/")
	}
	if c.Cores == 0 {
		c.Cores = runtime.NumCPU()
	}
	if c.Stale == 0 {
		c.Stale = 5 * time.Second
	}
	if c.Limit == 0 {
		c.Limit = 2 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.gpus == nil {
		c.gpus = (&nvidia{}).read
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.List == nil {
		errs = append(errs, errors.New("List is required"))
	}
	if c.Cores < 0 || c.Stale < 0 || c.Limit < 0 {
		errs = append(errs, errors.New("Cores, Stale and Limit must not be negative"))
	}
	return errors.Join(errs...)
}

// Machine is this machine. It is safe for concurrent use.
type Machine struct {
	cfg  Config
	live *live // NVIDIA's readings

	turn     chan struct{} // held by who asks the engine for its list; the fields below are its
	listed   []runner.Device
	at       time.Time // of the list
	failed   error     // of the last try
	failedAt time.Time

	mu     sync.Mutex
	warned map[string]string // the last warning of each kind: what stays wrong is logged once
}

// New validates the configuration. Nothing is read yet.
func New(cfg Config) (*Machine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return &Machine{cfg: cfg, live: &live{read: cfg.gpus, limit: cfg.Limit}, turn: make(chan struct{}, 1), warned: map[string]string{}}, nil
}

// Devices gives what the engine sees, GPUs first and main memory (runner.CPU) last, with what is free now. An error beside devices
// says that some of their numbers are of an earlier reading; without devices, that the engine's list is not to be had. Weights that a
// loaded model has mapped from its file count as free, since the kernel can drop them: who places models takes them off.
func (m *Machine) Devices(ctx context.Context) ([]runner.Device, error) {
	list, err := m.list(ctx, 0)
	if len(list) == 0 {
		return nil, err
	}
	gpus, liveErr := m.nvidia(ctx, list)
	if !update(list, gpus) && liveErr == nil {
		// Some numbers only the engine has. It would wait for a driver that does not answer, too.
		if list, err = m.list(ctx, m.cfg.Stale); len(list) == 0 {
			return nil, err
		}
		update(list, gpus)
	}
	return m.mainMemory(list), errors.Join(err, liveErr)
}

// Refresh asks the engine again, for GPUs that came or went.
func (m *Machine) Refresh(ctx context.Context) error {
	_, err := m.list(ctx, -1)
	return err
}

// list gives a copy of the engine's list, which is asked for again when it is older than age; 0: only when there is none; negative:
// in any case. When that fails, the old list is given with the error. A failure holds for Stale, unless in any case is meant: every
// request would start a process.
func (m *Machine) list(ctx context.Context, age time.Duration) ([]runner.Device, error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("inventory: %w", context.Cause(ctx))
	}
	defer func() { <-m.turn }()
	old := m.listed == nil || age < 0 || age > 0 && time.Since(m.at) >= age
	if !old {
		return slices.Clone(m.listed), nil
	}
	if age >= 0 && m.failed != nil && time.Since(m.failedAt) < m.cfg.Stale {
		return slices.Clone(m.listed), m.failed
	}
	bounded, cancel := context.WithTimeoutCause(ctx, listLimit, fmt.Errorf("it took over %s", listLimit))
	defer cancel()
	list, err := m.cfg.List(bounded)
	switch {
	case err != nil && ctx.Err() != nil: // who asked has left: that says nothing about the engine
		return slices.Clone(m.listed), fmt.Errorf("inventory: %w", err)
	case err == nil && len(list) == 0:
		err = errors.New("it is empty")
		fallthrough
	case err != nil:
		m.failed, m.failedAt = fmt.Errorf("inventory: the engine's list of devices: %w", err), time.Now()
	default:
		m.listed, m.at, m.failed = ordered(list), time.Now(), nil
	}
	return slices.Clone(m.listed), m.failed
}

// ordered puts GPUs first, in the engine's order, and main memory last; the engine always has it.
func ordered(list []runner.Device) []runner.Device {
	cpu := runner.Device{ID: runner.CPU, Library: "cpu"}
	var out []runner.Device
	for _, d := range list {
		if d.ID == runner.CPU {
			cpu = d
		} else {
			out = append(out, d)
		}
	}
	return append(out, cpu)
}

// nvidia asks NVIDIA's library, when the engine sees a GPU of theirs. A machine without the library is nothing to speak of.
func (m *Machine) nvidia(ctx context.Context, list []runner.Device) ([]GPU, error) {
	if !slices.ContainsFunc(list, isCUDA) {
		return nil, nil
	}
	gpus, err := m.live.get(ctx)
	switch {
	case err == nil || errors.Is(err, ErrNoDriver):
		return gpus, nil
	case ctx.Err() != nil:
		return gpus, fmt.Errorf("inventory: %w", err)
	}
	m.warn("nvidia", "what GPUs have free is read from the engine: NVIDIA's library does not tell", err)
	var late *lateError
	if errors.As(err, &late) {
		return gpus, fmt.Errorf("inventory: %w", err)
	}
	return gpus, nil // the engine's numbers are fresh enough
}

func isCUDA(d runner.Device) bool { return strings.EqualFold(d.Library, "cuda") }

// NVIDIA lists the GPUs that NVIDIA's driver knows, whether the engine sees them or not. ErrNoDriver when there is no driver.
func (m *Machine) NVIDIA(ctx context.Context) ([]GPU, error) { return m.live.get(ctx) }

// mainMemory fills in the device that main memory is, and GPUs that use it.
func (m *Machine) mainMemory(list []runner.Device) []runner.Device {
	mem := m.memory()
	for i := range list {
		d := &list[i]
		switch {
		case d.ID == runner.CPU:
			if mem.Total > 0 {
				d.TotalBytes, d.FreeBytes = mem.Total, mem.Free
			}
			if d.Threads == 0 || mem.Cores < d.Threads {
				d.Threads = mem.Cores
			}
		case d.Integrated && mem.Total > 0:
			d.FreeBytes = min(max(d.FreeBytes, d.TotalBytes), mem.Free)
		}
	}
	return list
}

// warn logs what is wrong, once until it changes.
func (m *Machine) warn(kind, text string, err error) {
	m.mu.Lock()
	said := m.warned[kind] == err.Error()
	m.warned[kind] = err.Error()
	m.mu.Unlock()
	if !said {
		m.cfg.Log.Warn(text, "error", err)
	}
}
