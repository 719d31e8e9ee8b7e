package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

// status is a line of a child's /proc/PID/status, in bytes.
func status(t *testing.T, p *runner.Process, key string) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			var kib uint64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in\n%s", key, text)
	return 0
}

// TestMemoryRanOut: a child that may not grow by as much as the model takes says so, and lives on.
func TestMemoryRanOut(t *testing.T) {
	for name, row := range map[string]struct {
		file             string
		numCtx, parallel int
		room             uint64 // that the child may grow by
		say              string
	}{
		"for the weights": {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 256, 1, 250 << 20, "MiB could not be had of main memory"},
		"for the cache":   {"smollm2-135m-instruct-q4_1.gguf", 8192, 32, 1 << 30, "5.6 GiB could not be had of main memory"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := runner.Start(t.Context(), runner.Config{Binary: runnerBinary, Env: []string{"MALLOC_ARENA_MAX=1"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Stop(t.Context()) })
			limit := status(t, p, "VmSize") + row.room
			both := syscall.Rlimit{Cur: limit, Max: limit}
			if _, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(p.PID()), syscall.RLIMIT_AS, uintptr(unsafe.Pointer(&both)), 0, 0, 0); errno != 0 {
				t.Fatal(errno)
			}
			_, err = p.Load(t.Context(), runner.LoadRequest{
				ModelPath: filepath.Join(modelFolder(), row.file), NumCtx: row.numCtx, Parallel: row.parallel, NumThread: 1,
			}, nil)
			runnertest.WantCode(t, err, fault.TooLarge)
			var f *fault.Error
			if !errors.As(err, &f) || f.Kind != runner.KindMemory || !strings.Contains(f.Msg, row.say) || f.Hint == "" {
				t.Errorf("error %+v; want it to say %q", f, row.say)
			}
			select {
			case <-p.Done():
				t.Errorf("the child died: %v", p.Err())
			default:
			}
		})
	}
}

// TestReportIsWhatTheProcessHas compares the report with what the kernel says, which also counts the program, the vocabulary and
// Go's heap; of the compute buffers it counts only what was touched.
func TestReportIsWhatTheProcessHas(t *testing.T) {
	const program = 96 << 20
	for name, change := range map[string]func(*runner.LoadRequest){
		"mapped": numCtx(4096),
		"copied": func(r *runner.LoadRequest) { r.NumCtx, r.UseMmap, r.KVCacheType = 4096, false, "q8_0" },
	} {
		t.Run(name, func(t *testing.T) {
			p, r := load(t, change)
			rss := status(t, p, "VmRSS")
			if m := r.Memory; len(m) != 1 || m[0].Device != runner.CPU || m[0].Weights+m[0].KV > rss || r.Bytes()+program < rss {
				t.Errorf("the process has %d bytes, the report says %+v", rss, m)
			}
		})
	}
}
