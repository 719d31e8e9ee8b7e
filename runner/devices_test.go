package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/fakerunner/fakebin"
	"sluice/runner"
)

func TestDevices(t *testing.T) {
	want := []runner.Device{
		{ID: "CUDA0", Name: "NVIDIA H200", Library: "cuda", PCI: "0000:1b:00.0", TotalBytes: 80 << 30, FreeBytes: 79 << 30},
		{ID: "Vulkan0", Library: "vulkan", Integrated: true},
		{ID: runner.CPU, Library: "cpu", TotalBytes: 64 << 30, FreeBytes: 60 << 30, Threads: 16},
	}
	got, err := runner.Devices(t.Context(), runner.Config{Binary: fakeBinary, Env: []string{fakebin.Machine(want)}})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = runner.Devices(t.Context(), runner.Config{Binary: fakeBinary}); err != nil || len(got) != 1 || got[0].ID != runner.CPU {
		t.Errorf("without a description: %+v, %v", got, err)
	}
}

func TestDevicesFail(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const cpu = `{"id":"cpu","library":"cpu","total_bytes":2,"free_bytes":1}`
	for name, row := range map[string]struct{ says, end, want string }{
		"it exits":                 {"[" + cpu + "]", "fail", "exit status 3; its last line: the driver is too old"},
		"no JSON":                  {"Segmentation fault", "", "no list of devices"},
		"nothing":                  {"", "", "no list of devices"},
		"half a list":              {"[" + cpu, "", "no list of devices"},
		"another kind of JSON":     {`{"id":"cpu"}`, "", "no list of devices"},
		"no device":                {"[]", "", `it does not list "cpu" last`},
		"no CPU":                   {`[{"id":"CUDA0"}]`, "", `it does not list "cpu" last`},
		"no id":                    {`[{"library":"cuda"},` + cpu + "]", "", "without an id"},
		"a device twice":           {`[{"id":"CUDA0"},{"id":"CUDA0"},` + cpu + "]", "", `"CUDA0" twice`},
		"more free than there is":  {`[{"id":"CUDA0","total_bytes":1,"free_bytes":2},` + cpu + "]", "", "(2 bytes) than it has (1)"},
		"it writes without an end": {"", "flood", "it wrote over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := runner.Devices(t.Context(), runner.Config{
				Binary: exe, Env: []string{"RUNNER_TEST_ROLE=devices", "RUNNER_TEST_SAYS=" + row.says, "RUNNER_TEST_END=" + row.end},
			})
			if err == nil || list != nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "devices --json") {
				t.Errorf("%+v, error %v; want %q", list, err, row.want)
			}
		})
	}
	t.Run("it hangs", func(t *testing.T) {
		late := errors.New("asking for the devices took too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, late)
		defer cancel()
		_, err := runner.Devices(ctx, runner.Config{Binary: exe, Env: []string{"RUNNER_TEST_ROLE=devices", "RUNNER_TEST_END=hang"}})
		if !errors.Is(err, late) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("it is not there", func(t *testing.T) {
		for _, binary := range []string{"", filepath.Join(t.TempDir(), "none")} {
			if _, err := runner.Devices(t.Context(), runner.Config{Binary: binary}); err == nil {
				t.Errorf("%q: no error", binary)
			}
		}
	})
}
