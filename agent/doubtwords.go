package agent

import (
	"regexp"
	"slices"
	"strings"

	"sluice/rag"
)

// example finds what a definition gives as an example: its values are not those that are asked for.
var example = regexp.MustCompile(`(?i)\((?:e\.?g\.?|for example|such as|like)[^)]*\)`)

// literals compares the texts in a statement with what the question names.
func (l *looked) literals() {
	said := " " + words(l.ask.q.Question+" "+example.ReplaceAllString(l.ask.q.Evidence, "")) + " "
	for _, e := range l.ask.earlier {
		said += words(e.question+" "+e.sql) + " "
	}
	var held []string
	for i, t := range l.ts {
		if t.kind != text {
			continue
		}
		value := strings.Trim(t.value(), "%_ ")
		held = append(held, " "+words(value)+" ")
		column, ok := l.against(i)
		if !ok || value == "" || l.named(value, said) || l.meansSaid(column, value, said) {
			continue
		}
		cut := l.conditionAt(i)
		if with, ok := l.meantIn(column); ok {
			cut = &edit{t.start, t.end, with}
		}
		l.doubtAndCut(sure, "the question does not name "+t.text, cut)
	}
	used, missed := 0, ""
	for _, link := range l.focus.Links {
		if link.Match != rag.Exact && link.Match != rag.Plural || !slices.Contains(l.focus.Tables, link.Column.Relation) {
			continue
		}
		v, p := " "+words(link.Value)+" ", " "+words(link.Phrase)+" "
		if slices.ContainsFunc(held, func(h string) bool {
			return strings.Contains(h, v) || strings.Contains(h, p) || len(h) > 4 && strings.Contains(v, h)
		}) {
			used++
		} else if missed == "" {
			missed = link.Value
		}
	}
	switch {
	case missed != "" && used == 0:
		l.doubt(likely, "it does not use "+quote(missed))
	case missed != "":
		l.doubt(maybe, "it does not use "+quote(missed))
	}
}

// meantIn gives the only value of a column that the question names.
func (l *looked) meantIn(column rag.ColumnRef) (literal string, ok bool) {
	n := 0
	for _, x := range l.focus.Links {
		if x.Column == column && (x.Match == rag.Exact || x.Match == rag.Plural) && quote(x.Value) != literal {
			literal, n = quote(x.Value), n+1
		}
	}
	return literal, n == 1
}

// named says whether the words of a value are in the question, whatever their endings.
func (l *looked) named(value, said string) bool {
	for _, w := range strings.Fields(words(value)) {
		stem := w
		if len(stem) > 4 {
			stem = stem[:len(stem)-1]
		}
		if !strings.Contains(said, " "+stem) {
			return slices.ContainsFunc(l.focus.Links, func(x rag.Link) bool { return sameText(x.Value, value) })
		}
	}
	return true
}

// meansSaid says whether a value of a column stands for something that the question names.
func (l *looked) meansSaid(column rag.ColumnRef, value, said string) bool {
	f, ok := l.k.Facts(column)
	if !ok {
		return true // nothing is known of the column
	}
	for _, c := range codes(f.Comment) {
		if sameText(c.code, value) {
			for _, w := range strings.Fields(words(c.meaning)) {
				if len(w) > 3 && strings.Contains(said, " "+w[:len(w)-1]) {
					return true
				}
			}
		}
	}
	return false
}

// against gives the column that a text is compared with, also by LIKE.
func (l *looked) against(i int) (rag.ColumnRef, bool) {
	if c, ok := l.compared(i); ok {
		return c, true
	}
	at := i - 1
	for at >= 0 && l.ts[at].is("LIKE", "ILIKE", "NOT", "TO", "SIMILAR", "(") {
		at--
	}
	if at == i-1 || at < 0 {
		return rag.ColumnRef{}, false
	}
	for at >= 0 && l.ts[at].is(")") {
		at--
	}
	ref, ok := referenceTo(l.ts, at)
	if !ok {
		return rag.ColumnRef{}, false
	}
	return l.meant(within(l.blocks, i), ref)
}

var numberWord = map[string]string{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}

// numbers doubts a statement without a number that the question names.
func (l *looked) numbers() {
	for _, w := range strings.Fields(words(l.ask.q.Question)) {
		n := w
		if d, ok := numberWord[w]; ok {
			n = d
		}
		if !isNumber(n) || n == "0" || n == "1" {
			continue
		}
		if !slices.ContainsFunc(l.ts, func(t token) bool { return (t.kind == number || t.kind == text) && strings.Contains(t.text, n) }) {
			l.doubt(likely, "it does not use "+n)
		}
	}
}

// asked is what a wording of a question wants to see in a statement.
type asked struct {
	wording *regexp.Regexp
	wants   []string // one of these
	weight  float64
	why     string
}

var wordings = []asked{
	{regexp.MustCompile(`\b(average|mean)\b`), []string{"avg", "mean", "/", "median"}, likely, "it gives no average"},
	{regexp.MustCompile(`\b(how many|number of|count of|total count)\b`), []string{"count", "sum", "avg", "max", "min", "order"}, likely, "it counts nothing"},
	{regexp.MustCompile(`\b(ratio|percentage|percent|proportion|fraction)\b`), []string{"/", "avg"}, likely, "it gives no ratio"},
	{regexp.MustCompile(`\b(most|least|highest|lowest|largest|smallest|top|latest|earliest|longest|oldest|newest|youngest|biggest|cheapest)\b`),
		[]string{"limit", "order", "max", "min", "rank", "row_number", "dense_rank", "fetch", "all"}, likely, "it takes no extreme"},
}

// wording doubts a statement without what the question's words want.
func (l *looked) wording() {
	q := strings.ToLower(l.ask.q.Question)
	for _, a := range wordings {
		if a.wording.MatchString(q) && !slices.ContainsFunc(l.ts, func(t token) bool { return t.is(a.wants...) }) {
			l.doubt(a.weight, a.why)
		}
	}
}
