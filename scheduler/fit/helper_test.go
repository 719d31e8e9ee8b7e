package fit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

const gib = 1 << 30

// gpu and cpu are rooms of this many GiB.
func gpu(id string, free float64) fit.Room {
	return fit.Room{Device: runner.Device{ID: id, Library: "cuda"}, Free: uint64(free * gib)}
}

func cpu(free float64) fit.Room {
	return fit.Room{Device: runner.Device{ID: runner.CPU, Library: "cpu"}, Free: uint64(free * gib)}
}

func integrated(id string, free float64) fit.Room {
	r := gpu(id, free)
	r.Device.Integrated = true
	return r
}

// model makes one of equal blocks.
func model(l models.Layout, blocks int, block models.Layer) *models.Model {
	for range blocks {
		l.Layers = append(l.Layers, block)
	}
	return &models.Model{Name: "m", Facts: models.Facts{ContextLength: 128 << 10, Layout: l}}
}

// Models by the numbers of their files at Q4_K_M: Llama 3.1 8B and 70B, Qwen3 30B-A3B (128 experts, 8 used).
var (
	llama8B = model(models.Layout{
		InputBytes: 295_206_912, OutputBytes: 430_940_160, Vocabulary: 128256, Width: 4096, Heads: 32, FeedForward: 14336, LargestTensor: 48_168_960,
	}, 32, models.Layer{WeightBytes: 130_301_952, RepackBytes: 110_000_000, KVHeads: 8, KeyLength: 128, ValueLength: 128})
	llama70B = model(models.Layout{
		InputBytes: 590_413_824, OutputBytes: 861_880_320, Vocabulary: 128256, Width: 8192, Heads: 64, FeedForward: 28672, LargestTensor: 192_675_840,
	}, 80, models.Layer{WeightBytes: 513_146_880, KVHeads: 8, KeyLength: 128, ValueLength: 128})
	qwen30B = model(models.Layout{
		InputBytes: 175_030_272, OutputBytes: 255_252_480, Vocabulary: 151936, Width: 2048, Heads: 32, FeedForward: 6144, Experts: 8, ExpertFeedForward: 768,
		LargestTensor: 165_150_720,
	}, 48, models.Layer{WeightBytes: 377_487_360, KVHeads: 4, KeyLength: 128, ValueLength: 128})
)

func load(m *models.Model, numCtx, parallel int) fit.Load {
	return fit.Load{Model: m, NumCtx: numCtx, Parallel: parallel, NumBatch: 512, Layers: -1}
}

// random makes loads and rooms of all sizes, odd ones among them.
func random(r *rand.Rand) (fit.Load, []fit.Room, uint64) {
	blocks := r.IntN(90)
	if r.IntN(50) == 0 {
		blocks = 300
	}
	size := func(most uint64) uint64 { return r.Uint64N(most+1) >> r.UintN(12) }
	l := models.Layout{
		InputBytes: size(2 * gib), OutputBytes: size(2 * gib), Vocabulary: r.IntN(300_000), Width: r.IntN(16384), Heads: r.IntN(128), FeedForward: r.IntN(60_000),
		Experts: r.IntN(10) * r.IntN(2), ExpertFeedForward: r.IntN(3000), LargestTensor: size(gib), Inner: r.IntN(8192),
		Encoder: r.IntN(10) == 0, Hybrid: r.IntN(10) == 0, OtherEngine: r.IntN(10) == 0, Packs: r.IntN(10) == 0, BothWays: r.IntN(10) == 0,
	}
	if r.IntN(2) == 0 {
		l.Tied, l.TiedBytes, l.TiedRepacks = true, l.InputBytes/2, r.IntN(2) == 0
	}
	each := size(gib)
	for range blocks {
		b := models.Layer{WeightBytes: each + size(gib/64), KVHeads: r.IntN(16), KeyLength: r.IntN(512), ValueLength: r.IntN(512)}
		b.RepackBytes = b.WeightBytes / 2
		if r.IntN(4) == 0 {
			b.Window = r.IntN(8192)
		}
		if r.IntN(8) == 0 {
			b.KVHeads, b.StateBytes = 0, size(gib/256)
		}
		l.Layers = append(l.Layers, b)
	}
	load := fit.Load{
		Model:  &models.Model{Facts: models.Facts{ContextLength: r.IntN(200_000), Layout: l}},
		NumCtx: r.IntN(1 << 18), Parallel: r.IntN(17), NumBatch: r.IntN(2048), Mmap: r.IntN(2) == 0, Layers: r.IntN(blocks+4) - 1,
		KVCacheType: []string{"", "f16", "q8_0", "q4_0"}[r.IntN(4)], FlashAttention: []string{"", "on", "off"}[r.IntN(3)],
		Projector: size(gib) * r.Uint64N(2), Adapters: size(gib) * r.Uint64N(2),
	}
	if r.IntN(3) > 0 {
		load.Layers = -1
	}
	if r.IntN(4) == 0 {
		load.Factor = 0.3 + 4*r.Float64()
	}
	rooms := []fit.Room{cpu(r.Float64() * 256)}
	for i := range r.IntN(9) {
		free := []float64{0, 4, 8, 24, 24, 48, 80, 80}[r.IntN(8)] * (0.3 + 0.7*r.Float64())
		room := gpu(fmt.Sprintf("CUDA%d", i), free)
		room.Device.Integrated = r.IntN(8) == 0
		rooms = append(rooms, room)
		if load.Devices != nil || r.IntN(8) == 0 {
			load.Devices = append(load.Devices, room.Device.ID)
		}
	}
	if r.IntN(2) == 0 && load.Devices != nil {
		load.Devices = append(load.Devices, runner.CPU)
	}
	r.Shuffle(len(rooms), func(i, j int) { rooms[i], rooms[j] = rooms[j], rooms[i] })
	var total uint64
	if r.IntN(3) == 0 {
		total = size(256 * gib)
	}
	return load, rooms, total
}

func describe(load fit.Load, rooms []fit.Room, total uint64) string {
	s := fmt.Sprintf("blocks %d, num_ctx %d, parallel %d, layers %d, devices %v, total %d", len(load.Model.Facts.Layout.Layers), load.NumCtx, load.Parallel, load.Layers, load.Devices, total)
	for _, r := range rooms {
		s += fmt.Sprintf("\n%s integrated %v free %d", r.Device.ID, r.Device.Integrated, r.Free)
	}
	return s
}

func bytesOf(memory []runner.DeviceMemory) (n uint64) {
	for _, m := range memory {
		n += m.Bytes()
	}
	return n
}

func within(t *testing.T, what string, got, want uint64, part float64) {
	t.Helper()
	if d := float64(got)/float64(want) - 1; d > part || d < -part {
		t.Errorf("%s: %d, want %d within %.1f %%; it is off by %+.2f %%", what, got, want, part*100, d*100)
	}
}
