package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestRun is how many characters without a break llama.cpp is given to tokenize.
//
// A BPE vocabulary splits a text by a regular expression before it looks anything up, most of them by std::regex, which calls itself
// for every character of a match: 40,000 letters in a row overran the 8 MiB of a thread's stack, and the process was gone (20,000
// were read). Some expressions take several times as much for a character as the one of that measurement, and some systems give
// 2 MiB; hence a bound far below.
const longestRun = 2000

// What a match of any of those expressions (llm_tokenizer_bpe in llama-vocab.cpp, v0.17.4) can be a run of.
const (
	runLetters = iota // with the marks on them
	runNumbers
	runSigns // what is no letter, number or space
	runSpaces
	runLines    // [\r\n/]*
	runUnspaced // [^(\s|.,!?…]+ of BLOOM
	runKinds
)

// mayBe says in which runs a character may stand. Of other than ASCII only the spaces are told apart: the rest counts for every run,
// so that safety does not hang on llama.cpp's table of categories and Go's being of the same version of Unicode.
func mayBe(r rune) (in [runKinds]bool) {
	switch {
	case unicode.IsSpace(r):
		in[runSpaces], in[runLines] = true, r == '\r' || r == '\n'
		return in
	case r >= utf8.RuneSelf:
		in[runLetters], in[runNumbers], in[runSigns] = true, true, true
	case r >= '0' && r <= '9':
		in[runNumbers] = true
	case r|0x20 >= 'a' && r|0x20 <= 'z':
		in[runLetters] = true
	default:
		in[runSigns], in[runLines] = true, r == '/'
	}
	in[runUnspaced] = !strings.ContainsRune("(|.,!?", r)
	return in
}

// splitsAnyway says whether the expressions split between two characters of a run whatever stands around them, so that a cut there
// changes no token: behind a word before a sign or a number, and between a number and a word. (BLOOM's and SuperBPE's do not.)
func splitsAnyway(before, r rune) bool {
	switch {
	case unicode.IsLetter(before):
		return r != '\'' && !unicode.IsLetter(r) && !unicode.IsMark(r)
	case unicode.IsNumber(before):
		return unicode.IsLetter(r)
	}
	return false
}

// cutRuns cuts a text so that no piece has a run of more than bound characters. A text without a longer run stays whole. Where there is
// one it is cut where it is split anyway; only where it is of one kind through and through the tokens at the cut may be others than
// those of the whole run. No text of specials is cut in two, but where they overlap for as long as half a run.
func cutRuns(text string, bound int, specials func() []string) []string {
	if len(text) <= bound {
		return []string{text}
	}
	var pieces []string
	var length, start [runKinds]int // of the run of each kind, and where it began
	from, split := 0, -1            // where the piece begins; where it was last split anyway
	before := rune(-1)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if before >= 0 && splitsAnyway(before, r) {
			split = i
		}
		long := false
		anyway := -1 // where it is split anyway in the run that is too long
		for kind, ok := range mayBe(r) {
			switch {
			case !ok:
				length[kind] = 0
				continue
			case length[kind] == 0:
				start[kind] = i
			}
			if length[kind]++; length[kind] > bound && !long {
				if long = true; split > start[kind] {
					anyway = split
				}
			}
		}
		if !long {
			i, before = i+n, r
			continue
		}
		cut, ok := outOf(specials(), text, from, anyway)
		if !ok {
			cut, _ = outOf(specials(), text, from, i)
		}
		pieces = append(pieces, text[from:cut])
		from, i, split, before, length = cut, cut, -1, -1, [runKinds]int{}
	}
	return append(pieces, text[from:])
}

// outOf moves a cut out of special tokens that are written in the text, to the left, but not by more than half of the piece: then it
// leaves the cut where it is, and says that it is in one, if it is one at all.
func outOf(specials []string, text string, from, cut int) (at int, ok bool) {
	if cut < 0 {
		return cut, false
	}
	at, least := cut, from+(cut-from)/2
	for {
		moved := false
		for _, s := range specials {
			window := max(from, at-len(s)+1)
			if i := strings.Index(text[window:min(len(text), at+len(s)-1)], s); i >= 0 {
				at, moved = window+i, true
			}
		}
		if !moved {
			return at, true
		}
		if at <= least {
			return cut, false
		}
	}
}

// cutWords cuts words of more than bound characters. The module's WordPiece takes time with the cube of a word's length.
func cutWords(text string, bound int) string {
	if len(text) <= bound {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; unicode.IsSpace(r) || unicode.IsPunct(r) {
			n = 0
		}
		if n > bound {
			b.WriteByte(' ')
			n = 1
		}
		b.WriteRune(r)
	}
	return b.String()
}

// longestWord is BERT's own bound; llama.cpp has none, and BERT knows no longer word.
const longestWord = 100

// tokenizeRuns tokenizes a text whose runs may be too long for C, by a function that is given pieces of it.
func (m *loaded) tokenizeRuns(text string, special bool, tokenize func(text string, special bool) ([]int, error)) ([]int, error) {
	pieces := []string{text}
	if m.splits {
		pieces = cutRuns(text, longestRun, m.specials)
	}
	if len(pieces) == 1 {
		return tokenize(text, special)
	}
	var before, after []int
	if special {
		var err error
		if before, after, err = m.around(); err != nil {
			return nil, err
		}
	}
	ids := slices.Clone(before)
	for _, piece := range pieces {
		more, err := tokenize(piece, false)
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return append(ids, after...), nil
}
