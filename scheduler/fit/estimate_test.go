package fit_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// measured is a line of testdata/measured.tsv: a load, and what the runner allocated for it.
type measured struct {
	load                 fit.Load
	name                 string
	weights, kv, compute uint64
}

// table reads testdata/measured.tsv: what bench/sched/fit.go printed.
func table(t *testing.T) (rows []measured, list map[string]*models.Model) {
	t.Helper()
	data, err := os.ReadFile("testdata/measured.tsv")
	if err != nil {
		t.Fatal(err)
	}
	list = map[string]*models.Model{}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		switch {
		case f[0] == "layout":
			m := &models.Model{Name: f[1], Facts: models.Facts{ContextLength: int(number(f[2]))}}
			if err := json.Unmarshal([]byte(f[3]), &m.Facts.Layout); err != nil {
				t.Fatal(err)
			}
			list[m.Name] = m
		case len(f) == 8 && f[0] != "model":
			rows = append(rows, measured{
				name: line, weights: number(f[4]), kv: number(f[5]), compute: number(f[6]),
				load: fit.Load{Model: list[f[0]], NumCtx: int(number(f[1])), Parallel: int(number(f[2])), NumBatch: 512, KVCacheType: f[3], Layers: -1},
			})
		}
	}
	if len(rows) < 78 || len(list) != 5 {
		t.Fatalf("%d rows of %d models in testdata/measured.tsv", len(rows), len(list))
	}
	return rows, list
}

func TestEstimateIsWhatTheEngineAllocated(t *testing.T) {
	rows, _ := table(t)
	for _, row := range rows {
		lines := fit.Estimate(row.load, nil)
		if len(lines) != 1 || lines[0].Device != runner.CPU {
			t.Fatalf("%s is on %+v", row.name, lines)
		}
		got := lines[0]
		within(t, "weights of "+row.name, got.Weights, row.weights, 0.001)
		if got.KV != row.kv {
			t.Errorf("cache of %s: %d", row.name, got.KV)
		}
		within(t, row.name, got.Bytes(), row.weights+row.kv+row.compute, 0.03) // the figure's bound is 0.05
	}
}

// With mmap the file stays mapped beside what was repacked: measured 1059.89 + 596.53 MiB (log of sluice-runner, the 1.5B model).
func TestMappedWeights(t *testing.T) {
	_, list := table(t)
	l := load(list["qwen2.5-coder-1.5b-instruct-q4_k_m"], 512, 1)
	l.Mmap = true
	within(t, "weights", fit.Estimate(l, nil)[0].Weights, 165642*(1<<20)/100, 0.001)
}

func TestEstimateOnGPUs(t *testing.T) {
	on := func(shares ...runner.Share) []runner.Share { return shares }
	share := func(id string, layers int) runner.Share { return runner.Share{Device: id, Layers: layers} }
	l := load(llama8B, 8192, 2)
	block, cache := llama8B.Facts.Layout.Layers[0].WeightBytes, uint64(2*8192*8*(128+128)*2)
	layout := llama8B.Facts.Layout
	for name, test := range map[string]struct {
		shares      []runner.Share
		weights, kv []uint64 // by line, main memory last
	}{
		"whole on one": {on(share("a", 33)), []uint64{32*block + layout.OutputBytes, layout.InputBytes}, []uint64{32 * cache, 0}},
		"the last ten blocks": {
			on(share("a", 10)), []uint64{10 * block, 22*block + layout.InputBytes + layout.OutputBytes}, []uint64{10 * cache, 22 * cache},
		},
		"all blocks, and the output in main memory": {on(share("a", 32)), []uint64{32 * block, layout.InputBytes + layout.OutputBytes}, []uint64{32 * cache, 0}},
		"the output goes with the last share": {
			on(share("a", 20), share("b", 13)), []uint64{20 * block, 12*block + layout.OutputBytes, layout.InputBytes}, []uint64{20 * cache, 12 * cache, 0},
		},
		"the output alone": {on(share("a", 32), share("b", 1)), []uint64{32 * block, layout.OutputBytes, layout.InputBytes}, []uint64{32 * cache, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := fit.Estimate(l, test.shares)
			if len(lines) != len(test.weights) {
				t.Fatalf("%+v", lines)
			}
			for i, line := range lines {
				if line.Weights != test.weights[i] || line.KV != test.kv[i] {
					t.Errorf("%+v, want weights %d, cache %d", line, test.weights[i], test.kv[i])
				}
				if line.Device != runner.CPU && line.Compute < fit.GPUOverhead {
					t.Errorf("%s has no overhead: %+v", line.Device, line)
				}
			}
		})
	}
}

func TestTiedOutputIsCopied(t *testing.T) {
	l := load(model(models.Layout{InputBytes: 1000, Tied: true, TiedBytes: 800, OutputBytes: 8}, 1, models.Layer{WeightBytes: 100}), 512, 1)
	weights := func(shares ...runner.Share) (list []uint64) {
		for _, line := range fit.Estimate(l, shares) {
			list = append(list, line.Weights)
		}
		return list
	}
	for name, test := range map[string]struct {
		got  []uint64
		want uint64
	}{
		"one matrix in main memory":          {weights(), 1108},
		"a copy on a GPU":                    {weights(runner.Share{Device: "a", Layers: 2}), 908},
		"no copy while the output stays out": {weights(runner.Share{Device: "a", Layers: 1})[1:], 1008},
	} {
		if test.got[0] != test.want {
			t.Errorf("%s: %v, want %d", name, test.got, test.want)
		}
	}
	l.Model.Facts.Layout.TiedRepacks = true
	if got := weights()[0]; got != 1908 {
		t.Errorf("a repacked copy: %d", got)
	}
}

func TestCaches(t *testing.T) {
	base := models.Layer{KVHeads: 2, KeyLength: 64, ValueLength: 64}
	window := base
	window.Window = 256
	with := func(change func(*models.Layout), blocks ...models.Layer) fit.Load {
		l := models.Layout{Layers: blocks, Width: 64, Heads: 4}
		if change != nil {
			change(&l)
		}
		return load(&models.Model{Facts: models.Facts{Layout: l}}, 1000, 3)
	}
	const cells = 1024 * 3
	typed := func(l fit.Load, cache string) fit.Load { l.KVCacheType = cache; return l }
	for name, test := range map[string]struct {
		load fit.Load
		want uint64
	}{
		"f16":                              {with(nil, base), cells * 256 * 2},
		"q8_0":                             {typed(with(nil, base), "q8_0"), cells * 256 / 32 * 34},
		"q4_0":                             {typed(with(nil, base), "q4_0"), cells * 256 / 32 * 18},
		"llama.cpp's windows are as long":  {with(nil, window), cells * 256 * 2},
		"the other engine's are not":       {with(func(l *models.Layout) { l.OtherEngine = true }, window), 1024 * 256 * 2}, // 3 × 256 and a batch of 129, padded
		"encoders have none":               {with(func(l *models.Layout) { l.Encoder = true }, base), 0},
		"a state, whatever the context":    {with(nil, models.Layer{StateBytes: 5000}), 3 * 5000},
		"hybrids have each sequence's for": {with(func(l *models.Layout) { l.Hybrid = true }, base), 3 * cells * 256 * 2},
	} {
		if got := fit.Estimate(test.load, nil)[0].KV; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestCorrect(t *testing.T) {
	for name, test := range map[string]struct {
		old                  float64
		estimated, allocated uint64
		want                 float64
	}{
		"right":                         {0, 1000, 1000, 1},
		"nearly right":                  {0, 1000, 1005, 1},
		"too little is made up at once": {0, 1000, 1200, 1.2},
		"on top of what was known":      {1.2, 1200, 1320, 1.32},
		"too much is halved":            {0, 1000, 800, 0.9},
		"bounded above":                 {2, 1000, 9000, 4},
		"bounded below":                 {0.5, 1000, 10, 0.5},
		"nothing known":                 {1.1, 0, 1000, 1.1},
		"nothing reported":              {1.1, 1000, 0, 1.1},
	} {
		if got := fit.Correct(test.old, test.estimated, test.allocated); got < test.want-1e-9 || got > test.want+1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if fit.Raise(0) <= 1 || fit.Raise(1.5) <= 1.5 || fit.Raise(100) != 4 {
		t.Error("Raise does not raise within its bounds", fit.Raise(0), fit.Raise(1.5), fit.Raise(100))
	}
	l := load(llama8B, 2048, 1)
	before := bytesOf(fit.Estimate(l, nil))
	l.Factor = 1.5
	within(t, "an estimate with the factor 1.5", bytesOf(fit.Estimate(l, nil)), before/2*3, 0.001)
	if got := fit.Allocated([]runner.DeviceMemory{{Device: "CUDA0", Weights: 5}, {Device: runner.CPU, KV: 7}}); got != 12+fit.GPUOverhead {
		t.Errorf("allocated: %d", got)
	}
}
