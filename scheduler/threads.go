package scheduler

import (
	"context"
	"time"

	"sluice/runner"
)

// Runners that compute on the same cores must share them. Their threads wait for each other at barriers without ever
// yielding, hundreds of times per token: with more threads than cores, each waits out the time slices of others, and two
// models that write 25 and 75 tokens a second alone write 0.3 and 0.6 together. With the cores divided they write 13 and 46
// (measured, two cores). So the owner gives each runner that computes its share, and changes it whenever one begins
// or ends.

const (
	// settleTime bounds a new request's wait until those who compute already have been told to make room. A runner takes a
	// new number of threads up between two batches.
	settleTime = time.Second
	// tuneTimeout bounds one call of SetThreads.
	tuneTimeout = 10 * time.Second
	// cpuPart is the part of a model's memory that must lie outside of GPUs for it to count as computing on the CPU. The
	// table of a large vocabulary stays in main memory even when every layer is on a GPU.
	cpuPart = 0.1
)

// tuning is a number of threads that a runner shall be told.
type tuning struct {
	threads int
	told    []chan struct{} // closed when it has been
}

// share is how many threads each of n runners gets.
func share(cores, n int) int { return max(1, cores/max(1, n)) }

// computes tells whether a runner works on the CPU: it has leases, or it is loading.
func (in *instance) computes() bool {
	switch in.state {
	case Loading:
		return true
	case Ready, Draining:
		return in.inFlight > 0 && !onGPU(in.report)
	}
	return false
}

func (l *loop) computing() (n int) {
	for _, in := range l.runners {
		if in.computes() {
			n++
		}
	}
	return n
}

func onGPU(r runner.LoadReport) bool {
	all, gpu := r.Bytes(), r.GPUBytes()
	return gpu > 0 && float64(all-gpu) <= cpuPart*float64(all)
}

// shareCores tells each runner that computes its threads, where they differ from those it was told before. It gives what
// must be closed before all of them know.
func (l *loop) shareCores() (untold []<-chan struct{}) {
	n := l.computing()
	for _, in := range l.runners {
		if !in.computes() || in.state == Loading {
			continue
		}
		if want := min(share(l.cfg.Threads, n), in.mostThreads); want != in.threads {
			in.tell(want)
		}
		if in.told != nil {
			untold = append(untold, in.told)
		}
	}
	return untold
}

// tell leaves a number of threads for the runner's goroutine, in place of one that it has not taken up.
func (in *instance) tell(threads int) {
	next := tuning{threads: threads, told: []chan struct{}{make(chan struct{})}}
	in.threads, in.told = threads, next.told[0]
	select {
	case before := <-in.tune:
		next.told = append(next.told, before.told...)
	default:
	}
	in.tune <- next // has room: nobody else sends
}

// tuned hands the runner what the owner left for it, until ctx ends.
func (s *Scheduler) tuned(ctx context.Context, in *instance, r Runner) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-in.tune:
			limited, cancel := context.WithTimeout(ctx, tuneTimeout)
			if err := r.SetThreads(limited, t.threads); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("a runner's threads could not be changed", "model", in.model.Name, "threads", t.threads, "error", err)
			}
			cancel()
			for _, told := range t.told {
				close(told)
			}
		}
	}
}

// settle waits until everybody has been told, or for settleTime: a runner in the midst of a long batch hears it late.
func settle(ctx context.Context, untold []<-chan struct{}) error {
	if len(untold) == 0 {
		return nil
	}
	late := time.NewTimer(settleTime)
	defer late.Stop()
	for _, told := range untold {
		select {
		case <-told:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return waitError(ctx)
		}
	}
	return nil
}
