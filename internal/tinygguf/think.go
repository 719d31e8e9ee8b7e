package tinygguf

import (
	"fmt"
	"math"
)

// thinkTemplate is Qwen3's way: the tags of thoughts, and none where enable_thinking is false.
const thinkTemplate = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}`

// ThinkScript is what the model of Thinking says to any prompt that ends as its template ends it.
const (
	ThinkScript   = "Let me think it"
	ThinkAnswer   = "Yes"
	thinkStrength = 12
)

// Thinking is a decoder that always thinks ThinkScript and then answers ThinkAnswer. Its weights are random but for the
// last matrix, which holds for each token of the script what comes next; attention is too weak to change it. So tests can
// see a thought begin, end and be told from the answer, by the real engine.
func Thinking(seed uint64) []byte {
	const arch = "qwen2"
	f := newFile(seed, arch)
	vocab := newBPE()
	hyperparameters(f, arch, vocab, "qwen2", thinkTemplate)
	f.set("tokenizer.ggml.add_bos_token", false)
	embeddings := f.random("token_embd.weight", 1, width, len(vocab.tokens))
	const weak = 0.001
	for i := range layers {
		block := fmt.Sprintf("blk.%d.", i)
		f.same(block+"attn_norm.weight", 1, width)
		f.linear(block+"attn_q.weight", width, width)
		f.linear(block+"attn_k.weight", width, kvHeads*headDim)
		f.linear(block+"attn_v.weight", width, kvHeads*headDim)
		f.random(block+"attn_output.weight", weak, width, width)
		f.random(block+"attn_q.bias", 0.1, width)
		f.random(block+"attn_k.bias", 0.1, kvHeads*headDim)
		f.random(block+"attn_v.bias", 0.1, kvHeads*headDim)
		f.same(block+"ffn_norm.weight", 1, width)
		f.linear(block+"ffn_gate.weight", width, ffn)
		f.linear(block+"ffn_up.weight", width, ffn)
		f.random(block+"ffn_down.weight", weak, ffn, width)
	}
	f.same("output_norm.weight", 1, width)
	output := f.random("output.weight", 0.01, width, len(vocab.tokens))
	script := []int{
		vocab.id("\n"), tokenThink, vocab.id("Let"), vocab.id(" me"), vocab.id(" think"), vocab.id(" it"), tokenThinkEnd,
		vocab.id("\n\n"), vocab.id("Yes"), tokenMsgEnd,
	}
	for i, now := range script[:len(script)-1] {
		next := script[i+1]
		for k := range width {
			output[next*width+k] = embeddings[now*width+k] * thinkStrength / float32(math.Sqrt(width))
		}
	}
	return f.bytes()
}
