package runner_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

// start starts the fake in a temp folder of the test's own, and stops it at the end.
func start(t *testing.T, cfg runner.Config) *runner.Process {
	t.Helper()
	shortTemp(t)
	if cfg.Binary == "" {
		cfg.Binary = fakeBinary
	}
	p, err := runner.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	return p
}

// shortTemp sets TMPDIR to a fresh folder. t.TempDir would be too long a name for a socket.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// loaded starts the fake and loads a script.
func loaded(t *testing.T, script string) *runner.Process {
	t.Helper()
	p := start(t, runner.Config{})
	if _, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "model.gguf?" + script, NumCtx: 256}, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func discard(runner.Chunk) error { return nil }

func TestContract(t *testing.T) {
	runnertest.Exercise(t, func(t *testing.T) (*runner.Process, runner.LoadReport) {
		p := start(t, runner.Config{})
		report, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "model.gguf?" + fakeMemory, NumCtx: runnertest.NumCtx, Parallel: runnertest.Parallel}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p, report
	})
}

// fakeMemory is what the fake's model takes.
const fakeMemory = "weights=1000&kv_token=10&compute=5"

func TestLoadContract(t *testing.T) {
	runnertest.ExerciseLoads(t, runnertest.Model{
		Start: func(t *testing.T) *runner.Process { return start(t, runner.Config{}) },
		Path:  "model.gguf?load=5ms&" + fakeMemory, PerCell: 10,
	})
}

func TestChildDiesInMidStream(t *testing.T) {
	p := loaded(t, "tokens=-1&die_after=3")
	var text strings.Builder
	err := p.Generate(t.Context(), runnertest.Request("say", -1), func(c runner.Chunk) error {
		text.WriteString(c.Text)
		return nil
	})
	wantDeath(t, p, err, "killed")
	if text.String() != "say w1 w2" {
		t.Errorf("before it died it said %q", text.String())
	}
	if err := p.Generate(t.Context(), runnertest.Request("say", 1), discard); err == nil {
		t.Error("a dead child answered")
	}
}

func TestChildKilledFromOutside(t *testing.T) {
	p := loaded(t, "tokens=-1&rate=50")
	err := p.Generate(t.Context(), runnertest.Request("say", -1), func(runner.Chunk) error {
		return syscall.Kill(p.PID(), syscall.SIGKILL)
	})
	wantDeath(t, p, err, "killed")
}

func TestChildDiesWhileLoading(t *testing.T) {
	p := start(t, runner.Config{})
	_, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?load_die=1", NumCtx: 8}, nil)
	wantDeath(t, p, err, "killed")
}

// wantDeath checks what the caller and the owner of a dead child are told.
func wantDeath(t *testing.T, p *runner.Process, err error, signal string) {
	t.Helper()
	runnertest.WantCode(t, err, fault.Busy)
	var exit *runner.ExitError
	if !errors.As(err, &exit) || exit.Signal != signal || exit.Code != -1 {
		t.Fatalf("error %v; want an ExitError with signal %s", err, signal)
	}
	if !slices.Contains(exit.LastLog, "fakerunner: started") {
		t.Errorf("the last log is %q", exit.LastLog)
	}
	if msg := fault.Public(err).Msg; !strings.Contains(msg, signal) || strings.Contains(msg, "fakerunner") {
		t.Errorf("callers are told %q", msg)
	}
	<-p.Done()
	if !errors.As(p.Err(), &exit) {
		t.Errorf("Err is %v", p.Err())
	}
	wantEmpty(t, os.Getenv("TMPDIR"))
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the temp folder: %v, %v", left, err)
	}
}

func TestStop(t *testing.T) {
	t.Run("an idle child goes at once, and twice is once", func(t *testing.T) {
		p := loaded(t, "")
		for range 2 {
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if p.Err() != nil {
			t.Errorf("Err after Stop is %v", p.Err())
		}
		wantEmpty(t, os.Getenv("TMPDIR"))
	})
	t.Run("a child that does not listen is killed when the context ends", func(t *testing.T) {
		p := start(t, runner.Config{Env: []string{"FAKERUNNER=stay=1"}})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := p.Stop(ctx); err != nil || p.Err() != nil {
			t.Errorf("%v, %v", err, p.Err())
		}
		if syscall.Kill(p.PID(), 0) == nil {
			t.Error("it is still there")
		}
	})
	t.Run("a caller in mid-stream is told to try again", func(t *testing.T) {
		p := loaded(t, "tokens=-1&rate=100")
		var once sync.Once
		var stopping sync.WaitGroup
		err := p.Generate(t.Context(), runnertest.Request("say", -1), func(runner.Chunk) error {
			once.Do(func() {
				stopping.Go(func() { _ = p.Stop(context.Background()) })
			})
			return nil
		})
		stopping.Wait()
		if code := fault.CodeOf(err); code != fault.Busy && code != fault.Canceled {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a child that hangs in a request still goes", func(t *testing.T) {
		p := loaded(t, "hang=1")
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() { _ = p.Generate(ctx, runnertest.Request("say", 1), discard) })
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		cancel()
		asking.Wait()
	})
}

func TestCancelWhileThePromptIsRead(t *testing.T) {
	p := loaded(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Generate(ctx, runnertest.Request("{{delay=1h}}say", 1), discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	runnertest.Answer(t, p, runnertest.Request("say", 1))
}

// TestParentKilled: the child of a parent that is killed with signal 9 ends by itself and leaves no folder.
func TestParentKilled(t *testing.T) {
	dir := shortTemp(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(exe, fakeBinary)
	parent.Env = append(os.Environ(), "RUNNER_TEST_ROLE=parent")
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	folder, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	// The other end of this connection is the child: it closes when the child is gone.
	conn, err := net.Dial("unix", filepath.Join(strings.TrimSpace(folder), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the child outlived its parent: %v", err)
	}
	wantEmpty(t, dir)
}

func TestBrokenChildren(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const ready, ok = "sluice-runner ready 3", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
	for name, row := range map[string]struct{ says, answer, want string }{
		"another version is refused at the start": {says: "sluice-runner ready 0", want: "no runner of this version"},
		"an empty stream is an error":             {ready, ok, "without a last line"},
		"a stream that just ends is an error":     {ready, ok + `{"text":"a"}` + "\n", "without a last line"},
		"half a line is an error":                 {ready, ok + `{"text":"a"}` + "\n" + `{"do`, "without a last line"},
		"a line that is no JSON is an error":      {ready, ok + "Segmentation fault\n", "without a last line"},
		"no answer is an error":                   {ready, "", "without a last line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := runner.Start(t.Context(), runner.Config{Binary: exe, Env: []string{
				"RUNNER_TEST_ROLE=child", "RUNNER_TEST_SAYS=" + row.says, "RUNNER_TEST_ANSWER=" + row.answer,
			}})
			if err == nil {
				defer func() { _ = p.Stop(context.Background()) }()
				err = p.Generate(t.Context(), runnertest.Request("say", 1), discard)
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v; want %q", err, row.want)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	dir := shortTemp(t)
	for name, cfg := range map[string]runner.Config{
		"no binary named":              {},
		"a binary that is not there":   {Binary: filepath.Join(dir, "none")},
		"a binary that ends at once":   {Binary: "/bin/true"},
		"a binary that refuses its go": {Binary: fakeBinary, Args: []string{"extra"}},
	} {
		if _, err := runner.Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	wantEmpty(t, dir)
}

func TestEnvironmentAndLog(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_ADMIN_KEY", "slc_secret")
	var mu sync.Mutex
	var lines []string
	p := start(t, runner.Config{
		Binary: exe, Env: []string{"RUNNER_TEST_ROLE=child", "RUNNER_TEST_SAYS=sluice-runner ready 3", "GGML_NO_BACKTRACE=0"},
		Log: func(line string) { mu.Lock(); lines = append(lines, line); mu.Unlock() },
	})
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(lines, "\n")
	for _, want := range []string{"env PATH=", "env TMPDIR=", "env OLLAMA_LIBRARY_PATH=\n", "env GGML_NO_BACKTRACE=0"} {
		if !strings.Contains(all+"\n", want) {
			t.Errorf("no %q in the child's environment:\n%s", want, all)
		}
	}
	if strings.Contains(all, "slc_secret") {
		t.Error("a secret of the parent's environment reached the child")
	}
}
