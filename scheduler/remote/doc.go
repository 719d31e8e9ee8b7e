// Package remote makes runners of servers elsewhere that speak OpenAI's or Ollama's API.
//
//	a server: what it lists, whether it is well    server.go
//	one request on it                              openai.go, ollama.go
package remote
