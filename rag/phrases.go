package rag

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a run of words of a question.
type span struct {
	from, to int // tokens
	quoted   bool
}

// question is a text with its words, and which of them were found to be something.
type question struct {
	text  string
	words []token
	used  []bool
}

func newQuestion(text string) *question {
	text = strings.ToValidUTF8(text, " ")
	words := tokens(text)
	return &question{text: text, words: words, used: make([]bool, len(words))}
}

// phrase gives a span as it is written, folded, and as stems.
func (q *question) phrase(s span) (written, folded, stemmed string) {
	f, st := make([]string, 0, s.to-s.from), make([]string, 0, s.to-s.from)
	for _, w := range q.words[s.from:s.to] {
		f, st = append(f, w.fold), append(st, stem(w.fold))
	}
	return q.text[q.words[s.from].start:q.words[s.to-1].end], strings.Join(f, " "), strings.Join(st, " ")
}

func (q *question) free(s span) bool {
	for i := s.from; i < s.to; i++ {
		if q.used[i] {
			return false
		}
	}
	return true
}

func (q *question) use(s span) {
	for i := s.from; i < s.to; i++ {
		q.used[i] = true
	}
}

// closing gives the quote that ends what another one begins.
var closing = map[rune]rune{'"': '"', '“': '”', '„': '“', '‘': '’', '\'': '\'', '«': '»', '`': '`'}

// quotes gives what stands in quotes. An apostrophe opens at the beginning of a word only and closes at the end of one.
func (q *question) quotes() []span {
	var out []span
	text := q.text
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		end := closing[r]
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		if end == 0 || wordRune(before) && i > 0 {
			i += size
			continue
		}
		length := -1
		for at, c := range text[i+size:] {
			next, _ := utf8.DecodeRuneInString(text[i+size+at+utf8.RuneLen(c):])
			if c == end && at > 0 && !wordRune(next) {
				length = at
				break
			}
		}
		if length < 0 {
			i += size
			continue
		}
		if s, ok := q.within(i+size, i+size+length); ok {
			out = append(out, s)
		}
		i += size + length + utf8.RuneLen(end)
	}
	return out
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// within gives the words between two bytes of the text.
func (q *question) within(start, end int) (span, bool) {
	s := span{from: -1, quoted: true}
	for i, w := range q.words {
		if w.start >= start && w.end <= end {
			if s.from < 0 {
				s.from = i
			}
			s.to = i + 1
		}
	}
	return s, s.from >= 0
}

// joining are words that stand inside of names: "University of Michigan".
var joining = set("of the and de la le du van von der den for in on at")

// names gives the runs of capitalised words: names, most likely. The first word of a sentence is capitalised anyway, so
// it alone is none unless it is written in capitals.
func (q *question) names() []span {
	var out []span
	for i := 0; i < len(q.words); i++ {
		if !q.capital(i) || q.used[i] {
			continue
		}
		s := span{from: i, to: i + 1}
		for s.to < len(q.words) && !q.used[s.to] && q.together(s.to) {
			next := s.to
			for next < len(q.words) && joining[q.words[next].text] && next-s.to < 2 && q.together(next) {
				next++
			}
			if next >= len(q.words) || q.used[next] || !q.together(next) || !q.capital(next) && !q.numbered(next) {
				break
			}
			s.to = next + 1
		}
		i = s.to - 1
		for s.from < s.to && (stopWords[q.words[s.from].fold] || calendar[q.words[s.from].fold]) {
			s.from++
		}
		if s.from == s.to || s.to-s.from == 1 && q.begins(s.from) && !shouted(q.words[s.from].text) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// numbered says whether a word is the number of a code, such as the second one of OD-101.
func (q *question) numbered(i int) bool {
	r, _ := utf8.DecodeRuneInString(q.words[i].text)
	return unicode.IsDigit(r) && q.words[i].start == q.words[i-1].end+1 && q.text[q.words[i-1].end] != ' '
}

func (q *question) capital(i int) bool {
	r, _ := utf8.DecodeRuneInString(q.words[i].text)
	return unicode.IsUpper(r)
}

// together says whether a word follows the one before in the same breath: with nothing but blanks, an ampersand, a dot of
// an abbreviation or a hyphen between them.
func (q *question) together(i int) bool {
	gap := q.text[q.words[i-1].end:q.words[i].start]
	if gap == ". " && len([]rune(q.words[i-1].text)) > 1 || len(gap) > 3 {
		return false
	}
	return strings.Trim(gap, " &.-/'’s") == ""
}

// begins says whether a word is the first of a sentence.
func (q *question) begins(i int) bool {
	if i == 0 {
		return true
	}
	gap := q.text[q.words[i-1].end:q.words[i].start]
	return strings.ContainsAny(gap, ".?!:;\n")
}

// shouted says whether a word is written in capitals or with digits, as codes are.
func shouted(word string) bool {
	if len([]rune(word)) < 2 {
		return false
	}
	return strings.IndexFunc(word, unicode.IsLower) < 0 || strings.IndexFunc(word, unicode.IsDigit) >= 0
}
