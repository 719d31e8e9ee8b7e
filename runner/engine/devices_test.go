package engine

import (
	"runtime"
	"testing"

	"github.com/ollama/ollama/llama"

	"sluice/runner"
)

// TestDevicesOfGGML: the hand-made structure of properties is ggml's, seen through what the package reads from it.
func TestDevicesOfGGML(t *testing.T) {
	list := registry(true)
	at := 0
	for _, g := range llama.EnumerateGPUs() {
		for list[at].index != int(g.LlamaID) {
			at++
		}
		if list[at].module != g.DeviceID {
			t.Errorf("device %d is %+v, the package says %+v", at, list[at].module, g.DeviceID)
		}
	}
	cpus := 0
	for _, d := range list {
		if !d.known {
			t.Errorf("the properties of %s are larger than declared", d.ID)
		}
		if d.ID == "" || d.Name == "" || d.TotalBytes == 0 || d.TotalBytes < d.FreeBytes {
			t.Errorf("device %+v", d)
		}
		if d.kind == kindCPU {
			cpus++
			// The CPU has neither id nor library in its properties; anything else here were another structure.
			if d.ID != "CPU" || d.module.ID != "" || d.module.Library != "" || d.PCI != "" || d.Integrated {
				t.Errorf("the CPU is %+v", d)
			}
		}
	}
	if cpus != 1 {
		t.Errorf("%d CPUs", cpus)
	}
	all := Devices()
	last := all[len(all)-1]
	if last.ID != runner.CPU || last.Library != "cpu" || last.Threads != runtime.NumCPU() || last.TotalBytes == 0 || last.FreeBytes == 0 || last.FreeBytes > last.TotalBytes {
		t.Errorf("the last device is %+v", last)
	}
	for _, d := range all[:len(all)-1] {
		if d.ID == runner.CPU || d.Library == "" {
			t.Errorf("a GPU is %+v", d)
		}
	}
}
