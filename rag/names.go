package rag

import (
	"math"
	"strings"

	"sluice/sqlguard"
)

// lexicon knows the words of a schema: those of the names and of the comments of its tables and columns, as stems. It is
// made of readable tables only, so the words of a hidden one neither match nor weigh.
type lexicon struct {
	tables  []tableWords
	inNames map[string]bool     // stems of names
	isTable map[string]bool     // stems that alone are the name of a table
	isName  map[string]bool     // and those that are the name of a table or column
	all     map[string]bool     // and of comments
	places  map[string]int      // in how many names, comments and tables a stem stands
	total   int                 // how many of those there are
	joined  map[string][]string // stems of words that were taken apart, and what they were taken into
}

// tableWords are the stems of one table.
type tableWords struct {
	relation sqlguard.Relation
	name     []string
	comment  []string
	columns  []columnWords
}

type columnWords struct {
	name    string
	words   []string // of the name
	comment []string
	own     []string // of the name, without those of its table's name
}

func newLexicon(tables []sqlguard.Table) *lexicon {
	l := &lexicon{inNames: map[string]bool{}, isTable: map[string]bool{}, isName: map[string]bool{}, all: map[string]bool{}, places: map[string]int{}, joined: map[string][]string{}}
	prefix := sharedPrefix(tables)
	parts := partsOf(tables, prefix)
	tableNames := make([][]string, len(tables))
	for i, t := range tables {
		tableNames[i] = splitName(t.Name[len(prefix):])
	}
	tableNames = withoutShared(tableNames)
	for i, t := range tables {
		l.takeApart(parts, tableNames[i])
		w := tableWords{relation: t.Relation, name: parts.stems(tableNames[i]), comment: contentStems(t.Comment)}
		names := make([][]string, len(t.Columns))
		for j, c := range t.Columns {
			names[j] = splitName(c.Name[len(prefix):])
		}
		names = withoutShared(parts.withoutJoined(names))
		for j, c := range t.Columns {
			l.takeApart(parts, names[j])
			words := parts.stems(names[j])
			w.columns = append(w.columns, columnWords{name: c.Name, words: words, comment: contentStems(c.Comment), own: without(words, w.name)})
		}
		l.tables = append(l.tables, w)
	}
	for _, t := range l.tables {
		l.count(t.name, t.comment)
		if len(t.name) == 1 {
			l.isTable[t.name[0]], l.isName[t.name[0]] = true, true
		}
		for _, c := range t.columns {
			l.count(c.words, c.comment)
			if len(c.words) == 1 {
				l.isName[c.words[0]] = true
			}
		}
	}
	return l
}

// takeApart notes which words of a name were taken apart: a question may have them whole.
func (l *lexicon) takeApart(p parts, words []string) {
	for _, w := range words {
		if apart := p.apart(w); len(apart) > 1 {
			l.joined[stem(w)] = p.stems([]string{w})
		}
	}
}

// count notes the words of one thing.
func (l *lexicon) count(name, comment []string) {
	seen := map[string]bool{}
	for _, w := range name {
		l.inNames[w], l.all[w] = true, true
		seen[w] = true
	}
	for _, w := range comment {
		l.all[w] = true
		seen[w] = true
	}
	for w := range seen {
		l.places[w]++
	}
	l.total++
}

// weight says how much a word tells: the fewer things have it, the more.
func (l *lexicon) weight(stem string) float64 {
	return math.Log(1 + float64(l.total)/(float64(l.places[stem])+0.5))
}

// contentStems are the stems of a text, without words that say nothing.
func contentStems(text string) []string {
	var out []string
	for _, w := range tokens(text) {
		if !stopWords[w.fold] {
			out = append(out, stem(w.fold))
		}
	}
	return out
}

func without(words, remove []string) []string {
	var out []string
	for _, w := range words {
		if !contains(remove, w) {
			out = append(out, w)
		}
	}
	return out
}

func contains(words []string, w string) bool {
	for _, x := range words {
		if x == w {
			return true
		}
	}
	return false
}

// withoutShared takes off the first parts that all the names share, such as the "sb" of sbOrder and sbItem: they tell
// nothing apart. A name keeps at least one part, and two names share nothing that counts.
func withoutShared(names [][]string) [][]string {
	if len(names) < 3 {
		return names
	}
	shared := 0
	for {
		for _, n := range names {
			if len(n) < shared+2 || n[shared] != names[0][shared] {
				out := make([][]string, len(names))
				for i := range names {
					out[i] = names[i][shared:]
				}
				return out
			}
		}
		shared++
	}
}

// parts are the words that the names of a schema are put together from.
type parts map[string]use

// use says where a word stands.
type use int

const (
	nowhere use = iota
	inName
	inText // of a comment, where it is a word of its own
)

// partsOf gathers them from the names that are split already and from the comments.
func partsOf(tables []sqlguard.Table, prefix string) parts {
	p := parts{}
	add := func(as use, words ...string) {
		for _, w := range words {
			if len(w) >= 3 {
				p[w] = max(p[w], as)
			}
		}
	}
	comment := func(s string) {
		for _, w := range tokens(s) {
			if !stopWords[w.fold] {
				add(inText, w.fold)
			}
		}
	}
	for _, t := range tables {
		add(inName, splitName(t.Name[len(prefix):])...)
		comment(t.Comment)
		for _, c := range t.Columns {
			add(inName, splitName(c.Name[len(prefix):])...)
			comment(c.Comment)
		}
	}
	for _, t := range tables { // what a table puts before its columns may stand for it in others
		names := make([][]string, len(t.Columns))
		for j, c := range t.Columns {
			names[j] = splitName(c.Name[len(prefix):])
		}
		add(inName, p.joined(names))
	}
	return p
}

// minNames is how many names must begin alike for that to be no accident.
const minNames = 8

// sharedPrefix gives the letters that every name of a schema begins with, when the names are written together in small
// letters, as PostgreSQL keeps sbOrderDate: "sb".
func sharedPrefix(tables []sqlguard.Table) string {
	var names []string
	for _, t := range tables {
		names = append(names, t.Name)
		for _, c := range t.Columns {
			names = append(names, c.Name)
		}
	}
	if len(names) < minNames {
		return ""
	}
	return beginAlike(names)
}

// beginAlike gives the small letters that all names begin with, of two or more, with two or more behind them.
func beginAlike(names []string) string {
	prefix := names[0]
	for _, n := range names {
		if strings.IndexFunc(n, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) >= 0 {
			return ""
		}
		i := 0
		for i < len(prefix) && i+2 < len(n) && prefix[i] == n[i] {
			i++
		}
		prefix = prefix[:i]
	}
	if len(prefix) < 2 {
		return ""
	}
	return prefix
}

// joined gives the letters that all columns of a table begin with, when a third or more of the names are known words
// without them, so that "na" is not cut off "name" and "nation".
func (p parts) joined(names [][]string) string {
	if len(names) < 3 {
		return ""
	}
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i] = strings.Join(n, "_")
	}
	prefix := beginAlike(plain)
	known := 0
	for _, n := range plain {
		if rest := n[len(prefix):]; p.word(rest) || len(p.apart(rest)) > 1 {
			known++
		}
	}
	if 3*known < len(names) {
		return ""
	}
	return prefix
}

// withoutJoined takes that off.
func (p parts) withoutJoined(names [][]string) [][]string {
	prefix := p.joined(names)
	if prefix == "" {
		return names
	}
	out := make([][]string, len(names))
	for i, n := range names {
		out[i] = []string{n[0][len(prefix):]}
	}
	return out
}

// usual are the words that names of columns are made of anywhere.
var usual = set(`id no num nr name key code date time datetime type by is has at of to from status state email phone address city
	country zip street title text note notes description comment price cost amount qty quantity total tax currency rate value number
	count year month day start end begin first last created updated deleted active level size weight height width length color
	colour url image category group parent symbol source order user item line account payment score rank version open close high low volume`)

func (p parts) word(w string) bool { return p[w] != nowhere || usual[w] || measures[w] }

// stems gives the stems of a name's parts, with parts that are written together taken apart: "paperid" is "paper", "id".
func (p parts) stems(words []string) []string {
	var out []string
	for _, w := range words {
		for _, part := range p.apart(w) {
			out = append(out, stem(part))
		}
	}
	return out
}

// apart splits a word into the fewest other known words that it is made of whole, or leaves it.
func (p parts) apart(word string) []string {
	if len(word) < 5 || len(word) > 64 || p[word] == inText || strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return []string{word}
	}
	best := make([][]string, len(word)+1)
	best[0] = []string{}
	for end := 1; end <= len(word); end++ {
		for start := range end {
			part := word[start:end]
			if best[start] == nil || part == word || !p.word(part) {
				continue
			}
			if best[end] == nil || len(best[start])+1 < len(best[end]) {
				best[end] = append(append([]string{}, best[start]...), part)
			}
		}
	}
	// Pieces that are all tiny make a word by chance only.
	if found := best[len(word)]; found != nil && longest(found) >= 3 && len(found) <= 1+len(word)/4 {
		return found
	}
	return []string{word}
}

func longest(words []string) int {
	n := 0
	for _, w := range words {
		n = max(n, len(w))
	}
	return n
}
