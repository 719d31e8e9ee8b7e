// Package registrytest runs the CNCF registry on loopback, in this process, and does harm to what it answers: it cuts, stalls,
// flips bytes, refuses and forgets how ranges work, each at a place that the test names. It counts what was asked and sent.
//
// The registry is the real one (github.com/distribution/distribution/v3). The harm is done by a handler in front of it, so that
// what is not harmed is exactly what the real one says. `go build ./internal/registrytest/serve` makes a program of it.
//
//	starting and stopping           registry.go
//	what can go wrong, and where    fault.go
//	who may do what: tokens         auth.go
//	putting models into it          seed.go
package registrytest
