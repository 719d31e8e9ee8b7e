package models

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/fs/ggml"
)

// maxBlocks is more than llama.cpp takes (LLAMA_MAX_LAYERS, 512). A file that claims more has a Layout without Layers.
const maxBlocks = 1024

// maxElements bounds each number that is multiplied later: heads, lengths, widths. No model comes near.
const maxElements = 1 << 24

// Bytes of one float, in which llama.cpp keeps the state of recurrent blocks, and of the padding of a tensor in a buffer
// (ggml-cpu's TENSOR_ALIGNMENT).
const (
	floatBytes   = 4
	tensorPadded = 32
)

// readLayout reads a Layout from a file's key-values and the tensors of all its shards. What it says about blocks follows
// llama.cpp/src of github.com/ollama/ollama v0.17.4: llama_model::load_hparams and create_memory (llama-model.cpp), and
// llama-hparams.cpp. Look there when the version in go.mod changes.
func readLayout(kv ggml.KV, tensors []*ggml.Tensor) Layout {
	r := layoutReader{kv: kv, arch: kv.Architecture()}
	l := Layout{
		Vocabulary:        r.vocabulary(tensors),
		Width:             r.number("embedding_length"),
		Experts:           r.number("expert_used_count"),
		ExpertFeedForward: r.number("expert_feed_forward_length"),
		Inner:             r.number("ssm.inner_size"),
		Encoder:           encoders[r.arch],
		BothWays:          !kv.Bool("attention.causal", true),
		OtherEngine:       otherEngine[r.arch] || r.number("vision.block_count") > 0,
	}
	const mean, cls = 1, 2 // llama.cpp's LLAMA_POOLING_TYPE_…: over all tokens, or the first; a decoder may pool the last one's instead
	pooling := kv.Uint("pooling_type")
	l.Packs = l.BothWays || pooling == mean || pooling == cls
	blocks := kv.BlockCount()
	if blocks > maxBlocks {
		blocks = 0
	}
	l.Layers = make([]Layer, blocks)
	r.weights(&l, tensors)
	r.attention(&l)
	r.recurrence(&l)
	if l.Encoder {
		for i := range l.Layers {
			l.Layers[i].KVHeads, l.Layers[i].StateBytes = 0, 0
		}
	}
	for i := range l.Layers {
		l.Heads = max(l.Heads, r.perBlock("attention.head_count", i, 0))
		l.FeedForward = max(l.FeedForward, r.perBlock("feed_forward_length", i, 0))
	}
	return l
}

// encoders have no memory in llama.cpp (create_memory gives nullptr).
var encoders = map[string]bool{
	"bert": true, "jina-bert-v2": true, "jina-bert-v3": true, "nomic-bert": true, "nomic-bert-moe": true, "neo-bert": true, "gemma-embedding": true,
}

// otherEngine are the architectures that llama.cpp has no name for (runner/engine/architectures.go) and the fallback engine has; and
// lfm2, for whose last norm llama.cpp of this version looks under a name that it does not know ("missing tensor 'output_norm'").
var otherEngine = map[string]bool{
	"deepseekocr": true, "glm4moelite": true, "glmocr": true, "gptoss": true, "lfm2": true, "mllama": true, "olmo3": true, "qwen25vl": true, "qwen35": true,
	"qwen35moe": true,
}

// layoutReader reads key-values of a file that may be hostile: what is not a sensible number is 0.
type layoutReader struct {
	kv   ggml.KV
	arch string
}

func bounded(n uint64) int {
	if n > maxElements {
		return 0
	}
	return int(n)
}

func (r layoutReader) has(key string) bool {
	_, ok := r.kv[r.arch+"."+key]
	return ok
}

func (r layoutReader) number(key string) int { return bounded(uint64(r.kv.Uint(key))) }

// perBlock is a number that may be a list with one for each block.
func (r layoutReader) perBlock(key string, block, absent int) int {
	if !r.has(key) {
		return absent
	}
	list := r.kv.UintOrArrayValueAsArray(key, uint32(absent))
	switch {
	case len(list) == 1:
		return bounded(uint64(list[0]))
	case block < len(list):
		return bounded(uint64(list[block]))
	}
	return absent
}

// vocabulary is the number of tokens; long lists are not kept, so it is what the matrix of the embeddings has rows of.
func (r layoutReader) vocabulary(tensors []*ggml.Tensor) int {
	for _, t := range tensors {
		if t.Name == tokenEmbeddings && len(t.Shape) >= 2 {
			return bounded(t.Shape[1])
		}
	}
	return r.number("vocab_size")
}

const tokenEmbeddings = "token_embd.weight"

// kQuants is the first number of ggml's types with blocks of 256.
const kQuants = 10

// weights sums up tensors by where they go. llama.cpp takes them by name (llama-arch.cpp: LLM_TENSOR_INFOS).
func (r layoutReader) weights(l *Layout, tensors []*ggml.Tensor) {
	l.Tied = true
	for _, t := range tensors {
		size := tensorBytes(t)
		name, _, _ := strings.Cut(t.Name, ".")
		switch block, ok := blockOf(t.Name); {
		case ok && block < len(l.Layers):
			layer := &l.Layers[block]
			layer.WeightBytes = plus(layer.WeightBytes, size)
			l.LargestTensor = max(l.LargestTensor, size)
			if repacks(t) {
				layer.RepackBytes = plus(layer.RepackBytes, size)
			}
		case name == "token_embd" || name == "position_embd" || name == "token_types" || name == "token_embd_norm" && r.arch != "lfm2" && r.arch != "lfm2moe":
			l.InputBytes = plus(l.InputBytes, size)
			if t.Name == tokenEmbeddings {
				l.TiedBytes, l.TiedRepacks = size, repacks(t)
			}
		case name == "per_layer_token_embd" && t.Kind >= kQuants: // gemma3n; CUDA cannot pick rows of these
			l.InputBytes = plus(l.InputBytes, size)
		default:
			l.OutputBytes = plus(l.OutputBytes, size)
			if t.Name == "output.weight" {
				l.Tied = false
			}
		}
	}
	if l.Encoder { // it has no output at all
		l.Tied = false
	}
	if !l.Tied {
		l.TiedBytes, l.TiedRepacks = 0, false
	}
}

// blockOf reads the number in a name such as blk.17.attn_q.weight.
func blockOf(name string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, false
	}
	digits, _, ok := strings.Cut(rest, ".")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// tensorBytes is what a tensor takes in a buffer.
func tensorBytes(t *ggml.Tensor) uint64 {
	kind, ok := tensorKinds[t.Kind]
	if !ok {
		return 0
	}
	const most = 1 << 56 // no file has so much; checkHeader refuses it
	elements := uint64(1)
	for _, d := range t.Shape {
		if d == 0 {
			return 0
		}
		if elements > most/d {
			return most
		}
		elements *= d
	}
	return (elements/kind.elements*kind.bytes + tensorPadded - 1) / tensorPadded * tensorPadded
}

// repacks says whether ggml on a CPU keeps a matrix in another order (ggml-cpu/repack.cpp, ggml_repack_get_optimal_repack_type):
// 4-bit ones (Q4_0, Q4_K, IQ4_NL, and Q2_K with AVX-512) of eight rows or a multiple that are multiplied with. On CPUs without AVX2 or
// the like it says too much.
func repacks(t *ggml.Tensor) bool {
	const q4_0, q2_K, q4_K, iq4_NL = 2, 10, 12, 20
	return slices.Contains([]uint32{q4_0, q2_K, q4_K, iq4_NL}, t.Kind) && len(t.Shape) >= 2 && t.Shape[1]%8 == 0 && strings.HasSuffix(t.Name, ".weight")
}

// attention says what is cached of a token in each block.
func (r layoutReader) attention(l *Layout) {
	key, value := r.headLengths(l.Width)
	window, inWindow := r.windows(len(l.Layers))
	for i := range l.Layers {
		layer := &l.Layers[i]
		layer.KVHeads = r.perBlock("attention.head_count_kv", i, r.perBlock("attention.head_count", i, 0))
		layer.KeyLength, layer.ValueLength = key, value
		if window > 0 && inWindow(i) {
			layer.Window = window
		}
		if i >= r.cachedFrom(len(l.Layers)) {
			layer.KVHeads = 0
		}
	}
}

// headLengths of keys and values. Models with latent attention (MLA, deepseek2) give their compressed length here, with one head
// for all; the keys that end in _mla are of the computation, not of the cache.
func (r layoutReader) headLengths(width int) (key, value int) {
	if heads := r.perBlock("attention.head_count", 0, 0); heads > 0 {
		key, value = width/heads, width/heads
	} else if r.arch != "plamo2" {
		return 0, 0
	}
	if r.has("attention.key_length") {
		key = r.number("attention.key_length")
	}
	if r.has("attention.value_length") {
		value = r.number("attention.value_length")
	}
	return key, value
}

// cachedFrom is the first block that has no cache of its own: gemma3n's later blocks use those of earlier ones, and what predicts
// several tokens ahead is not computed.
func (r layoutReader) cachedFrom(blocks int) int {
	switch r.arch {
	case "gemma3n":
		return 20
	case "glm4moe", "bailingmoe2":
		return blocks - min(blocks, r.number("nextn_predict_layers"))
	}
	return blocks
}

// windows gives the sliding window and which blocks have it: of every n all but the last, or all but the first. An architecture that
// is not here has none in llama.cpp, whatever its file says (mistral, phi3, qwen2).
func (r layoutReader) windows(blocks int) (window int, in func(block int) bool) {
	window = r.number("attention.sliding_window")
	every := 0
	first := false
	switch r.arch {
	case "llama4":
		every = 4
		if !r.has("attention.sliding_window") || window > 0 {
			window = 8192 // chunks, whatever the file says
		}
	case "gemma2":
		every = 2
		if !r.has("attention.sliding_window") {
			window = 4096
		}
	case "exaone4":
		if blocks == 64 {
			every = 4
			if !r.has("attention.sliding_window") {
				window = 4096
			}
		}
	case "smallthinker":
		every, first = 4, true
		if window > 0 {
			window = 4096
		}
	case "gpt-oss", "gptoss":
		every = 2
	case "afmoe", "cohere2", "olmo2":
		every = 4
	case "gemma3", "gemma-embedding":
		every = 6
	case "gemma3n":
		every = 5
	}
	if every == 0 {
		return r.listedWindows(window)
	}
	return window, func(block int) bool {
		if first {
			return block%every != 0
		}
		return block%every < every-1
	}
}

// listedWindows is for models of the fallback engine, whose files list which blocks have a window.
func (r layoutReader) listedWindows(window int) (int, func(int) bool) {
	if !otherEngine[r.arch] {
		return 0, nil
	}
	list := r.kv.Bools("attention.sliding_window_pattern")
	return window, func(block int) bool { return block < len(list) && list[block] }
}

// recurrence finds the blocks that keep a state instead of, or beside, a cache.
func (r layoutReader) recurrence(l *Layout) {
	all, hybrid := r.family()
	if !all && !hybrid {
		return
	}
	l.Hybrid = hybrid && !l.OtherEngine
	state := r.stateBytes(l.Width)
	for i := range l.Layers {
		layer := &l.Layers[i]
		switch {
		case all:
			layer.KVHeads, layer.StateBytes = 0, state
		case r.arch == "falcon-h1": // both in each
			layer.StateBytes = state
		case r.arch == "qwen3next":
			if (i+1)%4 != 0 {
				layer.KVHeads, layer.StateBytes = 0, state
			}
		case strings.HasPrefix(r.arch, "nemotron_h"): // some blocks are feed-forward only
			if r.perBlock("feed_forward_length", i, 0) != 0 {
				layer.KVHeads = 0
			} else if layer.KVHeads == 0 {
				layer.StateBytes = state
			}
		default:
			if layer.KVHeads == 0 {
				layer.StateBytes = state
			}
		}
	}
}

// family says whether all blocks are recurrent, or some (llm_arch_is_recurrent, llm_arch_is_hybrid).
func (r layoutReader) family() (recurrent, hybrid bool) {
	switch r.arch {
	case "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7":
		return true, false
	case "jamba", "falcon-h1", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe", "qwen3next":
		return false, true
	}
	return false, false
}

// stateBytes of one block and sequence (llama_hparams::n_embd_r and n_embd_s).
func (r layoutReader) stateBytes(width int) uint64 {
	if head := r.number("wkv.head_size"); head > 0 {
		shifts := 2
		if r.has("token_shift_count") {
			shifts = r.number("token_shift_count")
		}
		return uint64(width) * uint64(shifts+head) * floatBytes
	}
	if n := r.number("shortconv.l_cache"); n > 0 {
		return uint64(width) * uint64(n-1) * floatBytes
	}
	inner, state := uint64(r.number("ssm.inner_size")), uint64(r.number("ssm.state_size"))
	rolling := uint64(max(r.number("ssm.conv_kernel"), 1) - 1)
	return times(floatBytes, plus(times(rolling, plus(inner, times(2*uint64(r.number("ssm.group_count")), state))), times(state, inner)))
}
