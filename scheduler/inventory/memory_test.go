package inventory

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/runner"
)

const (
	gib = 1 << 30
	mib = 1 << 20
)

// onHost is the inventory of a described folder of /proc and /sys.
func onHost(t *testing.T, host string, cores int, log *bytes.Buffer, change func(*Config)) *Machine {
	t.Helper()
	cfg := Config{
		Files: os.DirFS(filepath.Join("testdata", host)), Cores: cores, Log: slog.New(slog.NewTextHandler(log, nil)),
		List: func(context.Context) ([]runner.Device, error) {
			return []runner.Device{{ID: runner.CPU, Library: "cpu", TotalBytes: 1, FreeBytes: 1, Threads: 64}}, nil
		},
		gpus: func() ([]GPU, error) { return nil, ErrNoDriver },
	}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMainMemoryIsTheTightestOfMachineAndControlGroups(t *testing.T) {
	for name, c := range map[string]struct {
		host        string
		total, free uint64
		cores       int // of 32
		limits      []string
	}{
		"a plain host has what the kernel says":                                {"plain", 65848204 << 10, 56 * gib, 32, nil},
		"docker, version 2: 4 GiB, of 3.5 GiB used 1.75 are caches, 2.5 cores": {"docker2", 4 * gib, 4*gib - (3584-1792)*mib, 2, []string{"/ memory.max"}},
		"docker, version 1: 2 GiB, of 1.5 GiB used 0.5 are caches, 3 cores":    {"docker1", 2 * gib, gib, 3, []string{"/ memory.limit_in_bytes"}},
		"version 1 without limits is a plain host":                             {"none1", 65848204 << 10, 56 * gib, 32, nil},
		"a service in a slice: the slice is tighter, and others are in it": {"slice2", 8 * gib, 2 * gib, 2,
			[]string{"/ai.slice memory.max", "/ai.slice/sluice.service memory.high", "/ai.slice/sluice.service memory.max"}},
		"damaged text is passed over, what can be read is obeyed": {"damaged", 8 * gib, 0, 32, []string{"/ memory.max"}},
		"a kernel without MemAvailable":                           {"old", 2048000 << 10, 1012000 << 10, 32, nil},
		"a machine that tells nothing is not known":               {"nowhere", 0, 0, 32, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := onHost(t, c.host, 32, &log, nil)
			if total, free := m.Memory(t.Context()); total != c.total || free != c.free {
				t.Errorf("total %d, free %d; want %d, %d", total, free, c.total, c.free)
			}
			devices, err := m.Devices(t.Context())
			if err != nil || len(devices) != 1 {
				t.Fatalf("%v, %v", devices, err)
			}
			if d := devices[0]; d.Threads != c.cores || c.total > 0 && (d.TotalBytes != c.total || d.FreeBytes != c.free) || c.total == 0 && d.TotalBytes != 1 {
				t.Errorf("the device is %+v", d)
			}
			var limits []string
			for _, l := range m.Limits() {
				limits = append(limits, l.Group+" "+l.File)
			}
			if !slices.Equal(limits, c.limits) {
				t.Errorf("limits %q, want %q", limits, c.limits)
			}
			if warned := log.Len() > 0; warned != (c.host == "damaged") {
				t.Errorf("log: %s", &log)
			}
		})
	}
}

func TestOurGroupBelowWhatTheMountShows(t *testing.T) {
	for name, c := range map[string]struct{ group, root, want string }{
		"a host":                                {"/system.slice/x.service", "/", "/system.slice/x.service"},
		"a container of its own":                {"/", "/", "/"},
		"a container, by the host's name":       {"/docker/a", "/docker/a", "/"},
		"a group in a container":                {"/docker/a/worker", "/docker/a", "/worker"},
		"another container, which begins alike": {"/docker/ab", "/docker/a", "/"},
		"outside of what the namespace may see": {"/../../x", "/", "/"},
		"a mount of the host in a container":    {"/docker/a", "/kubepods", "/"},
	} {
		if got := below(c.group, c.root); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestADamagedLimitIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	m := onHost(t, "damaged", 2, &log, nil)
	for range 3 {
		m.Memory(t.Context())
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, &log)
	}
	for _, want := range []string{"/sys/fs/cgroup/x/memory.max", "4 GiB, please", "/sys/fs/cgroup/x/cpu.max"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not name %s: %s", want, &log)
		}
	}
}

func TestThreadsAreNoMoreThanTheEngineCounts(t *testing.T) {
	m := onHost(t, "plain", 32, &bytes.Buffer{}, func(c *Config) {
		c.List = func(context.Context) ([]runner.Device, error) {
			return []runner.Device{{ID: runner.CPU, Threads: 16}}, nil
		}
	})
	if d, _ := m.Devices(t.Context()); d[0].Threads != 16 { // the others are hyper-threads
		t.Errorf("%d threads", d[0].Threads)
	}
}

func TestCardsOnTheBus(t *testing.T) {
	cards := onHost(t, "plain", 1, &bytes.Buffer{}, nil).Cards()
	want := []Card{{"0000:00:02.0", "Intel"}, {"0000:1b:00.0", "NVIDIA"}} // the sound card and the server's remote screen are none
	if !slices.Equal(cards, want) {
		t.Errorf("%v", cards)
	}
	if none := onHost(t, "docker2", 1, &bytes.Buffer{}, nil).Cards(); none != nil {
		t.Errorf("%v", none)
	}
}

// On the machine of the test, with its own files: the numbers must hang together, whatever they are.
func TestThisMachine(t *testing.T) {
	m, err := New(Config{List: func(context.Context) ([]runner.Device, error) { return []runner.Device{{ID: runner.CPU}}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	total, free := m.Memory(t.Context())
	if total < 64*mib || free > total || free == 0 {
		t.Errorf("total %d, free %d", total, free)
	}
	if d, err := m.Devices(t.Context()); err != nil || d[len(d)-1].TotalBytes != total || d[len(d)-1].Threads < 1 {
		t.Errorf("%+v, %v", d, err)
	}
}
