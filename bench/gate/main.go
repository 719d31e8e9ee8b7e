package main

import "sluice/bench/beside"

func main() {
	beside.Main(nil, []beside.Scene{
		{Name: "gate.analytic_query", Run: analyticQuery},
		{Name: "gate.repeat_us", Run: repeated},
		{Name: "gate.huge_ms", Run: huge},
		{Name: "gate.ledger_verify", Run: ledgerVerify},
	}, "gate.")
}
