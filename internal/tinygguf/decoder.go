package tinygguf

import "fmt"

// Sizes of every decoder here.
const (
	width   = 64 // numbers of a token's vector
	heads   = 4
	kvHeads = 2
	headDim = width / heads
	ffn     = 96
	layers  = 2
	context = 2048
)

// chatML is the template of the decoders that have no other.
const chatML = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
`

// Llama is a decoder of the llama architecture. It begins texts with a BOS token.
func Llama(seed uint64) []byte {
	f, _ := decoder(seed, "llama", "llama-bpe")
	f.set("tokenizer.ggml.add_bos_token", true)
	f.set("llama.rope.dimension_count", headDim)
	return f.bytes()
}

// Qwen2 is a decoder of the qwen2 architecture. It has biases in its attention, and no BOS token.
func Qwen2(seed uint64) []byte {
	f, _ := decoder(seed, "qwen2", "qwen2")
	f.set("tokenizer.ggml.add_bos_token", false)
	for i := range layers {
		f.random(fmt.Sprintf("blk.%d.attn_q.bias", i), 0.1, width)
		f.random(fmt.Sprintf("blk.%d.attn_k.bias", i), 0.1, kvHeads*headDim)
		f.random(fmt.Sprintf("blk.%d.attn_v.bias", i), 0.1, kvHeads*headDim)
	}
	return f.bytes()
}

// Olmo3 is a decoder of an architecture that llama.cpp at this version does not know, while the module's own runner does.
func Olmo3(seed uint64) []byte {
	const arch = "olmo3"
	f := newFile(seed, arch)
	vocab := newBPE()
	hyperparameters(f, arch, vocab, "gpt-2", chatML)
	f.set("tokenizer.ggml.add_bos_token", false)
	f.set("olmo3.attention.sliding_window", 64)
	f.set("olmo3.attention.sliding_window_pattern", []bool{true, false})
	f.random("token_embd.weight", 1, width, len(vocab.tokens))
	for i := range layers {
		block := fmt.Sprintf("blk.%d.", i)
		attention(f, block)
		feedForward(f, block)
		f.same(block+"attn_q_norm.weight", 1, width)
		f.same(block+"attn_k_norm.weight", 1, kvHeads*headDim)
		f.same(block+"post_attention_norm.weight", 1, width)
		f.same(block+"post_ffw_norm.weight", 1, width)
	}
	f.same("output_norm.weight", 1, width)
	f.linear("output.weight", width, len(vocab.tokens))
	return f.bytes()
}

// decoder writes what llama and qwen2 have in common.
func decoder(seed uint64, arch, pre string) (*file, *bpe) {
	f := newFile(seed, arch)
	vocab := newBPE()
	hyperparameters(f, arch, vocab, pre, chatML)
	f.random("token_embd.weight", 1, width, len(vocab.tokens))
	for i := range layers {
		block := fmt.Sprintf("blk.%d.", i)
		f.same(block+"attn_norm.weight", 1, width)
		attention(f, block)
		f.same(block+"ffn_norm.weight", 1, width)
		feedForward(f, block)
	}
	f.same("output_norm.weight", 1, width)
	f.linear("output.weight", width, len(vocab.tokens))
	return f, vocab
}

func hyperparameters(f *file, arch string, vocab *bpe, pre, template string) {
	vocab.write(f, pre)
	f.set("tokenizer.ggml.eos_token_id", tokenMsgEnd)
	f.set("tokenizer.chat_template", template)
	f.set(arch+".vocab_size", len(vocab.tokens))
	f.set(arch+".context_length", context)
	f.set(arch+".embedding_length", width)
	f.set(arch+".block_count", layers)
	f.set(arch+".feed_forward_length", ffn)
	f.set(arch+".attention.head_count", heads)
	f.set(arch+".attention.head_count_kv", kvHeads)
	f.set(arch+".attention.layer_norm_rms_epsilon", 1e-5)
	f.set(arch+".rope.freq_base", 10000.0)
}

// attention and feedForward are what nearly all decoders have, under the same names.
func attention(f *file, block string) {
	f.linear(block+"attn_q.weight", width, width)
	f.linear(block+"attn_k.weight", width, kvHeads*headDim)
	f.linear(block+"attn_v.weight", width, kvHeads*headDim)
	f.linear(block+"attn_output.weight", width, width)
}

func feedForward(f *file, block string) {
	f.linear(block+"ffn_gate.weight", width, ffn)
	f.linear(block+"ffn_up.weight", width, ffn)
	f.linear(block+"ffn_down.weight", ffn, width)
}
