package collection

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerm is the length in bytes of the longest term: what is longer is a key or a picture, not a word.
const maxTerm = 64

// common are words that stand in every text and so find nothing.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an and are as at be been but by can could did do does for from had has have how i if in
 into is it its may me my no not of on or our she so than that the their them then there these they this those to was we were
 what when where which who why will with would you your der die das und oder ist im in den dem ein eine zu mit von für auf le la
 les de des du et un une est`) {
		m[w] = true
	}
	return m
}()

// terms are the words of a text as both stores compare them: lower case, cut at whatever is neither letter nor digit, without
// common ones, plurals as singulars. Writing without blanks (Chinese, Japanese, Thai …) counts rune by rune.
func terms(text string) []string {
	var out []string
	add := func(w string) {
		if w == "" || len(w) > maxTerm || common[w] {
			return
		}
		out = append(out, singular(w))
	}
	begin := -1
	for i, r := range text {
		joined := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
		alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
		if joined && !alone {
			if begin < 0 {
				begin = i
			}
			continue
		}
		if begin >= 0 {
			add(strings.ToLower(text[begin:i]))
			begin = -1
		}
		if alone && joined {
			add(string(r))
		}
	}
	if begin >= 0 {
		add(strings.ToLower(text[begin:]))
	}
	return out
}

// singular takes an English plural's ending off. It need not be right, only the same for a text and a question.
func singular(w string) string {
	if utf8.RuneCountInString(w) < 4 || !strings.HasSuffix(w, "s") {
		return w
	}
	for _, keep := range []string{"ss", "us", "is"} {
		if strings.HasSuffix(w, keep) {
			return w
		}
	}
	if stem, ok := strings.CutSuffix(w, "ies"); ok && len(stem) > 2 {
		return stem + "y"
	}
	for _, es := range []string{"xes", "ches", "shes", "sses"} {
		if strings.HasSuffix(w, es) {
			return w[:len(w)-2]
		}
	}
	return w[:len(w)-1]
}

// distinct leaves out what came before, and all behind the first n.
func distinct(words []string, n int) []string {
	seen, out := map[string]bool{}, []string{}
	for _, w := range words {
		if !seen[w] && len(out) < n {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
