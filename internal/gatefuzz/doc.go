// Package gatefuzz holds what fuzzing a gate needs in either dialect: choices that a fuzzer can change byte by byte, the
// mutation of the cases, the time that a run may take, and the shortest text that still fails.
//
//	bytes that are choices               choices.go
//	the case files, and their mutation   cases.go
//	how long, which seed                 budget.go
//	the shortest text that still fails   minimise.go
package gatefuzz
