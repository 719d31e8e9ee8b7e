// Package remote makes runners of servers elsewhere that speak OpenAI's or Ollama's API.
//
//	what a server is told to be, and its defaults      config.go
//	a server: whether it is well, what it offers       server.go
//	what it lists                                      list.go (OpenAI), list_ollama.go
//	what is believed of what it says, and kept         bounds.go
//	one request: sending, time limits, hops            call.go
//	what its errors mean                               errors.go
//	an answer that comes in lines                      stream.go
//	a model of it, as a runner                         runner.go
//	a request's options, under Ollama's names          options.go
//	a chat or a text, in Ollama's words                ollama.go
//	a chat or a text, in OpenAI's words                openai.go (asking), messages.go, answer.go (reading)
//	vectors, scores, tokens                            vectors.go, tokens.go
//
// The package knows nothing of the scheduler, so its Runner gives a concrete type: whoever hands a Server to the scheduler wraps that
// one method.
package remote
