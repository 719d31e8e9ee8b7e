package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The models, by the names that they get.
var files = map[string]string{
	"q05":  "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
	"smol": "smollm2-135m-instruct-q4_1.gguf",
}

// setup says how a server shall be started.
type setup struct {
	ours     bool
	parallel int
	loaded   int
	fake     bool // ours, with the fake runner
}

type server struct {
	setup
	url, key string
	cmd      *exec.Cmd
	log      string
}

func (s *server) name() string {
	if s.ours {
		return fmt.Sprintf("sluice, parallel %d", s.parallel)
	}
	return fmt.Sprintf("ollama, parallel %d", s.parallel)
}

// server gives one that is up with the models installed; those in keep stay, all others end.
func (b *bench) server(ctx context.Context, want setup, keep ...*server) (*server, error) {
	b.keepOnly(append(keep, b.find(want)))
	if s := b.find(want); s != nil {
		return s, nil
	}
	s, err := b.start(ctx, want)
	if err != nil {
		return nil, err
	}
	b.servers = append(b.servers, s)
	if want.fake {
		return s, nil
	}
	for name, file := range files {
		if err := s.create(ctx, name, filepath.Join(b.models, file)); err != nil {
			return nil, fmt.Errorf("%s: create %s: %w", s.name(), name, err)
		}
	}
	return s, nil
}

// pair gives ours and the peer's.
func (b *bench) pair(ctx context.Context, ours, peers int) (us, peer *server, err error) {
	if us, err = b.server(ctx, setup{ours: true, parallel: ours, loaded: 1}, b.find(setup{parallel: peers, loaded: 1})); err != nil {
		return nil, nil, err
	}
	peer, err = b.server(ctx, setup{parallel: peers, loaded: 1}, us)
	return us, peer, err
}

func (b *bench) find(want setup) *server {
	for _, s := range b.servers {
		if s.setup == want {
			return s
		}
	}
	return nil
}

func (b *bench) keep() { b.keepOnly(nil) }

func (b *bench) keepOnly(keep []*server) {
	b.servers = slices.DeleteFunc(b.servers, func(s *server) bool {
		if slices.Contains(keep, s) {
			return false
		}
		s.stop()
		return true
	})
}

func (b *bench) start(ctx context.Context, want setup) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 16)
	rand.Read(secret)
	s := &server{setup: want, url: "http://127.0.0.1:" + port, key: "slc_" + hex.EncodeToString(secret)}
	kind, program := "ollama", b.ollama
	if want.ours {
		kind, program = "sluice", b.sluice
	}
	home := filepath.Join(b.dir, fmt.Sprintf("%s-%d-%d-%t", kind, want.parallel, want.loaded, want.fake))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	prefix := strings.ToUpper(kind) + "_"
	s.cmd = exec.Command(program, "serve")
	s.cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"),
		prefix + "HOST=127.0.0.1:" + port, prefix + "MODELS=" + filepath.Join(b.dir, kind+"-models"),
		prefix + "NUM_PARALLEL=" + strconv.Itoa(want.parallel), prefix + "MAX_LOADED_MODELS=" + strconv.Itoa(want.loaded),
		prefix + "KEEP_ALIVE=-1",
		"OLLAMA_LIBRARY_PATH=",      // else a foreign Ollama's kernels would replace the ones linked in
		"SLUICE_ADMIN_KEY=" + s.key, // the peer ignores it
		"SLUICE_HOME=" + home, "OLLAMA_NO_CLOUD=1", "OLLAMA_NOPRUNE=1",
	}
	if want.fake {
		s.cmd.Env = append(s.cmd.Env, "SLUICE_RUNNER="+b.fake)
	}
	s.log = filepath.Join(home, "log")
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(s.url + "/api/version"); err == nil {
			resp.Body.Close()
			return s, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			s.stop()
			text, _ := os.ReadFile(s.log)
			return nil, fmt.Errorf("%s did not start:\n%s", program, text[max(0, len(text)-2000):])
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// stop ends a server and its children.
func (s *server) stop() {
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-done
}

func (s *server) request(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}
	if s.ours {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	return client.Do(req)
}

// client opens as many connections as there are requests.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}}

// create installs a GGUF under a name, unless it is there.
func (s *server) create(ctx context.Context, name, path string) error {
	resp, err := s.post(ctx, "/api/show", map[string]any{"model": name})
	if err == nil {
		resp.Body.Close()
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	digest := "sha256:" + hex.EncodeToString(h.Sum(nil))
	resp, err = s.request(ctx, http.MethodHead, "/api/blobs/"+digest, nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		resp, err := s.request(ctx, http.MethodPost, "/api/blobs/"+digest, f)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("upload: %s", resp.Status)
		}
	}
	resp, err = s.post(ctx, "/api/create", map[string]any{"model": name, "files": map[string]string{filepath.Base(path): digest}, "stream": false})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// post sends JSON; a status that is not 200 is an error with the answer's text.
func (s *server) post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp, err := s.request(ctx, http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("%s: %s %s", s.name(), resp.Status, text)
	}
	return resp, nil
}
