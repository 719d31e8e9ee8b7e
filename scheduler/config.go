package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// Runner is a loaded model, as the scheduler needs it; *runner.Process is one.
type Runner interface {
	Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error)
	Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error
	Embed(ctx context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error)
	Rerank(ctx context.Context, req runner.RerankRequest) (runner.RerankResponse, error)
	Tokenize(ctx context.Context, text string, special bool) ([]int, error)
	Detokenize(ctx context.Context, tokens []int) (string, error)
	SetThreads(ctx context.Context, n int) error
	Done() <-chan struct{}
	Err() error
	Stop(ctx context.Context) error
}

var _ Runner = (*runner.Process)(nil)

// Inventory tells what there is to load models on; *inventory.Machine is one. Main memory is the device runner.CPU.
type Inventory interface {
	Devices(ctx context.Context) ([]runner.Device, error)
}

// Remote is a server elsewhere that runs models for this one; *remote.Server is one. All but Run answer at once.
type Remote interface {
	Name() string
	Slots() int                    // requests that it is given at a time
	Models() []*models.Model       // that it offers now; empty while it is not well
	Runner(m *models.Model) Runner // for a request on it; Load and Stop do nothing
	Failed(err error)              // a request on it ended so before its first byte: it is not well until it has been asked again
	Changes() <-chan struct{}      // gets a value after Models may have changed
	Run(ctx context.Context) error // asks it from time to time, until ctx ends
}

// Settings are how one model is served. Zero fields: as Config says for all.
type Settings struct {
	NumCtx    int
	Parallel  int
	KeepAlive *time.Duration
	Pin       bool     // once loaded, never evicted for another model, nor when it is idle
	Devices   []string // ids that it may be loaded on; empty: any
	Replicas  int      // runners at most, each on devices of its own; 0: as many as there is free room for
}

// Config of a Scheduler. Zero fields take the defaults named.
type Config struct {
	Start       func(ctx context.Context) (Runner, error) // required: starts an empty runner
	Inventory   Inventory                                 // nil: memory is not looked at, and MaxLoaded is 1 unless it is set
	Memory      uint64                                    // bytes that all models together may take; 0: what the devices have
	GPUOverhead uint64                                    // bytes kept free on each GPU
	Settings    func(*models.Model) Settings              // of one model, at once: the owner asks; nil: none has any
	Remotes     []Remote                                  // servers elsewhere, whose Run the scheduler calls
	MaxLoaded   int                                       // models at a time; 0: as many as fit
	MaxQueue    int                                       // waiting requests in all; default 512. Of one model three quarters of them, see perModel
	KeepAlive   time.Duration                             // default 5m; negative: for ever
	LoadTimeout time.Duration                             // without progress; default 5m
	NumCtx      int                                       // default 4096, capped at the trained length
	Parallel    int                                       // requests that a runner answers at a time; 0: 4, fewer with a long context
	Threads     int                                       // cores, shared by the runners that compute; default all

	KVCacheType    string // as runner.LoadRequest has it
	FlashAttention string // as runner.LoadRequest has it

	// While another model waits for room, a loaded one that is asked for all the time goes on for at most MaxPass further
	// leases (default 16) and MaxTurn (default 10s); then it takes no new lease.
	MaxPass int
	MaxTurn time.Duration

	Grace       time.Duration // for leases when Run's context ends; default 10s
	StopTimeout time.Duration // for a runner to end by itself; default 10s
	Log         *slog.Logger  // default slog.Default()
}

func (c Config) withDefaults() Config {
	ints := map[*int]int{
		&c.MaxQueue: 512, &c.NumCtx: 4096, &c.Threads: runtime.GOMAXPROCS(0), &c.MaxPass: 16,
	}
	for field, value := range ints {
		if *field == 0 {
			*field = value
		}
	}
	if c.Inventory == nil && c.MaxLoaded == 0 {
		c.MaxLoaded = 1 // without a look at memory something else must bound it
	}
	if c.Settings == nil {
		c.Settings = func(*models.Model) Settings { return Settings{} }
	}
	times := map[*time.Duration]time.Duration{
		&c.KeepAlive: 5 * time.Minute, &c.LoadTimeout: 5 * time.Minute, &c.MaxTurn: 10 * time.Second,
		&c.Grace: 10 * time.Second, &c.StopTimeout: 10 * time.Second,
	}
	for field, value := range times {
		if *field == 0 {
			*field = value
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Start == nil {
		errs = append(errs, errors.New("Start is required"))
	}
	for name, n := range map[string]int{
		"MaxLoaded": c.MaxLoaded, "MaxQueue": c.MaxQueue, "NumCtx": c.NumCtx, "Parallel": c.Parallel, "Threads": c.Threads, "MaxPass": c.MaxPass,
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	for name, d := range map[string]time.Duration{
		"LoadTimeout": c.LoadTimeout, "MaxTurn": c.MaxTurn, "Grace": c.Grace, "StopTimeout": c.StopTimeout,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

// Bounds of what a request may ask of a load. A context or batch beyond them is memory that nobody uses, a thread more
// than there are cores makes all of them slower (they spin at barriers).
const (
	minCtx   = 4
	maxCtx   = 1 << 20
	maxBatch = 2048
)

// Without a setting a runner answers autoParallel requests at a time. Each has its own cache, so with a long context they
// would take memory that nobody thinks of: all together have autoTokens at most.
const (
	autoParallel = 4
	autoTokens   = 32 << 10
)

// parallel is how many requests a runner answers at a time, and whether somebody said so.
func (c Config) parallel(s Settings, layout models.Layout, numCtx int) (n int, said bool) {
	switch n = cmp.Or(s.Parallel, c.Parallel); {
	case n > 0:
		return n, true
	case layout.Hybrid: // llama.cpp makes each sequence's cache as long as all together: four take sixteen times one
		return 1, false
	}
	return max(1, min(autoParallel, autoTokens/numCtx)), false
}

// perModel is how many requests may wait for one model: a flood on one leaves a quarter of the queue to the others.
func (c Config) perModel() int { return (3*c.MaxQueue + 3) / 4 }

// fileKey tells runners apart: by all the files that are loaded, because two models may be the same one with another adapter.
// A model that is only elsewhere has no file; its name stands for it.
func fileKey(m *models.Model) string {
	if !installed(m) {
		return "\x00" + strings.ToLower(m.Name)
	}
	key := append([]string{m.Path, m.Projector()}, m.Adapters()...)
	if m.InFolder() { // a file that was replaced under its name is another model; the old one goes by LRU or keep_alive
		key = append(key, m.Digest)
	}
	return strings.Join(key, "\x00")
}

// installed tells whether the model can be loaded here.
func installed(m *models.Model) bool { return m.Path != "" }

// askedCtx is the context that a request asks for, capped at what the model was trained for; 0 when it asks for none.
func askedCtx(m *models.Model, opts models.Options) int {
	if opts.NumCtx <= 0 {
		return 0
	}
	return capCtx(m, opts.NumCtx)
}

func capCtx(m *models.Model, n int) int {
	if trained := m.Facts.ContextLength; trained > 0 {
		n = min(n, trained)
	}
	return max(minCtx, min(n, maxCtx))
}

// loads are the ways to load a model for a waiter, with the context that the policy chose: with fewer and fewer sequences where
// nobody has said how many. factor is what earlier loads have taught, layers a bound of those on GPUs.
func (c Config) loads(w *waiter, numCtx int, factor float64, layers int) (ways []fit.Load) {
	n, said := c.parallel(w.settings, w.want.Model.Facts.Layout, numCtx)
	model := w.want.Model
	if len(model.Facts.Layout.Layers) == 0 { // nothing is known but its size: it is taken as one piece, in main memory
		whole := *model
		whole.Facts.Layout = models.Layout{InputBytes: uint64(max(0, model.Size))}
		model, layers = &whole, 0
	}
	req := c.loadRequest(w.want, numCtx)
	if asked := w.want.Options.NumGPU; asked >= 0 && (layers < 0 || asked < layers) {
		layers = asked
	}
	for ; n > 0; n /= 2 {
		ways = append(ways, fit.Load{
			Model: model, NumCtx: numCtx, Parallel: n, NumBatch: req.NumBatch, KVCacheType: c.KVCacheType, FlashAttention: c.FlashAttention,
			Mmap: req.UseMmap, Layers: layers, Devices: w.settings.Devices, Factor: factor, Projector: w.projector, Adapters: w.adapters,
		})
		if said {
			break
		}
	}
	return ways
}

// loadRequest is what a runner is told, but for the sequences and the placement.
func (c Config) loadRequest(want Want, numCtx int) runner.LoadRequest {
	req := runner.LoadRequest{
		ModelPath: want.Model.Path, Adapters: want.Model.Adapters(), Projector: want.Model.Projector(), NumCtx: numCtx,
		NumBatch: want.Options.NumBatch, NumThread: c.Threads, UseMmap: want.Options.UseMmap,
		KVCacheType: c.KVCacheType, FlashAttention: c.FlashAttention,
	}
	if n := want.Options.NumThread; n > 0 {
		req.NumThread = min(n, c.Threads)
	}
	if req.NumBatch <= 0 {
		req.NumBatch = models.DefaultOptions().NumBatch
	}
	req.NumBatch = min(req.NumBatch, maxBatch)
	if want.Model.Facts.Pooling {
		req.NumBatch = numCtx // an encoder reads a text in one batch
	}
	return req
}
