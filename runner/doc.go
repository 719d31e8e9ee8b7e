// Package runner is the wall between Sluice and the engine: a child process that alone links llama.cpp, and the protocol to it.
//
// llama.cpp aborts the process on some sixteen kinds of bad input. In a child such an abort is an exit status, told to the
// callers whose streams it carried, and to nobody else.
//
// Both sides of the wall live here. The parent starts a child with [Start] and owns a [Process]; the child calls [Serve]
// with an [Engine]. Between them is HTTP over a unix socket in a fresh folder that only the parent's user may enter.
// Streams are lines of JSON, of which exactly the last has "done", "report" or "error": a stream that just ends is a fault,
// never an answer. Giving up a request is closing its connection; the child sees that as the end of the context.
//
// A child lives no longer than its parent: it holds the read end of a pipe as stdin, and the kernel closes the other end
// even when the parent is killed with signal 9.
//
//	what goes over the wire                    protocol.go, faults in wire.go
//	starting, stopping, why a child ended      process.go, exit.go; for want of memory: oom.go
//	replacing a child that does not answer     watch.go
//	the parent's calls                         calls.go
//	what models can be loaded on               devices.go
//	the child's side                           serve.go
//	what an engine must do                     engine.go; held by internal/runnertest
package runner
