package fit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// shares writes a plan's shares, "CUDA0:81 CUDA1:3"; "-" main memory only.
func shares(p fit.Plan) string {
	if len(p.Shares) == 0 {
		return "-"
	}
	list := make([]string, len(p.Shares))
	for i, s := range p.Shares {
		list[i] = fmt.Sprintf("%s:%d", s.Device, s.Layers)
	}
	return strings.Join(list, " ")
}

func TestPlace(t *testing.T) {
	eight := []fit.Room{cpu(512)}
	for i := range 8 {
		eight = append(eight, gpu(fmt.Sprintf("CUDA%d", i), 79))
	}
	only := func(l fit.Load, devices ...string) fit.Load { l.Devices = devices; return l }
	layers := func(l fit.Load, n int) fit.Load { l.Layers = n; return l }
	factor := func(l fit.Load, f float64) fit.Load { l.Factor = f; return l }
	for name, test := range map[string]struct {
		load  fit.Load
		rooms []fit.Room
		total float64 // GiB
		want  string
		fails bool
	}{
		"8B is whole on 24 GB":                          {load: load(llama8B, 8192, 4), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "CUDA0:33"},
		"70B is split between 24 GB and main memory":    {load: load(llama70B, 8192, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "CUDA0:43"},
		"70B does not fit beside little main memory":    {load: load(llama70B, 8192, 1), rooms: []fit.Room{cpu(8), gpu("CUDA0", 23.5)}, want: "CUDA0:43", fails: true},
		"30B mixture is whole on 24 GB":                 {load: load(qwen30B, 16384, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "CUDA0:49"},
		"8B takes the first of eight equal GPUs":        {load: load(llama8B, 8192, 4), rooms: eight, want: "CUDA0:33"},
		"70B takes one of eight":                        {load: load(llama70B, 8192, 4), rooms: eight, want: "CUDA0:81"},
		"70B with long contexts takes two of eight":     {load: load(llama70B, 128<<10, 1), rooms: eight, want: "CUDA0:40 CUDA1:41"},
		"the smaller of two GPUs that hold it":          {load: load(llama8B, 8192, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 79), gpu("CUDA1", 23.5)}, want: "CUDA1:33"},
		"the larger one when the smaller does not":      {load: load(llama70B, 8192, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5), gpu("CUDA1", 79)}, want: "CUDA1:81"},
		"two unequal GPUs share by room":                {load: load(llama70B, 8192, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 15), gpu("CUDA1", 40)}, want: "CUDA1:60 CUDA0:21"},
		"CPU only":                                      {load: load(llama8B, 8192, 4), rooms: []fit.Room{cpu(16)}, want: "-"},
		"CPU only, too little":                          {load: load(llama8B, 8192, 4), rooms: []fit.Room{cpu(4)}, want: "-", fails: true},
		"num_gpu 0 is main memory":                      {load: layers(load(llama8B, 8192, 4), 0), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "-"},
		"num_gpu 10 is ten layers":                      {load: layers(load(llama8B, 8192, 4), 10), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "CUDA0:10"},
		"num_gpu 999 is the whole model":                {load: layers(load(llama8B, 8192, 4), 999), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, want: "CUDA0:33"},
		"only the devices named":                        {load: only(load(llama8B, 8192, 1), "CUDA0"), rooms: []fit.Room{cpu(64), gpu("CUDA0", 79), gpu("CUDA1", 23.5)}, want: "CUDA0:33"},
		"a device named does not hold it":               {load: only(load(llama70B, 8192, 1), "CUDA0"), rooms: []fit.Room{cpu(256), gpu("CUDA0", 23.5), gpu("CUDA1", 79)}, want: "CUDA0:81", fails: true},
		"a device named and main memory":                {load: only(load(llama70B, 8192, 1), "CUDA0", "cpu"), rooms: []fit.Room{cpu(256), gpu("CUDA0", 23.5), gpu("CUDA1", 79)}, want: "CUDA0:43"},
		"only main memory named":                        {load: only(load(llama8B, 8192, 1), "cpu"), rooms: []fit.Room{cpu(64), gpu("CUDA0", 79)}, want: "-"},
		"limits.memory refuses what the GPU would hold": {load: load(llama8B, 8192, 4), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, total: 4, want: "-", fails: true},
		"limits.memory leaves main memory":              {load: load(llama8B, 2048, 1), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5)}, total: 5.2, want: "-"},
		"a learned factor moves it to the larger one":   {load: factor(load(llama8B, 8192, 4), 3), rooms: []fit.Room{cpu(64), gpu("CUDA0", 23.5), gpu("CUDA1", 79)}, want: "CUDA1:33"},
		"an integrated GPU is the second choice":        {load: load(llama8B, 8192, 1), rooms: []fit.Room{cpu(64), integrated("Vulkan0", 32), gpu("CUDA0", 23.5)}, want: "CUDA0:33"},
		"an integrated GPU when the other is too small": {load: load(llama8B, 8192, 1), rooms: []fit.Room{cpu(64), integrated("Vulkan0", 32), gpu("CUDA0", 4)}, want: "Vulkan0:33"},
		"an integrated GPU takes of main memory":        {load: load(llama8B, 8192, 1), rooms: []fit.Room{cpu(4), integrated("Vulkan0", 32)}, want: "-", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan, ok := fit.Place(test.load, test.rooms, uint64(test.total*gib))
			if ok == test.fails || shares(plan) != test.want {
				t.Errorf("%s, fits: %v; want %s, %v\n%+v", shares(plan), ok, test.want, !test.fails, plan.Memory)
			}
		})
	}
}

func TestPlanKeepsToTheRooms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		load, rooms, total := random(r)
		plan, ok := fit.Place(load, rooms, total)
		layers := len(load.Model.Facts.Layout.Layers) + 1
		if plan.Layers() > layers || load.Layers >= 0 && plan.Layers() > load.Layers {
			t.Fatalf("%d layers on GPUs\n%s", plan.Layers(), describe(load, rooms, total))
		}
		seen := map[string]bool{}
		for _, s := range plan.Shares {
			if s.Layers <= 0 || seen[s.Device] || len(load.Devices) > 0 && !slices.Contains(load.Devices, s.Device) {
				t.Fatalf("share %+v of %s\n%s", s, shares(plan), describe(load, rooms, total))
			}
			seen[s.Device] = true
		}
		if plan.Memory == nil || !slices.Equal(plan.Memory, fit.Estimate(load, plan.Shares)) {
			t.Fatalf("the memory of %s is not its estimate\n%s", shares(plan), describe(load, rooms, total))
		}
		if !ok {
			continue
		}
		if total > 0 && plan.Bytes() > total {
			t.Fatalf("%d bytes of %d\n%s", plan.Bytes(), total, describe(load, rooms, total))
		}
		if len(load.Devices) > 0 && !slices.Contains(load.Devices, runner.CPU) && plan.Layers() != layers {
			t.Fatalf("%d of %d layers on GPUs, and main memory is not among the devices\n%s", plan.Layers(), layers, describe(load, rooms, total))
		}
		main := uint64(0)
		for _, m := range plan.Memory {
			i := slices.IndexFunc(rooms, func(r fit.Room) bool { return r.Device.ID == m.Device })
			if m.Bytes() > rooms[i].Free {
				t.Fatalf("%s has %d, and is given %d\n%s", m.Device, rooms[i].Free, m.Bytes(), describe(load, rooms, total))
			}
			if rooms[i].Device.Integrated || m.Device == runner.CPU {
				main += m.Bytes()
			}
		}
		for _, room := range rooms {
			if room.Device.ID == runner.CPU && main > room.Free {
				t.Fatalf("main memory has %d, and is given %d\n%s", room.Free, main, describe(load, rooms, total))
			}
		}
	}
}

func TestMoreRoomIsNeverWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 15_000 {
		load, rooms, total := random(r)
		before, fits := fit.Place(load, rooms, total)
		larger := slices.Clone(rooms)
		for range 1 + r.IntN(3) {
			larger[r.IntN(len(larger))].Free += r.Uint64N(40 * gib)
		}
		after, still := fit.Place(load, larger, total)
		if !fits {
			continue
		}
		// GPUs with memory of their own are better than an integrated one, even several.
		more := len(after.Shares) > len(before.Shares) && onIntegrated(before, rooms) == onIntegrated(after, rooms)
		if !still || after.Layers() < before.Layers() || whole(load, before) && more {
			t.Fatalf("%s becomes %s, fits: %v\n%s\nthen\n%s", shares(before), shares(after), still, describe(load, rooms, total), describe(load, larger, total))
		}
	}
}

func onIntegrated(p fit.Plan, rooms []fit.Room) bool {
	return slices.ContainsFunc(rooms, func(r fit.Room) bool {
		return len(p.Shares) > 0 && r.Device.ID == p.Shares[0].Device && r.Device.Integrated
	})
}

func whole(load fit.Load, p fit.Plan) bool { return p.Layers() > len(load.Model.Facts.Layout.Layers) }

// A layer that is counted twice or never would show in the sum of what does not depend on the split.
func TestEveryLayerIsPlacedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		load, rooms, total := random(r)
		load.Adapters, load.Factor, load.Mmap = 0, 0, false
		plan, _ := fit.Place(load, rooms, total)
		l := load.Model.Facts.Layout
		want := l.WeightBytes() + load.Projector
		if l.Tied && (whole(load, plan) || l.OtherEngine || plan.Layers() == 0 && l.TiedRepacks) {
			want += l.TiedBytes
		}
		var weights, kv uint64
		for _, m := range plan.Memory {
			weights, kv = weights+m.Weights, kv+m.KV
		}
		if weights != want {
			t.Fatalf("%s: weights of %d, want %d\n%s", shares(plan), weights, want, describe(load, rooms, total))
		}
		if len(plan.Shares) > 0 {
			one := bytesKV(fit.Estimate(load, []runner.Share{{Device: "CUDA0", Layers: plan.Layers()}}))
			if slack := uint64(len(plan.Memory)); kv > one+slack || one > kv+slack {
				t.Fatalf("%s: caches of %d, on one GPU %d\n%s", shares(plan), kv, one, describe(load, rooms, total))
			}
		}
	}
}

func bytesKV(memory []runner.DeviceMemory) (n uint64) {
	for _, m := range memory {
		n += m.KV
	}
	return n
}

func TestOddLoadsAreNoTrouble(t *testing.T) {
	huge := models.Layer{WeightBytes: 1<<64 - 1, KVHeads: 1 << 24, KeyLength: 1 << 24, ValueLength: 1 << 24, StateBytes: 1<<64 - 1, Window: 1 << 24}
	for name, l := range map[string]fit.Load{
		"nothing":        {},
		"no layout":      {Model: &models.Model{}, NumCtx: 4096, Parallel: 1, Layers: -1},
		"negative sizes": {Model: llama8B, NumCtx: -1, Parallel: -1, NumBatch: -1, Layers: -5, Factor: -1},
		"huge": {
			Model:  &models.Model{Facts: models.Facts{Layout: models.Layout{Layers: []models.Layer{huge, huge}, InputBytes: 1<<64 - 1, Vocabulary: 1 << 24, Heads: 1 << 24}}},
			NumCtx: 1 << 62, Parallel: 1 << 40, NumBatch: 1 << 62, Layers: -1, Projector: 1<<64 - 1, Factor: 1e300,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, rooms := range [][]fit.Room{nil, {cpu(64)}, {gpu("CUDA0", 24)}, {cpu(64), gpu("CUDA0", 24), gpu("CUDA1", 24)}} {
				plan, ok := fit.Place(l, rooms, 0)
				if ok && name == "huge" {
					t.Errorf("it fits: %+v", plan)
				}
				if len(plan.Memory) == 0 {
					t.Error("no plan at all")
				}
			}
			fit.Estimate(l, []runner.Share{{Device: "CUDA0", Layers: 1 << 40}, {Device: "CUDA1", Layers: -1}})
		})
	}
}

func BenchmarkPlace(b *testing.B) {
	rooms := []fit.Room{cpu(512)}
	for i := range 8 {
		rooms = append(rooms, gpu(fmt.Sprintf("CUDA%d", i), 23-float64(i)))
	}
	for name, free := range map[string]float64{"one of eight": 70, "split over three": 1, "in part": 0.1} {
		b.Run(name, func(b *testing.B) {
			rooms := slices.Clone(rooms)
			for i := range rooms[1:] {
				if free > 1 {
					rooms[i+1].Free = uint64(free * gib)
				} else {
					rooms[i+1].Free = uint64(float64(rooms[i+1].Free) * free)
				}
			}
			l := load(llama70B, 8192, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := fit.Place(l, rooms, 0); !ok {
					b.Fatal("no room")
				}
			}
		})
	}
}
