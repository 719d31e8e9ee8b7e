package gatefuzz

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// The variables of a run: how many seconds, and the seed of a run to repeat.
const (
	Seconds  = "SLUICE_TEST_GATE_SECONDS"
	SeedName = "SLUICE_TEST_GATE_SEED"
)

// Budget says whether there is time for the n-th statement: some hundreds are tried, or as many as fit into the seconds of
// the environment.
func Budget(t testing.TB, few int) func(n int) bool {
	t.Helper()
	s := os.Getenv(Seconds)
	if s == "" {
		return func(n int) bool { return n < few }
	}
	seconds, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(Seconds, err)
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	return func(int) bool { return time.Now().Before(end) }
}

// Seed is another one each time, or that of the run to repeat.
func Seed(t testing.TB) uint64 {
	t.Helper()
	s := os.Getenv(SeedName)
	if s == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(SeedName, err)
	}
	return seed
}
