package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestStates draws the whole table, so that a change of it shows in a review. -rewrite accepts it.
func TestStates(t *testing.T) {
	datadriven.RunTest(t, "testdata/states.golden", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for from := Absent; from <= Gone; from++ {
			for e := Load; e <= Exited; e++ {
				to := "-"
				if s, ok := next[from][e]; ok {
					to = s.String()
				}
				fmt.Fprintf(&b, "%-8s  %-10s  %s\n", from, e, to)
			}
		}
		return b.String()
	})
}

// TestNoWayBack holds the promise that ends a livelock of Ollama (#17408): no event makes a draining runner ready again.
func TestNoWayBack(t *testing.T) {
	for from := Draining; from <= Gone; from++ {
		for e, to := range next[from] {
			if to <= from {
				t.Errorf("%s + %s leads back to %s", from, e, to)
			}
		}
	}
}
