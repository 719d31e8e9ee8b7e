package runnertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/runner"
)

// Model is a model that ExerciseLoads loads again and again.
type Model struct {
	Start   func(t *testing.T) *runner.Process // a fresh child without a model; the suite stops it
	Path    string
	PerCell uint64 // bytes of the cache for a token of a sequence, by the formula of the model's kind
}

// ExerciseLoads runs what every load must do. The machine needs no GPU.
func ExerciseLoads(t *testing.T, m Model) {
	t.Run("memory is told by device, and the cache is exact", m.memory)
	t.Run("progress rises, and ends at 1", m.progress)
	t.Run("a device that is not there is refused by name", m.noDevice)
	t.Run("giving up a load ends the child", m.giveUp)
	t.Run("stopping a child that loads ends it", m.stop)
}

func (m Model) start(t *testing.T) *runner.Process {
	t.Helper()
	p := m.Start(t)
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return p
}

func (m Model) request() runner.LoadRequest {
	return runner.LoadRequest{ModelPath: m.Path, NumCtx: NumCtx, Parallel: 1, NumThread: 1, UseMmap: true}
}

func (m Model) memory(t *testing.T) {
	for _, size := range []struct{ numCtx, parallel int }{{NumCtx, 1}, {NumCtx, Parallel}, {2 * NumCtx, Parallel}} {
		req := m.request()
		req.NumCtx, req.Parallel = size.numCtx, size.parallel
		p := m.start(t)
		r, err := p.Load(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		var weights, kv, compute uint64
		seen := map[string]bool{}
		for _, line := range r.Memory {
			if seen[line.Device] || line.Device == "" {
				t.Errorf("device %q in %+v", line.Device, r.Memory)
			}
			seen[line.Device] = true
			weights, kv, compute = weights+line.Weights, kv+line.KV, compute+line.Compute
		}
		if want := m.PerCell * uint64(size.numCtx*size.parallel); kv != want {
			t.Errorf("%d × %d: KV %d, want %d", size.numCtx, size.parallel, kv, want)
		}
		if weights == 0 || compute == 0 || r.Bytes() != weights+kv+compute || r.GPUBytes() != 0 {
			t.Errorf("memory %+v; in all %d, on GPUs %d", r.Memory, r.Bytes(), r.GPUBytes())
		}
	}
}

func (m Model) progress(t *testing.T) {
	p := m.start(t)
	var seen []float32
	if _, err := p.Load(t.Context(), m.request(), func(f float32) { seen = append(seen, f) }); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 5 || !slices.IsSorted(seen) || seen[0] < 0 || seen[len(seen)-1] != 1 {
		t.Errorf("progress %v", seen)
	}
}

func (m Model) noDevice(t *testing.T) {
	const missing = "CUDA99"
	p := m.start(t)
	req := m.request()
	req.Placement = []runner.Share{{Device: missing, Layers: 1}}
	_, err := p.Load(t.Context(), req, nil)
	WantCode(t, err, fault.Invalid)
	if err != nil && !strings.Contains(fault.Public(err).Msg, missing) {
		t.Errorf("callers are told %q", fault.Public(err).Msg)
	}
	select {
	case <-p.Done():
		t.Errorf("the child ended: %v", p.Err())
	default:
	}
}

func (m Model) giveUp(t *testing.T) {
	p := m.start(t)
	gone := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := p.Load(ctx, m.request(), func(float32) { cancel(gone) }); !errors.Is(err, gone) {
		t.Errorf("error %v; want the cause of the context's end", err)
	}
	<-p.Done()
	if p.Err() != nil {
		t.Errorf("Err is %v", p.Err())
	}
}

func (m Model) stop(t *testing.T) {
	p := m.start(t)
	stopped := make(chan error, 1)
	begun := false
	_, err := p.Load(t.Context(), m.request(), func(float32) {
		if !begun {
			begun = true
			go func() { stopped <- p.Stop(context.Background()) }()
			<-p.Done() // the load waits here, so it cannot end before
		}
	})
	WantCode(t, err, fault.Busy)
	if err := <-stopped; err != nil || p.Err() != nil {
		t.Errorf("%v, %v", err, p.Err())
	}
}
