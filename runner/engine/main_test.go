package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sluice/internal/runnertest"
	"sluice/runner"
)

// runnerBinary is the real sluice-runner, built once; model a real model. Both must be there: a test that skips is a test nobody runs.
var runnerBinary, model string

func TestMain(m *testing.M) {
	code, err := tests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func tests(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "engine-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	runnerBinary = filepath.Join(dir, "sluice-runner")
	// With the compiler's settings of this very run, so that llama.cpp comes from the cache.
	if out, err := exec.Command("go", "build", "-o", runnerBinary, "sluice/cmd/sluice-runner").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build sluice-runner: %w\n%s", err, out)
	}
	model = filepath.Join(modelFolder(), "smollm2-135m-instruct-q4_1.gguf")
	if _, err := os.Stat(model); err != nil {
		return 1, fmt.Errorf("the tests need smollm2:135m in SLUICE_TEST_MODELS (dev/models.sh smollm2:135m fetches it): %w", err)
	}
	code := m.Run()
	return code, goleak.Find()
}

func modelFolder() string {
	if dir := os.Getenv("SLUICE_TEST_MODELS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir() // XDG_CACHE_HOME, else HOME/.cache
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "sluice", "models")
}

// load starts the real runner with the real model. One thread: two that wait for each other collapse beside other work.
func load(t *testing.T, change func(*runner.LoadRequest)) (*runner.Process, runner.LoadReport) {
	t.Helper()
	p := start(t)
	req := runner.LoadRequest{ModelPath: model, NumCtx: runnertest.NumCtx, Parallel: runnertest.Parallel, NumThread: 1, UseMmap: true}
	if change != nil {
		change(&req)
	}
	report, err := p.Load(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, report
}

func start(t *testing.T) *runner.Process {
	t.Helper()
	p, err := runner.Start(t.Context(), runner.Config{Binary: runnerBinary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	return p
}

func numCtx(n int) func(*runner.LoadRequest) {
	return func(r *runner.LoadRequest) { r.NumCtx = n }
}
