package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/fault"
	"sluice/runner"
)

const (
	// cpuChunk is how many tokens of prompts are read at a time on CPUs while nobody is answered, cpuShared while somebody is. A
	// batch cannot be interrupted, and larger ones read hardly faster (80 tokens/s at 32, 85 at 64, 88 at 128, 87 at 512).
	cpuChunk, cpuShared = 128, 32
	gpuChunk, gpuShared = 512, 256
	// maxPooled bounds the input of a model that pools over a batch, minPooled what several inputs may fill together.
	maxPooled, minPooled = 2048, 512
	// pooledTogether is how many inputs are pooled in a batch at most.
	pooledTogether = 32
	// maxParallel is llama.cpp's bound of sequences.
	maxParallel = 64
	// maxContext is beyond every model's.
	maxContext = 1 << 24
	// kvPad is what llama.cpp rounds a context up to.
	kvPad = 256
)

// Load reads the file's facts, loads the model and makes its context, and starts the loop.
func (e *Engine) Load(ctx context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error) {
	begin := time.Now()
	kvType, flash, err := attention(req)
	if err != nil {
		return runner.LoadReport{}, err
	}
	if req.NumCtx <= 0 || req.NumCtx > maxContext {
		// 0 would be taken as the trained length, and more than 32 bits would wrap.
		return runner.LoadReport{}, fault.New(fault.Invalid, "engine.Load", "num_ctx is %d; it must be from 1 to %d", req.NumCtx, maxContext)
	}
	if req.Parallel < 0 || req.Parallel > maxParallel {
		return runner.LoadReport{}, fault.New(fault.Invalid, "engine.Load", "parallel is %d; it must be from 1 to %d", req.Parallel, maxParallel)
	}
	facts, err := readFacts(req.ModelPath)
	if err != nil {
		return runner.LoadReport{}, err
	}
	if other := fallback(facts, req); other != nil {
		report, err := other.Load(ctx, req, progress)
		if err == nil {
			e.other.Store(&other)
		}
		return report, err
	}

	devices, place, err := placeOn(req, facts)
	if err != nil {
		return runner.LoadReport{}, err
	}
	begun := nativeLog.mark()
	told := oneByOne(progress)
	params := llama.ModelParams{UseMmap: req.UseMmap, Progress: func(p float32) { told(p * readShare) }}
	place.llama(&params)
	onGPU := place.layers() > 0
	model, err := llama.LoadModelFromFile(req.ModelPath, params)
	if err != nil {
		if err := memoryFault(err, begun); err != nil {
			return runner.LoadReport{}, err
		}
		if other := secondTry(facts); other != nil {
			if report, err := other.Load(ctx, req, progress); err == nil {
				e.other.Store(&other)
				return report, nil
			}
		}
		return runner.LoadReport{}, fault.Wrap(err, fault.Invalid, "engine.Load",
			"llama.cpp cannot load the model file (architecture %q); the server's log says why", facts.arch)
	}
	if flash == ml.FlashAttentionAuto && !onGPU && kvType == "f16" {
		// On CPUs prompts are read 10 to 20 % faster without; answers come as fast.
		flash = ml.FlashAttentionDisabled
	}
	d := dimensionsOf(req, facts, onGPU)
	threads := req.NumThread
	if threads <= 0 || threads > runtime.NumCPU() {
		threads = runtime.NumCPU() // with more than that they wait for each other in spin loops, and all but stand still
	}
	lctx, err := llama.NewContextWithModel(model, llama.NewContextParams(
		padded(d.numCtx)*d.sequences, d.chunk, d.sequences, threads, flash, kvType))
	if err != nil {
		llama.FreeModel(model)
		if err := memoryFault(err, begun); err != nil {
			return runner.LoadReport{}, err
		}
		return runner.LoadReport{}, fault.Wrap(err, fault.Invalid, "engine.Load",
			"llama.cpp cannot make %d contexts of %d tokens (KV cache %s) for this model; the server's log says why", d.parallel, d.numCtx, kvType)
	}
	told(contextShare)
	native := newNative(model, lctx)
	give := func(err error) (runner.LoadReport, error) {
		native.free()
		llama.FreeModel(model)
		if memory := memoryFault(err, begun); memory != nil {
			err = memory
		}
		return runner.LoadReport{}, err
	}
	batch, err := llama.NewBatch(d.chunk, d.sequences, 0)
	if err != nil {
		return give(noMemory(err, fmt.Sprintf("a batch of %d tokens could not be made", d.chunk)))
	}

	m := &loaded{
		model: model, context: lctx, engine: e, vocab: native.n, numCtx: d.numCtx, parallel: d.parallel, width: d.chunk,
		addsBOS: model.AddBOSToken(), splits: native.splits(), specials: sync.OnceValue(native.specials), pooling: int(facts.of("pooling_type")), pooled: facts.pooled(), encoder: facts.encoder(),
		packs: facts.packs(), reranks: facts.of("pooling_type") == poolingRank,
	}
	var took memory
	if err := took.measure(native, devices, nativeLog.since(begun)); err != nil {
		return give(err)
	}
	if err := m.loadAdapters(lctx, req); err != nil {
		return give(err)
	}
	for _, path := range req.Adapters {
		took.adapter(path, place)
	}
	loading := nativeLog.mark()
	if err := m.loadProjector(req, place); err != nil {
		return give(err)
	}
	if req.Projector != "" {
		took.projector(req.Projector, place.lead(), nativeLog.since(loading))
	}
	if err := m.loadPairs(req); err != nil {
		return give(err)
	}
	l := newLoop(m, native, batch, d, e.wake)
	report := runner.LoadReport{
		Backend: "llama", Parallel: d.parallel, Vision: m.vision, Reranks: m.reranks,
		NumCtx: d.numCtx, TrainCtx: int(facts.of("context_length")), Embedding: model.NEmbd(), Pooled: m.pooled,
		Memory: took.lines(),
	}
	e.loaded.Store(m)
	go l.run(e.work)
	told(1)
	report.Took = time.Since(begin)
	return report, nil
}

// How far a load is when the file is read, and when the context is made; the rest is for what comes beside the model.
const (
	readShare    = 0.95
	contextShare = 0.98
)

// placeOn wakes ggml, lists its devices and checks the request's shares against them.
func placeOn(req runner.LoadRequest, facts fileFacts) ([]device, placement, error) {
	if len(req.Placement) == 0 {
		hideGPUs()
	}
	devices := registry(false)
	place, err := placed(req.Placement, gpus(devices), int(facts.of("block_count")))
	return devices, place, err
}

// newLoop makes the loop of a model that was just loaded.
func newLoop(m *loaded, n *native, batch *llama.Batch, d dimensions, wake <-chan struct{}) *loop {
	l := &loop{
		loaded: m, native: n, ctx: m.context, batch: batch, chunk: d.chunk, shared: d.shared, together: d.sequences,
		exact: n.forgetful(), wake: wake, costs: costs{perRow: d.costPerRow}, embeds: true,
	}
	if m.packs {
		if !m.encoder {
			l.together = 1 // llama.cpp would compute inputs of several lengths in pieces, and pool each
		}
		return l
	}
	l.setEmbeddings(false)
	l.shifts = m.context.KvCacheCanShift()
	for id := range d.sequences {
		l.slots = append(l.slots, &slot{id: id})
	}
	return l
}

// attention checks the options that llama.cpp would replace or refuse without a word.
func attention(req runner.LoadRequest) (kvType string, flash ml.FlashAttentionType, err error) {
	switch req.KVCacheType {
	case "", "f16":
		kvType = "f16"
	case "q8_0", "q4_0":
		kvType = req.KVCacheType
	default:
		return "", 0, fault.New(fault.Invalid, "engine.Load", "KV cache type %q is unknown; there are f16, q8_0 and q4_0", req.KVCacheType)
	}
	switch req.FlashAttention {
	case "":
		flash = ml.FlashAttentionAuto
	case "on":
		flash = ml.FlashAttentionEnabled
	case "off":
		flash = ml.FlashAttentionDisabled
	default:
		return "", 0, fault.New(fault.Invalid, "engine.Load", `flash_attention is "on", "off" or absent, not %q`, req.FlashAttention)
	}
	if flash == ml.FlashAttentionDisabled && kvType != "f16" {
		return "", 0, fault.New(fault.Invalid, "engine.Load", "a KV cache of %s needs flash attention", kvType)
	}
	return kvType, flash, nil
}

// dimensions of a context.
type dimensions struct {
	numCtx     int // tokens of a sequence
	parallel   int // sequences that callers may count on
	sequences  int // in the context: an encoder has more, which cost nothing
	chunk      int // tokens of a batch
	shared     int // tokens of prompts in a batch beside answers
	costPerRow float64
}

// dimensionsOf decides them. A context beyond what the model was trained for gives nonsense, so it is capped, as in Ollama.
func dimensionsOf(req runner.LoadRequest, facts fileFacts, onGPU bool) dimensions {
	d := dimensions{
		numCtx: req.NumCtx, parallel: max(req.Parallel, 1), chunk: req.NumBatch,
		shared: cpuShared, costPerRow: cpuCostPerRow,
	}
	most := cpuChunk
	if onGPU {
		most, d.shared, d.costPerRow = gpuChunk, gpuShared, gpuCostPerRow
	}
	if trained := facts.of("context_length"); trained > 0 {
		d.numCtx = int(min(int64(d.numCtx), trained))
	}
	d.sequences = d.parallel
	if facts.packs() {
		d.numCtx = min(d.numCtx, maxPooled)
		d.chunk = max(d.numCtx, minPooled)
		if facts.encoder() {
			d.sequences = max(d.parallel, pooledTogether)
		}
		return d
	}
	if d.chunk <= 0 || d.chunk > most {
		d.chunk = most
	}
	d.chunk = min(d.chunk, padded(d.numCtx))
	d.shared = min(d.shared, d.chunk)
	return d
}

// padded is what llama.cpp makes of a context.
func padded(numCtx int) int { return (numCtx + kvPad - 1) / kvPad * kvPad }
