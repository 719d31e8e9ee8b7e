package inventory

import (
	"testing"

	"sluice/runner"
)

func cuda(id, pci string, total uint64) runner.Device {
	return runner.Device{ID: id, Library: "CUDA", PCI: pci, TotalBytes: total, FreeBytes: 7}
}

func gpu(pci string, total, free uint64) GPU { return GPU{PCI: pci, Total: total, Free: free} }

func slice(pci string, total, free uint64) GPU {
	return GPU{PCI: pci, Total: total, Free: free, Slice: true}
}

func TestWhoseNumbersAreWhose(t *testing.T) {
	main := runner.Device{ID: runner.CPU, Library: "cpu", TotalBytes: 64 * gib, FreeBytes: 7}
	for name, c := range map[string]struct {
		list []runner.Device
		gpus []GPU
		free map[string]uint64 // of the devices that have live numbers
		all  bool
	}{
		"by bus id, written in two ways, in another order": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 80*gib), cuda("CUDA1", "0000:0A:00.0", 80*gib), main},
			[]GPU{gpu("00000000:0a:00.0", 81*gib, 10*gib), gpu("0000:1B:00.0", 81*gib, 20*gib)},
			map[string]uint64{"CUDA0": 20 * gib, "CUDA1": 10 * gib}, true,
		},
		"a GPU that the engine does not see": {
			[]runner.Device{cuda("CUDA0", "1b:00.0", 24*gib), main},
			[]GPU{gpu("0000:0a:00.0", 24*gib, 1*gib), gpu("0000:1b:00.0", 24*gib, 2*gib)},
			map[string]uint64{"CUDA0": 2 * gib}, true,
		},
		"a GPU that the driver does not tell of": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 24*gib), cuda("CUDA1", "0000:0a:00.0", 24*gib), main},
			[]GPU{gpu("0000:0a:00.0", 24*gib, 1*gib)}, map[string]uint64{"CUDA1": 1 * gib}, false,
		},
		"another domain is another GPU": {
			[]runner.Device{cuda("CUDA0", "0001:1b:00.0", 24*gib), main}, []GPU{gpu("0000:1b:00.0", 24*gib, 1*gib)}, nil, false,
		},
		"no bus ids: by order, when the sizes agree": {
			[]runner.Device{cuda("CUDA0", "", 24*gib), cuda("CUDA1", "", 12*gib), main},
			[]GPU{gpu("0000:01:00.0", 24*gib, 3*gib), gpu("0000:02:00.0", 12*gib, 4*gib)},
			map[string]uint64{"CUDA0": 3 * gib, "CUDA1": 4 * gib}, true,
		},
		"no bus ids, and CUDA's order (fastest first) is not the bus's": {
			[]runner.Device{cuda("CUDA0", "", 24*gib), cuda("CUDA1", "", 12*gib), main},
			[]GPU{gpu("0000:01:00.0", 12*gib, 3*gib), gpu("0000:02:00.0", 24*gib, 4*gib)}, nil, false,
		},
		"no bus ids, and not as many": {
			[]runner.Device{cuda("CUDA0", "", 24*gib), main}, []GPU{gpu("a", 24*gib, 1*gib), gpu("b", 24*gib, 2*gib)}, nil, false,
		},
		"a MIG slice: the whole GPU's numbers are not its": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 19*gib), main},
			[]GPU{gpu("0000:1b:00.0", 80*gib, 50*gib), slice("0000:1b:00.0", 20*gib, 12*gib), slice("0000:1b:00.0", 40*gib, 30*gib)},
			map[string]uint64{"CUDA0": 12 * gib}, true,
		},
		"a MIG slice among equal ones": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 20*gib), main},
			[]GPU{gpu("0000:1b:00.0", 80*gib, 50*gib), slice("0000:1b:00.0", 20*gib, 12*gib), slice("0000:1b:00.0", 20*gib, 3*gib)}, nil, false,
		},
		"a size that the engine does not know is taken from the driver": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 0), main}, []GPU{gpu("0000:1b:00.0", 24*gib, 5*gib)}, map[string]uint64{"CUDA0": 5 * gib}, true,
		},
		"no more free than there is": {
			[]runner.Device{cuda("CUDA0", "0000:1b:00.0", 23*gib), main}, []GPU{gpu("0000:1b:00.0", 24*gib, 24*gib)}, map[string]uint64{"CUDA0": 23 * gib}, true,
		},
		"another vendor's GPU has none": {
			[]runner.Device{{ID: "Vulkan0", Library: "vulkan", PCI: "0000:1b:00.0", TotalBytes: 24 * gib, FreeBytes: 7}, main},
			[]GPU{gpu("0000:1b:00.0", 24*gib, 5*gib)}, nil, false,
		},
		"main memory and a GPU that uses it need none": {
			[]runner.Device{{ID: "Vulkan0", Library: "vulkan", Integrated: true, FreeBytes: 7}, main}, nil, nil, true,
		},
		"damaged bus ids are nobody's": {
			[]runner.Device{cuda("CUDA0", "zz:zz", 24*gib), main}, []GPU{gpu("zz:zz", 24*gib, 5*gib)}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if all := update(c.list, c.gpus); all != c.all {
				t.Errorf("all are covered: %v", all)
			}
			for _, d := range c.list {
				want, live := c.free[d.ID]
				if !live {
					want = 7 // the engine's
				}
				if d.FreeBytes != want {
					t.Errorf("%s has %d free, want %d", d.ID, d.FreeBytes, want)
				}
				if d.FreeBytes != 7 && d.FreeBytes > d.TotalBytes {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}
