package fit

import "sluice/models"

// Sizes of batches and contexts, as runner/engine/load.go has them (cpuChunk, gpuChunk, maxPooled, minPooled, pooledTogether,
// kvPad). A test there would not notice a change here, but figure sched.fit_error does.
const (
	cpuChunk       = 128
	gpuChunk       = 512
	maxPooled      = 2048
	minPooled      = 512
	pooledTogether = 32
	kvPad          = 256
)

// Bytes of an element of a KV cache by its type: ggml's blocks of 32 (34 bytes of q8_0, 18 of q4_0).
const (
	bytesF16  = 2
	bytesQ8_0 = 34.0 / 32
	bytesQ4_0 = 18.0 / 32
)

// dims are the sizes of a context.
type dims struct {
	cells     float64 // of the cache, of one sequence
	sequences float64 // with a cache of their own
	tokens    float64 // of the largest batch
	element   float64 // bytes of an element of the cache
	flash     bool    // flash attention: the scores of a batch are never whole in memory
}

// dimsOf does what dimensionsOf in runner/engine/load.go and the constructor of llama_context (llama-context.cpp) do.
func dimsOf(load *Load, l *models.Layout, onGPU bool) dims {
	ctx, sequences, chunk := max(load.NumCtx, 1), max(load.Parallel, 1), load.NumBatch
	if t := load.trained(); t > 0 {
		ctx = min(ctx, t)
	}
	if l.Packs {
		ctx = min(ctx, maxPooled)
		chunk = max(ctx, minPooled)
		if l.BothWays {
			sequences = max(sequences, pooledTogether)
		}
	} else {
		most := cpuChunk
		if onGPU {
			most = gpuChunk
		}
		if chunk <= 0 || chunk > most {
			chunk = most
		}
		chunk = min(chunk, padded(ctx))
	}
	d := dims{cells: float64(padded(ctx)), sequences: float64(sequences), element: bytesF16}
	// graph_reserve rounds a batch up so that each sequence has as many tokens of it
	perSequence := (min(chunk, padded(ctx)*sequences) + sequences - 1) / sequences
	d.tokens = float64(perSequence * sequences)
	switch load.KVCacheType {
	case "q8_0":
		d.element = bytesQ8_0
	case "q4_0":
		d.element = bytesQ4_0
	}
	switch load.FlashAttention {
	case "on":
		d.flash = true
	case "off":
	default: // llama.cpp takes it wherever it can; the engine forbids it on CPUs, but a quantized cache needs it
		d.flash = onGPU || d.element != bytesF16
	}
	return d
}

// padded is what llama.cpp makes of a context.
func padded(ctx int) int {
	if ctx > 1<<30 { // beyond what the engine takes
		ctx = 1 << 30
	}
	return (ctx + kvPad - 1) / kvPad * kvPad
}
