package runner_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/fault"
	"sluice/internal/fakerunner/fakebin"
	"sluice/internal/runnertest"
	"sluice/runner"
)

func TestLoad(t *testing.T) {
	t.Run("progress rises to the report", func(t *testing.T) {
		p := start(t, runner.Config{})
		var seen []float32
		report, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?load=20ms&weights=1000&kv=10&train=64", NumCtx: 100},
			func(f float32) { seen = append(seen, f) })
		if err != nil || report.Bytes() != 1010 || report.NumCtx != 64 || report.Took < 20*time.Millisecond {
			t.Errorf("report %+v, %v", report, err)
		}
		if len(seen) != 11 || !slices.IsSorted(seen) || seen[10] != 1 {
			t.Errorf("progress %v", seen)
		}
	})
	for _, code := range fault.Codes() {
		t.Run("a refusal keeps its code "+code.String(), func(t *testing.T) {
			p := start(t, runner.Config{})
			_, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?load_error=" + code.String(), NumCtx: 8}, nil)
			runnertest.WantCode(t, err, code)
			if err := p.Generate(t.Context(), runnertest.Request("say", 1), discard); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("without a model it answered %v", err)
			}
		})
	}
	t.Run("memory that ran out is told apart", func(t *testing.T) {
		for script, kind := range map[string]string{
			"load_error=too_large": runner.KindMemory, "weights=900&kv=101&oom_above=1000": runner.KindMemory, "load_error=invalid": "",
		} {
			t.Run(script, func(t *testing.T) {
				p := start(t, runner.Config{})
				_, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?" + script, NumCtx: 8}, nil)
				var f *fault.Error
				if !errors.As(err, &f) || f.Kind != kind || (f.Code == fault.TooLarge) != (kind != "") {
					t.Errorf("error %v", err)
				}
			})
		}
	})
	t.Run("a model just small enough is loaded", func(t *testing.T) {
		p := start(t, runner.Config{})
		report, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?weights=900&kv_token=10&compute=20&oom_above=1000", NumCtx: 4, Parallel: 2}, nil)
		if err != nil || report.Bytes() != 1000 {
			t.Errorf("%+v, %v", report, err)
		}
	})
	t.Run("the fake places as an engine does", func(t *testing.T) {
		machine := fakebin.Machine([]runner.Device{{ID: "CUDA0"}, {ID: "CUDA1"}, {ID: runner.CPU}})
		for name, row := range map[string]struct {
			shares []runner.Share
			want   []runner.DeviceMemory // nil: refused
		}{
			"all on two":  {[]runner.Share{{Device: "CUDA1", Layers: 3}, {Device: "CUDA0", Layers: 7}}, []runner.DeviceMemory{{Device: runner.CPU, Compute: 5}, {Device: "CUDA1", Weights: 300, KV: 30, Compute: 5}, {Device: "CUDA0", Weights: 700, KV: 70, Compute: 5}}},
			"a part":      {[]runner.Share{{Device: "CUDA1", Layers: 3}}, []runner.DeviceMemory{{Device: runner.CPU, Weights: 700, KV: 70, Compute: 5}, {Device: "CUDA1", Weights: 300, KV: 30, Compute: 5}}},
			"none":        {nil, []runner.DeviceMemory{{Device: runner.CPU, Weights: 1000, KV: 100, Compute: 5}}},
			"too many":    {[]runner.Share{{Device: "CUDA1", Layers: 11}}, nil},
			"main memory": {[]runner.Share{{Device: runner.CPU, Layers: 1}}, nil},
			"another":     {[]runner.Share{{Device: "CUDA2", Layers: 1}}, nil},
			"one twice":   {[]runner.Share{{Device: "CUDA1", Layers: 1}, {Device: "CUDA1", Layers: 1}}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				p := start(t, runner.Config{Env: []string{machine}})
				report, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?layers=9&weights=1000&kv=100&compute=5", NumCtx: 8, Placement: row.shares}, nil)
				if row.want == nil {
					runnertest.WantCode(t, err, fault.Invalid)
				} else if err != nil || !slices.Equal(report.Memory, row.want) {
					t.Errorf("%+v, %v", report.Memory, err)
				}
			})
		}
	})
	t.Run("stopping a child that loads does not wait for it", func(t *testing.T) {
		p := start(t, runner.Config{Env: []string{"FAKERUNNER=stay=1"}})
		begun, ended := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			_, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: "m?load=1h", NumCtx: 8}, func(float32) { once.Do(func() { close(begun) }) })
			ended <- err
		}()
		<-begun
		if err := p.Stop(t.Context()); err != nil || p.Err() != nil { // it ignores the end of stdin, so only a kill ends it
			t.Errorf("%v, %v", err, p.Err())
		}
		runnertest.WantCode(t, <-ended, fault.Busy)
	})
	t.Run("giving up a load stops the child", func(t *testing.T) {
		p := start(t, runner.Config{})
		gone := errors.New("nobody waits any more")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := p.Load(ctx, runner.LoadRequest{ModelPath: "m?load=1h", NumCtx: 8}, func(float32) { cancel(gone) })
		if !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
		<-p.Done()
		if p.Err() != nil {
			t.Errorf("Err is %v", p.Err())
		}
	})
}
