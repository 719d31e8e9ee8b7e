package beside

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

// Setup says how a server shall be started. It is comparable: two servers of one setup are one.
type Setup struct {
	Ours     bool
	Parallel int    // 0: the server's default
	Loaded   int    // models at a time; 0: the server's default
	Memory   string // ours: limits.memory
	Fake     bool   // ours, with the fake runner
}

// Server is one that runs.
type Server struct {
	Setup
	URL, Key string
	Cmd      *exec.Cmd
	Log      string // file
}

// Name is for people.
func (s *Server) Name() string {
	if s.Ours {
		return fmt.Sprintf("sluice, parallel %d", s.Parallel)
	}
	return fmt.Sprintf("ollama, parallel %d", s.Parallel)
}

// Server gives one that is up with the models installed; those in keep stay, all others end.
func (b *Bench) Server(ctx context.Context, want Setup, keep ...*Server) (*Server, error) {
	b.KeepOnly(append(keep, b.Find(want)))
	if s := b.Find(want); s != nil {
		return s, nil
	}
	s, err := b.start(ctx, want)
	if err != nil {
		return nil, err
	}
	b.Servers = append(b.Servers, s)
	if want.Fake {
		return s, nil
	}
	for name, file := range b.Files {
		if err := s.Create(ctx, name, filepath.Join(b.Models, file)); err != nil {
			return nil, fmt.Errorf("%s: create %s: %w", s.Name(), name, err)
		}
	}
	return s, nil
}

// Pair gives ours and the peer's.
func (b *Bench) Pair(ctx context.Context, ours, peers int) (us, peer *Server, err error) {
	if us, err = b.Server(ctx, Setup{Ours: true, Parallel: ours, Loaded: 1}, b.Find(Setup{Parallel: peers, Loaded: 1})); err != nil {
		return nil, nil, err
	}
	peer, err = b.Server(ctx, Setup{Parallel: peers, Loaded: 1}, us)
	return us, peer, err
}

// Find gives a server of this setup, or nil.
func (b *Bench) Find(want Setup) *Server {
	for _, s := range b.Servers {
		if s.Setup == want {
			return s
		}
	}
	return nil
}

// EndAll ends all servers.
func (b *Bench) EndAll() { b.KeepOnly(nil) }

// KeepOnly ends all servers but these.
func (b *Bench) KeepOnly(keep []*Server) {
	b.Servers = slices.DeleteFunc(b.Servers, func(s *Server) bool {
		if slices.Contains(keep, s) {
			return false
		}
		s.Stop()
		return true
	})
}

func (b *Bench) start(ctx context.Context, want Setup) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 16)
	rand.Read(secret)
	s := &Server{Setup: want, URL: "http://127.0.0.1:" + port, Key: "slc_" + hex.EncodeToString(secret)}
	kind, program := "ollama", b.Ollama
	if want.Ours {
		kind, program = "sluice", b.Sluice
	}
	home := filepath.Join(b.Dir, fmt.Sprintf("%s-%d-%d-%s-%t", kind, want.Parallel, want.Loaded, want.Memory, want.Fake))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	prefix := strings.ToUpper(kind) + "_"
	s.Cmd = exec.Command(program, "serve")
	s.Cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"),
		prefix + "HOST=127.0.0.1:" + port, prefix + "MODELS=" + filepath.Join(b.Dir, kind+"-models"),
		prefix + "NUM_PARALLEL=" + number(want.Parallel), prefix + "MAX_LOADED_MODELS=" + number(want.Loaded), "SLUICE_MEMORY=" + want.Memory,
		prefix + "KEEP_ALIVE=-1",
		"OLLAMA_LIBRARY_PATH=",      // else a foreign Ollama's kernels would replace the ones linked in
		"SLUICE_ADMIN_KEY=" + s.Key, // the peer ignores it
		"SLUICE_HOME=" + home, "OLLAMA_NO_CLOUD=1", "OLLAMA_NOPRUNE=1",
	}
	if want.Fake {
		s.Cmd.Env = append(s.Cmd.Env, "SLUICE_RUNNER="+b.Fake)
	}
	s.Log = filepath.Join(home, "log")
	log, err := os.Create(s.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.Cmd.Stdout, s.Cmd.Stderr = log, log
	s.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.Cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(s.URL + "/api/version"); err == nil {
			resp.Body.Close()
			return s, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			s.Stop()
			text, _ := os.ReadFile(s.Log)
			return nil, fmt.Errorf("%s did not start:\n%s", program, text[max(0, len(text)-2000):])
		}
	}
}

// number is n, or nothing where the server shall take its default.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
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

// Stop ends a server and its children.
func (s *Server) Stop() {
	done := make(chan struct{})
	go func() { _ = s.Cmd.Wait(); close(done) }()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(-s.Cmd.Process.Pid, syscall.SIGKILL)
	<-done
}

// Request sends one with the key.
func (s *Server) Request(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return nil, err
	}
	if s.Ours {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	return client.Do(req)
}

// Idle closes the connections that no request uses, so that the next one is a stranger's.
func Idle() { client.CloseIdleConnections() }

// client opens as many connections as there are requests.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}}

// Create installs a GGUF under a name, unless it is there.
func (s *Server) Create(ctx context.Context, name, path string) error {
	resp, err := s.Post(ctx, "/api/show", map[string]any{"model": name})
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
	resp, err = s.Request(ctx, http.MethodHead, "/api/blobs/"+digest, nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		resp, err := s.Request(ctx, http.MethodPost, "/api/blobs/"+digest, f)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("upload: %s", resp.Status)
		}
	}
	resp, err = s.Post(ctx, "/api/create", map[string]any{"model": name, "files": map[string]string{filepath.Base(path): digest}, "stream": false})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Post sends JSON; a status that is not 200 is an error with the answer's text.
func (s *Server) Post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp, err := s.Request(ctx, http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("%s: %s %s", s.Name(), resp.Status, text)
	}
	return resp, nil
}
