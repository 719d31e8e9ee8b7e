// Command gate measures the gate and the audit ledger, and prints the gate.* figures of bench/figures.tsv. dev/bench-gate.sh starts it.
//
//	which figures there are          main.go
//	beside the parser's library      analytic.go
//	statements seen before, huge     statements.go
//	a ledger of a million entries    ledger.go
package main
