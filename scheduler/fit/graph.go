package fit

import "sluice/models"

// Ways to count the buffers of a graph. ggml's allocator lays tensors over each other as soon as one is not needed any more, so a
// buffer is as large as the worst moment of the graph: either the scores of an attention, or the parts of a feed-forward, or
// the row of logits of every token of a batch, which llama.cpp reserves in case all are wanted (graph_reserve in llama-context.cpp).
const (
	float = 4 // bytes of a number of the graph
	half  = 2 // of a mask's for flash attention, made beside the other

	// pipelined is how often inputs are kept where several GPUs compute in turn (GGML_SCHED_MAX_COPIES, ggml-backend.cpp).
	pipelined = 4
	// copied is how many matrices of a block in main memory lie on a GPU at the same time while it computes a long batch with them
	// (op_offload, ggml-backend.cpp). Ollama counts three too (GraphSize in fs/ggml/ggml.go, of mixtures).
	copied = 3
	// gated is how many rows of the feed-forward's width there are at once: gate, up, and their product. Encoders, and others that
	// have no gate, have fewer.
	gated = 3
	// recurrent counts the rows of an inner width, and whole states, that a recurrent block works on. A guess.
	recurrentRows, recurrentStates = 6, 3
)

// graph are bytes of the moments of one graph.
type graph struct {
	inputs float64 // masks and positions, there from the beginning
	masks  float64 // of inputs
	blocks float64 // the worst moment within a block
	output float64 // logits
	rows   float64 // what goes from block to block
	logits float64 // the rows that are handed out, in main memory
}

func graphOf(l *models.Layout, d dims) graph {
	t := d.tokens * float
	width, heads := float64(l.Width), float64(l.Heads)
	seen, answers := d.cells, d.tokens
	switch {
	case l.Encoder:
		seen = d.tokens
	case l.OtherEngine: // one cache for all sequences, and logits of the last token of each
		seen, answers = d.cells*d.sequences, d.sequences
	case l.Hybrid: // see costs.cacheOf
		seen = d.cells * d.sequences
	}
	var key, value, kvHeads, state float64
	windows := 0.0
	for i := range l.Layers {
		b := &l.Layers[i]
		key, value, kvHeads = max(key, float64(b.KeyLength)), max(value, float64(b.ValueLength)), max(kvHeads, float64(b.KVHeads))
		state = max(state, float64(b.StateBytes))
		if b.Window > 0 {
			windows = 1 // a second mask (llama-kv-cache-iswa.cpp)
		}
	}
	g := graph{rows: t * width}
	mask := t * seen
	g.masks = mask
	if d.flash {
		g.masks += d.tokens * seen * half
	}
	g.masks *= 1 + windows
	g.inputs = g.masks

	scores := 0.0
	if !d.flash {
		scores = t * seen * heads
	}
	queries := t * heads * (key + value)
	if l.Encoder { // keys and values go into no cache
		queries *= 2
	}
	attention := scores + queries + g.rows
	rows := gated * float64(l.FeedForward)
	if l.Encoder {
		rows = float64(l.FeedForward)
	}
	forward := t*rows + 2*g.rows
	if l.Experts > 0 {
		wide := float64(l.ExpertFeedForward)
		if wide == 0 {
			wide = float64(l.FeedForward)
		}
		forward = max(forward, t*float64(l.Experts)*max(gated*wide, wide+2*width)+2*g.rows)
	}
	recurrent := 0.0
	if state > 0 {
		recurrent = t*recurrentRows*float64(l.Inner) + recurrentStates*state*d.sequences + g.rows
	}
	g.blocks = max(attention, forward, recurrent)
	g.logits = d.sequences * (float64(l.Vocabulary) + width) * float
	if !l.Encoder {
		g.output = answers * float * (float64(l.Vocabulary) + width)
	}
	return g
}

// whole is the buffer of a device that has the blocks and the output. With flash attention the masks leave gaps that the logits may not
// fit into: measured, the buffer is then 0 to 19 % larger than the logits, and never by more than the masks (testdata/measured.tsv).
func (g graph) whole(d dims) float64 {
	behind := g.output
	if d.flash {
		behind += min(g.masks/2, g.output/10)
	}
	return max(behind, g.blocks+g.inputs)
}
