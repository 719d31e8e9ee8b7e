package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Config says how to start a child.
type Config struct {
	Binary string            // path of sluice-runner; required
	Args   []string          // before ours; for tests
	Env    []string          // "K=V", added to a minimal environment; a later entry wins
	Log    func(line string) // gets each line of the child's log; may be nil. It must not block for long

	Silence   time.Duration // a child with work that answers no ping for so long is killed; default 1m, see watch.go
	PingEvery time.Duration // default 5s
}

// Process is a running child. It is safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.Closer // its end is the child's order to go
	dir    string    // holds the socket
	socket string
	client *http.Client
	log    *lastLines

	pingEvery, maxSilence time.Duration
	dog                   watchdog

	mu      sync.Mutex
	stopped bool          // we asked it to go
	loading int           // calls of Load in flight
	silent  time.Duration // it was killed because it had not answered for so long

	done chan struct{}
	err  error // set before done is closed
}

const (
	// Linux allows 107 bytes for the name of a unix socket. A longer one would be cut or refused with "invalid argument".
	maxSocketName = 107
	// drainGrace bounds the wait for the log's end after the child's: a grandchild may hold the pipe.
	drainGrace = 2 * time.Second
)

// Start starts a child and waits until it listens. ctx bounds the start, not the child's life.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if cfg.Binary == "" {
		return nil, errors.New("runner: Config.Binary is not set")
	}
	dir, err := os.MkdirTemp("", "sluice-runner-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	p := &Process{
		dir: dir, socket: filepath.Join(dir, "s"), log: &lastLines{each: cfg.Log}, done: make(chan struct{}),
		pingEvery: cmp.Or(cfg.PingEvery, defaultPingEvery), maxSilence: cmp.Or(cfg.Silence, defaultSilence),
	}
	p.dog.life, p.dog.end = context.WithCancel(context.Background())
	if len(p.socket) > maxSocketName {
		_ = os.Remove(dir)
		return nil, fmt.Errorf("runner: the socket's name %s is over %d bytes; set TMPDIR to a shorter folder", p.socket, maxSocketName)
	}
	if err := p.spawn(ctx, cfg); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

// spawn runs the command and waits for its first line.
func (p *Process) spawn(ctx context.Context, cfg Config) error {
	p.client = &http.Client{Transport: &http.Transport{
		// One connection per request: giving up a request is closing its connection, and nothing is left to leak.
		DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
		},
	}}

	first := make(chan string, 1)
	var once sync.Once
	stdout := &lastLines{each: func(line string) {
		once.Do(func() { first <- line })
	}}

	p.cmd = exec.Command(cfg.Binary, append(append([]string(nil), cfg.Args...), "serve", "--socket", p.socket)...)
	p.cmd.Env = append(environment(), cfg.Env...)
	p.cmd.Stdout, p.cmd.Stderr = stdout, p.log
	p.cmd.WaitDelay = drainGrace
	// Its own group: Ctrl-C in a terminal reaches the parent only, which then stops its children in its own order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("runner: start %s: %w", cfg.Binary, err)
	}
	go p.wait()

	select {
	case line := <-first:
		if line == readyLine {
			return nil
		}
		p.end()
		return fmt.Errorf("runner: %s is no runner of this version: it said %q", cfg.Binary, line)
	case <-p.done:
		return fmt.Errorf("runner: start %s: %w", cfg.Binary, p.err)
	case <-ctx.Done():
		p.end()
		return fmt.Errorf("runner: start %s: %w", cfg.Binary, context.Cause(ctx))
	}
}

// environment is all that a child gets of ours, besides Config.Env. Nothing secret is in it.
func environment() []string {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"TMPDIR=" + os.TempDir(),
		"OLLAMA_LIBRARY_PATH=", // a foreign Ollama beside our binary would replace our kernels
		"GGML_NO_BACKTRACE=1",  // an abort would start gdb
		"GOTRACEBACK=single",   // a crash writes one stack, so the log's last lines say what it was
	}
	if home, err := os.UserHomeDir(); err == nil {
		env = append(env, "HOME="+home)
	}
	return env
}

// wait owns the end of the child.
func (p *Process) wait() {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended by itself; only the log was still held open
	}
	p.mu.Lock()
	if !p.stopped {
		exit := exitError(err, p.log.last())
		exit.Silent = p.silent
		p.err = exit
	}
	p.mu.Unlock()
	p.dog.close()
	_ = p.stdin.Close()
	_ = os.RemoveAll(p.dir)
	close(p.done)
}

// PID of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended; Err then says why.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the child runs, and after Stop. Else it is an *ExitError.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// loads notes a call of Load; the function that it gives notes its end.
func (p *Process) loads() (end func()) {
	add := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.loading += n
	}
	add(1)
	return func() { add(-1) }
}

// Stop ends the child: asks first, kills when ctx ends, and returns when it is gone. A child that loads is killed at once: it
// could not listen, and has nothing to lose. Stop may be called again.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	loading := p.loading > 0
	p.mu.Unlock()
	if loading {
		p.end()
		return nil
	}
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end()
	}
	return nil
}

// end kills the child, and returns when it is gone.
func (p *Process) end() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.done
}
