package models

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/internal/tinygguf"
)

// layoutOf reads the layout of a file's bytes. A panic fails the test, though readFacts would catch it.
func layoutOf(t *testing.T, data []byte) Layout {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := decode(f, keepArray)
	if err != nil {
		t.Fatal(err)
	}
	return readLayout(g.KV(), g.Tensors().Items())
}

// written makes a file of key-values and tensors of 32-bit floats by their shapes.
func written(t *testing.T, kv ggml.KV, shapes map[string][]uint64) []byte {
	t.Helper()
	var tensors []*ggml.Tensor
	for name, shape := range shapes {
		n := uint64(4)
		for _, d := range shape {
			n *= d
		}
		tensors = append(tensors, &ggml.Tensor{Name: name, Shape: shape, WriterTo: bytes.NewBuffer(make([]byte, n))})
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "written.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ggml.WriteGGUF(f, kv, tensors); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLayoutOfRealModels(t *testing.T) {
	for name, test := range map[string]struct {
		file                   string
		blocks, kvHeads, width int
		vocabulary             int
		weights                uint64 // what llama.cpp logged as model buffers, MiB
	}{
		"qwen2.5-coder 0.5B": {qwenFile, 24, 2, 896, 151936, 463},
		"smollm2 135M":       {smollmFile, 30, 3, 576, 49152, 92},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.Open(realFile(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			defer data.Close()
			g, err := decode(data, keepArray)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := readFacts(g)
			if err != nil {
				t.Fatal(err)
			}
			l := facts.Layout
			if l.Blocks() != test.blocks || l.Width != test.width || l.Vocabulary != test.vocabulary || l.Layers[0].KVHeads != test.kvHeads || l.Layers[0].KeyLength != 64 {
				t.Errorf("%+v", l)
			}
			if got := l.WeightBytes() >> 20; got != test.weights && got+1 != test.weights {
				t.Errorf("weights of %d MiB, llama.cpp has %d", got, test.weights)
			}
		})
	}
}

func TestLayoutOfTinyModels(t *testing.T) {
	t.Run("llama", func(t *testing.T) {
		l := layoutOf(t, tinygguf.Llama(1))
		const block = 2*64*4 + 2*64*64*4 + 2*64*32*4 + 3*64*96*4
		if l.Blocks() != 2 || l.Layers[1].WeightBytes != block || l.Layers[0].KVHeads != 2 || l.Layers[0].KeyLength != 16 || l.Tied || l.Encoder || l.OtherEngine {
			t.Errorf("%+v", l)
		}
		if l.InputBytes != uint64(l.Vocabulary*64*4) || l.OutputBytes != l.InputBytes+64*4 || l.LargestTensor != 64*96*4 {
			t.Errorf("%+v", l)
		}
	})
	t.Run("bert", func(t *testing.T) {
		l := layoutOf(t, tinygguf.BERT(1))
		if !l.Encoder || !l.Packs || !l.BothWays || l.Tied || l.Layers[0].KVHeads != 0 {
			t.Errorf("%+v", l)
		}
	})
	t.Run("olmo3", func(t *testing.T) {
		l := layoutOf(t, tinygguf.Olmo3(1))
		if !l.OtherEngine || l.Layers[0].Window != 64 || l.Layers[1].Window != 0 {
			t.Errorf("%+v", l)
		}
	})
	t.Run("mistral3 with eyes", func(t *testing.T) {
		if l := layoutOf(t, tinygguf.Mistral3(1)); !l.OtherEngine {
			t.Errorf("%+v", l)
		}
	})
}

// keys makes the key-values of an architecture.
func keys(arch string, blocks uint32, more ggml.KV) ggml.KV {
	kv := ggml.KV{"general.architecture": arch}
	set := func(key string, v any) { kv[arch+"."+key] = v }
	set("block_count", blocks)
	set("embedding_length", uint32(512))
	set("attention.head_count", uint32(8))
	set("attention.head_count_kv", uint32(2))
	for k, v := range more {
		set(k, v)
	}
	return kv
}

// What llama.cpp's load_hparams and create_memory do for each architecture, read there.
func TestLayoutOfArchitectures(t *testing.T) {
	perBlock := func(l Layout, of func(Layer) any) string {
		var s []string
		for _, b := range l.Layers {
			s = append(s, fmt.Sprint(of(b)))
		}
		return strings.Join(s, " ")
	}
	window := func(b Layer) any { return b.Window }
	heads := func(b Layer) any { return b.KVHeads }
	state := func(b Layer) any { return b.StateBytes }
	ssm := ggml.KV{"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(16), "ssm.state_size": uint32(8), "ssm.group_count": uint32(1)}
	const ssmBytes = 4 * (3*(16+2*8) + 8*16)
	with := func(m ggml.KV, more ggml.KV) ggml.KV {
		out := ggml.KV{}
		for _, kv := range []ggml.KV{m, more} {
			for k, v := range kv {
				out[k] = v
			}
		}
		return out
	}
	w := ggml.KV{"attention.sliding_window": uint32(100)}
	for name, test := range map[string]struct {
		kv   ggml.KV
		of   func(Layer) any
		want string
	}{
		"gemma3: five of six":               {keys("gemma3", 7, w), window, "100 100 100 100 100 0 100"},
		"gemma3 without one":                {keys("gemma3", 3, nil), window, "0 0 0"},
		"gemma2: every other, by default":   {keys("gemma2", 3, nil), window, "4096 0 4096"},
		"gemma3n: four of five":             {keys("gemma3n", 6, w), window, "100 100 100 100 0 100"},
		"gpt-oss: every other":              {keys("gpt-oss", 4, w), window, "100 0 100 0"},
		"cohere2: three of four":            {keys("cohere2", 5, w), window, "100 100 100 0 100"},
		"llama4: chunks of 8192":            {keys("llama4", 4, nil), window, "8192 8192 8192 0"},
		"llama4 without":                    {keys("llama4", 4, ggml.KV{"attention.sliding_window": uint32(0)}), window, "0 0 0 0"},
		"smallthinker: all but the first":   {keys("smallthinker", 5, w), window, "0 4096 4096 4096 0"},
		"phi3 and mistral: none":            {keys("phi3", 2, w), window, "0 0"},
		"heads per block":                   {keys("llama", 3, ggml.KV{"attention.head_count_kv": []uint32{4, 0, 1}}), heads, "4 0 1"},
		"a list that is too short":          {keys("llama", 3, ggml.KV{"attention.head_count_kv": []uint32{4, 3}}), heads, "4 3 8"},
		"no heads for keys: as for queries": {ggml.KV{"general.architecture": "llama", "llama.block_count": uint32(1), "llama.attention.head_count": uint32(8)}, heads, "8"},
		"glm4moe: not what looks ahead":     {keys("glm4moe", 3, ggml.KV{"nextn_predict_layers": uint32(1)}), heads, "2 2 0"},
		"latent attention, as converted": {
			keys("deepseek2", 1, ggml.KV{"attention.head_count_kv": uint32(1), "attention.key_length": uint32(576), "attention.value_length": uint32(512), "attention.key_length_mla": uint32(192)}),
			func(b Layer) any { return []int{b.KVHeads, b.KeyLength, b.ValueLength} }, "[1 576 512]",
		},
		"mamba: a state in each":          {keys("mamba", 2, ssm), state, fmt.Sprintf("%d %d", ssmBytes, ssmBytes)},
		"mamba: no cache":                 {keys("mamba", 2, ssm), heads, "0 0"},
		"jamba: where there are no heads": {keys("jamba", 3, with(ssm, ggml.KV{"attention.head_count_kv": []uint32{0, 2, 0}})), state, fmt.Sprintf("%d 0 %d", ssmBytes, ssmBytes)},
		"falcon-h1: beside the cache":     {keys("falcon-h1", 1, ssm), func(b Layer) any { return []uint64{uint64(b.KVHeads), b.StateBytes} }, fmt.Sprintf("[2 %d]", ssmBytes)},
		"qwen3next: three of four":        {keys("qwen3next", 4, ssm), heads, "0 0 0 2"},
		"nemotron_h: or neither": {
			keys("nemotron_h", 3, with(ssm, ggml.KV{"attention.head_count_kv": []uint32{0, 2, 0}, "feed_forward_length": []uint32{0, 0, 99}})), state, fmt.Sprintf("%d 0 0", ssmBytes),
		},
		"lfm2: a short convolution": {keys("lfm2", 2, ggml.KV{"attention.head_count_kv": []uint32{0, 2}, "shortconv.l_cache": uint32(3)}), state, fmt.Sprintf("%d 0", 512*2*4)},
		"rwkv7":                     {keys("rwkv7", 1, ggml.KV{"wkv.head_size": uint32(64)}), state, fmt.Sprint(512 * (2 + 64) * 4)},
		"an encoder has no cache":   {keys("nomic-bert", 1, nil), heads, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := perBlock(layoutOf(t, written(t, test.kv, nil)), test.of); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestWhereTensorsGo(t *testing.T) {
	shapes := map[string][]uint64{
		"token_embd.weight": {8, 100}, "token_embd_norm.weight": {8}, "blk.0.attn_q.weight": {8, 8}, "blk.1.ffn_up.weight": {8, 16}, "blk.1.ffn_up.bias": {16},
		"blk.7.attn_q.weight": {8, 8}, "blk.x.attn_q.weight": {8}, "output_norm.weight": {8},
	}
	l := layoutOf(t, written(t, keys("llama", 2, nil), shapes))
	want := Layout{
		InputBytes: 3200 + 32, OutputBytes: 256 + 32 + 32, Tied: true, TiedBytes: 3200, Vocabulary: 100, Width: 512, Heads: 8, LargestTensor: 512,
		Layers: []Layer{{WeightBytes: 256, KVHeads: 2, KeyLength: 64, ValueLength: 64}, {WeightBytes: 512 + 64, KVHeads: 2, KeyLength: 64, ValueLength: 64}},
	}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("%+v\nwant %+v", l, want)
	}
	shapes["output.weight"] = []uint64{8, 100}
	if l := layoutOf(t, written(t, keys("llama", 2, nil), shapes)); l.Tied || l.TiedBytes != 0 || l.OutputBytes != want.OutputBytes+3200 {
		t.Errorf("%+v", l)
	}
}

func TestHostileLayouts(t *testing.T) {
	huge := uint32(1<<32 - 1)
	for name, kv := range map[string]ggml.KV{
		"more blocks than there are": keys("llama", huge, nil),
		"huge numbers": keys("jamba", 2, ggml.KV{
			"embedding_length": huge, "attention.head_count": huge, "attention.head_count_kv": huge, "attention.key_length": huge, "ssm.inner_size": uint32(1 << 24),
			"ssm.state_size": uint32(1 << 24), "ssm.group_count": uint32(1 << 24), "ssm.conv_kernel": uint32(1 << 24), "wkv.head_size": huge, "feed_forward_length": huge,
		}),
		"wrong types":    keys("llama", 2, ggml.KV{"attention.head_count": "8", "attention.head_count_kv": []string{"2"}, "attention.sliding_window": float32(1), "embedding_length": true}),
		"empty lists":    keys("llama", 2, ggml.KV{"attention.head_count": []uint32{}, "attention.head_count_kv": []int32{}}),
		"negative lists": keys("llama", 2, ggml.KV{"attention.head_count_kv": []int32{-1, -2}}),
		"no heads":       keys("llama", 2, ggml.KV{"attention.head_count": uint32(0)}),
		"long lists":     keys("llama", 2, ggml.KV{"attention.head_count_kv": make([]uint32, 5000)}),
	} {
		t.Run(name, func(t *testing.T) {
			l := layoutOf(t, written(t, kv, map[string][]uint64{"blk.4294967296.a.weight": {8}, "blk.-1.a.weight": {8}, "token_embd.weight": {8}}))
			if len(l.Layers) > maxBlocks || l.Heads < 0 || l.WeightBytes() != 96 {
				t.Errorf("%+v", l)
			}
			for _, b := range l.Layers {
				if b.KVHeads < 0 || b.KVHeads > maxElements || b.KeyLength < 0 || b.KeyLength > maxElements || b.Window < 0 {
					t.Errorf("%+v", b)
				}
			}
		})
	}
	if plus(1<<63, 1<<63) != 1<<64-1 || times(1<<40, 1<<40) != 1<<64-1 || plus(1, 2) != 3 || times(3, 4) != 12 {
		t.Error("sums or products of sizes wrap around")
	}
}
