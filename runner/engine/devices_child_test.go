package engine_test

import (
	"runtime"
	"testing"

	"sluice/runner"
	"sluice/runner/engine"
)

// TestDevicesOfTheChild: what the binary lists is what the engine lists.
func TestDevicesOfTheChild(t *testing.T) {
	got, err := runner.Devices(t.Context(), runner.Config{Binary: runnerBinary})
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Devices()
	if len(got) != len(want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	for i := range got {
		got[i].FreeBytes, want[i].FreeBytes = 0, 0
		if got[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
	if cpu := got[len(got)-1]; cpu.Threads != runtime.NumCPU() || cpu.TotalBytes < 1<<28 {
		t.Errorf("the CPU is %+v", cpu)
	}
}
