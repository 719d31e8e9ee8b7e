// Package scheduler decides which model is loaded where, and for how long.
//
// A request asks for a [Lease]. It gets one on a loaded runner or on a server elsewhere, waits for a load, or is refused: with
// fault.Busy when the queue is full, its time is over, or pinned models or other programs have the memory; with fault.TooLarge when the
// machine could not hold the model at all. One goroutine, Scheduler.Run, owns all state and is asked through a channel of functions, so
// nothing here takes a lock. Each runner has one goroutine besides, which starts it, loads it, watches it and stops it, and tells the
// owner; so has each reading of the devices, and each server elsewhere.
//
// Of requests that ask for the same, the policy sees the first only, so a burst of thousands costs it no more than a few. A load that
// nobody waits for any more ends, but for a further runner of a model, which gives way when another model needs its room.
//
// What holds: a runner with a lease is never stopped before the shutdown's grace is over; a runner that drains takes no new
// lease, however late requests come; a pinned one never goes for another model; what is loaded fits, by what runners reported and
// by what was measured a moment ago; nobody is evicted whose going does not make the waiting model fit; those that compute on the
// CPU have together no more threads than there are cores, but one at least each; a waiting model gets its turn although
// another one is asked for all the time (policy.go says when); every wait ends with its context.
//
// How a model is loaded is decided by the request that makes it load. A later one that asks for a larger num_ctx has it
// loaded again, in the place of one runner of it, or on GPUs that have none; its other runners serve on. num_gpu, num_batch, num_thread and
// use_mmap of a later one are ignored while the model is loaded. A model that nobody said how
// many requests it shall answer at a time gets fewer rather than fewer layers on GPUs.
//
//	settings and their defaults       config.go
//	who is next                       policy.go   pure, table-tested
//	who is evicted, who waits         room.go     pure, a part of the policy
//	what a model needs, and refusals  need.go     pure
//	memory: charges, rooms            memory.go   pure
//	readings of the devices           reading.go
//	pauses after a load that failed   brake.go    pure, table-tested
//	a runner's life as a table        state.go    drawn in testdata/states.golden
//	the owner                         loop.go
//	the queue                         queue.go
//	leases, keep_alive, prefixes      lease.go
//	loads: once more, learning        load.go
//	starting, loading, watching       life.go
//	servers elsewhere                 remotes.go
//	who computes on how many cores    threads.go
//	from options to a runner's call   generate.go
//	ps and counters                   stats.go
//	what callers see                  scheduler.go
//
// The estimate of a load and its placement are in fit, the devices in inventory, the servers elsewhere in remote.
package scheduler
