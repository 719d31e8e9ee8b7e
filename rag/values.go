package rag

import (
	"cmp"
	"slices"
	"strings"

	"sluice/sqlguard"
)

// valueIndex finds the text values of one table by what people write for them. It never changes.
type valueIndex struct {
	relation  sqlguard.Relation
	columns   []string
	countries []bool // which columns hold countries, by their names
	entries   []entry
	exact     map[string][]int32 // by their words, folded
	stemmed   map[string][]int32 // by the stems of their words, where those are others
	words     map[string][]int32 // by each of their words, where there are several
	grams     map[gram][]int32   // by their trigrams
}

// entry is one distinct value of one column.
type entry struct {
	column int32
	grams  int32 // how many trigrams it has
	value  string
	fold   string
}

// gram is three runes of a text.
type gram [3]rune

func newValueIndex(t sqlguard.Table, facts *tableFacts) *valueIndex {
	x := &valueIndex{relation: t.Relation, exact: map[string][]int32{}, stemmed: map[string][]int32{}, words: map[string][]int32{}, grams: map[gram][]int32{}}
	for _, c := range t.Columns {
		x.columns = append(x.columns, c.Name)
		x.countries = append(x.countries, anyOf(append(parts{}.stems(splitName(c.Name)), stems(c.Comment)...), inCountries))
	}
	for c, f := range facts.columns {
		for _, v := range f.values {
			x.add(int32(c), v)
		}
	}
	return x
}

func (x *valueIndex) add(column int32, value string) {
	words := tokens(value)
	if len(words) == 0 || !hasLetter(value) {
		return // a number is written for many things
	}
	folded, stemmed := make([]string, len(words)), make([]string, len(words))
	for i, w := range words {
		folded[i], stemmed[i] = w.fold, stem(w.fold)
	}
	e := entry{column: column, value: value, fold: strings.Join(folded, " ")}
	at := int32(len(x.entries))
	x.exact[e.fold] = append(x.exact[e.fold], at)
	if s := strings.Join(stemmed, " "); s != e.fold {
		x.stemmed[s] = append(x.stemmed[s], at)
	}
	if len(words) > 1 {
		slices.Sort(folded)
		for _, w := range slices.Compact(folded) {
			x.words[w] = append(x.words[w], at)
		}
	}
	grams := gramsOf(e.fold)
	e.grams = int32(len(grams))
	for _, g := range grams {
		x.grams[g] = append(x.grams[g], at)
	}
	x.entries = append(x.entries, e)
}

func hasLetter(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 }) >= 0
}

// gramsOf gives the different trigrams of a folded text, each word with two blanks before it and one behind, as
// PostgreSQL's pg_trgm has them.
func gramsOf(folded string) []gram {
	var out []gram
	for _, w := range strings.Fields(folded) {
		last := gram{0, ' ', ' '}
		for _, r := range w + " " {
			last = gram{last[1], last[2], r}
			out = append(out, last)
		}
	}
	slices.SortFunc(out, func(a, b gram) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// hit is a value that was found, with how well it agrees.
type hit struct {
	entry      int32
	match      Match
	similarity float64
}

// same gives the values that are the phrase but for case, accents and punctuation; one of each column.
func (x *valueIndex) same(folded string) []hit { return x.hits(x.exact[folded], Exact, 1) }

// inflected gives the values that are the phrase but for the endings of words; one of each column.
func (x *valueIndex) inflected(stemmed string) []hit {
	return x.hits(append(slices.Clone(x.exact[stemmed]), x.stemmed[stemmed]...), Plural, 1)
}

// hits gives one hit for each column of the entries: the first.
func (x *valueIndex) hits(entries []int32, m Match, similarity float64) []hit {
	var out []hit
	for _, e := range entries {
		if !slices.ContainsFunc(out, func(h hit) bool { return x.entries[h.entry].column == x.entries[e].column }) {
			out = append(out, hit{e, m, similarity})
		}
	}
	return out
}

// part gives values that the phrase is a part of, in whole words; the shortest one of each column.
func (x *valueIndex) part(folded string) []hit {
	words := strings.Fields(folded)
	if len(words) == 0 {
		return nil
	}
	rarest := x.words[words[0]]
	for _, w := range words[1:] {
		if len(x.words[w]) < len(rarest) {
			rarest = x.words[w]
		}
	}
	var found []int32
	for _, e := range rarest {
		if strings.Contains(" "+x.entries[e].fold+" ", " "+folded+" ") {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b int32) int { return cmp.Compare(len(x.entries[a].fold), len(x.entries[b].fold)) })
	return x.hits(found, Part, 1)
}

// The least similarity of a value that is spelled differently. One slip of the pen is near in any case where a value is
// certainly meant; an ordinary word is too often one letter from another.
const (
	minSimilar     = 0.6
	minSimilarSlip = 0.3
	minNear        = 5 // letters of the shortest phrase that may be near to something
)

// near gives the most similar value of each column that is similar enough. slips says whether one slip of the pen is.
func (x *valueIndex) near(folded string, slips bool) []hit {
	if len([]rune(folded)) < minNear {
		return nil
	}
	grams := gramsOf(folded)
	shared := map[int32]int{}
	for _, g := range grams {
		for _, e := range x.grams[g] {
			shared[e]++
		}
	}
	best := map[int32]hit{}
	for e, n := range shared {
		entry := x.entries[e]
		similarity := float64(n) / float64(len(grams)+int(entry.grams)-n)
		if similarity < minSimilar && (!slips || similarity < minSimilarSlip || !oneSlip(folded, entry.fold)) {
			continue
		}
		old, ok := best[entry.column]
		if !ok || similarity > old.similarity || similarity == old.similarity && e < old.entry {
			best[entry.column] = hit{e, Near, similarity}
		}
	}
	var out []hit
	for _, h := range best {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.entry, b.entry))
	})
	return out
}

// oneSlip says whether two texts differ by one letter that is missing, added, another one, or changed with its neighbour.
func oneSlip(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if i == len(x) || slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}
