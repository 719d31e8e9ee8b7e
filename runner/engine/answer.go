package engine

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// answer turns the pieces of tokens into text that may be sent: it holds back what may become a stop string, and bytes that
// are not yet a whole character.
type answer struct {
	stops [][]byte
	held  []byte
	sent  int    // bytes of the pieces that were let go
	stop  string // the stop string that was reached
}

func newAnswer(stops []string) *answer {
	a := &answer{}
	for _, s := range stops {
		if s != "" { // an empty one would match everywhere
			a.stops = append(a.stops, []byte(s))
		}
	}
	return a
}

// add takes a token's piece and gives the text that is safe to send. stopped: a stop string was reached; it and all behind
// it are cut, and the earliest one in the text wins.
func (a *answer) add(piece string) (text string, stopped bool) {
	a.held = append(a.held, piece...)
	at := -1
	for _, s := range a.stops {
		if i := bytes.Index(a.held, s); i >= 0 && (at < 0 || i < at) {
			at, a.stop = i, string(s)
		}
	}
	if at >= 0 {
		a.held = a.held[:at]
		return a.rest(), true
	}
	return a.take(whole(a.held[:len(a.held)-a.maybeStop()])), false
}

// rest gives all that is held. A character that was cut in half is dropped: no more bytes will come.
func (a *answer) rest() string {
	text := a.take(whole(a.held))
	a.held = a.held[:0]
	return text
}

// take removes the first n held bytes. A broken byte in the middle of a text becomes U+FFFD.
func (a *answer) take(n int) string {
	text := strings.ToValidUTF8(string(a.held[:n]), "\uFFFD")
	a.held = append(a.held[:0], a.held[n:]...)
	a.sent += n
	return text
}

// maybeStop is the length of the longest end of held that a stop string begins with.
func (a *answer) maybeStop() int {
	longest := 0
	for _, s := range a.stops {
		for n := min(len(s)-1, len(a.held)); n > longest; n-- {
			if bytes.HasSuffix(a.held, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// whole is the length of b without an unfinished character at its end.
func whole(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if start := len(b) - back; utf8.RuneStart(b[start]) {
			if !utf8.FullRune(b[start:]) {
				return start
			}
			break
		}
	}
	return len(b)
}
