// Package registry gets models from registries and puts them there, by the protocol of OCI registries as Ollama uses it.
//
//	settings, which hosts            registry.go
//	getting a model                  pull.go
//	a file in parts                  download.go
//	putting a model                  push.go
//	the protocol, tokens             client.go
package registry
