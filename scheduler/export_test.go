package scheduler

import "context"

// Inspect runs a look at the owner's own account inside the owner, so that nothing changes meanwhile: what ps says, and the bytes
// that are charged to each device. For tests that keep an account of their own.
func (s *Scheduler) Inspect(ctx context.Context, look func(ps []Loaded, charges map[string]uint64)) error {
	done := make(chan struct{})
	err := s.ask(ctx, func(l *loop) {
		defer close(done)
		charges := map[string]uint64{}
		for _, in := range l.runners {
			for _, m := range in.charge {
				charges[m.Device] += m.Bytes()
			}
		}
		look(l.snapshot(), charges)
	})
	if err != nil {
		return err
	}
	<-done
	return nil
}
