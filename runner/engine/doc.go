// Package engine runs a GGUF model through llama.cpp, by way of github.com/ollama/ollama/llama. It lives in the child process
// only: much bad input aborts the process, so what can be checked is checked in Go first, and the rest is an exit status.
//
// One goroutine, the loop, owns the model's context: the KV cache, what each slot of it holds, the batch and the samplers.
// Requests reach it through a channel of functions that it calls between two batches. Each batch has the next token of every
// answer, then prompts in the room that is left; a slot is freed between two batches when its client has left. The loop never
// waits for a reader: chunks go to the request's outbox, and an answer whose outbox is full is left out of the batches.
// Tokenizing needs only the vocabulary, which never changes, and happens in the caller's goroutine.
//
// A slot keeps its tokens after a request. A prompt begins with the longest prefix that any slot has, and waits while another
// slot reads what it begins with. So several answers to one prompt are just requests with the same prompt.
//
//	the calls                                  engine.go; how chunks get back: outbox.go
//	the loop                                   loop.go
//	what is in a batch, drawing behind it      batch.go
//	which slot, whose prefix, whose turn       slots.go, pure functions
//	one answer, from prompt to end             generate.go
//	sampling, penalties, log probabilities     sample.go
//	grammars, from a text of the answer on     binding.go; schemas to grammars: package grammar
//	guessing what repeats, when it pays        draft.go
//	stop strings, whole UTF-8 characters       answer.go
//	vectors                                    embed.go; models that pool over a batch: pooled.go
//	what a prompt is read as                   inputs.go; images: images.go; their projectors: projector.go
//	texts that C could not tokenize whole      longruns.go
//	parameters of a load                       load.go; adapters: lora.go
//	devices, which layers go where             devices.go, placement.go
//	bytes as allocated                         memory.go, breakdown.cpp; memory that ran out: lastlog.go
//	what a file says, and what would abort     gguf.go
//	scores of pairs                            rerank.go
//	what llama.cpp cannot load                 fallback.go and its kin, architectures.go, probe.go
//	calls that the package hides               llama.go; cgo of ours is there and in the four files just named, with declarations
//	                                           made by hand, which tests compare with the library
//
// The traps named in comments here were measured on the package at v0.17.4.
package engine
