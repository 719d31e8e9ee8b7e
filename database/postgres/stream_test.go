package postgres

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const million = 1_000_000

// wide makes the table of the benchmark, once.
func wide(t testing.TB) {
	admin(t, `CREATE TABLE IF NOT EXISTS wide AS SELECT g AS id, (g % 100000000 * 1.37)::numeric(18,2) AS amount, 'customer ' || g AS name,
		timestamptz '2024-01-01' + g * interval '1 second' AS at, g * 0.5::float8 AS ratio FROM generate_series(1, 1000000::bigint) g`,
		"ANALYZE wide", "GRANT SELECT ON wide TO "+role())
}

const wideQuery = "SELECT id, amount, name, at, ratio FROM public.wide"

func TestRealAMillionRowsStreamInBoundedMemory(t *testing.T) {
	wide(t)
	e := open(t)
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // or the collector's leisure is measured
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := e.text(t.Context(), wideQuery)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var rows, peak, batches int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
		if r.RecordBatch().NumRows() > batchRows {
			t.Fatalf("a batch has %d rows", r.RecordBatch().NumRows())
		}
		if batches++; batches%8 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, int64(now.HeapAlloc)-int64(before.HeapAlloc))
		}
	}
	if r.Err() != nil || rows != million {
		t.Fatalf("%d rows, %v", rows, r.Err())
	}
	if peak > 16<<20 { // the rows are 60 MB; a batch is below 1 MB
		t.Errorf("the heap grew by %d MB", peak>>20)
	}
}

func TestRealABatchEndsBeforeItGrowsLarge(t *testing.T) {
	e := open(t)
	r, err := e.text(t.Context(), "SELECT repeat('x', 1000000) FROM generate_series(1, 20)")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	rows := 0
	for r.Next() {
		if n := r.RecordBatch().NumRows(); n > 5 {
			t.Errorf("a batch has %d rows of 1 MB", n)
		}
		rows += int(r.RecordBatch().NumRows())
	}
	if rows != 20 || r.Err() != nil {
		t.Errorf("%d rows, %v", rows, r.Err())
	}
}

func BenchmarkRealRun(b *testing.B) {
	wide(b)
	e := open(b)
	b.Run("arrow", func(b *testing.B) {
		cpu := cpuTime(b)
		for b.Loop() {
			r, err := e.text(b.Context(), wideQuery)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := all(r); n != million || err != nil {
				b.Fatal(n, err)
			}
		}
		measured(b, cpu)
	})
	b.Run("raw", func(b *testing.B) { // what pgx needs for the same rows, thrown away
		c, err := pgx.Connect(b.Context(), roleURL)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close(b.Context())
		cpu := cpuTime(b)
		for b.Loop() {
			rows, err := c.Query(b.Context(), wideQuery)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for rows.Next() {
				n += len(rows.RawValues())
			}
			if rows.Err() != nil || n != 5*million {
				b.Fatal(n, rows.Err())
			}
		}
		measured(b, cpu)
	})
}

// measured reports rows a second, and this process's own work for a row: the server's takes most of the time.
func measured(b *testing.B, before time.Duration) {
	b.ReportMetric(million*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/million, "cpu-ns/row")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
