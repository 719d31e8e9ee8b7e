package rag

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maxWords        = 6  // of a phrase that is looked up
	maxPhraseLinks  = 4  // columns that one phrase is linked to
	maxQuestionText = 64 // phrases of one question that are looked up by likeness, which is the slow way
)

// A phrase means one thing: of several columns that have it, the one that the question also names gets the whole score, and
// one that it does not name this share.
const leastShare = 0.5

var matchScore = map[Match]float64{Exact: valueExact, Plural: valuePlural, Code: valueExact, Part: valuePart, Near: valueNear}

// links looks the question up among the stored values: first what is in quotes, then each run of words, the longest
// first, then names as parts of values and by likeness.
func (s *scoring) links() {
	s.lookUp(s.q, true)
	s.lookUp(s.e, false)
	best := map[ColumnRef]float64{}
	for _, l := range s.focus.Links {
		best[l.Column] = max(best[l.Column], matchScore[l.Match]*s.shares[l])
	}
	for c, v := range best {
		s.focus.ColumnScore[c] += v
	}
	s.unknown()
}

// lookUp links one text. What is missing is told only of the question itself: a definition that came with it is made of
// words of its own.
func (s *scoring) lookUp(q *question, missing bool) {
	quotes := q.quotes()
	for _, p := range quotes {
		if q.free(p) && s.link(q, p, Exact, Plural, Code, Part, Near) {
			q.use(p)
		}
	}
	for n := min(maxWords, len(q.words)); n > 0; n-- {
		for i := 0; i+n <= len(q.words); i++ {
			if p := (span{from: i, to: i + n}); q.free(p) && s.telling(q, p) && s.link(q, p, Exact, Plural, Code) {
				q.use(p)
			}
		}
	}
	names := q.names()
	for _, p := range names {
		if q.free(p) && !s.known(q, p) && s.link(q, p, Part, Near) {
			q.use(p)
		}
	}
	looked := 0
	for n := 3; n > 0; n-- {
		for i := 0; i+n <= len(q.words); i++ {
			p := span{from: i, to: i + n}
			if looked < maxQuestionText && q.free(p) && s.strange(q, p) {
				looked++
				if s.link(q, p, Near) {
					q.use(p)
				}
			}
		}
	}
	if missing && !s.k.hidden {
		s.missing(q, quotes, names)
	}
}

// telling says whether a run of words may be a value. One word alone is none when it says nothing, or when it is the name
// of a table or column.
func (s *scoring) telling(q *question, p span) bool {
	first := q.words[p.from].fold
	return p.to-p.from > 1 || !stopWords[first] && hasLetter(first) && len(first) > 1 && !s.k.words.isName[stem(first)]
}

// strange says whether each of a run of words is one that the schema does not have, so that it may be a value that is
// spelled differently.
func (s *scoring) strange(q *question, p span) bool {
	for _, w := range q.words[p.from:p.to] {
		if stopWords[w.fold] || measures[w.fold] || calendar[w.fold] || len(w.fold) < 3 || !hasLetter(w.fold) || s.k.words.all[stem(w.fold)] {
			return false
		}
	}
	return p.to-p.from > 1 || len(q.words[p.from].fold) >= minNear
}

// link looks one phrase up in each way, in this order, and keeps the links of the first way that finds any.
func (s *scoring) link(q *question, p span, ways ...Match) bool {
	written, folded, stemmed := q.phrase(p)
	for _, way := range ways {
		var found []Link
		for _, f := range s.k.facts {
			if f == nil || f.index == nil {
				continue
			}
			x := f.index
			var hits []hit
			switch way {
			case Exact:
				hits = x.same(folded)
			case Plural:
				if !stopWords[q.words[p.from].fold] && !stopWords[q.words[p.to-1].fold] {
					hits = x.inflected(stemmed)
				}
			case Code:
				hits = x.country(folded)
			case Part:
				hits = x.part(folded)
			case Near:
				hits = x.near(folded, p.quoted || q.capital(p.from))
			}
			for _, h := range hits {
				e := x.entries[h.entry]
				if len(e.fold) <= 2 && e.value != written && h.match != Code {
					continue // "it" is not IT
				}
				found = append(found, Link{Column: ColumnRef{x.relation, x.columns[e.column]}, Value: e.value, Phrase: written, Match: h.match, Similarity: h.similarity})
			}
		}
		if len(found) == 0 {
			continue
		}
		slices.SortStableFunc(found, func(a, b Link) int {
			return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(s.likely(b.Column), s.likely(a.Column)), compareColumns(a.Column, b.Column))
		})
		found = found[:min(len(found), maxPhraseLinks)]
		most := 0.0
		for _, l := range found {
			most = max(most, s.likely(l.Column))
		}
		for _, l := range found {
			share := 1.0
			if most > 0 {
				share = leastShare + (1-leastShare)*s.likely(l.Column)/most
			}
			s.shares[l] = max(s.shares[l], share)
		}
		s.focus.Links = append(s.focus.Links, found...)
		return true
	}
	return false
}

// likely is how much the question names a column, apart from values.
func (s *scoring) likely(c ColumnRef) float64 {
	return s.name[c.Relation] + s.focus.ColumnScore[c]
}

// known says whether each word of a run is one of the schema's names or comments, or ordinary English.
func (s *scoring) known(q *question, p span) bool {
	for i := p.from; i < p.to; i++ {
		if w := q.words[i]; !q.used[i] && !s.ordinary(w) {
			return false
		}
	}
	return true
}

func (s *scoring) ordinary(w token) bool {
	return stopWords[w.fold] || measures[w.fold] || joining[w.fold] || calendar[w.fold] || !hasLetter(w.fold) || s.k.words.all[stem(w.fold)]
}

// missing notes the quoted and capitalised phrases that were found nowhere. Words that the evidence explains are none.
func (s *scoring) missing(q *question, quotes, names []span) {
	explained := map[string]bool{}
	for _, w := range s.e.words {
		explained[w.fold] = true
	}
	searched, complete := s.searched()
	if len(searched) == 0 {
		return
	}
	for _, p := range append(slices.Clone(quotes), names...) {
		left := false
		for i := p.from; i < p.to; i++ {
			if w := q.words[i]; !q.used[i] && !s.ordinary(w) && !explained[w.fold] {
				left = true
			}
		}
		if !left {
			continue
		}
		written, folded, _ := q.phrase(p)
		if len(folded) < 2 || s.inside(folded) {
			continue
		}
		s.focus.Missing = append(s.focus.Missing, Phrase{Text: written, Quoted: p.quoted, Searched: searched, Complete: complete})
		q.use(p)
	}
}

// inside says whether a phrase stands anywhere in a stored value, also within a word: people ask for names that end in
// something.
func (s *scoring) inside(folded string) bool {
	for _, f := range s.k.facts {
		if f != nil && f.index != nil && slices.ContainsFunc(f.index.entries, func(e entry) bool { return strings.Contains(e.fold, folded) }) {
			return true
		}
	}
	return false
}

// searched lists the text columns whose values are looked up. Columns of prose are none: what stands inside of a long text
// is not looked for.
func (s *scoring) searched() (columns []ColumnRef, complete bool) {
	complete = true
	for i, t := range s.k.tables {
		f := s.k.facts[i]
		if f == nil {
			complete = false
			continue
		}
		for c, column := range t.Columns {
			if facts := f.columns[c]; facts.class.text() && !facts.prose && facts.distinct > 0 {
				columns = append(columns, ColumnRef{t.Relation, column.Name})
				complete = complete && facts.complete
			}
		}
	}
	return columns, complete
}

// unknown notes the words of the question that are nothing that is known here.
func (s *scoring) unknown() {
	for i, w := range s.q.words {
		if !s.q.used[i] && !s.ordinary(w) && len(w.fold) > 2 && !slices.Contains(s.focus.Unknown, w.text) {
			s.focus.Unknown = append(s.focus.Unknown, w.text)
		}
	}
}

// Nearest gives the stored value of a text column that a literal means: the same but for case or endings, else one that it
// is a part of, else the most similar one. ok is false when there is none, or when the column is not known.
func (k *Knowledge) Nearest(c ColumnRef, literal string) (Link, bool) {
	i, column, ok := k.find(c)
	if !ok || k.facts[i] == nil || k.facts[i].index == nil {
		return Link{}, false
	}
	x, folded := k.facts[i].index, foldPhrase(literal)
	if folded == "" {
		return Link{}, false
	}
	for _, hits := range [][]hit{x.same(folded), x.inflected(strings.Join(stems(literal), " ")), x.country(folded), x.part(folded), x.near(folded, true)} {
		for _, h := range hits {
			if e := x.entries[h.entry]; int(e.column) == column {
				return Link{Column: ColumnRef{x.relation, x.columns[column]}, Value: e.value, Phrase: literal, Match: h.match, Similarity: h.similarity}, true
			}
		}
	}
	return Link{}, false
}
