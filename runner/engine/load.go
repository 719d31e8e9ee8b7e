package engine

import (
	"context"
	"runtime"
	"time"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/fault"
	"sluice/runner"
)

const (
	// cpuChunk is how many tokens of a prompt are read at a time on CPUs. A batch cannot be interrupted, and above 64 tokens
	// larger ones read no faster (85 tokens/s at 64, 88 at 128, 87 at 512).
	cpuChunk = 64
	// maxChunk bounds num_batch: the compute buffer grows with it.
	maxChunk = 256
	// maxPooled bounds the input of a model that pools, which must be read in one batch.
	maxPooled = 2048
	// maxContext is beyond every model's.
	maxContext = 1 << 24
	// everyLayer is more than any model has.
	everyLayer = 999
	// kvPad is what llama.cpp rounds a context up to.
	kvPad = 256
)

// Load reads the file's facts, loads the model and makes its context, and starts the loop.
func (e *Engine) Load(_ context.Context, req runner.LoadRequest, progress func(float32)) (runner.LoadReport, error) {
	begin := time.Now()
	kvType, flash, err := attention(req)
	if err != nil {
		return runner.LoadReport{}, err
	}
	if req.NumCtx <= 0 || req.NumCtx > maxContext {
		// 0 would be taken as the trained length, and more than 32 bits would wrap.
		return runner.LoadReport{}, fault.New(fault.Invalid, "engine.Load", "num_ctx is %d; it must be from 1 to %d", req.NumCtx, maxContext)
	}
	facts, err := readFacts(req.ModelPath)
	if err != nil {
		return runner.LoadReport{}, err
	}

	llama.BackendInit()
	params := llama.ModelParams{UseMmap: req.UseMmap, Progress: progress}
	gpus := llama.EnumerateGPUs()
	onGPU := len(gpus) > 0 && req.NumGPU != 0
	if onGPU {
		params.NumGpuLayers = req.NumGPU
		if req.NumGPU < 0 {
			params.NumGpuLayers = everyLayer
		}
		for _, d := range gpus {
			params.Devices = append(params.Devices, d.LlamaID)
		}
	}
	model, err := llama.LoadModelFromFile(req.ModelPath, params)
	if err != nil {
		return runner.LoadReport{}, fault.Wrap(err, fault.Invalid, "engine.Load",
			"llama.cpp cannot load the model file (architecture %q); the server's log says why", facts.arch)
	}

	if flash == ml.FlashAttentionAuto && !onGPU && kvType == "f16" {
		// On CPUs prompts are read 10 to 20 % faster without; one sequence answers as fast.
		flash = ml.FlashAttentionDisabled
	}
	numCtx, chunk := sizes(req, facts, onGPU)
	threads := req.NumThread
	if threads <= 0 || threads > runtime.NumCPU() {
		threads = runtime.NumCPU() // with more than that they wait for each other in spin loops, and all but stand still
	}
	lctx, err := llama.NewContextWithModel(model, llama.NewContextParams(numCtx, chunk, 1, threads, flash, kvType))
	if err != nil {
		llama.FreeModel(model)
		return runner.LoadReport{}, fault.Wrap(err, fault.TooLarge, "engine.Load",
			"llama.cpp cannot make a context of %d tokens for this model; ask for a smaller num_ctx", numCtx)
	}
	batch, err := llama.NewBatch(chunk, 1, 0)
	if err != nil {
		llama.FreeModel(model)
		return runner.LoadReport{}, fault.Wrap(err, fault.TooLarge, "engine.Load", "no memory for a batch of %d tokens", chunk)
	}

	m := &loaded{model: model, vocab: model.NumVocab(), numCtx: numCtx, pooled: facts.pooled(), addsBOS: model.AddBOSToken()}
	l := &loop{loaded: m, ctx: lctx, batch: batch, chunk: chunk}
	if !m.pooled {
		l.canShift = lctx.KvCacheCanShift()
	}
	report := runner.LoadReport{
		NumCtx: numCtx, TrainCtx: int(facts.of("context_length")), Embedding: model.NEmbd(), Pooled: m.pooled,
		WeightBytes: uint64(facts.size), KVBytes: kvBytes(facts, numCtx, kvType), ComputeBytes: computeBytes(m, chunk),
	}
	if flash == ml.FlashAttentionDisabled { // it holds the scores of every head against the whole context
		report.ComputeBytes += uint64(facts.of("attention.head_count")) * uint64(numCtx) * uint64(chunk) * 4
	}
	report.GPUBytes = gpuBytes(report, params.NumGpuLayers, int(facts.of("block_count")))
	e.loaded.Store(m)
	go l.run(e.jobs)
	report.Took = time.Since(begin)
	return report, nil
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

// sizes decides the context and the largest batch. A context beyond what the model was trained for gives nonsense, so it is
// capped, as in Ollama. One sequence is computed at a time; requests beyond it queue.
func sizes(req runner.LoadRequest, facts fileFacts, onGPU bool) (numCtx, chunk int) {
	numCtx = req.NumCtx
	if trained := facts.of("context_length"); trained > 0 {
		numCtx = int(min(int64(numCtx), trained))
	}
	if facts.pooled() {
		numCtx = min(numCtx, maxPooled)
		return numCtx, numCtx
	}
	chunk = req.NumBatch
	if chunk <= 0 {
		chunk = maxChunk
	}
	if !onGPU {
		chunk = min(chunk, cpuChunk)
	}
	return numCtx, min(chunk, maxChunk)
}

// kvBytes is exact for models with attention in every layer: for each layer, tokens × heads × (key + value length) × bytes
// of an element. An encoder has no cache.
func kvBytes(f fileFacts, numCtx int, kvType string) uint64 {
	if f.encoder() {
		return 0
	}
	perElement := map[string]float64{"f16": 2, "q8_0": 34.0 / 32, "q4_0": 18.0 / 32}[kvType]
	tokens := int64(numCtx+kvPad-1) / kvPad * kvPad
	heads := max(f.of("attention.head_count"), 1)
	key, value := f.of("attention.key_length"), f.of("attention.value_length")
	if key == 0 {
		key = f.of("embedding_length") / heads
	}
	if value == 0 {
		value = f.of("embedding_length") / heads
	}
	var elements int64
	for layer := range int(f.of("block_count")) {
		kv := f.perLayer("attention.head_count_kv", layer)
		if kv == 0 {
			kv = f.perLayer("attention.head_count", layer)
		}
		elements += kv * (key + value)
	}
	return uint64(float64(tokens*elements) * perElement)
}

// computeBytes bounds the compute buffer: room for the logits of a whole batch and two rows of activations, and 7 % that
// was measured on top. Most of it is address space that is never touched.
func computeBytes(m *loaded, chunk int) uint64 {
	return uint64(float64(chunk) * float64(m.vocab+2*m.model.NEmbd()) * 4 * 1.07)
}

// gpuBytes is the share of the layers that was put on GPUs, of all that was allocated.
func gpuBytes(r runner.LoadReport, onGPU, layers int) uint64 {
	if onGPU <= 0 || layers <= 0 {
		return 0
	}
	share := float64(min(onGPU, layers+1)) / float64(layers+1) // the output counts as a layer
	return uint64(share * float64(r.WeightBytes+r.KVBytes+r.ComputeBytes))
}

// Device is something to compute on.
type Device struct {
	ID      string `json:"id"`
	Library string `json:"library"`           // cpu, cuda, …
	Threads int    `json:"threads,omitempty"` // of a CPU
}

// Devices lists the GPUs that llama.cpp sees, and the CPU.
func Devices() []Device {
	llama.BackendInit()
	out := []Device{}
	for _, d := range llama.EnumerateGPUs() {
		out = append(out, Device{ID: d.ID, Library: d.Library})
	}
	return append(out, Device{ID: "cpu", Library: "cpu", Threads: runtime.NumCPU()})
}
