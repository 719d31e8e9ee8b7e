package engine

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/internal/tinygguf"
	"sluice/runner"
)

// kvBytes is the exact formula of a cache of one sequence, for models with attention in every layer: for each layer, tokens ×
// heads × (key + value length) × bytes of an element. It is independent of what is tested.
func kvBytes(f fileFacts, numCtx int, kvType string) uint64 {
	perElement := map[string]float64{"f16": 2, "q8_0": 34.0 / 32, "q4_0": 18.0 / 32}[kvType]
	heads := max(f.of("attention.head_count"), 1)
	key, value := f.of("attention.key_length"), f.of("attention.value_length")
	if key == 0 {
		key = f.of("embedding_length") / heads
	}
	if value == 0 {
		value = f.of("embedding_length") / heads
	}
	var elements int64
	for layer := range int(f.of("block_count")) {
		kv := f.perLayer("attention.head_count_kv", layer)
		if kv == 0 {
			kv = f.perLayer("attention.head_count", layer)
		}
		elements += kv * (key + value)
	}
	return uint64(float64(int64(padded(numCtx))*elements) * perElement)
}

// TestMemoryIsMeasured: the hand-made declaration of llama_context::memory_breakdown is the library's. What comes out is
// compared with three things that do not pass through it.
func TestMemoryIsMeasured(t *testing.T) {
	smol := filepath.Join(modelsForTest(), "smollm2-135m-instruct-q4_1.gguf")
	tiny, err := tinygguf.Write(t.TempDir(), "llama", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		path                string
		mmap                bool
		numCtx, seqs, batch int
		flash               ml.FlashAttentionType
		kvType              string
	}{
		"a tiny model":               {tiny, true, 256, 2, 8, ml.FlashAttentionDisabled, "f16"},
		"a tiny model, copied":       {tiny, false, 512, 1, 64, ml.FlashAttentionDisabled, "f16"},
		"a real model":               {smol, true, 1024, 2, 128, ml.FlashAttentionDisabled, "f16"},
		"a real model, copied, q8_0": {smol, false, 512, 4, 32, ml.FlashAttentionEnabled, "q8_0"},
	} {
		t.Run(name, func(t *testing.T) {
			begun := nativeLog.mark()
			_, _, n := bareNative(t, row.path, row.mmap, llama.NewContextParams(row.numCtx*row.seqs, row.batch, row.seqs, 1, row.flash, row.kvType))
			logged := nativeLog.since(begun)
			rows, err := n.breakdown()
			if err != nil {
				t.Fatal(err)
			}
			var weights, kv uint64
			for _, r := range rows {
				weights += r.weights
				kv += r.kv
				if r.device != -1 {
					t.Errorf("%s is on the device %d; this is a test of main memory", r.buffer, r.device)
				}
				// Every number as llama.cpp logs it.
				want := map[string]uint64{"model": r.weights, "KV": r.kv, "compute": r.compute}
				for kind, bytes := range want {
					var said uint64
					for _, b := range loggedBuffers(logged, kind) {
						if b.buffer == r.buffer {
							said += b.bytes
						}
					}
					if math.Abs(float64(said)-float64(bytes)) > 2*(1<<20)/100 {
						t.Errorf("%s of %s is %d; llama.cpp logs %d\n%q", kind, r.buffer, bytes, said, logged)
					}
				}
			}
			facts, err := readFacts(row.path)
			if err != nil {
				t.Fatal(err)
			}
			if want := kvBytes(facts, row.numCtx, row.kvType) * uint64(row.seqs); kv != want {
				t.Errorf("KV %d, the formula says %d", kv, want)
			}
			// At least the tensors. Beyond them: what lies between those of a mapped file, and copies that were repacked.
			if size := n.weights(); weights < size || weights > 2*size+1<<20 {
				t.Errorf("weights %d; the model's tensors have %d", weights, size)
			}
		})
	}
}

func TestMemoryByDevice(t *testing.T) {
	var m memory
	if got := m.lines(); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	m.on("CUDA1").KV = 5
	m.on("CUDA0").Weights = 3
	m.on("CUDA2")
	m.on(runner.CPU).Compute = 1
	m.on("CUDA1").Weights = 2
	want := []runner.DeviceMemory{{Device: runner.CPU, Compute: 1}, {Device: "CUDA1", Weights: 2, KV: 5}, {Device: "CUDA0", Weights: 3}}
	if got := m.lines(); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestMemoryOfAdaptersAndProjectors: their tensors count where they are.
func TestMemoryOfAdaptersAndProjectors(t *testing.T) {
	write := func(name string) string {
		path, err := tinygguf.Write(t.TempDir(), name, 1)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	bytesOf := func(path string) (all uint64) {
		list, err := tensorsOf(path)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d tensors, %v", len(list), err)
		}
		for _, tensor := range list {
			all += tensor.Size()
		}
		return all
	}
	lora, eye := write("lora"), write("projector")
	info, err := os.Stat(lora)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytesOf(lora); n == 0 || n > uint64(info.Size()) {
		t.Errorf("tensors of %d bytes in a file of %d", n, info.Size())
	}
	var m memory
	m.adapter(lora, placement{blocks: 2})
	if got := m.lines(); len(got) != 1 || got[0] != (runner.DeviceMemory{Device: runner.CPU, Weights: bytesOf(lora)}) {
		t.Errorf("an adapter takes %+v", got)
	}
	var two memory
	two.adapter(lora, placement{blocks: 2, shares: []runner.Share{{Device: "CUDA0", Layers: 3}}})
	if got := two.lines(); len(got) != 1 || got[0] != (runner.DeviceMemory{Device: "CUDA0", Weights: bytesOf(lora)}) {
		t.Errorf("an adapter of blocks on a GPU takes %+v", got)
	}
	var m2 memory
	logged := []string{"reserve_compute_meta:      CUDA1 compute buffer size =     2.00 MiB", "reserve_compute_meta:        CPU compute buffer size =     0.50 MiB"}
	m2.projector(eye, placement{shares: []runner.Share{{Device: "CUDA1", Layers: 2}, {Device: "CUDA0", Layers: 1}}}.lead(), logged)
	want := []runner.DeviceMemory{{Device: runner.CPU, Compute: 1 << 19}, {Device: "CUDA1", Weights: bytesOf(eye), Compute: 2 << 20}}
	if got := m2.lines(); !slices.Equal(got, want) {
		t.Errorf("a projector takes %+v\nwant %+v", got, want)
	}
}

// modelsForTest is the folder of real models (see main_test.go of the outer test package, which checks that it is there).
func modelsForTest() string {
	if dir := os.Getenv("SLUICE_TEST_MODELS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "sluice", "models")
}
