package agent

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// choose takes the candidate to answer with: of the results that candidates gave, the one for which most speaks, and of
// those who gave it the one against which least does. It says whether there is one.
func (k *ask) choose() bool {
	votes := map[string]int{}
	speaks := map[string]float64{} // for a result
	least := map[string]float64{}  // against it
	for _, t := range k.tries {
		if t.Verdict != Ran && t.Verdict != Empty {
			continue
		}
		against := k.against(t)
		if known, ok := least[t.key]; !ok || against < known {
			least[t.key] = against
		}
		votes[t.key] += t.Candidate.Votes
		speaks[t.key] += float64(t.Candidate.Votes)
		if t == k.tries[0] {
			speaks[t.key] += likeliest
		}
	}
	var best *try
	for _, t := range k.tries {
		switch {
		case t.Verdict != Ran && t.Verdict != Empty:
		case best == nil:
			best = t
		case t.key == best.key:
			if k.against(t) < k.against(best) {
				best = t
			}
		case !k.off().Vote && speaks[t.key]-least[t.key] > speaks[best.key]-least[best.key]:
			best = t
		}
	}
	if best == nil {
		return false
	}
	for _, t := range k.tries {
		if t.Verdict == Ran || t.Verdict == Empty {
			t.Candidate.Votes = votes[t.key]
		}
	}
	k.answer.Outcome, k.answer.Table, k.answer.SQL, k.answer.Written = Answered, best.table, best.SQL, best.Written
	if best.Mended != "" {
		k.answer.Written = best.Mended
	}
	k.answer.Text = sentence(best.table)
	return true
}

// likeliest is what speaks for the statement that was written without chance, besides its vote.
const likeliest = 1.0

// foundNothing is what speaks against a result that says that there is nothing: a wrong condition gives that more often
// than the data does.
const foundNothing = 4.0

// against says how much speaks against a candidate.
func (k *ask) against(t *try) float64 {
	sum := 0.0
	for _, d := range t.doubts {
		sum += d.weight
	}
	if t.Verdict == Empty || t.table != nil && barren(t.table) {
		sum += foundNothing
	}
	return sum
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
