package models

// Layout is what a model's file says about the memory that the model takes once it is loaded, in bytes and in numbers of elements.
// Zero is not known.
type Layout struct {
	InputBytes  uint64  // token embeddings and whatever stands in front of the first block; never on a GPU
	Layers      []Layer // blocks, in order
	OutputBytes uint64  // what stands behind the last block; counts as one layer of its own
	Tied        bool    // the output uses the matrix of the token embeddings: a copy of it (InputBytes) goes where the output goes

	Vocabulary  int // tokens
	Width       int // of the embedding
	Heads       int // of attention; the largest number of all layers
	FeedForward int // width of the feed-forward part; the largest of all layers
	Experts     int // that a token uses; 0: not a mixture
}

// Layer is one block.
type Layer struct {
	WeightBytes uint64
	KVHeads     int // 0: no attention in this block
	KeyLength   int // elements of one head
	ValueLength int
	Window      int    // tokens that it sees; 0: all
	StateBytes  uint64 // of one sequence, whatever its length: recurrent blocks
}
