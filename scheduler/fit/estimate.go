package fit

import (
	"sluice/models"
	"sluice/runner"
)

// Load is what is to be loaded.
type Load struct {
	Model          *models.Model
	NumCtx         int    // tokens of one sequence
	Parallel       int    // sequences
	NumBatch       int    // as runner.LoadRequest has it
	KVCacheType    string // as runner.LoadRequest has it
	FlashAttention string // as runner.LoadRequest has it
	Mmap           bool
	Layers         int      // on GPUs at most, the output among them; negative: as many as fit
	Devices        []string // ids that it may be loaded on; empty: any
	Factor         float64  // by which earlier loads of this model differed from their estimate; 0 is 1
}

// Estimate is what the load takes on each device with these shares on GPUs, in bytes; main memory (runner.CPU) is the last line.
func Estimate(load Load, shares []runner.Share) []runner.DeviceMemory {
	var weights uint64
	for _, l := range load.Model.Facts.Layout.Layers {
		weights += l.WeightBytes
	}
	return []runner.DeviceMemory{{Device: runner.CPU, Weights: weights}}
}
