package reply

import (
	"strings"
	"unicode"
)

// kind is what a piece of text is.
type kind int

const (
	contentText kind = iota
	thinkingText
	unfinishedThought // thinking that may hold a call of a tool, and the answer ended
)

// thought splits a thought, which may only come first, from the answer. It leaves out the tags and the white space around
// the thought, as Ollama's thinking parser does.
type thought struct {
	begin, end string
	trim       bool             // also the white space before the end tag, as Ollama's parsers of single families do
	hold       func(string) int // where a call may begin, or -1; nil: nowhere
	state      thoughtState
	buf        string
}

type thoughtState int

const (
	stateStart    thoughtState = iota // a thought may begin
	stateOpened                       // the prompt began it; the model may write the tag once more
	stateLead                         // white space behind the begin
	stateThinking                     // in it
	stateTrail                        // white space behind the end
	stateContent                      // the answer
)

func newThought(begin, end string, opened bool) *thought {
	t := &thought{begin: begin, end: end}
	switch {
	case begin == "":
		t.state = stateContent
	case opened:
		t.state = stateOpened
	}
	return t
}

// maxBlank is how much white space is held back: a model that writes nothing else for ever would have all of it looked at again
// with each piece.
const maxBlank = 4096

// add takes the next piece and hands on what is clear.
func (t *thought) add(text string, done bool, emit func(kind, string)) {
	t.buf += text
	for t.step(done, emit) {
	}
}

// step makes one transition, and tells whether there may be another.
func (t *thought) step(done bool, emit func(kind, string)) bool {
	trimmed := strings.TrimLeftFunc(t.buf, unicode.IsSpace)
	switch t.state {
	case stateStart, stateOpened:
		rest, found := strings.CutPrefix(trimmed, t.begin)
		switch {
		case found:
			t.buf, t.state = rest, stateLead
		case strings.HasPrefix(t.begin, trimmed) && !done && len(t.buf) < maxBlank:
			return false
		case t.state == stateStart:
			t.state = stateContent
		default:
			t.state = stateLead
		}
		return true
	case stateLead:
		t.buf = trimmed
		if trimmed == "" {
			return false
		}
		t.state = stateThinking
		return true
	case stateThinking:
		return t.think(done, emit)
	case stateTrail:
		t.buf = trimmed
		if trimmed == "" {
			return false
		}
		t.state = stateContent
		return true
	}
	if t.buf != "" {
		emit(contentText, t.buf)
		t.buf = ""
	}
	return false
}

func (t *thought) think(done bool, emit func(kind, string)) bool {
	say := func(k kind, s string) {
		if s != "" {
			emit(k, s)
		}
	}
	if said, rest, ok := strings.Cut(t.buf, t.end); ok {
		if t.trim {
			said = strings.TrimRightFunc(said, unicode.IsSpace)
		}
		say(thinkingText, said)
		t.buf, t.state = rest, stateTrail
		return true
	}
	clear := len(t.buf)
	if !done {
		clear -= overlap(t.buf, t.end)
		if t.trim && len(t.buf) < maxBlank {
			clear = len(strings.TrimRightFunc(t.buf[:clear], unicode.IsSpace))
		}
	}
	if t.hold != nil {
		if at := t.hold(t.buf); at >= 0 && at < len(t.buf) {
			if done {
				say(thinkingText, t.buf[:at])
				say(unfinishedThought, t.buf[at:])
				t.buf = ""
				return false
			}
			clear = min(clear, at)
			if t.trim {
				clear = len(strings.TrimRightFunc(t.buf[:clear], unicode.IsSpace))
			}
		}
	}
	say(thinkingText, t.buf[:clear])
	t.buf = t.buf[clear:]
	return false
}

// overlap is the length of the longest end of s that begins tag.
func overlap(s, tag string) int {
	for n := min(len(tag)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
