package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/runner"
)

func TestTheMachinesOfTheTests(t *testing.T) {
	for name, want := range map[string]struct {
		gpus    int
		first   string
		total   uint64 // of the first GPU
		ram     uint64
		threads int
	}{
		"cpu-8gib":       {0, "", 0, 8 * gib, 4},
		"cpu-64gib":      {0, "", 0, 64 * gib, 16},
		"1x24gb":         {1, "CUDA0", 24080 * mib, 64 * gib, 16},
		"8x80gb":         {8, "CUDA0", 81080 * mib, 1024 * gib, 96},
		"2-unequal":      {2, "CUDA0", 24105 * mib, 32 * gib, 12},
		"laptop-igpu":    {1, "Vulkan0", 11776 * mib, 16 * gib, 8},
		"container-4gib": {0, "", 0, 4 * gib, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Describe(filepath.Join("..", "..", "testdata", "machines", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			list, err := d.Devices(t.Context())
			if err != nil || len(list) != want.gpus+1 {
				t.Fatalf("%+v, %v", list, err)
			}
			cpu := list[want.gpus]
			total, free := d.Memory(t.Context())
			if cpu.ID != runner.CPU || cpu.TotalBytes != want.ram || total != want.ram || free != cpu.FreeBytes || cpu.Threads != want.threads {
				t.Errorf("main memory %+v, Memory %d, %d", cpu, total, free)
			}
			if want.gpus > 0 && (list[0].ID != want.first || list[0].TotalBytes != want.total) {
				t.Errorf("%+v", list[0])
			}
			for _, dev := range list {
				if dev.FreeBytes == 0 || dev.FreeBytes > dev.TotalBytes {
					t.Errorf("%+v", dev)
				}
			}
			list[0].ID = "changed by its reader"
			if again, _ := d.Devices(t.Context()); again[0].ID == list[0].ID {
				t.Error("a reader changes the machine")
			}
		})
	}
	files, err := os.ReadDir(filepath.Join("..", "..", "testdata", "machines"))
	if err != nil || len(files) != 7 {
		t.Errorf("%d files, %v: each needs its line above", len(files), err)
	}
}

func TestWhatIsWrongWithADescribedMachineIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a misspelt key, with its line":               {"ram: 8GiB\nthreads: 4\ncores: 4\n", []string{"m.yaml: line 3:", "cores"}},
		"a misspelt key of a GPU":                     {"ram: 8GiB\nthreads: 4\ngpus:\n  - {id: CUDA0, library: cuda, total: 1GiB, vram: 1GiB}\n", []string{"m.yaml: line 4:", "vram"}},
		"a size that is none":                         {"ram: much\nthreads: 4\n", []string{"m.yaml:", "much"}},
		"JSON is YAML":                                {`{"ram": "8GiB", "threads": 0}`, []string{"threads: how many cores"}},
		"nothing":                                     {"", []string{"ram: how much main memory", "threads: how many cores"}},
		"all mistakes at once":                        {"ram: 1GiB\nfree: 2GiB\nthreads: 1\ngpus: [{id: cpu}]\n", []string{"free: 2 GiB is more than ram, 1 GiB", `id: "cpu"`, "library: is missing", "total: is missing"}},
		"more free than there is":                     {"ram: 1GiB\nthreads: 1\ngpus: [{id: A, library: cuda, total: 1GiB, free: 2GiB}]\n", []string{"free: 2 GiB is more than total, 1 GiB"}},
		"two of one id":                               {"ram: 1GiB\nthreads: 1\ngpus: [{id: A, library: cuda, total: 1GiB}, {id: A, library: cuda, total: 1GiB}]\n", []string{`gpus[1]: id: "A"`}},
		"anchors, which the decoder does not survive": {"ram: &a 8GiB\nthreads: 1\nfree: *a\n", []string{"m.yaml: line 1: anchors, aliases and tags (&) are not"}},
		"no YAML at all":                              {"ram: [", []string{"m.yaml:"}},
		"a list where a mapping should be":            {"- 1\n- 2\n", []string{"m.yaml:"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDescribed("m.yaml", []byte(c.text))
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
	if _, err := Describe(filepath.Join(t.TempDir(), "none.yaml")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNotWrittenIsFree(t *testing.T) {
	d, err := ParseDescribed("m.json", []byte(`{"ram": "8GiB", "threads": 4, "gpus": [{"id": "CUDA0", "library": "cuda", "total": "24GB"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := d.Devices(t.Context())
	if list[0].FreeBytes != 24e9 || list[1].FreeBytes != 8*gib {
		t.Errorf("%+v", list)
	}
}
