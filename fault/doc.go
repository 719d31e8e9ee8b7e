// Package fault is the one error type of Sluice.
//
// A package classifies an error once, where it is known, with a [Code] that says what the caller can do about it.
// Everyone above only adds %w. An error without a code is [Internal], and its text never leaves the process.
//
//	what a code means, its wire name    code.go
//	the error itself, and reading it    fault.go
package fault
