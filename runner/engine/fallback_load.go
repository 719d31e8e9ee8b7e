package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/ml"
	ollama "github.com/ollama/ollama/model"
	modelinput "github.com/ollama/ollama/model/input"
	_ "github.com/ollama/ollama/model/models" // registers the architectures
	"github.com/ollama/ollama/runner/ollamarunner"
	"github.com/ollama/ollama/tokenizer"

	"sluice/fault"
	"sluice/runner"
)

// module is the fallback engine: the models, the kernels and the cache of Ollama's own runner, driven by a loop of ours. The
// module's runner itself is an HTTP server on a TCP port that everybody on the machine can reach, and it panics on what it
// does not expect (docs/decisions tells more).
type module struct {
	facts fileFacts
	work  chan func(*moduleLoop) // done by the loop between two batches
	pump  *Engine                // lends follow and wake, with which answers reach their readers

	// What follows never changes after Load.
	model    ollama.Model
	tokens   tokenizer.Tokenizer
	vision   ollama.MultimodalProcessor // nil: it takes no images
	numCtx   int
	parallel int
	batch    int // inputs of one batch
	pooled   bool
	words    moduleVocabulary
}

var _ runner.Engine = (*module)(nil)

func newModule(facts fileFacts) *module {
	return &module{facts: facts, work: make(chan func(*moduleLoop)), pump: New()}
}

// Load builds the model, allocates what it needs, reads the weights and starts the loop.
func (m *module) Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (report runner.LoadReport, err error) {
	begin := time.Now()
	if len(req.Adapters) > 0 {
		return report, fault.New(fault.Invalid, "engine.Load", "adapters cannot be applied to the architecture %q, which runs on the fallback engine", m.facts.arch)
	}
	if req.Projector != "" {
		return report, fault.New(fault.Invalid, "engine.Load", "a projector cannot be loaded beside the architecture %q, which runs on the fallback engine", m.facts.arch)
	}
	kvType, flash, err := attention(req)
	if err != nil {
		return report, err
	}
	// A file that lacks a tensor is found when the model is built or computed for the first time, by a panic.
	begun := nativeLog.mark()
	defer func() {
		if r := recover(); r != nil {
			err = m.broken(r, begun)
		}
	}()
	devices, place, err := placeOn(req, m.facts)
	if err != nil {
		return report, err
	}
	m.sizes(req)
	m.model, err = ollama.New(req.ModelPath, ml.BackendParams{
		AllocMemory: true, NumThreads: someThreads(req.NumThread), GPULayers: place.module(), FlashAttention: flash,
	})
	if err != nil {
		return report, fault.Wrap(err, fault.Invalid, "engine.Load", "the fallback engine cannot load the model file (architecture %q)", m.facts.arch)
	}
	var ok bool
	if m.tokens, ok = m.model.(tokenizer.Tokenizer); !ok {
		return report, fault.New(fault.Invalid, "engine.Load", "the fallback engine has no tokenizer for the architecture %q", m.facts.arch)
	}
	if m.facts.seesInside() {
		m.vision, _ = m.model.(ollama.MultimodalProcessor)
	}
	if m.model.Config().Cache == nil { // each batch holds a whole input
		m.parallel, m.batch = 1, m.numCtx
	}
	cache, err := ollamarunner.NewInputCache(m.model, kvType, int32(m.numCtx*m.parallel), m.parallel, m.batch, m.parallel > 1)
	if err != nil {
		return report, fmt.Errorf("engine: %w", err)
	}
	l := &moduleLoop{module: m, cache: cache, cached: m.model.Config().Cache != nil, free: m.parallel, owners: map[*ollamarunner.InputCacheSlot]string{}}
	for _, n := range []int{m.batch, 1} {
		if err := l.reserve(n); err != nil {
			return report, fmt.Errorf("engine: %w", err)
		}
	}
	told := oneByOne(progress)
	if err := m.model.Backend().Load(ctx, func(p float32) { told(p * contextShare) }); err != nil {
		return report, fault.Wrap(err, fault.Invalid, "engine.Load", "the model file's weights cannot be read; it may be cut short")
	}
	slog.Info("loaded by the fallback engine", "architecture", m.facts.arch, "placement", req.Placement, "parallel", m.parallel, "context", m.numCtx)
	report = m.report(devices)
	told(1)
	report.Took = time.Since(begin)
	go l.run()
	return report, nil
}

// oneByOne makes a progress, which may be nil, one that many goroutines may call, as the module does with every block of 128 KiB that
// it has read. It is told of whole percents only, and never of less than before.
func oneByOne(progress func(float32)) func(float32) {
	if progress == nil {
		return func(float32) {}
	}
	var mu sync.Mutex
	told := -1
	return func(p float32) {
		mu.Lock()
		defer mu.Unlock()
		if percent := int(p * 100); percent > told {
			told = percent
			progress(p)
		}
	}
}

// broken tells of a panic in Load, which began at a mark of the log.
func (m *module) broken(r any, begun int) error {
	err, ok := r.(error)
	var memory ml.ErrNoMem
	if errors.As(err, &memory) {
		return noMemory(err, "the fallback engine could not allocate what it needs")
	}
	if !ok {
		err = fmt.Errorf("%v", r)
	}
	if out := memoryFault(err, begun); out != nil {
		return out
	}
	slog.Error("the fallback engine failed to load", "error", err, "stack", string(debug.Stack()))
	return fault.Wrap(err, fault.Invalid, "engine.Load", "the model file is not what its architecture %q needs; the server's log says more", m.facts.arch)
}

// sizes decides the context, the number of sequences and the largest batch, as for llama.cpp.
func (m *module) sizes(req runner.LoadRequest) {
	m.numCtx = req.NumCtx
	if trained := m.facts.of("context_length"); trained > 0 {
		m.numCtx = int(min(int64(m.numCtx), trained))
	}
	m.parallel = max(req.Parallel, 1)
	m.batch = cpuChunk
	if len(req.Placement) > 0 {
		m.batch = gpuChunk
	}
	if req.NumBatch > 0 {
		m.batch = min(m.batch, req.NumBatch)
	}
	if m.pooled = m.facts.pooled(); m.pooled { // all of an input must be in one batch
		m.numCtx = min(m.numCtx, maxPooled)
		m.parallel, m.batch = 1, m.numCtx
	}
	m.batch = min(m.batch, m.numCtx)
}

// report tells what the module has allocated, as its backend counted it while it did.
func (m *module) report(devices []device) runner.LoadReport {
	r := runner.LoadReport{
		Backend: "ollama", Parallel: m.parallel, Vision: m.vision != nil, NumCtx: m.numCtx, TrainCtx: int(m.facts.of("context_length")),
		Embedding: int(m.facts.of("embedding_length")), Pooled: m.pooled,
	}
	taken := m.model.Backend().BackendMemory()
	var took memory
	for i, d := range append([]ml.DeviceMemory{taken.CPU}, taken.GPUs...) {
		id, inputs := runner.CPU, taken.InputWeights
		if i > 0 {
			id, inputs = moduleID(devices, d), 0
		}
		line := took.on(id)
		line.Weights += sum(d.Weights) + inputs
		line.KV += sum(d.Cache)
		line.Compute += d.Graph
	}
	r.Memory = took.lines()
	return r
}

// moduleID is our id of a device that the module names.
func moduleID(devices []device, d ml.DeviceMemory) string {
	for _, known := range devices {
		if known.module == d.DeviceID {
			return known.ID
		}
	}
	return d.Name // of ggml's registry too
}

func sum(list []uint64) (all uint64) {
	for _, n := range list {
		all += n
	}
	return all
}

// reserve allocates what a batch of n inputs needs, so that there is enough memory for it later.
func (l *moduleLoop) reserve(n int) error {
	ctx := l.model.Backend().NewContext()
	defer ctx.Close()
	batch := modelinput.Batch{Positions: make([]int32, n), Sequences: make([]int, n)}
	for i := range batch.Positions {
		batch.Positions[i] = int32(i)
	}
	batch.Inputs = ctx.Input().FromInts(make([]int32, n), n)
	batch.Outputs = ctx.Input().Empty(ml.DTypeI32, l.parallel)
	if l.cached {
		if err := l.model.Config().Cache.StartForward(ctx, batch, true); err != nil {
			return err
		}
	}
	out, err := l.model.Forward(ctx, batch)
	if err != nil {
		return err
	}
	ctx.SetBatchSize(n)
	ctx.Forward(out).Reserve()
	return nil
}

// setThreads changes the threads of the CPU's backend. The module has no call for it, but all its models share that backend, and
// a new one sets the number: so an empty one is made.
func setThreads(n int) error {
	f, err := os.CreateTemp("", "sluice-threads-*.gguf")
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	defer os.Remove(f.Name())
	err = ggml.WriteGGUF(f, ggml.KV{"general.architecture": "llama", "tokenizer.ggml.model": "gpt2"}, nil)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	empty, err := ml.NewBackend(f.Name(), ml.BackendParams{NumThreads: someThreads(n)})
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	empty.Close()
	return nil
}

// maxInt32 stands for the end of a sequence in the module's cache.
const maxInt32 = math.MaxInt32
