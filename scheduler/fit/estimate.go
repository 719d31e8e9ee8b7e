package fit

import (
	"sluice/models"
	"sluice/runner"
)

// GPUOverhead is what a process takes on each GPU that it uses, besides what it asks for: context, kernels, library workspaces. Ollama
// keeps the same free (MinimumMemory in ml/device.go of v0.17.4). The engine does not report it; Allocated adds it.
const GPUOverhead = 457 << 20

// Estimate is what the load takes on each device with these shares on GPUs, in bytes; main memory (runner.CPU) is the last line.
// GPUs have GPUOverhead in their Compute. Shares that have more layers than the model count as far as there are layers.
func Estimate(load Load, shares []runner.Share) []runner.DeviceMemory {
	var c costs
	c.init(&load, layersOf(shares) > 0)
	return c.memory(shares)
}

// costs are the numbers of a load from which its memory on a device follows by a few additions.
type costs struct {
	load    *Load
	l       *models.Layout
	d       dims
	g       graph
	onGPU   bool
	blocks  int
	factor  float64
	weights []float64 // of the first i blocks
	cache   []float64 // of the first i blocks
	input   float64
	output  float64 // weights behind the last block, with a copy of the tied matrix
	scratch float64 // of a GPU: a block's quantized cache as f16
	copies  float64 // of the first GPU, while blocks are in main memory
	beside  float64 // weights of the projector

	buffer [2 * (usualBlocks + 1)]float64
}

// usualBlocks is more than nearly all models have; for them nothing is allocated.
const usualBlocks = 160

func (c *costs) init(load *Load, onGPU bool) {
	l := load.layout()
	*c = costs{load: load, l: l, d: dimsOf(load, l, onGPU), onGPU: onGPU, blocks: len(l.Layers), factor: load.factor()}
	c.g = graphOf(l, c.d)
	n := c.blocks + 1
	if n <= usualBlocks {
		c.weights, c.cache = c.buffer[:n], c.buffer[n:2*n]
	} else {
		c.weights, c.cache = make([]float64, n), make([]float64, n)
	}
	repacked := load.Mmap && !onGPU // the file stays mapped beside the copy; without mmap the copy is all there is
	adapter := float64(load.Adapters) / float64(n)
	widest := 0.0
	for i := range l.Layers {
		widest = max(widest, float64(l.Layers[i].KVHeads))
	}
	for i := range l.Layers {
		b := &l.Layers[i]
		w := float64(b.WeightBytes) + adapter
		if repacked {
			w += float64(b.RepackBytes)
		}
		c.weights[i+1] = c.weights[i] + w
		cache, elements := c.cacheOf(b, widest)
		c.cache[i+1] = c.cache[i] + cache
		if onGPU && c.d.element != bytesF16 {
			c.scratch = max(c.scratch, elements*bytesF16)
		}
	}
	c.input = float64(l.InputBytes)
	c.output = float64(l.OutputBytes) + adapter
	if l.Tied && (onGPU || l.TiedRepacks || l.OtherEngine) {
		c.output += float64(l.TiedBytes)
	}
	c.copies = max(c.output+c.g.output, copied*float64(l.LargestTensor)+c.g.blocks+c.g.inputs)
	c.beside = float64(load.Projector)
}

// cacheOf gives the bytes that a block keeps of all sequences, and how many elements of keys and values are among them. llama.cpp
// makes the cache of a block with a window as long as any other (swa_full in llama_context_default_params), and in hybrid models gives each
// sequence the cells of all (llama_model::create_memory passes n_ctx where n_ctx_seq is meant; measured with a tiny jamba: four sequences of
// 2048 take 16 times the cache of one).
func (c *costs) cacheOf(b *models.Layer, widest float64) (bytes, elements float64) {
	cells := c.d.cells * c.d.sequences
	switch {
	case c.l.Encoder:
		cells = 0
	case c.l.OtherEngine && b.Window > 0: // kvcache/causal.go
		cells = min(cells, float64(padded(int(float64(b.Window)*c.d.sequences+c.d.tokens))))
	case c.l.Hybrid:
		cells *= c.d.sequences
	}
	keys, values := float64(b.KVHeads), float64(b.KVHeads)
	if !c.d.flash && keys > 0 {
		values = widest // llama-kv-cache.cpp: without flash attention all blocks have values of the same width
	}
	elements = cells * (keys*float64(b.KeyLength) + values*float64(b.ValueLength))
	return elements*c.d.element + float64(b.StateBytes)*c.d.sequences, elements
}

func layersOf(shares []runner.Share) (n int) {
	for _, s := range shares {
		n += max(s.Layers, 0)
	}
	return n
}

// part is what one device has of a model: the blocks from, from+1, … to-1, and perhaps the output.
type part struct {
	from, to int
	output   bool
}

// first gives the first block on GPUs that have so many layers together. The output goes there only when all blocks do.
func (c *costs) first(layers int) (from int, output bool) {
	if layers > c.blocks {
		return 0, true
	}
	return c.blocks - layers, false
}

// gpu is what a part takes on a GPU. lead is the first of several, whole says whether nothing but the input stays in main memory.
func (c *costs) gpu(p part, lead, whole, several bool) (weights, kv, compute float64) {
	weights, kv = c.weights[p.to]-c.weights[p.from], c.cache[p.to]-c.cache[p.from]
	inputs := c.g.inputs + c.g.rows
	if whole && several {
		inputs *= pipelined
	}
	compute = c.g.blocks + inputs
	if p.output {
		weights += c.output
		compute = max(c.g.whole(c.d), compute)
	}
	if lead {
		weights += c.beside
		if !whole {
			compute = max(compute, c.copies)
		}
	}
	f := c.factor
	return weights * f, kv * f, (compute+c.scratch)*f + GPUOverhead
}

// cpu is what stays in main memory when the layers behind from, and the output or not, are on GPUs.
func (c *costs) cpu(from int, output, several bool) (weights, kv, compute float64) {
	weights, kv = c.input+c.weights[from], c.cache[from]
	switch {
	case !c.onGPU:
		weights += c.output + c.beside
		compute = c.g.whole(c.d)
	case output:
		compute = c.g.inputs + c.g.rows
		if several {
			compute *= pipelined
		}
	default:
		weights += c.output - tiedCopy(c.l)
		compute = c.g.inputs + c.g.rows
		if from > 0 {
			compute += c.g.blocks
		}
	}
	f := c.factor
	return weights * f, kv * f, (compute + c.g.logits) * f
}

// tiedCopy is what is counted for the output on GPUs, and is not there while it stays in main memory. The other engine makes one anyway.
func tiedCopy(l *models.Layout) float64 {
	if l.Tied && !l.OtherEngine {
		return float64(l.TiedBytes)
	}
	return 0
}

// memory lists what the load takes with shares that have layers at all.
func (c *costs) memory(shares []runner.Share) []runner.DeviceMemory {
	lines := make([]runner.DeviceMemory, 0, len(shares)+1)
	start, output := c.first(layersOf(shares))
	at, left := start, c.blocks-start
	if output {
		left++
	}
	lead, several := true, used(shares) > 1
	for _, s := range shares {
		n := min(max(s.Layers, 0), left)
		if n == 0 {
			continue
		}
		left -= n
		p := part{from: at, to: min(at+n, c.blocks), output: output && left == 0}
		at = p.to
		w, kv, compute := c.gpu(p, lead, output, several)
		lead = false
		lines = append(lines, line(s.Device, w, kv, compute))
	}
	w, kv, compute := c.cpu(start, output, several)
	return append(lines, line(runner.CPU, w, kv, compute))
}

func used(shares []runner.Share) (n int) {
	for _, s := range shares {
		if s.Layers > 0 {
			n++
		}
	}
	return n
}

func line(device string, weights, kv, compute float64) runner.DeviceMemory {
	return runner.DeviceMemory{Device: device, Weights: whole(weights), KV: whole(kv), Compute: whole(compute)}
}

// most is more than any device has, and the sum of many does not wrap around.
const most = 1 << 56

// whole is a number of bytes, rounded up.
func whole(x float64) uint64 {
	switch {
	case !(x > 0): // NaN too
		return 0
	case x >= most:
		return most
	}
	n := uint64(x)
	if float64(n) < x {
		n++
	}
	return n
}
