package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/fault"
	"sluice/runner"
)

// placement is a request's shares beside the model's layers: its blocks, and the output behind them as one more.
type placement struct {
	blocks int
	shares []runner.Share
	on     []device // of each share
}

// placed checks a request's shares against the machine and the model.
func placed(shares []runner.Share, gpus []device, blocks int) (placement, error) {
	p := placement{blocks: blocks, shares: shares}
	invalid := func(format string, args ...any) (placement, error) {
		return placement{}, fault.New(fault.Invalid, "engine.Load", format, args...)
	}
	for i, share := range shares {
		at := slices.IndexFunc(gpus, func(d device) bool { return d.ID == share.Device })
		switch {
		case share.Device == runner.CPU:
			return invalid("the placement names %q: what is on no GPU is in main memory by itself", share.Device)
		case at < 0:
			return invalid("there is no device %q; there are: %s", share.Device, names(gpus))
		case share.Layers <= 0:
			return invalid("the placement puts %d layers on %s; it must be at least 1", share.Layers, share.Device)
		case slices.ContainsFunc(shares[:i], func(s runner.Share) bool { return s.Device == share.Device }):
			return invalid("the placement names %s twice", share.Device)
		}
		p.on = append(p.on, gpus[at])
	}
	if n := p.layers(); n > blocks+1 {
		return invalid("the placement has %d layers; the model has %d, the output among them", n, blocks+1)
	}
	return p, nil
}

func names(gpus []device) string {
	if len(gpus) == 0 {
		return "none but the CPU"
	}
	list := make([]string, len(gpus))
	for i, d := range gpus {
		list[i] = d.ID
	}
	return strings.Join(list, ", ")
}

// layers is how many of them the shares have together. When these are all, the output is among them; else they are the last
// blocks, and the output stays in main memory. So llama.cpp does it (load_tensors in llama-model.cpp): from n_layer - n_gpu_layers
// on as many as n_gpu_layers, of layers that are counted with the output as the last.
func (p placement) layers() (n int) {
	for _, share := range p.shares {
		n += share.Layers
	}
	return n
}

// lead is the device of what stands beside the layers: the first share's.
func (p placement) lead() string {
	if len(p.shares) == 0 {
		return runner.CPU
	}
	return p.shares[0].Device
}

// first is the first layer that is on a GPU.
func (p placement) first() int { return max(p.blocks-p.layers(), 0) }

// share is the index of the share that has a layer, -1 main memory.
func (p placement) share(layer int) int {
	at := layer - p.first()
	if at < 0 || at >= p.layers() {
		return -1
	}
	for i, share := range p.shares {
		if at < share.Layers {
			return i
		}
		at -= share.Layers
	}
	return -1
}

// deviceOf is where a tensor is by its name, of the model or of an adapter. Inputs are always in main memory.
func (p placement) deviceOf(tensor string) string {
	layer := -1
	if rest, ok := strings.CutPrefix(tensor, "blk."); ok {
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); err == nil {
			layer = n
		}
	} else if strings.HasPrefix(tensor, "output") {
		layer = p.blocks
	}
	if i := p.share(layer); layer >= 0 && i >= 0 {
		return p.shares[i].Device
	}
	return runner.CPU
}

// llama gives the parameters that make llama.cpp place the layers so. The splits are the numbers of layers: it adds them up,
// divides by the sum, and puts layer k of the GPUs' on the first device whose quotient is greater than k / layers. Both quotients have the
// same divisor, and division rounds like to like, so that no layer strays however badly they round; TestPlacementInLlama computes it.
func (p placement) llama(params *llama.ModelParams) {
	params.NumGpuLayers = p.layers()
	for i, share := range p.shares {
		params.Devices = append(params.Devices, uint64(p.on[i].index))
		params.TensorSplit = append(params.TensorSplit, float32(share.Layers))
	}
}

// module gives the same placement to the fallback engine, which counts layers alike.
func (p placement) module() (list ml.GPULayersList) {
	for i := range p.shares {
		list = append(list, ml.GPULayers{DeviceID: p.on[i].module})
	}
	for layer := range p.blocks + 1 {
		if i := p.share(layer); i >= 0 {
			list[i].Layers = append(list[i].Layers, layer)
		}
	}
	return list
}
