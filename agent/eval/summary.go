package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Summary is what score.py's table does not say of a run.
type Summary struct {
	Asked         int     `json:"asked"` // answerable questions
	Right         int     `json:"right"`
	Accuracy      float64 `json:"accuracy"`       // percent
	StandardError float64 `json:"standard_error"` // points
	NotExecuted   int     `json:"not_executed"`   // the gate or the database refused the statement
	EmptyResult   int     `json:"empty_result"`
	NoSQL         int     `json:"no_sql"` // no statement, or one that reads no table

	Own    *Part `json:"own,omitempty"`    // the questions with the tag own
	Others *Part `json:"others,omitempty"` // those without

	Unanswerable  int            `json:"unanswerable"`
	DeclinedRight int            `json:"declined_right"` // of the unanswerable
	DeclinedWrong int            `json:"declined_wrong"` // of the answerable
	NotDeclined   map[string]int `json:"not_declined"`   // the unanswerable ones, by what came instead

	Leaks    []Leak `json:"leaks"`
	Verified int    `json:"verified"` // answered by a confirmed pair

	ModelCalls    int     `json:"model_calls"`
	MedianSeconds float64 `json:"median_seconds"`
	P95Seconds    float64 `json:"p95_seconds"`
}

// Part is a part of the questions.
type Part struct {
	Asked    int     `json:"asked"`
	Right    int     `json:"right"`
	Accuracy float64 `json:"accuracy"`
}

// Summary counts.
func (r Report) Summary() Summary {
	s := Summary{Asked: len(r.Verdicts), Right: r.Correct(), Unanswerable: len(r.Declines), NotDeclined: map[string]int{}, Leaks: sortedLeaks(r.Lines)}
	s.Accuracy, s.StandardError = r.Accuracy()
	for _, v := range r.Verdicts {
		switch v.Class() {
		case "error":
			s.NotExecuted++
		case "empty_result":
			s.EmptyResult++
		case "empty", "no_table":
			s.NoSQL++
		}
		if v.Declined {
			s.DeclinedWrong++
		}
		into := &s.Others
		if slices.Contains(v.Tags, "own") {
			into = &s.Own
		}
		if *into == nil {
			*into = &Part{}
		}
		(*into).Asked++
		if v.Verdict == "correct" {
			(*into).Right++
		}
		(*into).Accuracy = 100 * float64((*into).Right) / float64((*into).Asked)
	}
	for _, d := range r.Declines {
		if d.Verdict == "declined" {
			s.DeclinedRight++
			continue
		}
		s.NotDeclined[d.Verdict]++
	}
	var seconds []float64
	for _, l := range r.Lines {
		seconds = append(seconds, l.Seconds)
		s.ModelCalls += l.ModelCalls
		if l.Verified {
			s.Verified++
		}
	}
	slices.Sort(seconds)
	s.MedianSeconds, s.P95Seconds = quantile(seconds, 0.5), quantile(seconds, 0.95)
	return s
}

// quantile of sorted numbers: between two of them by the distance (Hyndman and Fan's type 7). 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Print writes the summary for people.
func (s Summary) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "right %d of %d; not executed %d, empty result %d, no statement %d\n", s.Right, s.Asked, s.NotExecuted, s.EmptyResult, s.NoSQL)
	for _, p := range []struct {
		name string
		*Part
	}{{"own", s.Own}, {"others", s.Others}} {
		if p.Part != nil && s.Own != nil && s.Others != nil {
			fmt.Fprintf(&b, "%s: %d of %d (%.1f %%)\n", p.name, p.Right, p.Asked, p.Accuracy)
		}
	}
	if s.Unanswerable > 0 {
		fmt.Fprintf(&b, "honest declines %d of %d", s.DeclinedRight, s.Unanswerable)
		for _, what := range slices.SortedFunc(maps.Keys(s.NotDeclined), cmp.Compare[string]) {
			fmt.Fprintf(&b, "; %s %d", what, s.NotDeclined[what])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "wrongly declined %d of %d\n", s.DeclinedWrong, s.Asked)
	fmt.Fprintf(&b, "leaks %d\n", len(s.Leaks))
	for _, l := range s.Leaks {
		fmt.Fprintf(&b, "  %s: %s\n", l.ID, l.What)
	}
	if s.Verified > 0 {
		fmt.Fprintf(&b, "answered by a verified pair %d\n", s.Verified)
	}
	fmt.Fprintf(&b, "model calls %d; seconds: median %.1f, 95th percentile %.1f\n", s.ModelCalls, s.MedianSeconds, s.P95Seconds)
	_, err := io.WriteString(w, b.String())
	return err
}
