package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice/models"
	"sluice/units"
)

// TestScenarios plays testdata/scenario-*.txt. Time is synctest's, so the times in the files are exact. The commands:
//
//	new max-loaded=1 …           a scheduler; durations and numbers as in Config, but parallel=1; with threads=… they are told
//	model NAME load=2s fail=…    how a model behaves; dies=SIGNAL instead of fail: as a process
//	start fails, start works     whether runners can be started
//	lease ID NAME ctx=… keep=…   asks for a lease, in the background; as=ALIAS: by another name of the same file
//	release ID, cancel ID        ends a lease, or a wait
//	sleep 5s, ps, crash NAME [first], unload NAME, shutdown
//
// After machine, memory counts:
//
//	machine gpu=24GiB,24GiB ram=64GiB lag=2s slow=1s   before new; GPUs show what is given back after the lag
//	model … layers=32 weights=8GiB kv=128KiB           kv for a token; takes=1.1 of the estimate; try=oom,killed,ok: how loads end
//	set NAME pin=1 replicas=2 devices=gpu0,gpu1 ctx=… parallel=… keep=…
//	other gpu0=10GiB             another program takes as much
//	readings fail, readings work
//	mem, stats                   what the devices have, and what was counted
//
// With remote NAME slots=2 models=a,b before new there are servers elsewhere; remote NAME up, remote NAME down: whether they are well;
// use ID chat=1: a request on a lease, a chat that was not rendered; remote NAME fails: the next one there does.
//
// A command prints what happened until everybody waits again, each line with the seconds since the beginning.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenario-*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	moves, played := map[[2]string]bool{}, 0
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			played++
			synctest.Test(t, func(t *testing.T) {
				s := &scenario{moves: moves, t: t, begin: time.Now(), world: newWorld(), leases: map[string]*Lease{}, here: map[*Lease]bool{}, cancels: map[string]context.CancelFunc{}}
				s.world.log = s.note
				s.world.onKill = func(name string, n int) { s.note("%s is ended under %d leases", name, n) }
				defer s.finish()
				datadriven.RunTest(t, path, s.command)
			})
		})
	}
	if played < len(paths) {
		return // only some were asked for
	}
	for from, events := range next {
		for e := range events {
			if !moves[[2]string{from.String(), e.String()}] {
				t.Errorf("no scenario has a runner that is %s and then %s: the table of states has a row that nothing shows", from, e)
			}
		}
	}
}

type scenario struct {
	t     *testing.T
	begin time.Time
	world *world
	sched *Scheduler
	stop  context.CancelFunc
	ended chan struct{}

	machine  *machine // for the next new
	settings map[string]Settings
	remotes  []*fakeRemote
	moves    map[[2]string]bool

	mu      sync.Mutex
	lines   []string
	leases  map[string]*Lease
	here    map[*Lease]bool
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
	size := func(key string) uint64 {
		n, err := units.ParseBytes(cmp.Or(opts[key], "0"))
		if err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return uint64(n)
	}
	if s.elsewhere(t, d, words[0], args, opts) {
		return
	}
	switch words[0] {
	case "machine":
		s.finish()
		m, err := describe(opts)
		if err != nil {
			d.Fatalf(t, "machine: %v", err)
		}
		m.lag, m.slow = duration(opts["lag"]), duration(opts["slow"])
		s.machine, s.settings, s.world.plans, s.remotes = m, map[string]Settings{}, map[string]plan{}, nil
	case "set":
		v := Settings{Pin: opts["pin"] != "", Replicas: number("replicas"), NumCtx: number("ctx"), Parallel: number("parallel")}
		if opts["devices"] != "" {
			v.Devices = strings.Split(opts["devices"], ",")
		}
		if text, ok := opts["keep"]; ok {
			keep := duration(text)
			v.KeepAlive = &keep
		}
		s.settings[args[0]] = v
	case "other":
		s.machine.mu.Lock()
		for id := range opts {
			s.machine.other[id] = int64(size(id))
		}
		s.machine.mu.Unlock()
	case "lag":
		s.machine.mu.Lock()
		s.machine.lag = duration(args[0])
		s.machine.mu.Unlock()
	case "readings":
		s.machine.mu.Lock()
		s.machine.fails = args[0] == "fail"
		s.machine.mu.Unlock()
	case "mem":
		s.mem(false)
	case "stats":
		s.mem(true)
	case "new":
		s.finish()
		s.world.threads = opts["threads"] != ""
		s.world.machine = s.machine
		s.world.loads = map[string]int{}
		cfg := Config{
			Log: slog.New(s), Start: s.world.start, MaxLoaded: number("max-loaded"), MaxQueue: number("max-queue"), Parallel: cmp.Or(number("parallel"), 1), Threads: number("threads"),
			KeepAlive: duration(opts["keep-alive"]), LoadTimeout: duration(opts["load-timeout"]), MaxPass: number("max-pass"),
			MaxTurn: duration(opts["max-turn"]), Grace: duration(opts["grace"]), StopTimeout: duration(opts["stop-timeout"]), NumCtx: number("ctx"),
			Memory: size("memory"), GPUOverhead: size("overhead"), KVCacheType: opts["kv-type"],
			Settings: func(m *models.Model) Settings { return s.settings[m.Name] },
		}
		if s.machine != nil {
			cfg.Inventory = s.machine
			cfg.Parallel = number("parallel")
		}
		for _, r := range s.remotes {
			cfg.Remotes = append(cfg.Remotes, r)
		}
		sched, err := New(cfg)
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
		p := plan{
			took: duration(opts["load"]), tick: duration(opts["tick"]), stop: duration(opts["stop"]), tune: duration(opts["tune"]), gpu: opts["gpu"] != "", dies: opts["dies"], fail: strings.ReplaceAll(opts["fail"], "_", " "),
		}
		if opts["weights"] != "" {
			p.model = testModel(args[0], 131072)
			p.model.Facts.Layout = layout(cmp.Or(number("layers"), 32), size("weights"), size("kv"))
		}
		if opts["try"] != "" {
			p.trys = strings.Split(opts["try"], ",")
		}
		if opts["takes"] != "" {
			v, err := strconv.ParseFloat(opts["takes"], 64)
			if err != nil {
				d.Fatalf(t, "takes: %v", err)
			}
			p.takes = v
		}
		s.world.plans[args[0]] = p
		s.world.mu.Unlock()
	case "start":
		s.world.mu.Lock()
		s.world.startErr = map[string]error{"fails": errors.New("no process"), "works": nil}[args[0]]
		s.world.mu.Unlock()
	case "lease":
		want := Want{Model: testModel(args[1], 32768), Options: options(number("ctx"))}
		s.world.mu.Lock()
		if m := s.world.plans[args[1]].model; m != nil {
			copied := *m
			want.Model = &copied
		}
		s.world.mu.Unlock()
		want.Model.Name = cmp.Or(opts["as"], want.Model.Name)
		if opts["away"] != "" { // it is not installed
			want.Model.Path = ""
		}
		for _, text := range strings.Split(opts["prefix"], ",") {
			if text != "" {
				h, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					d.Fatalf(t, "prefix: %v", err)
				}
				want.Prefix = append(want.Prefix, h)
			}
		}
		if n := number("layers"); n > 0 {
			want.Options.NumGPU = n
		}
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
				s.note("there is no lease %s", id)
				continue
			}
			s.leave(lease)
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
		f := s.world.fake(args[0])
		if len(args) > 1 { // the first one of several
			f = s.world.all[slices.IndexFunc(s.world.all, func(f *fake) bool { return f.name == args[0] && !f.ended })]
		}
		f.crash()
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

// finish ends a scheduler, so that the next one begins with nothing.
func (s *scenario) finish() {
	if s.sched == nil {
		return
	}
	for _, cancel := range s.cancels {
		cancel()
	}
	synctest.Wait() // nobody waits any more who would get what is released
	for id, lease := range s.leases {
		s.leave(lease)
		delete(s.leases, id)
	}
	s.stop()
	<-s.ended
	synctest.Wait()
	<-time.After(time.Minute) // what a driver gives back late
	if s.world.alive != 0 {
		s.t.Errorf("%d runners are alive after the end", s.world.alive)
	}
	s.sched, s.lines = nil, nil
}
