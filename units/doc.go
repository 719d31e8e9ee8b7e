// Package units reads and writes the quantities that people type: numbers of bytes, and spans of time as Ollama has them. It knows
// nothing else, so that settings, catalogue and routes read them alike.
//
//	32MiB, 4.7 GB      bytes.go
//	5m, 300, -1        seconds.go
package units
