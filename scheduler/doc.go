// Package scheduler decides which model is loaded, and for how long.
//
// A request asks for a [Lease]. It gets one on a loaded runner, waits for a load, or is refused with fault.Busy. One
// goroutine, Scheduler.Run, owns all state and is asked through a channel of functions, so nothing here takes a lock. Each
// runner has one goroutine besides, which starts it, loads it, watches it and stops it, and tells the owner.
//
// What holds: a runner with a lease is never stopped before the shutdown's grace is over; a runner that drains takes no new
// lease, however late requests come; never more than MaxLoaded runners are alive; those that compute on the CPU have together
// no more threads than there are cores, but one at least each; a waiting model gets its turn although
// another one is asked for all the time (policy.go says when); every wait ends with its context.
//
// How a model is loaded is decided by the request that makes it load. A later one that asks for a larger num_ctx has it
// loaded again; its num_gpu, num_batch, num_thread and use_mmap are ignored while the model is loaded.
//
//	settings and their defaults       config.go
//	who is next, who is evicted       policy.go   pure, table-tested
//	pauses after a load that failed   brake.go    pure, table-tested
//	a runner's life as a table        state.go    drawn in testdata/states.golden
//	queue, keep-alive, leases         loop.go     the owner
//	starting, loading, watching       life.go
//	who computes on how many cores    threads.go
//	from options to a runner's call   generate.go
//	what callers see                  scheduler.go
package scheduler
