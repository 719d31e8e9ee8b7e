package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

// watched starts the fake with a short patience, and loads a script.
func watched(t *testing.T, silence time.Duration, script string) *runner.Process {
	t.Helper()
	p := start(t, runner.Config{Silence: silence, PingEvery: silence / 20})
	if _, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?" + script, NumCtx: 256}, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// freeze stops a process, and returns when it stands still.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(stat), ") T ") {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("it does not stop")
		}
	}
}

// wantSilence checks what the caller and the owner of a silent child are told.
func wantSilence(t *testing.T, p *runner.Process, err error) {
	t.Helper()
	runnertest.WantCode(t, err, fault.Busy)
	if msg := fault.Public(err).Msg; !strings.Contains(msg, "stopped answering") || !strings.Contains(msg, "loads the model again") {
		t.Errorf("callers are told %q", msg)
	}
	<-p.Done()
	var exit *runner.ExitError
	if !errors.As(p.Err(), &exit) || exit.Silent == 0 {
		t.Errorf("Err is %v; want an ExitError that says it was silent", p.Err())
	}
}

func TestASilentChildIsReplaced(t *testing.T) {
	const silence = 400 * time.Millisecond
	t.Run("it is stopped in mid-stream", func(t *testing.T) {
		p := watched(t, silence, "tokens=-1&rate=100")
		stopped := false
		err := p.Generate(t.Context(), runnertest.Request("say", -1), func(runner.Chunk) error {
			if stopped {
				return nil // what was on its way
			}
			stopped = true
			return syscall.Kill(p.PID(), syscall.SIGSTOP)
		})
		wantSilence(t, p, err)
	})
	t.Run("the engine hangs before the first token", func(t *testing.T) {
		p := watched(t, silence, "")
		wantSilence(t, p, p.Generate(t.Context(), runnertest.Request("{{hang=1}}say", 1), discard))
	})
	t.Run("another caller's call hangs in it", func(t *testing.T) {
		p := watched(t, silence, "hang=1")
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- p.Generate(ctx, runnertest.Request("say", 1), discard) }()
		_, err := p.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a"}}) // is answered: only generating hangs
		if err != nil {
			t.Error(err)
		}
		wantSilence(t, p, <-first)
		cancel()
	})
	t.Run("its callers have left", func(t *testing.T) {
		p := watched(t, silence, "")
		freeze(t, p.PID())
		ctx, cancel := context.WithTimeout(t.Context(), silence/4)
		defer cancel()
		if err := p.Generate(ctx, runnertest.Request("say", 1), discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		<-p.Done()
		var exit *runner.ExitError
		if !errors.As(p.Err(), &exit) || exit.Silent == 0 {
			t.Errorf("Err is %v", p.Err())
		}
	})
}

// TestASlowChildIsLeftAlone: the answer takes longer than the patience, but pings are answered in between.
func TestASlowChildIsLeftAlone(t *testing.T) {
	const silence = 3 * time.Second
	p := watched(t, silence, "ping=200ms")
	runnertest.Answer(t, p, runnertest.Request("{{delay=5s}}say", 1))
	if p.Err() != nil {
		t.Errorf("Err is %v", p.Err())
	}
}

// TestAWorkingChildIsLeftAlone: no ping is answered for much longer than the patience, but the child computes. The patience is long
// enough for a crowded machine to give it a twentieth of a core in that time.
func TestAWorkingChildIsLeftAlone(t *testing.T) {
	p := watched(t, 1500*time.Millisecond, "")
	runnertest.Answer(t, p, runnertest.Request("{{spin=4s}}say", 1))
	if p.Err() != nil {
		t.Errorf("Err is %v", p.Err())
	}
}

// TestStopEndsTheWatch: a stop does not wait for the answer to a ping.
func TestStopEndsTheWatch(t *testing.T) {
	p := watched(t, time.Hour, "hang=1")
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- p.Generate(ctx, runnertest.Request("say", 1), discard) }()
	if err := p.Stop(t.Context()); err != nil || p.Err() != nil {
		t.Errorf("%v, %v", err, p.Err())
	}
	cancel()
	<-asked
}
