package tinygguf

import "fmt"

// Rank and strength of the adapter. It is so strong that greedy answers change.
const (
	loraRank  = 4
	loraAlpha = 64.0
)

// LoRA is an adapter for Llama of the same seed or any other: it changes what the attention and the feed-forward network
// write, strongly.
func LoRA(seed uint64) []byte { return lora(seed, "llama") }

// WrongLoRA is an adapter for another architecture.
func WrongLoRA(seed uint64) []byte { return lora(seed, "qwen2") }

func lora(seed uint64, arch string) []byte {
	f := newFile(seed, arch)
	f.set("general.type", "adapter")
	f.set("adapter.type", "lora")
	f.set("adapter.lora.alpha", loraAlpha)
	for i := range layers {
		for _, m := range []struct {
			name     string
			from, to int
		}{{"attn_output", width, width}, {"ffn_down", ffn, width}} {
			name := fmt.Sprintf("blk.%d.%s.weight", i, m.name)
			f.linear(name+".lora_a", m.from, loraRank)
			f.linear(name+".lora_b", loraRank, m.to)
		}
	}
	return f.bytes()
}
