package eval

import (
	"math"
	"strconv"
	"strings"
)

// Tolerances of score.py: relative, and absolute for gold values of 1 and more, which forgives rounding to two decimals.
const (
	relative = 1e-4
	rounded  = 0.0051
)

// same says whether a predicted value counts as the gold one.
func same(gold, pred value) bool {
	switch {
	case gold.kind == null || pred.kind == null:
		return gold.kind == pred.kind
	case gold.kind == integer && pred.kind == integer, gold.kind == text && pred.kind == text:
		return gold.text == pred.text // exactly: 4 of 5 orders is wrong, however large the numbers are
	}
	g, ok := gold.asFloat() // a number equals its text form
	p, ok2 := pred.asFloat()
	if !ok || !ok2 {
		return false
	}
	d := math.Abs(g - p)
	return g == p || d <= relative*math.Max(math.Abs(g), math.Abs(p)) || math.Abs(g) >= 1 && d <= rounded
}

// coarse is a key that keeps near-equal numbers together: three significant digits.
type coarse struct {
	rank int
	num  float64
	text string
}

func coarseOf(v value) coarse {
	switch {
	case v.kind == null:
		return coarse{}
	case v.number():
		f, _ := strconv.ParseFloat(strconv.FormatFloat(v.num, 'g', 3, 64), 64)
		if f == 0 {
			f = 0 // -0 prints as another key than 0
		}
		return coarse{rank: 1, num: f}
	}
	return coarse{rank: 2, text: v.text}
}

func bucket(row []value) string {
	var b strings.Builder
	for _, v := range row {
		k := coarseOf(v)
		b.WriteString(strconv.Itoa(k.rank))
		b.WriteString(strconv.FormatFloat(k.num, 'g', -1, 64))
		b.WriteString(strconv.Quote(k.text))
	}
	return b.String()
}

func sameRow(gold, pred []value) bool {
	for i := range gold {
		if !same(gold[i], pred[i]) {
			return false
		}
	}
	return true
}

// sameMultiset matches rows greedily inside groups of equal coarse keys, then everywhere else.
func sameMultiset(gold, pred [][]value) bool {
	if len(gold) != len(pred) {
		return false
	}
	buckets := map[string][]int{}
	for i, row := range pred {
		k := bucket(row)
		buckets[k] = append(buckets[k], i)
	}
	used := make([]bool, len(pred))
	take := func(row []value, i int) bool {
		if used[i] || !sameRow(row, pred[i]) {
			return false
		}
		used[i] = true
		return true
	}
	var rest [][]value
next:
	for _, row := range gold {
		for _, i := range buckets[bucket(row)] {
			if take(row, i) {
				continue next
			}
		}
		rest = append(rest, row)
	}
	if len(rest) > 2000 {
		return false
	}
again:
	for _, row := range rest {
		for i := range pred {
			if take(row, i) {
				continue again
			}
		}
		return false
	}
	return true
}

// monotone says whether a column rises or falls throughout; NULLs are left out.
func monotone(column []value) bool {
	var c []value
	for _, v := range column {
		if v.kind != null {
			c = append(c, v)
		}
	}
	if len(c) < 2 {
		return false
	}
	up, down := true, true
	for i, v := range c {
		if v.number() != c[0].number() {
			return false
		}
		if i > 0 {
			order := compare(c[i-1], v)
			up, down = up && order <= 0, down && order >= 0
		}
	}
	return up || down
}

// match says whether some choice of predicted columns gives the gold rows. orderKey is the gold column that the question
// sorts by, nil when it is not among them.
func match(gold, pred [][]value, ordered, listing bool, orderKey *int) bool {
	if len(gold) == 0 || len(pred) == 0 {
		return false // golds are never empty; an empty answer is never right
	}
	if listing { // plain listings: repeated rows are a matter of taste
		gold = distinct(gold)
	} else if len(gold) != len(pred) {
		return false
	}
	if len(pred[0]) < len(gold[0]) {
		return false
	}
	m := matcher{gold: gold, pred: pred, ordered: ordered, listing: listing, orderKey: orderKey, budget: 5000}
	predColumns := columns(pred)
	for _, g := range columns(gold) {
		m.goldColumns = append(m.goldColumns, g)
		var fitting []int
		for j, p := range predColumns {
			if m.compatible(g, p) {
				fitting = append(fitting, j)
			}
		}
		m.candidates = append(m.candidates, fitting)
	}
	return m.search(nil)
}

// matcher tries choices of predicted columns, at most budget of them.
type matcher struct {
	gold, pred       [][]value
	goldColumns      [][]value
	candidates       [][]int
	ordered, listing bool
	orderKey         *int
	budget           int
}

func (m *matcher) compatible(gold, pred []value) bool {
	if !m.listing {
		return sameMultiset(single(gold), single(pred))
	}
	return sameCoarse(gold, pred) || sameMultiset(distinct(single(gold)), distinct(single(pred)))
}

func (m *matcher) search(pick []int) bool {
	m.budget--
	if m.budget < 0 {
		return false
	}
	if len(pick) == len(m.candidates) {
		return m.rowsMatch(pick)
	}
next:
	for _, j := range m.candidates[len(pick)] {
		for _, taken := range pick {
			if taken == j {
				continue next
			}
		}
		if m.search(append(pick[:len(pick):len(pick)], j)) {
			return true
		}
	}
	return false
}

func (m *matcher) rowsMatch(pick []int) bool {
	rows := make([][]value, len(m.pred))
	for r, row := range m.pred {
		rows[r] = make([]value, len(pick))
		for i, j := range pick {
			rows[r][i] = row[j]
		}
	}
	if m.listing {
		rows = distinct(rows)
	}
	if !sameMultiset(m.gold, rows) {
		return false
	}
	if !m.ordered || len(m.gold) < 2 {
		return true
	}
	inOrder := true
	for r := range m.gold {
		inOrder = inOrder && sameRow(m.gold[r], rows[r])
	}
	if inOrder {
		return true
	}
	// Rows that tie may swap: then the sort column must still agree (when unknown: every column that is in order).
	var keys []int
	if m.orderKey != nil {
		keys = []int{*m.orderKey}
	} else if len(m.gold) > 2 {
		for i, column := range m.goldColumns {
			if monotone(column) {
				keys = append(keys, i)
			}
		}
	}
	for _, i := range keys {
		for r := range m.gold {
			if !same(m.gold[r][i], rows[r][i]) {
				return false
			}
		}
	}
	return len(keys) > 0
}

func columns(rows [][]value) [][]value {
	out := make([][]value, len(rows[0]))
	for i := range out {
		out[i] = make([]value, len(rows))
		for r, row := range rows {
			out[i][r] = row[i]
		}
	}
	return out
}

func single(column []value) [][]value {
	out := make([][]value, len(column))
	for i := range column {
		out[i] = column[i : i+1]
	}
	return out
}

func sameCoarse(a, b []value) bool {
	set := func(column []value) map[coarse]bool {
		out := map[coarse]bool{}
		for _, v := range column {
			out[coarseOf(v)] = true
		}
		return out
	}
	x, y := set(a), set(b)
	for k := range x {
		if !y[k] {
			return false
		}
	}
	return len(x) == len(y)
}

// distinct drops repeated rows and keeps the first of each; 1 and 1.0 are the same.
func distinct(rows [][]value) [][]value {
	seen := map[string]bool{}
	var out [][]value
	for _, row := range rows {
		var b strings.Builder
		for _, v := range row {
			b.WriteString(v.identity())
			b.WriteByte(0)
		}
		if !seen[b.String()] {
			seen[b.String()] = true
			out = append(out, row)
		}
	}
	return out
}
