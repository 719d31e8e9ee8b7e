package store

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkLedgerVerify walks through 50,000 entries. The time of the processor says more than that of the clock where others
// compute too.
func BenchmarkLedgerVerify(b *testing.B) {
	const entries = 50_000
	l := openLedger(b, newHome(b))
	l.fill(b, entries)
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		want(b, "all", l.verify(b), Intact, 0)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/entries, "cpu-ns/entry")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
