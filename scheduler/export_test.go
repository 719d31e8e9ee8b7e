package scheduler

import "context"

// Inspect runs a look at the owner's own account inside the owner, so that nothing changes meanwhile: what ps says, the bytes that are
// charged to each device, the leases of each runner by its id, and the counters. For tests that keep an account of their own.
func (s *Scheduler) Inspect(ctx context.Context, look func(ps []Loaded, charges map[string]uint64, leases map[int]int, stats Stats)) error {
	done := make(chan struct{})
	err := s.ask(ctx, func(l *loop) {
		defer close(done)
		charges, leases := map[string]uint64{}, map[int]int{}
		for _, in := range l.runners {
			leases[in.id] = in.inFlight
			for _, m := range in.charge {
				charges[m.Device] += m.Bytes()
			}
		}
		look(l.snapshot(), charges, leases, l.stats())
	})
	if err != nil {
		return err
	}
	<-done
	return nil
}
