// Command gate measures the gate and the audit ledger, and prints the gate.* figures of bench/figures.tsv. dev/bench-gate.sh starts it.
//
//	which figures there are          main.go
//	statements through the gate      statements.go
//	a ledger of a million entries    ledger.go
package main
