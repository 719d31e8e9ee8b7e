package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// patience is how long the scheduler may think about a model. It gives memory that other programs hold some seconds to come back, and
// then refuses with numbers.
const patience = 20 * time.Second

// places says where each model would go: it asks the scheduler itself, with the server's settings, and a runner that notes what it is
// told to load and loads nothing. Each model has a scheduler of its own, so that none finds another one's place taken.
func (d *doctor) places(ctx context.Context) {
	if d.machine == nil {
		return
	}
	all := make([]placeReport, len(d.models))
	var wg sync.WaitGroup
	for i, m := range d.models {
		wg.Go(func() { all[i] = d.place(ctx, m) })
	}
	wg.Wait()
	for _, p := range all {
		if p.Error != "" {
			d.warn(fmt.Sprintf("%s cannot be loaded now: %s", p.Model, p.Error), p.Hint)
		} else if p.Warning != "" {
			d.warn(p.Model+": "+p.Warning, "")
		}
	}
	d.report.Places = append(d.report.Places, all...)
}

func (d *doctor) place(ctx context.Context, m *models.Model) placeReport {
	out := placeReport{Model: m.Name}
	fail := func(err error) placeReport {
		out.Error = err.Error()
		var f *fault.Error
		if errors.As(err, &f) {
			out.Error, out.Hint = f.Msg, f.Hint
		}
		return out
	}
	var s *scheduler.Scheduler
	cfg := schedulerConfig(d.cfg, d.machine, &d.catalogue)
	cfg.Start = func(context.Context) (scheduler.Runner, error) { return newRehearsal(s), nil }
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := scheduler.New(cfg)
	if err != nil {
		return fail(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	defer func() { stop(); <-ended }()

	opts, _, err := m.Options(nil)
	if err != nil {
		return fail(err)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, patience, errors.New("there is no room for it now, and none comes free"))
	defer cancel()
	lease, err := s.Lease(waiting, scheduler.Want{Model: m, Options: opts})
	if err != nil {
		return fail(err)
	}
	defer lease.Release()
	loaded, err := s.Loaded(ctx)
	if err != nil || len(loaded) != 1 {
		return fail(errors.Join(err, fault.Bug("doctor: %d runners of one model", len(loaded))))
	}
	l := loaded[0]
	out.NumCtx, out.Parallel, out.Layers, out.Shares, out.Memory, out.Warning = l.NumCtx, l.Report.Parallel, l.Layers, l.Placement, l.Memory, l.Warning
	return out
}

// rehearsal is a runner that loads nothing: its report is what the scheduler has estimated.
type rehearsal struct {
	scheduler *scheduler.Scheduler
	once      sync.Once
	done      chan struct{}
}

func newRehearsal(s *scheduler.Scheduler) *rehearsal {
	return &rehearsal{scheduler: s, done: make(chan struct{})}
}

func (r *rehearsal) Load(ctx context.Context, req runner.LoadRequest, _ func(float32)) (runner.LoadReport, error) {
	out := runner.LoadReport{Backend: "rehearsal", Parallel: req.Parallel, NumCtx: req.NumCtx}
	loading, err := r.scheduler.Loaded(ctx)
	if err == nil && len(loading) == 1 {
		out.Memory = loading[0].Memory
	}
	return out, err
}

var errRehearsal = fault.Bug("doctor: a rehearsal computes nothing")

func (*rehearsal) Generate(context.Context, runner.GenerateRequest, func(runner.Chunk) error) error {
	return errRehearsal
}

func (*rehearsal) Embed(context.Context, runner.EmbedRequest) (runner.EmbedResponse, error) {
	return runner.EmbedResponse{}, errRehearsal
}

func (*rehearsal) Rerank(context.Context, runner.RerankRequest) (runner.RerankResponse, error) {
	return runner.RerankResponse{}, errRehearsal
}

func (*rehearsal) Tokenize(context.Context, string, bool) ([]int, error) { return nil, errRehearsal }

func (*rehearsal) Detokenize(context.Context, []int) (string, error) { return "", errRehearsal }

func (*rehearsal) SetThreads(context.Context, int) error { return nil }

func (r *rehearsal) Done() <-chan struct{} { return r.done }

func (*rehearsal) Err() error { return nil }

func (r *rehearsal) Stop(context.Context) error {
	r.once.Do(func() { close(r.done) })
	return nil
}
