package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice/fault"
)

// TestScenarios plays testdata/scenario-*.txt. Time is synctest's, so the times in the files are exact. The commands:
//
//	new max-loaded=1 …           a scheduler; durations and numbers as in Config, but parallel=1; with threads=… they are told
//	model NAME load=2s fail=…    how a model behaves; dies=SIGNAL instead of fail: as a process
//	start fails, start works     whether runners can be started
//	lease ID NAME ctx=… keep=…   asks for a lease, in the background; as=ALIAS: by another name of the same file
//	release ID, cancel ID        ends a lease, or a wait
//	sleep 5s, ps, crash NAME, unload NAME, shutdown
//
// A command prints what happened until everybody waits again, each line with the seconds since the beginning.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenario-*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scenario{t: t, begin: time.Now(), world: newWorld(), leases: map[string]*Lease{}, cancels: map[string]context.CancelFunc{}}
				s.world.log = s.note
				s.world.onKill = func(name string, n int) { s.note("%s is ended under %d leases", name, n) }
				defer s.finish()
				datadriven.RunTest(t, path, s.command)
			})
		})
	}
}

type scenario struct {
	t     *testing.T
	begin time.Time
	world *world
	sched *Scheduler
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	lines   []string
	leases  map[string]*Lease
	cancels map[string]context.CancelFunc
}

func (s *scenario) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%7.3f ", time.Since(s.begin).Seconds())+fmt.Sprintf(format, args...))
}

func (s *scenario) command(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for _, line := range append([]string{strings.TrimSpace(d.Cmd + " " + joinArgs(d))}, strings.Split(d.Input, "\n")...) {
		if line == "" {
			continue
		}
		s.do(t, d, line)
		synctest.Wait()
		s.mu.Lock()
		slices.Sort(s.lines) // what happens at the same instant has no order
		for _, l := range s.lines {
			out.WriteString(l + "\n")
		}
		s.lines = nil
		s.mu.Unlock()
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func joinArgs(d *datadriven.TestData) string {
	var words []string
	for _, a := range d.CmdArgs {
		w := a.Key
		if len(a.Vals) > 0 {
			w += "=" + strings.Join(a.Vals, ",")
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func (s *scenario) do(t *testing.T, d *datadriven.TestData, line string) {
	words := strings.Fields(line)
	opts := map[string]string{}
	var args []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			opts[k] = v
		} else {
			args = append(args, w)
		}
	}
	number := func(key string) int {
		n, err := strconv.Atoi(cmp.Or(opts[key], "0"))
		if err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return n
	}
	duration := func(text string) time.Duration {
		v, err := time.ParseDuration(cmp.Or(text, "0s"))
		if err != nil {
			d.Fatalf(t, "%s: %v", text, err)
		}
		return v
	}
	switch words[0] {
	case "new":
		s.finish()
		s.world.threads = opts["threads"] != ""
		sched, err := New(Config{
			Start: s.world.start, MaxLoaded: number("max-loaded"), MaxQueue: number("max-queue"), Parallel: cmp.Or(number("parallel"), 1), Threads: number("threads"),
			KeepAlive: duration(opts["keep-alive"]), LoadTimeout: duration(opts["load-timeout"]), MaxPass: number("max-pass"),
			MaxTurn: duration(opts["max-turn"]), Grace: duration(opts["grace"]), StopTimeout: duration(opts["stop-timeout"]), NumCtx: number("ctx"),
		})
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		s.sched, s.stop, s.ended, s.begin = sched, cancel, ended, time.Now()
		go func() {
			defer close(ended)
			if err := sched.Run(ctx); err != nil {
				s.note("run: %v", err)
			}
		}()
	case "model":
		s.world.mu.Lock()
		s.world.plans[args[0]] = plan{
			took: duration(opts["load"]), tick: duration(opts["tick"]), stop: duration(opts["stop"]), tune: duration(opts["tune"]), gpu: opts["gpu"] != "", dies: opts["dies"], fail: strings.ReplaceAll(opts["fail"], "_", " "),
		}
		s.world.mu.Unlock()
	case "start":
		s.world.mu.Lock()
		s.world.startErr = map[string]error{"fails": errors.New("no process"), "works": nil}[args[0]]
		s.world.mu.Unlock()
	case "lease":
		want := Want{Model: testModel(args[1], 32768), Options: options(number("ctx"))}
		want.Model.Name = cmp.Or(opts["as"], want.Model.Name)
		if text, ok := opts["keep"]; ok {
			v := duration(text)
			want.KeepAlive = &v
		}
		ctx, cancel := context.WithCancel(context.Background())
		if text, ok := opts["deadline"]; ok {
			ctx, cancel = context.WithTimeout(context.Background(), duration(text))
		}
		s.mu.Lock()
		s.cancels[args[0]] = cancel
		s.mu.Unlock()
		go s.lease(ctx, args[0], want)
	case "release":
		for _, id := range args {
			s.mu.Lock()
			lease := s.leases[id]
			delete(s.leases, id)
			s.mu.Unlock()
			if lease == nil {
				d.Fatalf(t, "there is no lease %s", id)
			}
			lease.Runner().(*fake).use(-1)
			lease.Release()
			lease.Release() // twice is once
		}
	case "cancel":
		s.mu.Lock()
		cancel := s.cancels[args[0]]
		s.mu.Unlock()
		cancel()
	case "sleep":
		<-time.After(duration(args[0]))
	case "ps":
		s.ps()
	case "crash":
		s.world.fake(args[0]).crash()
	case "unload":
		if err := s.sched.Unload(context.Background(), testModel(args[0], 0)); err != nil {
			s.note("unload: %v", err)
		}
	case "shutdown":
		s.stop()
	default:
		d.Fatalf(t, "unknown command %q", words[0])
	}
}

func (s *scenario) lease(ctx context.Context, id string, want Want) {
	begin := time.Now()
	lease, err := s.sched.Lease(ctx, want)
	if err != nil {
		s.note("lease %s: %s: %s%s", id, fault.CodeOf(err), publicText(err), retry(err))
		return
	}
	f := lease.Runner().(*fake)
	f.use(1)
	s.mu.Lock()
	s.leases[id] = lease
	s.mu.Unlock()
	s.note("lease %s: %s ctx=%d after %s", id, f.name, lease.Report().NumCtx, time.Since(begin))
}

func publicText(err error) string {
	var fe *fault.Error
	if errors.As(err, &fe) {
		return fe.Msg
	}
	return err.Error()
}

func retry(err error) string {
	var fe *fault.Error
	if errors.As(err, &fe) && fe.RetryAfter > 0 {
		return fmt.Sprintf(" (retry after %s)", fe.RetryAfter)
	}
	return ""
}

func (s *scenario) ps() {
	list, err := s.sched.Loaded(context.Background())
	if err != nil {
		s.note("ps: %s", publicText(err))
		return
	}
	for i, l := range list {
		expires := "never"
		if d := time.Until(l.ExpiresAt); d < 100*365*24*time.Hour {
			expires = "in " + d.String()
		}
		s.note("%d: %s %s, %d leases, expires %s", i, l.Model.Name, l.State, l.InFlight, expires)
	}
	if len(list) == 0 {
		s.note("nothing is loaded")
	}
}

// finish ends a scheduler, so that the next one begins with nothing.
func (s *scenario) finish() {
	if s.sched == nil {
		return
	}
	for id, lease := range s.leases {
		lease.Runner().(*fake).use(-1)
		lease.Release()
		delete(s.leases, id)
	}
	for _, cancel := range s.cancels {
		cancel()
	}
	s.stop()
	<-s.ended
	synctest.Wait()
	if s.world.alive != 0 {
		s.t.Errorf("%d runners are alive after the end", s.world.alive)
	}
	s.sched, s.lines = nil, nil
}
