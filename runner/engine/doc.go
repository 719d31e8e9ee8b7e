// Package engine runs a GGUF model through llama.cpp, by way of github.com/ollama/ollama/llama. It lives in the child process
// only: much bad input aborts the process, so what can be checked is checked in Go first, and the rest is an exit status.
//
// One goroutine (loop.go) owns the model's context: the KV cache, what it holds, the batch and the sampler. Requests reach it
// through a channel, one at a time, and are abandoned between batches when their context ends. Tokenizing needs only the
// vocabulary, which never changes, and happens in the caller's goroutine.
//
// The sequence keeps its tokens after a request. The next prompt reuses the longest common prefix of what is there.
//
//	the calls, the queue                       engine.go
//	what owns the context, reading a prompt    loop.go
//	sampling until the answer ends             generate.go, sample.go
//	stop strings, whole UTF-8 characters       answer.go
//	vectors                                    embed.go
//	parameters, bytes reported                 load.go
//	what a file says, and what would abort     gguf.go
//	JSON Schema to grammar, and its dangers    schema.go, pattern.go
//
// The traps named in comments here were measured on the package at v0.17.4.
package engine
