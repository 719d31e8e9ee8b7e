package inventory

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// driver builds the library of testdata/nvml. Each test that opens one runs in a process of its own (alone), because the dynamic linker
// binds a process to the first library for good.
func driver(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	cc := exec.Command("cc", append(flags, "-shared", "-fPIC", "-o", path, filepath.Join("testdata", "nvml", "driver.c"))...)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// alone runs a test again as a child, and tells whether this is the child.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "INVENTORY_TEST_CHILD"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mark+"="+t.Name())
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

func TestTheDriversLibraryIsRead(t *testing.T) {
	if !alone(t) {
		return
	}
	n := nvidia{path: driver(t, "-DMIG")}
	want := []GPU{
		{Name: "NVIDIA H100", UUID: "GPU-0-0", PCI: "0000:1b:00.0", Total: 80 * gib, Free: 79 * gib},
		{Name: "NVIDIA H100", UUID: "GPU-1-0", PCI: "0000:1c:00.0", Total: 80 * gib, Free: 79 * gib},
		{Name: "NVIDIA H100", UUID: "GPU-1-1", PCI: "0000:1c:00.0", Total: 20 * gib, Free: 18 * gib, Slice: true},
		{Name: "NVIDIA H100", UUID: "GPU-1-2", PCI: "0000:1c:00.0", Total: 40 * gib, Free: 37 * gib, Slice: true},
	}
	for range 2 {
		if gpus, err := n.read(); err != nil || !slices.Equal(gpus, want) {
			t.Fatalf("%+v, %v", gpus, err)
		}
	}
	t.Setenv("FAKE_LOST", "15")
	if gpus, err := n.read(); err == nil || !strings.Contains(err.Error(), "GPU 0: NVIDIA's library: reading a GPU's memory: GPU is lost") || !slices.Equal(gpus, want[1:]) {
		t.Errorf("the others are still there: %+v, %v", gpus, err)
	}
	t.Setenv("FAKE_LOST", "")
	if gpus, err := n.read(); err != nil || len(gpus) != 4 {
		t.Errorf("and it comes back: %+v, %v", gpus, err)
	}
	t.Setenv("FAKE_GONE", "1")
	if gpus, err := n.read(); err == nil || gpus != nil {
		t.Errorf("%+v, %v", gpus, err)
	}
	t.Setenv("FAKE_GONE", "")
	if gpus, err := n.read(); err != nil || len(gpus) != 4 {
		t.Errorf("a driver that was replaced: %+v, %v", gpus, err)
	}
}

// A call of a function that the library lacks would end the process.
func TestAnOldDriverHasNoMIG(t *testing.T) {
	if !alone(t) {
		return
	}
	if gpus, err := (&nvidia{path: driver(t)}).read(); err != nil || len(gpus) != 2 || gpus[1].Slice {
		t.Errorf("%+v, %v", gpus, err)
	}
}

func TestABrokenDriverIsToldApartFromNone(t *testing.T) {
	if !alone(t) {
		return
	}
	n := nvidia{path: driver(t)}
	t.Setenv("FAKE_INIT", "9")
	for range 2 {
		if gpus, err := n.read(); gpus != nil || err == nil || errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "opening it: Driver Not Loaded") {
			t.Errorf("%v, %v", gpus, err)
		}
	}
	t.Setenv("FAKE_INIT", "")
	if gpus, err := n.read(); err != nil || len(gpus) != 2 {
		t.Errorf("once it is loaded: %v, %v", gpus, err)
	}
	none := nvidia{path: filepath.Join(t.TempDir(), "libnvidia-ml.so.1")}
	if gpus, err := none.read(); gpus != nil || !errors.Is(err, ErrNoDriver) {
		t.Errorf("%v, %v", gpus, err)
	}
}
