package models

import (
	"math/bits"
	"os"
)

// Layout is what a model's file says about the memory that the model takes once it is loaded, in bytes and in numbers of elements.
// Zero is not known. It is read in layout_read.go; package scheduler/fit makes an estimate of it.
type Layout struct {
	InputBytes  uint64  // token embeddings and whatever stands in front of the first block; never on a GPU
	Layers      []Layer // blocks, in order; empty when the file says nothing of use about them
	OutputBytes uint64  // what stands behind the last block; counts as one layer of its own
	Tied        bool    // the output uses the matrix of the token embeddings: a copy of it (TiedBytes) goes where the output goes
	TiedBytes   uint64  // of that matrix; in InputBytes once
	TiedRepacks bool    // on a CPU the copy is made too, because there it is repacked; else one matrix serves both

	Vocabulary        int // tokens
	Width             int // of the embedding
	Heads             int // of attention; the largest number of all layers
	FeedForward       int // width of the feed-forward part; the largest of all layers
	Experts           int // that a token uses; 0: not a mixture
	ExpertFeedForward int // width of one expert's part
	Inner             int // width of a recurrent block

	LargestTensor uint64 // the largest one of the blocks
	Encoder       bool   // nothing of a batch is kept: no KV cache
	Packs         bool   // a batch holds whole inputs, which are pooled in it
	BothWays      bool   // tokens look at what follows them too
	Hybrid        bool   // attention in some blocks and recurrence in others, with llama.cpp's cache for both
	OtherEngine   bool   // the fallback engine runs it; its cache of a block with a window holds no more than the window
}

// Layer is one block.
type Layer struct {
	WeightBytes uint64
	RepackBytes uint64 // of WeightBytes, in tensors that CPUs get a repacked copy of
	KVHeads     int    // 0: no cache in this block
	KeyLength   int    // elements of one head
	ValueLength int
	Window      int    // tokens that it sees; 0: all
	StateBytes  uint64 // of one sequence, whatever its length: recurrent blocks
}

// Blocks is the number of blocks. A model has one layer more, its output, in the sense of runner.Share.
func (l Layout) Blocks() int { return len(l.Layers) }

// WeightBytes is what all tensors take, each once.
func (l Layout) WeightBytes() (all uint64) {
	all = plus(l.InputBytes, l.OutputBytes)
	for _, layer := range l.Layers {
		all = plus(all, layer.WeightBytes)
	}
	return all
}

// Beside gives the sizes of the files that are loaded with the model, in bytes; 0 where there are none.
func (m *Model) Beside() (projector, adapters uint64) {
	if p := m.Projector(); p != "" {
		projector = fileSize(p)
	}
	for _, a := range m.Adapters() {
		adapters = plus(adapters, fileSize(a))
	}
	return projector, adapters
}

func fileSize(path string) uint64 {
	fi, err := os.Stat(path)
	if err != nil || fi.Size() < 0 {
		return 0 // the load will say that it is missing
	}
	return uint64(fi.Size())
}

// plus is the sum, or the largest number when that is too large: a hostile file's sizes must not wrap to small ones.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

// times is the product, bounded like plus.
func times(a, b uint64) uint64 {
	over, product := bits.Mul64(a, b)
	if over != 0 {
		return 1<<64 - 1
	}
	return product
}
