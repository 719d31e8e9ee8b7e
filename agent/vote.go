package agent

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// choose takes the candidate to answer with: of those that found something, the first of the result that most candidates
// gave; else the first that ran. It says whether there is one.
func (k *ask) choose() bool {
	var best *try
	for _, verdict := range []Verdict{Ran, Empty} {
		votes := map[string]int{}
		for _, t := range k.tries {
			if t.Verdict == verdict {
				votes[t.key] += t.Candidate.Votes
			}
		}
		for _, t := range k.tries {
			if t.Verdict == verdict && (best == nil || !k.off().Vote && votes[t.key] > votes[best.key]) {
				best = t
			}
		}
		if best != nil {
			for _, t := range k.tries {
				if t.Verdict == verdict {
					t.Candidate.Votes = votes[t.key]
				}
			}
			break
		}
	}
	if best == nil {
		return false
	}
	k.answer.Outcome, k.answer.Table, k.answer.SQL, k.answer.Written = Answered, best.table, best.SQL, best.Written
	if best.Mended != "" {
		k.answer.Written = best.Mended
	}
	k.answer.Text = sentence(best.table)
	return true
}

// agreed says whether all candidates that found something found the same.
func (k *ask) agreed() bool {
	key := ""
	for _, t := range k.tries {
		if t.Verdict != Ran {
			continue
		}
		if key != "" && key != t.key {
			return false
		}
		key = t.key
	}
	return key != ""
}

// resultKey is the same for results with the same rows, whatever the order of rows and columns and the names of columns.
// Numbers are compared as a person would: 0.1 and "0.10" are one.
func resultKey(t *Table) string {
	rows := make([]string, len(t.Rows))
	for i, r := range t.Rows {
		cells := make([]string, len(r))
		for j, c := range r {
			cells[j] = comparable(c)
		}
		slices.Sort(cells)
		rows[i] = strings.Join(cells, "\x00")
	}
	slices.Sort(rows)
	return strings.Join(rows, "\x01")
}

// comparable writes a cell so that equal values are equal texts.
func comparable(c json.RawMessage) string {
	var text string
	if json.Unmarshal(c, &text) != nil {
		text = string(c)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return text
	}
	return strconv.FormatFloat(f, 'g', 7, 64)
}

// nothing says whether a result says that there is nothing: no row, or nothing but NULL in one row.
func nothing(t *Table) bool {
	if len(t.Rows) == 0 {
		return !t.Truncated
	}
	if len(t.Rows) > 1 {
		return false
	}
	return !slices.ContainsFunc(t.Rows[0], func(c json.RawMessage) bool { return len(c) > 0 && string(c) != "null" })
}
