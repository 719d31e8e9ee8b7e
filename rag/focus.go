package rag

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sluice/sqlguard"
)

// How much each thing tells, next to a word of a name, whose weight is 1 times how rare it is. Small changes of these change
// little.
const (
	tableName     = 3.0  // the whole name of a table
	inComment     = 0.35 // a word of a column's comment
	tableComment  = 0.5  // a word of a table's comment
	keyName       = 0.5  // a word of a column that refers to another table: it tells of that table
	valueExact    = 4.0
	valuePlural   = 3.5
	valuePart     = 3.0
	valueNear     = 2.5
	bestSecond    = 0.6 // of the second best column of a table, next to the best
	bestThird     = 0.3
	enough        = 0.3 // a table is chosen whose score is that share of the best one's
	maxChosen     = 5   // tables chosen by score
	maxTables     = 7   // with those on the way between them
	maxUncovered  = 2
	evidenceShare = 0.7 // of a word that only the evidence has
)

// Focus finds the tables, joins and values that a question is about. evidence is a definition that came with it, or "".
// The same question gives the same Focus. It has no tables when the question names nothing: then all are as good.
func (k *Knowledge) Focus(text, evidence string) Focus {
	s := &scoring{k: k, q: newQuestion(text), e: newQuestion(evidence), asked: map[string]float64{}, shares: map[Link]float64{},
		focus: Focus{Score: map[sqlguard.Relation]float64{}, ColumnScore: map[ColumnRef]float64{}}}
	s.hear(s.e, evidenceShare)
	s.hear(s.q, 1)
	s.names()
	s.links()
	s.tables()
	s.choose()
	return s.focus
}

// scoring is one Focus on its way.
type scoring struct {
	k      *Knowledge
	q, e   *question
	asked  map[string]float64 // how much the words weigh that say something, by their stems
	said   string             // the stems of all words in their order
	name   map[sqlguard.Relation]float64
	shares map[Link]float64 // of the score of a value, what each link gets
	focus  Focus
}

// hear takes in the words of a text.
func (s *scoring) hear(q *question, share float64) {
	var said []string
	for _, w := range q.words {
		st := stem(w.fold)
		said = append(said, st)
		if stopWords[w.fold] {
			continue
		}
		s.asked[st] = share
		for _, part := range s.k.words.joined[st] {
			s.asked[part] = share
		}
	}
	s.said += " " + strings.Join(said, " ") + " |"
}

// hit says how much a word of a name was asked for. The words of a name that is said whole all count, also "first" and
// "last".
func (s *scoring) hit(w string, whole bool) float64 {
	if v := s.asked[w]; v > 0 || !whole {
		return v
	}
	return 1
}

// whole says whether a name of several words is said, word by word.
func (s *scoring) whole(words []string) bool {
	return len(words) > 1 && strings.Contains(s.said, " "+strings.Join(words, " ")+" ")
}

// names scores columns and tables by the words of their names and comments.
func (s *scoring) names() {
	s.name = map[sqlguard.Relation]float64{}
	l := s.k.words
	for _, t := range l.tables {
		if len(t.name) > 0 {
			hits := 0.0
			for _, w := range t.name {
				hits += s.hit(w, s.whole(t.name))
			}
			s.name[t.relation] = tableName * hits / float64(len(t.name))
		}
		for _, w := range t.comment {
			if !contains(t.name, w) {
				s.name[t.relation] += tableComment * s.asked[w]
			}
		}
		for _, c := range t.columns {
			if score := s.column(c); score > 0 {
				ref := ColumnRef{t.relation, c.name}
				if s.k.refers[ref] {
					score *= keyName
				}
				s.focus.ColumnScore[ref] = score
			}
		}
	}
}

func (s *scoring) column(c columnWords) float64 {
	score, hits := 0.0, 0.0
	whole := s.whole(c.words)
	for _, w := range c.words {
		h := s.hit(w, whole)
		score += h * s.k.words.weight(w)
		hits += h
	}
	if len(c.words) > 0 {
		score *= 0.5 + 0.5*hits/float64(len(c.words))
	}
	for i, w := range c.comment {
		if !contains(c.words, w) && !contains(c.comment[:i], w) {
			score += inComment * s.asked[w] * s.k.words.weight(w)
		}
	}
	return score
}

// tables adds up what the columns of each table scored.
func (s *scoring) tables() {
	for _, t := range s.k.words.tables {
		var best []float64
		for _, c := range t.columns {
			if v := s.focus.ColumnScore[ColumnRef{t.relation, c.name}]; v > 0 {
				best = append(best, v)
			}
		}
		slices.SortFunc(best, func(a, b float64) int { return cmp.Compare(b, a) })
		score := s.name[t.relation]
		for i, share := range []float64{1, bestSecond, bestThird} {
			if i < len(best) {
				score += share * best[i]
			}
		}
		if score > 0 {
			s.focus.Score[t.relation] = score
		}
	}
}

// choose takes the tables that scored well enough, and those that join them.
func (s *scoring) choose() {
	score := s.focus.Score
	ranked := slices.SortedFunc(maps.Keys(score), func(a, b sqlguard.Relation) int {
		return cmp.Or(cmp.Compare(score[b], score[a]), compareRelations(a, b))
	})
	if len(ranked) == 0 {
		return // the question names nothing: no table is better than another
	}
	var chosen []sqlguard.Relation
	for _, r := range ranked {
		if len(chosen) < maxChosen && score[r] >= enough*score[ranked[0]] {
			chosen = append(chosen, r)
		}
	}
	chosen = append(chosen, s.uncovered(ranked, chosen)...)
	s.focus.Tables = between(s.k.joins, chosen, connect(s.k.joins, chosen, score, maxTables), score, maxTables)
	in := map[sqlguard.Relation]bool{}
	for _, r := range s.focus.Tables {
		in[r] = true
	}
	for _, j := range s.k.joins {
		if in[j.From.Relation] && in[j.To.Relation] {
			s.focus.Joins = append(s.focus.Joins, j)
		}
	}
}

// uncovered gives, for each word of the question that is in names but in none of the chosen tables', the best of the tables
// that have it: each thing that is asked for stands somewhere. Of the evidence, only names of tables count.
func (s *scoring) uncovered(ranked, chosen []sqlguard.Relation) []sqlguard.Relation {
	var out []sqlguard.Relation
	need := func(st string) {
		has := func(r sqlguard.Relation) bool { return s.k.words.tables[s.k.at[r]].has(st) }
		if slices.ContainsFunc(chosen, has) || slices.ContainsFunc(out, has) {
			return
		}
		if at := slices.IndexFunc(ranked, has); at >= 0 && len(out) < maxUncovered {
			out = append(out, ranked[at])
		}
	}
	for i, w := range s.q.words {
		if st := stem(w.fold); !s.q.used[i] && !stopWords[w.fold] && !vague[st] && s.k.words.inNames[st] {
			need(st)
		}
	}
	for _, w := range s.e.words {
		if st := stem(w.fold); s.k.words.isTable[st] {
			need(st)
		}
	}
	return out
}

// has says whether a word is in a name of the table, or in a comment.
func (t tableWords) has(w string) bool {
	return contains(t.name, w) || contains(t.comment, w) || slices.ContainsFunc(t.columns, func(c columnWords) bool { return contains(c.words, w) || contains(c.comment, w) })
}
