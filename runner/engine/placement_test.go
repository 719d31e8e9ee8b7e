package engine

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/fault"
	"sluice/runner"
)

// machine is a list of GPUs behind a CPU.
func machine(n int) (list []device) {
	for i := range n {
		id := "CUDA" + string(rune('0'+i))
		list = append(list, device{Device: runner.Device{ID: id}, index: i + 1, kind: kindGPU, module: ml.DeviceID{ID: "GPU-" + id, Library: "CUDA"}})
	}
	return list
}

// inLlama computes where llama.cpp puts each layer, the output last, exactly as load_tensors in its llama-model.cpp does: in floats
// of 32 bits, by the first cumulative split that is greater. "" is main memory.
func inLlama(p llama.ModelParams, blocks int, gpus []device) (out []string) {
	splits, sum := slices.Clone(p.TensorSplit), float32(0)
	for i := range splits {
		sum += splits[i]
		splits[i] = sum
	}
	for i := range splits {
		splits[i] /= sum
	}
	first := max(blocks-p.NumGpuLayers, 0)
	active := min(p.NumGpuLayers, blocks+1)
	if len(p.Devices) == 0 {
		active = 0
	}
	for layer := range blocks + 1 {
		if layer < first || layer-first >= active {
			out = append(out, "")
			continue
		}
		at := float32(layer-first) / float32(active)
		i := sort.Search(len(splits), func(i int) bool { return splits[i] > at })
		index := p.Devices[i]
		for _, g := range gpus {
			if uint64(g.index) == index {
				out = append(out, g.ID)
			}
		}
	}
	return out
}

// inModule is where the fallback engine puts each layer (assignLayer in ml/backend/ggml).
func inModule(list ml.GPULayersList, blocks int, gpus []device) (out []string) {
	for layer := range blocks + 1 {
		on := ""
		for _, g := range list {
			if slices.Contains(g.Layers, layer) {
				at := slices.IndexFunc(gpus, func(d device) bool { return d.module == g.DeviceID })
				on = gpus[at].ID
			}
		}
		out = append(out, on)
	}
	return out
}

func shares(pairs ...any) (list []runner.Share) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, runner.Share{Device: pairs[i].(string), Layers: pairs[i+1].(int)})
	}
	return list
}

func TestPlacement(t *testing.T) {
	for name, row := range map[string]struct {
		shares []runner.Share
		blocks int
		want   string // a letter for each layer, the output last: - main memory, 0… a GPU
	}{
		"none":                              {nil, 4, "-----"},
		"all, with the output":              {shares("CUDA0", 5), 4, "00000"},
		"all blocks but not the output":     {shares("CUDA0", 4), 4, "0000-"},
		"the last blocks come first":        {shares("CUDA0", 1), 4, "---0-"},
		"two devices, even":                 {shares("CUDA0", 3, "CUDA1", 2), 4, "00011"},
		"in the order of the shares":        {shares("CUDA1", 1, "CUDA0", 4), 4, "10000"},
		"unequal shares in part of a model": {shares("CUDA0", 1, "CUDA1", 3), 6, "--0111-"},
		"three devices, thirds round badly": {shares("CUDA0", 11, "CUDA1", 11, "CUDA2", 11), 32, strings.Repeat("0", 11) + strings.Repeat("1", 11) + strings.Repeat("2", 11)},
		"a share of one beside a large one": {shares("CUDA0", 80, "CUDA1", 1), 80, strings.Repeat("0", 80) + "1"},
		"no block at all":                   {shares("CUDA0", 1), 0, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			gpus := machine(4)
			p, err := placed(row.shares, gpus, row.blocks)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, c := range row.want {
				on := ""
				if c != '-' {
					on = "CUDA" + string(c)
				}
				want = append(want, on)
			}
			checkPlacement(t, p, gpus, want)
		})
	}
}

// checkPlacement compares what both engines would do with what is wanted.
func checkPlacement(t *testing.T, p placement, gpus []device, want []string) {
	t.Helper()
	var params llama.ModelParams
	p.llama(&params)
	if got := inLlama(params, p.blocks, gpus); !slices.Equal(got, want) {
		t.Errorf("llama.cpp puts %+v of %d blocks on %q\nwant %q", p.shares, p.blocks, got, want)
	}
	if got := inModule(p.module(), p.blocks, gpus); !slices.Equal(got, want) {
		t.Errorf("the fallback engine puts %+v of %d blocks on %q\nwant %q", p.shares, p.blocks, got, want)
	}
	for layer := range p.blocks {
		id := want[layer]
		if id == "" {
			id = runner.CPU
		}
		if got := p.deviceOf("blk." + strconv.Itoa(layer) + ".attn_q.weight"); got != id {
			t.Errorf("a tensor of block %d is on %s, want %s", layer, got, id)
		}
	}
}

// TestPlacementInLlama: no layer strays to a neighbour, however the floats of llama.cpp round.
func TestPlacementInLlama(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	gpus := machine(8)
	for range 20_000 {
		blocks := r.IntN(200)
		left := 1 + r.IntN(blocks+1)
		var list []runner.Share
		var want []string
		for i := 0; i < len(gpus) && left > 0; i++ {
			n := 1 + r.IntN(left)
			if i == len(gpus)-1 || r.IntN(3) == 0 {
				n = left
			}
			list = append(list, runner.Share{Device: gpus[i].ID, Layers: n})
			left -= n
			for range n {
				want = append(want, gpus[i].ID)
			}
		}
		if len(want) <= blocks {
			want = slices.Concat(make([]string, blocks-len(want)), want, []string{""})
		}
		p, err := placed(list, gpus, blocks)
		if err != nil {
			t.Fatal(err)
		}
		checkPlacement(t, p, gpus, want)
		if t.Failed() {
			return
		}
	}
}

func TestPlacementRefused(t *testing.T) {
	for name, row := range map[string]struct {
		shares []runner.Share
		gpus   int
		say    string
	}{
		"a device that is not there":    {shares("CUDA7", 1), 2, `"CUDA7"; there are: CUDA0, CUDA1`},
		"a GPU where there is none":     {shares("CUDA0", 1), 0, `"CUDA0"; there are: none`},
		"main memory":                   {shares("cpu", 1), 1, "main memory by itself"},
		"no layers":                     {shares("CUDA0", 0), 1, "0 layers on CUDA0"},
		"a device twice":                {shares("CUDA0", 1, "CUDA0", 1), 1, "CUDA0 twice"},
		"more layers than there are":    {shares("CUDA0", 3, "CUDA1", 3), 2, "6 layers; the model has 5"},
		"a number of layers that wraps": {shares("CUDA0", 1<<62), 2, "layers; the model has 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := placed(row.shares, machine(row.gpus), 4)
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), row.say) {
				t.Errorf("error %v; want it to say %q", err, row.say)
			}
		})
	}
}
