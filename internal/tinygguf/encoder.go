package tinygguf

import "fmt"

// Pooling types of llama.cpp.
const (
	poolMean = 1
	poolRank = 4
)

const encoderContext = 256

// BERT is an encoder that makes one vector of a text.
func BERT(seed uint64) []byte { return encoder(seed, poolMean).bytes() }

// BERTBeside is BERT of the same seed with a tensor more, which llama.cpp refuses and the module's own runner does not mind.
func BERTBeside(seed uint64) []byte {
	f := encoder(seed, poolMean)
	f.linear("dense.0.weight", width, width)
	return f.bytes()
}

// Reranker is an encoder that scores a pair of texts.
func Reranker(seed uint64) []byte {
	f := encoder(seed, poolRank)
	f.linear("cls.weight", width, width)
	f.random("cls.bias", 0.1, width)
	f.linear("cls.output.weight", width, 1)
	f.random("cls.output.bias", 0.1, 1)
	return f.bytes()
}

func encoder(seed uint64, pooling int) *file {
	const arch = "bert"
	f := newFile(seed, arch)
	tokens, types := wordPiece()
	f.set("tokenizer.ggml.model", arch)
	f.set("tokenizer.ggml.pre", "default")
	f.set("tokenizer.ggml.tokens", tokens)
	f.set("tokenizer.ggml.token_type", types)
	f.set("tokenizer.ggml.token_type_count", 2)
	f.set("tokenizer.ggml.bos_token_id", wordCLS)
	f.set("tokenizer.ggml.cls_token_id", wordCLS)
	f.set("tokenizer.ggml.eos_token_id", wordSep)
	f.set("tokenizer.ggml.seperator_token_id", wordSep) // sic
	f.set("tokenizer.ggml.padding_token_id", wordPad)
	f.set("tokenizer.ggml.unknown_token_id", wordUnk)
	f.set("tokenizer.ggml.mask_token_id", wordMask)
	f.set("bert.context_length", encoderContext)
	f.set("bert.embedding_length", width)
	f.set("bert.block_count", layers)
	f.set("bert.feed_forward_length", ffn)
	f.set("bert.attention.head_count", heads)
	f.set("bert.attention.layer_norm_epsilon", 1e-12)
	f.set("bert.attention.causal", false)
	f.set("bert.pooling_type", pooling)

	f.random("token_embd.weight", 1, width, len(tokens))
	f.random("token_types.weight", 0.1, width, 2)
	f.random("position_embd.weight", 0.3, width, encoderContext)
	norm := func(name string) {
		f.same(name+".weight", 1, width)
		f.same(name+".bias", 0, width)
	}
	norm("token_embd_norm")
	for i := range layers {
		block := fmt.Sprintf("blk.%d.", i)
		for _, m := range []struct {
			name     string
			from, to int
		}{
			{"attn_q", width, width}, {"attn_k", width, width}, {"attn_v", width, width}, {"attn_output", width, width},
			{"ffn_up", width, ffn}, {"ffn_down", ffn, width},
		} {
			f.linear(block+m.name+".weight", m.from, m.to)
			f.random(block+m.name+".bias", 0.1, m.to)
		}
		norm(block + "attn_output_norm")
		norm(block + "layer_output_norm")
	}
	return f
}
