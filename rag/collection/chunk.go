package collection

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of chunks, in the embedding model's tokens. all-minilm, the default, was trained on 256; what stands above a chunk
// (asEmbedded) needs room too.
const (
	mostTokens = 200 // of one chunk
	overlap    = 30  // that a chunk repeats of the prose before it, under the same headings
)

// cutting is part of what a document's hash is over: another one cuts, and so embeds, again.
const cutting = "2: 200 tokens, 30 again"

// counter gives the number of tokens of each text.
type counter func(texts []string) ([]int, error)

// estimate counts without a model: for ASCII a token each 3 bytes (English has 4, code and tables have fewer), else one for
// each rune. It is meant to be too high rather than too low: what exceeds the model's context is not in the vector.
func estimate(texts []string) ([]int, error) {
	out := make([]int, len(texts))
	for i, t := range texts {
		ascii, other := 0, 0
		for _, r := range t {
			if r < utf8.RuneSelf {
				ascii++
			} else {
				other++
			}
		}
		out[i] = (ascii+2)/3 + other
	}
	return out, nil
}

// piece is the least that is not cut: a line of code, a row, a sentence.
type piece struct {
	text   string // with the blank or line break that follows it
	tokens int
}

// measured is a block with its pieces.
type measured struct {
	block
	pieces []piece
	tokens int
}

// chunks cuts a document. Blocks under the same headings share a chunk as long as they fit; a block that fits is not cut; one
// that does not is cut between sentences, rows or lines, where fences and a table's header are repeated.
func chunks(text, format string, count counter) ([]Chunk, error) {
	var all []measured
	for _, b := range blocks(text, format) {
		all = append(all, measured{block: b})
	}
	if err := measure(all, count); err != nil {
		return nil, err
	}
	var p packer
	for i := range all {
		p.add(&all[i])
	}
	p.flush()
	return p.out, nil
}

// measure cuts blocks into pieces and counts them, all at once: a model is asked once, and again for pieces too long to be
// one.
func measure(all []measured, count counter) error {
	var texts []string
	for i := range all {
		for _, t := range pieces(all[i].block) {
			all[i].pieces = append(all[i].pieces, piece{text: t})
			texts = append(texts, t)
		}
	}
	counted := map[string]int{}
	for len(texts) > 0 {
		got, err := count(texts)
		if err != nil {
			return err
		}
		for i, t := range texts {
			counted[t] = got[i]
		}
		texts = nil
		for i := range all {
			var fit []piece
			for _, p := range all[i].pieces {
				n, known := counted[p.text]
				if known && n > mostTokens/2 && utf8.RuneCountInString(p.text) > 1 {
					a, b := halve(p.text)
					for _, t := range []string{a, b} {
						fit = append(fit, piece{text: t})
						if _, ok := counted[t]; !ok {
							texts = append(texts, t)
						}
					}
					continue
				}
				fit = append(fit, piece{text: p.text, tokens: n})
			}
			all[i].pieces = fit
		}
	}
	for i := range all {
		for j, p := range all[i].pieces {
			all[i].pieces[j].tokens = counted[p.text]
			all[i].tokens += counted[p.text]
		}
	}
	return nil
}

// pieces cuts a block: code and tables between lines, prose after sentences.
func pieces(b block) []string {
	if b.kind != prose {
		return strings.SplitAfter(b.text, "\n")
	}
	var out []string
	begin := 0
	for i, r := range b.text {
		rest := b.text[i+utf8.RuneLen(r):]
		ends := strings.ContainsRune(".!?", r) && strings.IndexFunc(rest, unicode.IsSpace) == 0 || strings.ContainsRune("。！？", r) ||
			r == '\n' && (strings.HasPrefix(strings.TrimLeft(rest, " "), "- ") || strings.HasPrefix(strings.TrimLeft(rest, " "), "* "))
		if !ends {
			continue
		}
		end := i + utf8.RuneLen(r)
		for end < len(b.text) && (b.text[end] == ' ' || b.text[end] == '\n') {
			end++
		}
		if end > begin {
			out = append(out, b.text[begin:end])
			begin = end
		}
	}
	if begin < len(b.text) {
		out = append(out, b.text[begin:])
	}
	return out
}

// halve cuts a text in two, at a blank near the middle where there is one.
func halve(text string) (string, string) {
	middle := len(text) / 2
	for middle > 0 && !utf8.RuneStart(text[middle]) {
		middle--
	}
	if middle == 0 {
		_, middle = utf8.DecodeRuneInString(text)
	}
	if i := strings.LastIndexFunc(text[:middle], unicode.IsSpace); i > middle/2 {
		middle = i + 1
	}
	return text[:middle], text[middle:]
}

// packer fills chunks.
type packer struct {
	out     []Chunk
	heading string
	text    strings.Builder
	tokens  int
	last    []piece // of prose at the end of text, for the overlap
	fresh   bool    // text holds more than an overlap
}

func (p *packer) add(b *measured) {
	if b.heading != p.heading {
		p.flush()
		p.last, p.heading = nil, b.heading
		p.text.Reset()
		p.tokens = 0
	}
	if b.tokens <= mostTokens {
		if p.tokens+b.tokens > mostTokens {
			p.next()
		}
		if p.tokens+b.tokens > mostTokens { // with the overlap
			p.text.Reset()
			p.tokens = 0
		}
		p.write(b.text+"\n\n", b.tokens)
		p.last = nil
		if b.kind == prose {
			p.last = b.pieces
		}
		return
	}
	before, after, rest := frame(b)
	if p.fresh && p.tokens > mostTokens/2 || b.kind != prose {
		p.next()
		p.text.Reset()
		p.tokens = 0
	}
	room := mostTokens - before.tokens - after.tokens
	for len(rest) > 0 {
		used, n := 0, 0
		for n < len(rest) && (n == 0 || p.tokens+used+rest[n].tokens <= room) {
			used += rest[n].tokens
			n++
		}
		if p.fresh && p.tokens+used > room { // not even the first piece fits behind what is there
			p.next()
			if p.tokens+rest[0].tokens > room {
				p.text.Reset()
				p.tokens = 0
			}
			continue
		}
		var text strings.Builder
		for _, r := range rest[:n] {
			text.WriteString(r.text)
		}
		p.last = nil
		if b.kind == prose {
			p.last = rest[:n]
		}
		rest = rest[n:]
		p.write(before.text+text.String()+after.text, before.tokens+used+after.tokens)
		if len(rest) > 0 {
			p.next()
		}
	}
	p.write("\n\n", 0)
}

// frame is what each part of a code block or a table has before and after it, and the pieces between.
func frame(b *measured) (before, after piece, rest []piece) {
	rest = b.pieces
	last := len(rest) - 1
	switch {
	case b.kind == table && last > 1:
		before = piece{text: rest[0].text + rest[1].text, tokens: rest[0].tokens + rest[1].tokens}
		rest = rest[2:]
	case b.kind == code && last > 1 && fenceForm.MatchString(strings.TrimRight(rest[0].text, "\n")):
		before, after = rest[0], piece{text: "\n" + strings.TrimSpace(rest[0].text)[:3], tokens: 1}
		if fenceForm.MatchString(rest[last].text) {
			rest = rest[:last]
		}
		rest = rest[1:]
	}
	if before.tokens > mostTokens/2 { // a header so wide would leave no room
		return piece{}, piece{}, b.pieces
	}
	return before, after, rest
}

func (p *packer) write(text string, tokens int) {
	p.text.WriteString(text)
	p.tokens += tokens
	p.fresh = p.fresh || tokens > 0
}

// flush ends a chunk, if there is anything new in it.
func (p *packer) flush() {
	if text := strings.Trim(p.text.String(), "\n"); p.fresh && strings.TrimSpace(text) != "" {
		p.out = append(p.out, Chunk{Heading: p.heading, Text: text})
	}
	p.text.Reset()
	p.tokens, p.fresh = 0, false
}

// next ends a chunk and begins one with the end of it.
func (p *packer) next() {
	p.flush()
	from, tokens := len(p.last), 0
	for from > 0 && tokens+p.last[from-1].tokens <= overlap {
		from--
		tokens += p.last[from].tokens
	}
	for _, r := range p.last[from:] {
		p.text.WriteString(r.text)
	}
	p.tokens = tokens
	p.last = nil
}
