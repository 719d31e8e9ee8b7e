package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Report is the score of a run, in the order of the questions: a verdict for each that has an answer, how each that has none
// was met, and what was written of all of them.
type Report struct {
	Verdicts []Verdict
	Declines []Decline
	Lines    []Line
}

var classes = []string{"wrong", "empty_result", "error", "empty", "no_table"}

// Correct counts the right answers.
func (r Report) Correct() int {
	n := 0
	for _, v := range r.Verdicts {
		if v.Verdict == "correct" {
			n++
		}
	}
	return n
}

// Accuracy is the execution accuracy in percent, with one standard error in points: sqrt(p(1-p)/n).
func (r Report) Accuracy() (percent, standardError float64) {
	if len(r.Verdicts) == 0 {
		return 0, 0
	}
	n := float64(len(r.Verdicts))
	percent = 100 * float64(r.Correct()) / n
	return percent, 100 * math.Sqrt(max(percent/100*(1-percent/100), 0)/n)
}

// Print writes the tables and the last line exactly as score.py prints them. Summary has the rest.
func (r Report) Print(w io.Writer) error {
	perDB, perTag := r.By(Database), r.By(Tag)
	sum := map[string]int{}
	for _, v := range r.Verdicts {
		sum[v.Class()]++
	}
	perDB[total] = sum
	var b strings.Builder
	printTable(&b, "database", perDB)
	printTable(&b, "tag", perTag)
	percent, se := r.Accuracy()
	fmt.Fprintf(&b, "execution accuracy %.1f %%  (%d/%d; one standard error %.1f points)\n", percent, r.Correct(), len(r.Verdicts), se)
	_, err := io.WriteString(w, b.String())
	return err
}

// By counts the classes of verdicts for each of a question's keys.
func (r Report) By(keys func(Verdict) []string) map[string]map[string]int {
	table := map[string]map[string]int{}
	for _, v := range r.Verdicts {
		for _, key := range keys(v) {
			if table[key] == nil {
				table[key] = map[string]int{}
			}
			table[key][v.Class()]++
		}
	}
	return table
}

// Database is the key of a verdict's database.
func Database(v Verdict) []string { return []string{v.DB} }

// Tag are the keys of its tags.
func Tag(v Verdict) []string { return v.Tags }

const total = "TOTAL"

func printTable(b *strings.Builder, name string, table map[string]map[string]int) {
	fmt.Fprintf(b, "%-28s %4s %6s %6s   %s\n", name, "n", "right", "EX %", strings.Join(classes, " "))
	last := func(key string) int {
		if key == total {
			return 1
		}
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(table), func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	})
	for _, key := range keys {
		counts, n := table[key], 0
		for _, c := range counts {
			n += c
		}
		fmt.Fprintf(b, "%-28s %4d %6d %6.1f  ", key, n, counts["correct"], 100*float64(counts["correct"])/float64(n))
		for _, class := range classes {
			fmt.Fprintf(b, " %d", counts[class])
		}
		b.WriteByte('\n')
	}
}
