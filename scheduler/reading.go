package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/runner"
)

const (
	// freshFor is how old a reading may be that a load is decided on.
	freshFor = 250 * time.Millisecond
	// readTimeout bounds one reading.
	readTimeout = 10 * time.Second
	// readAge is how old a reading may be that is shown.
	readAge = time.Second
)

// readings are what is known of the devices. The inventory may take its time: a goroutine beside the owner asks it.
type readings struct {
	read    func() ([]runner.Device, error) // asks the inventory, until the shutdown
	reading bool                            // one is under way
	devices []runner.Device                 // the last that went well; nil: none has
	begun   time.Time                       // of that one
	tried   time.Time                       // when the last one ended, whether it went well or not; zero: none has
	went    int                             // runners that have gone
	before  int                             // of these, before the last one began: it has not seen what the others gave back
	failing bool
	lag     []lagging
	back    []givenBack // since the last one that went well began
}

// givenBack is memory of the n-th runner that went.
type givenBack struct {
	n      int
	memory []runner.DeviceMemory
}

// lagging is memory of a runner that went, which a driver may still show as taken.
type lagging struct {
	memory []runner.DeviceMemory
	until  time.Time
}

// reader gives what asks the inventory once, until ctx ends.
func (l *loop) reader(ctx context.Context) func() ([]runner.Device, error) {
	return func() ([]runner.Device, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, fmt.Errorf("reading the devices took over %s", readTimeout))
		defer cancel()
		return l.cfg.Inventory.Devices(ctx)
	}
}

// measure begins a reading, if none is under way.
func (l *loop) measure() {
	if l.cfg.Inventory == nil || l.memory.reading || l.closing {
		return
	}
	l.memory.reading = true
	begun, went := time.Now(), l.memory.went
	l.lives.Go(func() {
		devices, err := l.memory.read()
		l.s.tell(func(l *loop) { l.measured(begun, went, devices, err) })
	})
}

func (l *loop) measured(begun time.Time, went int, devices []runner.Device, err error) {
	m := &l.memory
	m.reading, m.tried, m.before = false, time.Now(), went
	if err != nil {
		if !m.failing && !l.closing {
			l.cfg.Log.Warn("the devices cannot be read; what was read last is taken", "error", err, "known", m.devices != nil)
		}
		m.failing = true
		return
	}
	if m.failing {
		l.cfg.Log.Info("the devices can be read again")
	}
	m.failing, m.devices, m.begun = false, devices, begun
	m.back = slices.DeleteFunc(m.back, func(b givenBack) bool { return b.n <= went })
}

// left remembers what a runner had on GPUs: for settleFor it may come back only later. Main memory is free when a process is gone.
func (m *readings) left(in *instance) {
	m.went++
	m.back = append(m.back, givenBack{m.went, in.charge})
	var memory []runner.DeviceMemory
	for _, d := range in.charge {
		i := slices.IndexFunc(m.devices, func(have runner.Device) bool { return have.ID == d.Device })
		if i >= 0 && d.Device != runner.CPU && !m.devices[i].Integrated {
			memory = append(memory, d)
		}
	}
	if len(memory) > 0 {
		wait := settleFor
		if in.reason == ReasonFailed {
			wait = failedSettle // nobody knows how much it had
		}
		m.lag = append(m.lag, lagging{memory: memory, until: time.Now().Add(wait)})
	}
}

// account gives the policy its view of memory; nil when it is not looked at.
func (l *loop) account() *account {
	m := &l.memory
	if l.cfg.Inventory == nil || m.devices == nil && !m.tried.IsZero() {
		return nil
	}
	now := time.Now()
	m.lag = slices.DeleteFunc(m.lag, func(g lagging) bool { return !g.until.After(now) })
	charges, unseen := map[int][]runner.DeviceMemory{}, map[int]bool{}
	for _, in := range l.runners {
		charges[in.id] = in.charge
		if in.readyAt.IsZero() || in.readyAt.After(m.begun) {
			unseen[in.id] = true
		}
	}
	var lag []runner.DeviceMemory
	for _, g := range m.lag {
		lag = append(lag, g.memory...)
	}
	a := newAccount(m.known(), l.cfg.GPUOverhead, l.cfg.Memory, charges, unseen, lag)
	a.fresh = !m.tried.IsZero() && m.before == m.went && now.Sub(m.tried) < freshFor
	return a
}

// known are the devices as they were read last. While they cannot be read, what runners have given back since is not taken for what other
// programs have.
func (m *readings) known() []runner.Device {
	if !m.failing || len(m.back) == 0 {
		return m.devices
	}
	list := slices.Clone(m.devices)
	for i := range list {
		d := &list[i]
		for _, b := range m.back {
			for _, line := range b.memory {
				if line.Device == d.ID || d.ID == runner.CPU && m.integrated(line.Device) {
					d.FreeBytes += line.Bytes()
				}
			}
		}
		if d.TotalBytes > 0 {
			d.FreeBytes = min(d.FreeBytes, d.TotalBytes)
		}
	}
	return list
}

func (m *readings) integrated(id string) bool {
	return slices.ContainsFunc(m.devices, func(d runner.Device) bool { return d.ID == id && d.Integrated })
}

// mostLoaded is how many runners there may be; 0: as many as fit. When the devices could not be read even once, one.
func (l *loop) mostLoaded() int {
	if l.cfg.Inventory != nil && l.memory.devices == nil && l.cfg.MaxLoaded == 0 {
		return 1
	}
	return l.cfg.MaxLoaded
}

func bytesOf(memory []runner.DeviceMemory) (n uint64) {
	for _, m := range memory {
		n += m.Bytes()
	}
	return n
}
