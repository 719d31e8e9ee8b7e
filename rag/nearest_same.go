package rag

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// SameQuestion says whether two texts ask the same in nearly the same words, so that what answers one answers the other
// without anybody thinking about it. When in doubt it says no: a wrong yes is a wrong answer under the name of the person who
// confirmed it.
//
// What may differ: case (but not of a word in capitals, such as US), blanks, the punctuation at the end of words, the articles
// the, an and mostly a, what is said out of politeness at either end, isn't for is not, and the plural of a noun, though not
// beside a superlative or an ordinal: the top customer is one, the top customers are several. Everything else must be there in
// both, in the same order: each number, date and quoted value letter by letter, each sign, and every small word, as not,
// without, before, after, more and less are small words.
func SameQuestion(a, b string) bool {
	if len(a) > maxSame || len(b) > maxSame {
		return false
	}
	one, other := wording(a), wording(b)
	if len(one) != len(other) || !slices.ContainsFunc(one, func(p piece) bool { return p.kind != signMark }) {
		return false
	}
	exact := slices.ContainsFunc(one, pickedOut) || slices.ContainsFunc(other, pickedOut)
	for i := range one {
		if one[i] != other[i] && (exact || one[i].kind != plainWord || other[i].kind != plainWord || singular(one[i].text) != singular(other[i].text)) {
			return false
		}
	}
	return true
}

// maxSame bounds what is compared, in bytes.
const maxSame = 16 << 10

// piece is one word or sign of a question.
type piece struct {
	kind pieceKind
	text string
}

type pieceKind int

const (
	plainWord  pieceKind = iota // a word, in lower case
	exactWord                   // with a digit, or in capitals: as it is written
	quotedText                  // what stands between quotes
	signMark                    // anything else

	// capitalWord is a plain word that begins with a capital where no sentence begins: The Who is a band.
	capitalWord
)

// wording takes a question apart, without what may differ.
func wording(text string) []piece {
	pieces := withoutPoliteness(pieces(text))
	var out []piece
	for i, p := range pieces {
		if p.kind == plainWord && article(p.text, pieces[:i], pieces[i+1:]) {
			continue
		}
		out = append(out, p)
	}
	for i, p := range out {
		if p.kind == capitalWord {
			out[i].kind, out[i].text = plainWord, strings.ToLower(p.text)
		}
	}
	return out
}

// pieces are the words and signs of a text.
func pieces(text string) []piece {
	text = norm.NFC.String(text)
	shouted := text == strings.ToUpper(text) // then capitals tell nothing
	var out []piece
	begins := true // a sentence, whose first word has a capital in any case
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsSpace(r):
			at += size
		case closers[r] != 0 && quoteEnd(text, at, r, size) > 0:
			end := quoteEnd(text, at, r, size)
			out = append(out, piece{quotedText, text[at+size : end]})
			at = end + utf8.RuneLen(closers[r])
		case partOfWord(r) || signed(text, at, r, size):
			end := wordEnd(text, at+size)
			out = append(out, word(text[at:end], shouted, begins)...)
			at, begins = end, false
		case punctuation(text, at):
			begins = begins || strings.ContainsRune(".?!…", r)
			at += size
		default:
			out = append(out, piece{signMark, string(r)})
			at += size
		}
	}
	return out
}

// punctuation says whether a mark only ends a word, as the point behind 2020. and the apostrophe of customers' do. Other
// marks mean something: != and a : b.
func punctuation(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	rest := strings.TrimLeft(text[at:], ".,;:?!…'’")
	if last := strings.TrimSpace(text[at:]); last == "?" || last == "!" {
		return true
	}
	if at == 0 || unicode.IsSpace(before) {
		return false
	}
	after, size := utf8.DecodeRuneInString(rest)
	return len(rest) < len(text[at:]) && (size == 0 || unicode.IsSpace(after) || after == ')')
}

// closers are the quotes, by what opens them.
var closers = map[rune]rune{'\'': '\'', '"': '"', '`': '`', '“': '”', '„': '“', '‘': '’', '«': '»', '‹': '›'}

// quoteEnd finds the end of what is quoted at a place; 0 when nothing is. An apostrophe stands behind a letter and opens
// nothing.
func quoteEnd(text string, at int, r rune, size int) int {
	if before, _ := utf8.DecodeLastRuneInString(text[:at]); at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before)) && (r == '\'' || r == '‘') {
		return 0
	}
	end := strings.IndexRune(text[at+size:], closers[r])
	for from := at + size; end >= 0; {
		close := from + end
		after, _ := utf8.DecodeRuneInString(text[close+utf8.RuneLen(closers[r]):])
		if r != '\'' && r != '‘' || !unicode.IsLetter(after) && !unicode.IsDigit(after) { // 'O'Hara' ends at its last
			return close
		}
		from = close + utf8.RuneLen(closers[r])
		end = strings.IndexRune(text[from:], closers[r])
	}
	return 0
}

func partOfWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) || r == '_'
}

// signed says whether a sign or a point at a place belongs to the number behind it: -5, +5, .5, $5.
func signed(text string, at int, r rune, size int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+size:])
	return strings.ContainsRune("-+−.$€£¥#@", r) && unicode.IsDigit(after) && !partOfWord(before)
}

// wordEnd finds the end of a word: marks between two letters or digits belong to it, as in 1,000.5, 2024-01-05, 10:30, e-mail
// and don't, and a % behind a digit.
func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+size:])
		inside := strings.ContainsRune("-'’.,:/@&", r) && partOfWord(before) && partOfWord(after)
		if (r == ',' || r == ':') && !(unicode.IsDigit(before) && unicode.IsDigit(after)) {
			inside = false // two words, without a blank
		}
		if !partOfWord(r) && !inside && !(r == '%' && unicode.IsDigit(before)) {
			break
		}
		at += size
	}
	return at
}

// word makes the pieces of a word.
func word(text string, shouted, first bool) []piece {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("@/&_.", r) }) {
		return []piece{{exactWord, text}}
	}
	text = strings.ReplaceAll(text, "’", "'")
	for _, ending := range []string{"'s", "'S"} {
		if base, ok := strings.CutSuffix(text, ending); ok && !isContraction[strings.ToLower(base)] {
			text = base // the possessive
		}
	}
	capitals := text == strings.ToUpper(text) && text != strings.ToLower(text) && !shouted
	if capitals && text != "I" && (utf8.RuneCountInString(text) > 1 || !first) {
		return []piece{{exactWord, text}} // US is not us, and grade A not a grade
	}
	kind := plainWord
	if r, _ := utf8.DecodeRuneInString(text); unicode.IsUpper(r) && !first && !shouted {
		kind = capitalWord
	}
	low := strings.ToLower(text)
	if long, ok := contractions[low]; ok {
		low = long
	} else if base, ok := strings.CutSuffix(low, "n't"); ok {
		low = base + " not"
	} else if base, ok := strings.CutSuffix(low, "'s"); ok {
		low = base + " is"
	}
	if kind == capitalWord && low == strings.ToLower(text) {
		return []piece{{capitalWord, text}}
	}
	var out []piece
	for _, w := range strings.Fields(low) {
		out = append(out, piece{plainWord, w})
	}
	return out
}

var contractions = map[string]string{"cannot": "can not", "can't": "can not", "won't": "will not", "shan't": "shall not", "i'd": "i would"}

// isContraction are words whose 's is an is.
var isContraction = set("what who where how that there it when which here")

// withoutPoliteness leaves out, at the two ends, what is said to a person and not about data.
func withoutPoliteness(words []piece) []piece {
	for cut := true; cut; {
		cut = false
		for _, said := range openings {
			if begins(words, said) && len(words) > len(said) {
				words, cut = words[len(said):], true
			}
		}
		for _, said := range endings {
			if n := len(words) - len(said); n > 0 && begins(words[n:], said) {
				words, cut = words[:n], true
			}
		}
	}
	return words
}

var (
	openings = phrases("please", "kindly", "hi", "hello", "hey", "can you", "could you", "would you", "will you", "tell me", "show me", "give me",
		"tell us", "show us", "give us", "let me know", "i want to know", "i would like to know", "i would like to see", "i want to see")
	endings = phrases("please", "thanks", "thank you", "for me")
)

func phrases(texts ...string) (out [][]string) {
	for _, t := range texts {
		out = append(out, strings.Fields(t))
	}
	return out
}

func begins(words []piece, said []string) bool {
	if len(words) < len(said) {
		return false
	}
	for i, w := range said {
		if words[i] != (piece{plainWord, w}) {
			return false
		}
	}
	return true
}

// article says whether a word in lower case is an article that tells nothing. An a behind a word that is no small one may be
// a name: grade a.
func article(word string, before, after []piece) bool {
	if len(after) == 0 {
		return false
	}
	switch word {
	case "the", "an":
		return true
	case "a":
		return after[0].kind == plainWord && (len(before) == 0 || before[len(before)-1].kind == plainWord && stopWords[before[len(before)-1].text])
	}
	return false
}

// pickedOut says whether a word makes one thing of many: then its plural counts.
func pickedOut(p piece) bool {
	return p.kind == plainWord && (picking[p.text] || len(p.text) > 4 && strings.HasSuffix(p.text, "est"))
}

var picking = set(`top bottom best worst most least first second third last next previous past final max min maximum minimum single one
	only each every another other`)

// singular takes the plural ending off an English word in lower case.
func singular(word string) string {
	if base, ok := irregularPlural[word]; ok {
		return base
	}
	n := len(word)
	if n < 4 || word[n-1] != 's' || noPlural[word] || strings.HasSuffix(word, "ss") || strings.HasSuffix(word, "us") || strings.HasSuffix(word, "is") {
		return word
	}
	for _, c := range word {
		if c > unicode.MaxASCII {
			return word
		}
	}
	if base, ok := strings.CutSuffix(word, "ies"); ok && n > 4 {
		return base + "y"
	}
	for _, ending := range []string{"xes", "ches", "shes", "sses", "zes"} {
		if strings.HasSuffix(word, ending) {
			return word[:n-2]
		}
	}
	return word[:n-1]
}

var (
	irregularPlural = pairs("people person men man women woman children child feet foot teeth tooth mice mouse movies movie cookies cookie indices index criteria criterion")

	// noPlural end in s and are no plural, or one that means something else.
	noPlural = set(`news goods customs arms means series species less this was has does always perhaps times seconds minutes works terms
		savings earnings contents premises ties glasses spectacles thanks years months weeks days hours quarters`)
)
