package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestKillsUnderLoad kills runners at random moments while clients of every kind are served. Every answer ends: with what
// this client asked for and nobody else did, or with an error in the form of its API. Afterwards nothing is left: no
// goroutine, no open file, no folder, no process.
//
//	SLUICE_TEST_KILLS=100   how many; default 5
//	SLUICE_TEST_SEED=…      the moments of another run again, as far as machines repeat themselves
func TestKillsUnderLoad(t *testing.T) {
	kills, seed := number(t, "SLUICE_TEST_KILLS", 5), number(t, "SLUICE_TEST_SEED", int(time.Now().UnixNano()&0xffffff))
	t.Logf("%d kills, SLUICE_TEST_SEED=%d", kills, seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))

	s, temp := killServer(t)
	load := &loadOf{server: s, seen: map[int]bool{}}
	load.whileServed(t, func() { <-time.After(3 * time.Second) })
	if n := load.failures.Swap(0); n > 0 {
		t.Errorf("%d errors without a kill", n)
	}
	base := load.settled(t, nil)
	t.Logf("before: %+v", base)
	load.whileServed(t, func() {
		for n := range kills {
			<-time.After(time.Duration(50+rnd.IntN(1500)) * time.Millisecond)
			load.kill(t, n, rnd)
		}
	})
	t.Logf("%d answers, %d errors", load.answers.Load(), load.failures.Load())
	if load.failures.Load() == 0 || load.answers.Load() == 0 {
		t.Error("no answer or no error: the kills hit nothing, or all")
	}

	after := load.settled(t, &base)
	t.Logf("after: %+v", after)
	if dirs, _ := filepath.Glob(filepath.Join(temp, "sluice-runner-*")); len(dirs) != after.runners {
		t.Errorf("%d folders of %d runners: %v", len(dirs), after.runners, dirs)
	}
	if err := s.stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, s.logText())
	}
	for pid := range load.seen {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("runner %d outlived its server", pid)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temp folder: %v, %v", left, err)
	}
	if log := s.logText(); strings.Contains(log, "panic") || strings.Contains(log, `"msg":"a bug"`) {
		t.Errorf("the log tells of a bug:\n%s", log)
	}
}

func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// killServer starts a server of the test's own, with room for two models and a temp folder that nobody else uses.
func killServer(t *testing.T) (s *server, temp string) {
	t.Helper()
	home := t.TempDir()
	s, err := start(home) // installs the models
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if temp, err = os.MkdirTemp("", "k-"); err != nil { // short: the names of sockets are bounded
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if s, err = launch(home, "TMPDIR="+temp, "SLUICE_MAX_LOADED_MODELS=2"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s, temp
}

// loadOf is the clients of one server.
type loadOf struct {
	server            *server
	answers, failures atomic.Int64
	vector            []float64 // of embedText, before any kill
	seen              map[int]bool
}

// usage is what must not grow.
type usage struct {
	goroutines, files, runners int
}

// settled loads both models, waits until nothing is in flight, and gives what the server uses. With a limit it waits until
// no more than that is used.
func (l *loadOf) settled(t *testing.T, limit *usage) (got usage) {
	t.Helper()
	eventually(t, "both models answer", func() bool {
		ok, err := l.whole(t.Context(), "warm")
		vector, embedErr := l.vectorOf(t.Context())
		return ok && err == nil && vector != nil && embedErr == nil
	})
	reached := func() bool {
		client.CloseIdleConnections()
		got = usage{int(l.metric(t, "go_goroutines")), len(l.files()), len(l.server.runners(t))}
		if limit == nil {
			return got.runners == 2 && l.metric(t, "sluice_http_requests_in_flight") <= 1 // this request
		}
		return got.goroutines <= limit.goroutines && got.files <= limit.files && got.runners == limit.runners
	}
	if limit == nil {
		// The least of some looks: a goroutine that is about to end must not raise the limit.
		eventually(t, "nothing is in flight", reached)
		least := got
		for range 20 {
			<-time.After(100 * time.Millisecond)
			reached()
			least.goroutines, least.files = min(least.goroutines, got.goroutines), min(least.files, got.files)
		}
		// A connection of the meter's own is open or not yet closed: one more of each.
		return usage{least.goroutines + 2, least.files + 1, least.runners}
	}
	for deadline := time.Now().Add(time.Minute); !reached(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server used %+v before and uses %+v; its files: %v; its goroutines:\n%s", *limit, got, l.files(), l.stacks())
		}
	}
	return got
}

// storeFiles is how many files the control store may have open: the database, its log and its index for each connection of its
// pools, which has one that writes and four that read.
const storeFiles = 3 * (1 + 4)

// files lists what the server has open. The pool of the control store's connections grows and shrinks with the load: of its
// files only those count that are too many for it.
func (l *loadOf) files() (open []string) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", l.server.cmd.Process.Pid))
	var ofStore []string
	for _, link := range links {
		target, _ := os.Readlink(link)
		if strings.Contains(target, "control.db") {
			ofStore = append(ofStore, target)
		} else {
			open = append(open, target)
		}
	}
	return append(open, ofStore[min(len(ofStore), storeFiles):]...)
}

// stacks ends the server and gives what its goroutines were at.
func (l *loadOf) stacks() string {
	before := len(l.server.logText())
	_ = l.server.cmd.Process.Signal(syscall.SIGQUIT)
	_ = l.server.cmd.Wait()
	return l.server.logText()[before:]
}

// metric reads one number of /metrics.
func (l *loadOf) metric(t *testing.T, name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", l.server.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		if value, ok := strings.CutPrefix(in.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

// kill ends one runner with signal 9.
func (l *loadOf) kill(t *testing.T, n int, rnd *rand.Rand) {
	var pids []int
	eventually(t, "there is a runner to kill", func() bool {
		pids = l.server.runners(t)
		return len(pids) > 0
	})
	pid := pids[rnd.IntN(len(pids))]
	l.seen[pid] = true
	t.Logf("kill %d: runner %d of %v", n, pid, pids)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// whileServed runs clients of every kind until do has returned, and waits for their last answers.
func (l *loadOf) whileServed(t *testing.T, do func()) {
	if l.vector == nil {
		eventually(t, "the embedder answers", func() bool {
			l.vector, _ = l.vectorOf(t.Context())
			return l.vector != nil
		})
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i, ask := range []func(context.Context, string) (bool, error){
		l.nativeStream, l.nativeStream, l.openaiStream, l.openaiStream, l.whole, l.embed, l.anthropicStream,
	} {
		clients.Go(func() { l.client(t, i, ask, stop) })
	}
	do()
	close(stop)
	clients.Wait()
}
