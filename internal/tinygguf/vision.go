package tinygguf

import "fmt"

// Sizes of the part that sees.
const (
	visionWidth  = 32
	visionHeads  = 2
	visionFFN    = 64
	visionLayers = 2
	imageSize    = 56 // pixels of a side
	patchSize    = 14
	patches      = imageSize / patchSize * (imageSize / patchSize)
	channels     = 3
)

// Projector is the part of a vision model that llama.cpp reads from a file of its own: CLIP's encoder and LLaVA's two-layer
// projector. It gives each image as 16 vectors of the decoders' width.
func Projector(seed uint64) []byte {
	f := newFile(seed, "clip")
	f.set("general.file_type", 0)
	f.set("clip.has_vision_encoder", true)
	f.set("clip.has_text_encoder", false)
	f.set("clip.has_llava_projector", true)
	f.set("clip.projector_type", "mlp")
	f.set("clip.use_gelu", false)
	f.set("clip.vision.image_size", imageSize)
	f.set("clip.vision.patch_size", patchSize)
	f.set("clip.vision.embedding_length", visionWidth)
	f.set("clip.vision.feed_forward_length", visionFFN)
	f.set("clip.vision.projection_dim", width)
	f.set("clip.vision.block_count", visionLayers)
	f.set("clip.vision.attention.head_count", visionHeads)
	f.set("clip.vision.attention.layer_norm_epsilon", 1e-5)
	f.set("clip.vision.image_mean", []float32{0.48, 0.46, 0.41})
	f.set("clip.vision.image_std", []float32{0.27, 0.26, 0.28})

	norm := func(name string) {
		f.same(name+".weight", 1, visionWidth)
		f.same(name+".bias", 0, visionWidth)
	}
	f.random("v.class_embd", 1, visionWidth)
	f.random("v.patch_embd.weight", 0.05, patchSize, patchSize, channels, visionWidth)
	f.half()
	f.random("v.position_embd.weight", 0.5, visionWidth, patches+1)
	norm("v.pre_ln")
	norm("v.post_ln")
	for i := range visionLayers {
		block := fmt.Sprintf("v.blk.%d.", i)
		for _, m := range []struct {
			name     string
			from, to int
		}{
			{"attn_q", visionWidth, visionWidth}, {"attn_k", visionWidth, visionWidth}, {"attn_v", visionWidth, visionWidth},
			{"attn_out", visionWidth, visionWidth}, {"ffn_up", visionWidth, visionFFN}, {"ffn_down", visionFFN, visionWidth},
		} {
			f.linear(block+m.name+".weight", m.from, m.to)
			f.random(block+m.name+".bias", 0.1, m.to)
		}
		norm(block + "ln1")
		norm(block + "ln2")
	}
	f.linear("mm.0.weight", visionWidth, width)
	f.random("mm.0.bias", 0.1, width)
	f.linear("mm.2.weight", width, width)
	f.random("mm.2.bias", 0.1, width)
	return f.bytes()
}

// Mistral3 is a model that sees, in Ollama's layout: one file, with the vision tensors inside. llama.cpp refuses it for
// having tensors that it does not know; the module's own runner reads it.
func Mistral3(seed uint64) []byte {
	const arch = "mistral3"
	f := newFile(seed, arch)
	vocab := newBPE()
	hyperparameters(f, arch, vocab, "gpt-2", chatML)
	f.set("tokenizer.ggml.add_bos_token", true)
	f.set(arch+".attention.key_length", headDim)
	f.set(arch+".attention.value_length", headDim)
	f.set(arch+".rope.dimension_count", headDim)
	f.set(arch+".spatial_merge_size", 2)
	f.set(arch+".vision.block_count", visionLayers)
	f.set(arch+".vision.embedding_length", visionWidth)
	f.set(arch+".vision.feed_forward_length", visionFFN)
	f.set(arch+".vision.attention.head_count", visionHeads)
	f.set(arch+".vision.attention.key_length", visionWidth/visionHeads)
	f.set(arch+".vision.attention.layer_norm_epsilon", 1e-5)
	f.set(arch+".vision.image_size", imageSize)
	f.set(arch+".vision.longest_edge", imageSize)
	f.set(arch+".vision.patch_size", patchSize)
	f.set(arch+".vision.num_channels", channels)
	f.set(arch+".vision.rope.freq_base", 10000.0)

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

	f.random("v.patch_conv.weight", 0.05, patchSize, patchSize, channels, visionWidth)
	f.half()
	f.same("v.encoder_norm.weight", 1, visionWidth)
	for i := range visionLayers {
		block := fmt.Sprintf("v.blk.%d.", i)
		f.same(block+"attn_norm.weight", 1, visionWidth)
		f.same(block+"ffn_norm.weight", 1, visionWidth)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			f.linear(block+name+".weight", visionWidth, visionWidth)
		}
		f.linear(block+"ffn_gate.weight", visionWidth, visionFFN)
		f.linear(block+"ffn_up.weight", visionWidth, visionFFN)
		f.linear(block+"ffn_down.weight", visionFFN, visionWidth)
	}
	f.same("mm.norm.weight", 1, visionWidth)
	f.linear("mm.patch_merger.merging_layer.weight", visionWidth*2*2, visionWidth)
	f.linear("mm.linear_1.weight", visionWidth, width)
	f.linear("mm.linear_2.weight", width, width)
	return f.bytes()
}
