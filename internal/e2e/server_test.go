package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	adminKey = "slc_e2e_admin_0123456789abcdef"
	tiny     = "smollm2:135m"
	coder    = "qwen2.5-coder:0.5b"
	embedder = "all-minilm:latest"
)

var (
	shared     *server // started by TestMain, used by every test that does not need its own
	sharedHome string
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if sharedHome, err = os.MkdirTemp("", "sluice-e2e-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(sharedHome)
		shared, err = start(sharedHome)
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		code := m.Run()
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: the server did not stop cleanly:", err)
			code = 1
		}
		return code
	}())
}

func need(name string) (string, error) {
	v := os.Getenv(name)
	if v == "" {
		return "", fmt.Errorf("%s is not set: run these tests by `make test`", name)
	}
	return v, nil
}

// environment is ours without the settings of the user who runs the tests: an OLLAMA_MODELS would have them write into
// somebody's models folder.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "SLUICE_") || strings.HasPrefix(v, "OLLAMA_")
	})
}

// server is a running `sluice serve` with the shop database, two models and one lake.
type server struct {
	url  string
	home string
	bin  string
	cmd  *exec.Cmd

	mu  sync.Mutex
	log bytes.Buffer
}

// start starts a server whose folder is home, and installs the models when home is new.
func start(home string) (*server, error) {
	bin, err := need("SLUICE_TEST_BIN")
	if err != nil {
		return nil, err
	}
	ggufs, err := need("SLUICE_TEST_MODELS")
	if err != nil {
		return nil, err
	}
	fresh := false
	if _, err := os.Stat(filepath.Join(home, "shop.duckdb")); err != nil {
		fresh = true
		shop := filepath.Join("..", "..", "testdata", "nl2sql", "shopdesk")
		if out, err := exec.Command(filepath.Join(bin, "sluice"), "load", filepath.Join(home, "shop.duckdb"), filepath.Join(shop, "schema.sql"), filepath.Join(shop, "data.sql")).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("load: %w: %s", err, out)
		}
		settings := fmt.Sprintf("listen: 127.0.0.1:0\nhome: %[1]s\ndatabases:\n  shop: {kind: duckdb, path: shop.duckdb}\nlake:\n  connections:\n    local: {url: 'file://%[1]s/lake', write_allowlist: [exports/]}\n    closed: {url: 'file://%[1]s/closed'}\n", home)
		if err := os.WriteFile(filepath.Join(home, "sluice.yaml"), []byte(settings), 0o600); err != nil {
			return nil, err
		}
	}
	s, err := launch(home)
	if err != nil {
		return nil, err
	}
	if fresh {
		for name, file := range map[string]string{
			tiny: "smollm2-135m-instruct-q4_1.gguf", coder: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", embedder: "all-minilm-l6-v2",
		} {
			if out, err := s.command(adminKey, "create", name, "--from", filepath.Join(ggufs, file)); err != nil {
				s.kill()
				return nil, fmt.Errorf("create %s: %w: %s", name, err, out)
			}
		}
	}
	return s, nil
}

// launch starts a server with the settings that are in its home, and waits until it listens.
func launch(home string, env ...string) (*server, error) { return launchWith(home, nil, env...) }

// launchWith is launch with further flags.
func launchWith(home string, flags []string, env ...string) (*server, error) {
	bin, err := need("SLUICE_TEST_BIN")
	if err != nil {
		return nil, err
	}
	s := &server{home: home, bin: filepath.Join(bin, "sluice")}
	s.cmd = exec.Command(s.bin, append([]string{"serve", "--config", filepath.Join(home, "sluice.yaml")}, flags...)...)
	s.cmd.Env = append(environment(), append(env, "SLUICE_ADMIN_KEY="+adminKey)...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(stderr)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			if url, ok := strings.CutPrefix(in.Text(), "sluice listens on "); ok {
				listening <- url
			}
			s.mu.Lock()
			s.log.WriteString(in.Text() + "\n")
			s.mu.Unlock()
		}
		close(listening)
	}()
	select {
	case url, ok := <-listening:
		if !ok {
			return nil, fmt.Errorf("the server ended: %v\n%s", s.cmd.Wait(), s.logText())
		}
		s.url = url
	case <-time.After(time.Minute):
		s.kill()
		return nil, fmt.Errorf("the server does not listen:\n%s", s.logText())
	}
	return s, nil
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop asks the server to end and waits for it.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

func (s *server) logText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// command runs the command line as a client of the server and returns what it printed on both streams.
func (s *server) command(key string, args ...string) (string, error) {
	// A command that should have ended, such as a start that must fail, is a failure and not a test that hangs.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, args...)
	cmd.Env = append(environment(), "SLUICE_URL="+s.url, "SLUICE_KEY="+key)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// call makes a request and returns the status and the body.
func (s *server) call(t *testing.T, key, method, path string, body any) (int, string) {
	t.Helper()
	resp := s.open(t.Context(), t, key, method, path, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(text)
}

func (s *server) open(ctx context.Context, t *testing.T, key, method, path string, body any) *http.Response {
	t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.logText())
	}
	return resp
}

// data decodes the envelope of an answer that must be a 200.
func (s *server) data(t *testing.T, key, method, path string, body, out any) {
	t.Helper()
	status, text := s.call(t, key, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &struct{ Data any }{out}); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

type object = map[string]any

// runners lists the process ids of this server's model runners.
func (s *server) runners(t *testing.T) []int {
	t.Helper()
	return children(t, s.cmd.Process.Pid, "sluice-runner")
}

// children lists living child processes by the start of their name.
func children(t *testing.T, parent int, name string) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (comm) state ppid …; comm is cut at 15 characters and may hold spaces.
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		var state string
		var ppid, pid int
		if _, err := fmt.Sscan(string(text[end+1:]), &state, &ppid); err != nil {
			continue
		}
		fmt.Sscan(string(text[:open]), &pid)
		comm := string(text[open+1 : end])
		if ppid == parent && state != "Z" && strings.HasPrefix(name, comm) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually polls until ok holds; the deadline is generous because machines are shared.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
