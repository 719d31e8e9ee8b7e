package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
	"sluice/units"
)

// machine is a described machine with an account of its own: what is really taken on each device, by whom. It is the inventory of
// the scheduler under test and the judge of what that does.
type machine struct {
	mu      sync.Mutex
	devices []runner.Device
	taken   map[string]int64 // by our runners, until a driver has given it back
	other   map[string]int64 // by other programs
	lag     time.Duration    // until a GPU shows what a runner has given back
	slow    time.Duration    // a reading takes so long
	fails   bool             // readings
	read    int              // readings
}

func (m *machine) Devices(ctx context.Context) ([]runner.Device, error) {
	m.mu.Lock()
	slow, fails := m.slow, m.fails
	m.read++
	m.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if fails {
		return nil, errors.New("the driver does not answer")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := append([]runner.Device(nil), m.devices...)
	for i := range list {
		d := &list[i]
		d.FreeBytes = uint64(max(0, int64(d.TotalBytes)-m.taken[d.ID]-m.other[d.ID]))
	}
	return list, nil
}

// take gives a runner its memory, and tells where there is not enough.
func (m *machine) take(need []runner.DeviceMemory, part float64) (short string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := map[string]int64{}
	for _, n := range need {
		bytes := int64(part * float64(n.Bytes()))
		sum[n.Device] += bytes
		if m.integrated(n.Device) { // it has no memory of its own
			sum[runner.CPU] += bytes
		}
	}
	for _, d := range m.devices {
		if sum[d.ID] > 0 && m.taken[d.ID]+m.other[d.ID]+sum[d.ID] > int64(d.TotalBytes) {
			return d.ID
		}
	}
	for id, bytes := range sum {
		m.taken[id] += bytes
	}
	return ""
}

func (m *machine) integrated(id string) bool {
	for _, d := range m.devices {
		if d.ID == id {
			return d.Integrated
		}
	}
	return false
}

// give takes it back: from GPUs after the lag.
func (m *machine) give(need []runner.DeviceMemory, part float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range need {
		bytes := int64(part * float64(n.Bytes()))
		if m.integrated(n.Device) {
			m.taken[runner.CPU] -= bytes
		}
		if n.Device == runner.CPU || m.integrated(n.Device) || m.lag == 0 {
			m.taken[n.Device] -= bytes
			continue
		}
		time.AfterFunc(m.lag, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.taken[n.Device] -= bytes
		})
	}
}

// describe makes a machine of "gpu=24GiB,24GiB ram=64GiB"; igpu=1 makes the GPUs share main memory.
func describe(opts map[string]string) (*machine, error) {
	m := &machine{taken: map[string]int64{}, other: map[string]int64{}}
	for i, text := range strings.Split(opts["gpu"], ",") {
		if text == "" {
			continue
		}
		size, err := units.ParseBytes(text)
		if err != nil {
			return nil, err
		}
		m.devices = append(m.devices, runner.Device{ID: fmt.Sprint("gpu", i), Library: "cuda", TotalBytes: uint64(size), Integrated: opts["igpu"] != ""})
	}
	size, err := units.ParseBytes(opts["ram"])
	if err != nil {
		return nil, err
	}
	m.devices = append(m.devices, runner.Device{ID: runner.CPU, Library: "cpu", TotalBytes: uint64(size), Threads: 8})
	return m, nil
}

// layout describes a model of so many blocks and bytes whose cache takes so much for a token.
func layout(blocks int, weights, kvPerToken uint64) models.Layout {
	l := models.Layout{InputBytes: weights / 50, OutputBytes: weights / 50, Vocabulary: 32000, Width: 4096, Heads: 32, FeedForward: 14336}
	for range blocks {
		l.Layers = append(l.Layers, models.Layer{
			WeightBytes: (weights - 2*(weights/50)) / uint64(blocks), KVHeads: 8, KeyLength: int(kvPerToken) / blocks / 32, ValueLength: int(kvPerToken) / blocks / 32,
		})
	}
	return l
}

// truth is what a load takes, in the world of the fake: the estimate, times what the model's plan says.
func truth(p plan, req runner.LoadRequest) []runner.DeviceMemory {
	if p.model == nil {
		return nil
	}
	load := fit.LoadOf(p.model, req)
	if p.takes > 0 {
		load.Factor = p.takes
	}
	return fit.Estimate(load, req.Placement)
}

// reported is what a runner says of it: it does not know of what the driver needs besides.
func reported(memory []runner.DeviceMemory) (list []runner.DeviceMemory) {
	for _, m := range memory {
		if m.Device != runner.CPU {
			m.Compute = less(m.Compute, fit.GPUOverhead)
		}
		if m.Bytes() > 0 {
			list = append(list, m)
		}
	}
	return list
}
