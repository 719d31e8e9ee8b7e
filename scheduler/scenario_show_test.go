package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sluice/fault"
	"sluice/units"
)

// Enabled and the rest make the scenario the scheduler's log: it notes the moves that are made, why models go, and warnings.
func (s *scenario) Enabled(context.Context, slog.Level) bool { return true }
func (s *scenario) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *scenario) WithGroup(string) slog.Handler            { return s }

func (s *scenario) Handle(_ context.Context, r slog.Record) error {
	has := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { has[a.Key] = a.Value.String(); return true })
	s.mu.Lock()
	if r.Message == "runner" {
		s.moves[[2]string{has["from"], has["event"]}] = true
	}
	s.mu.Unlock()
	if s.world.machine == nil {
		return nil
	}
	switch {
	case r.Message == "unloaded":
		s.note("unloaded %s: %s", has["model"], has["reason"])
	case has["warning"] != "":
		s.note("warning %s: %s", has["model"], has["warning"])
	case strings.Contains(r.Message, "devices can"):
		s.note("log: %s", r.Message)
	}
	return nil
}

func (s *scenario) lease(ctx context.Context, id string, want Want) {
	begin := time.Now()
	lease, err := s.sched.Lease(ctx, want)
	if err != nil {
		s.note("lease %s: %s: %s%s", id, fault.CodeOf(err), publicText(err), retry(err))
		return
	}
	s.mu.Lock()
	s.leases[id] = lease
	s.mu.Unlock()
	if name := lease.Remote(); name != "" {
		s.note("lease %s: on %s after %s", id, name, time.Since(begin))
		return
	}
	f := lease.Runner().(*fake)
	f.use(1)
	s.mu.Lock()
	s.here[lease] = true
	s.mu.Unlock()
	if s.world.machine != nil {
		s.note("lease %s: %s#%d ctx=%d×%d after %s", id, f.name, f.id, lease.Report().NumCtx, lease.Report().Parallel, time.Since(begin))
		return
	}
	s.note("lease %s: %s ctx=%d after %s", id, f.name, lease.Report().NumCtx, time.Since(begin))
}

// leave ends a lease. One that moved here from a server elsewhere was not counted.
func (s *scenario) leave(l *Lease) {
	if f, ok := l.Runner().(*fake); ok && s.here[l] {
		f.use(-1)
	}
	l.Release()
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
		s.note("%d: %s %s, %d leases, expires %s%s", i, l.Model.Name, l.State, l.InFlight, expires, s.more(l))
	}
	if len(list) == 0 {
		s.note("nothing is loaded")
	}
}

// more is what ps tells of a runner where memory counts.
func (s *scenario) more(l Loaded) string {
	if s.world.machine == nil && l.Remote == "" {
		return ""
	}
	var b strings.Builder
	if l.Remote != "" {
		fmt.Fprintf(&b, ", on %s", l.Remote)
	} else {
		fmt.Fprintf(&b, ", %s of %d layers", placement(l.Placement), l.Layers)
	}
	for _, m := range l.Memory {
		fmt.Fprintf(&b, ", %s %s", m.Device, units.Bytes(m.Bytes()).Memory())
	}
	if l.Progress > 0 && l.Progress < 1 {
		fmt.Fprintf(&b, ", %.0f%%", 100*l.Progress)
	}
	if l.Waiting > 0 {
		fmt.Fprintf(&b, ", %d wait", l.Waiting)
	}
	if l.Pinned {
		b.WriteString(", pinned")
	}
	if l.Warning != "" {
		b.WriteString(", warning")
	}
	return b.String()
}

// mem prints the devices, or what was counted.
func (s *scenario) mem(counted bool) {
	stats, err := s.sched.Stats(context.Background())
	if err != nil {
		s.note("stats: %s", publicText(err))
		return
	}
	if counted {
		s.note("loads %v, unloads %v, refused %v, %d wait", stats.Loads, stats.Unloads, stats.Refused, stats.Waiting)
		return
	}
	size := func(n uint64) string { return units.Bytes(n).Memory() }
	for _, d := range stats.Devices {
		s.note("%s: limit %s, used %s, reserved %s, models %v", d.ID, size(d.Limit), size(d.Used), size(d.Reserved), d.Models)
	}
}
