package reply

import (
	"strings"

	"github.com/ollama/ollama/api"
)

// scanner finds the calls in a text.
type scanner struct {
	tools    []api.Tool
	names    map[string]bool
	tagsOnly bool

	buf   string // not yet clear; it begins where a call may begin
	tried int    // bytes of buf at the last look

	gone     int // bytes of the answer before buf
	at0      int // bytes of the answer before the place that is looked at
	followed int // so far into the answer text is known that follows the calls before it

	out   strings.Builder
	calls []api.ToolCall

	// what came out before buf
	space   []byte // white space that is left out if a call follows
	begun   bool   // something else than white space and calls
	line    bool   // nothing but white space since the last line break
	fence   bool   // inside ``` … ```
	behind  bool   // right behind a call: only white space and what ends calls since
	fenced  bool   // the call was behind ```, whose end may still come
	last    byte   // the last character that is no white space
	lastTwo byte   // the one before it, when nothing was between them
}

func newScanner(tools []api.Tool, tagsOnly bool) *scanner {
	s := &scanner{tools: tools, names: map[string]bool{}, tagsOnly: tagsOnly, line: true}
	for _, t := range tools {
		if t.Function.Name != "" {
			s.names[t.Function.Name] = true
		}
	}
	return s
}

// verdict is what a place in the text is.
type verdict int

const (
	isNone verdict = iota // one character of plain text
	isText                // n bytes of text in which no call may begin
	isCall                // n bytes that are calls
	isMore                // not clear yet
)

type found struct {
	verdict verdict
	n       int
	calls   []api.ToolCall
	fenced  bool // the calls came behind ``` that has no end yet
}

var (
	none = found{verdict: isNone}
	more = found{verdict: isMore}
)

func text(n int) found { return found{verdict: isText, n: n} }

// unclear is more, unless nothing more can come.
func unclear(final bool, otherwise found) found {
	if final {
		return otherwise
	}
	return more
}

// add takes the next piece of text and gives what is clear.
func (s *scanner) add(piece string, final bool) (string, []api.ToolCall) {
	s.buf += piece
	// A long call is looked at again only when it has grown by a sixteenth: else each token of it costs a look at all of it.
	if !final && s.tried > 4096 && len(s.buf) < s.tried+s.tried/16 {
		return "", nil
	}
	s.out.Reset()
	s.calls = nil
	i := 0
	for i < len(s.buf) {
		s.at0 = s.gone + i
		n, ok := s.step(s.buf[i:], final)
		if !ok {
			break
		}
		i += n
	}
	s.buf = s.buf[i:]
	s.gone += i
	s.tried = len(s.buf)
	if final && !s.behind { // white space at the end of calls is theirs
		s.out.Write(s.space)
		s.space = nil
	}
	return s.out.String(), s.calls
}

// step takes what stands at the beginning of b, or tells that it is not clear.
func (s *scanner) step(b string, final bool) (n int, ok bool) {
	if isSpace(b[0]) {
		if !s.behind || s.begun {
			s.space = append(s.space, b[0])
		}
		s.line = s.line || b[0] == '\n'
		return 1, true
	}
	if s.behind {
		switch n, partial := s.closer(b); {
		case n > 0:
			return n, true
		case partial && !final:
			return 0, false
		}
	}
	f := s.at(b, final)
	switch f.verdict {
	case isMore:
		return 0, false
	case isCall:
		s.calls = append(s.calls, f.calls...)
		s.behind, s.fenced, s.line = true, f.fenced, true
		if !s.begun {
			s.space = s.space[:0]
		}
		return f.n, true
	case isText:
		s.pass(b[:f.n])
		return f.n, true
	}
	s.pass(b[:1])
	return 1, true
}

// pass lets text through.
func (s *scanner) pass(t string) {
	for i := range len(t) {
		c := t[i]
		if isSpace(c) {
			s.space = append(s.space, c)
			s.line = s.line || c == '\n'
			continue
		}
		s.out.Write(s.space)
		s.out.WriteByte(c)
		s.lastTwo = 0
		if len(s.space) == 0 {
			s.lastTwo = s.last
		}
		s.last, s.space = c, s.space[:0]
		s.begun, s.line, s.behind, s.fenced = true, false, false, false
	}
}

// at tells what begins at b, whose first character is no white space.
func (s *scanner) at(b string, final bool) found {
	if !strings.ContainsRune("`<[{fA,;", rune(b[0])) {
		return none
	}
	if b[0] == '`' && s.line {
		if f := s.backticks(b, final); f.verdict != isNone || s.fence {
			return f
		}
	}
	if s.fence {
		return none
	}
	if f := s.tag(b, final); f.verdict != isNone || s.tagsOnly {
		return f
	}
	switch b[0] {
	case '{', '[':
		return s.bare(b, final)
	case ',', ';':
		return s.separated(b, final)
	}
	return none
}

// backticks handles the beginning and the end of a code fence.
func (s *scanner) backticks(b string, final bool) found {
	if !strings.HasPrefix(b, "```") {
		if strings.HasPrefix("```", b) {
			return unclear(final, text(len(b)))
		}
		return none
	}
	if s.fence {
		s.fence = false
		return text(3)
	}
	if !s.tagsOnly {
		if f := s.fencedCalls(b, final); f.verdict != isNone {
			return f
		}
	}
	s.fence = true
	return text(3)
}

// separated handles a sign between two calls.
func (s *scanner) separated(b string, final bool) found {
	if !s.behind {
		return none
	}
	rest := strings.TrimLeft(b[1:], spaces)
	switch {
	case rest == "":
		return unclear(final, none)
	case rest[0] != '{' && rest[0] != '[':
		return none
	}
	f := s.bare(rest, final)
	if f.verdict == isCall {
		f.n += len(b) - len(rest)
		return f
	}
	if f.verdict == isMore {
		return more
	}
	return none
}

const spaces = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// closers end calls. Models leave them out, repeat them and mix them, so behind a call any of them is taken.
var closers = []string{
	"</tool_call>", "</tool_calls>", "</toolcall>", "</function_call>", "</function_calls>", "</function>", "</tools>",
	"[/TOOL_CALLS]", "<|/tool_call|>", "<|tool_call_end|>", "<|eom_id|>", "<|eot_id|>", "<|im_end|>",
	toolCallEnd, toolCallsEnd, "<end_function_call>",
}

// closer gives the length of what ends a call at the beginning of b, or tells that it may be the beginning of one.
func (s *scanner) closer(b string) (n int, partial bool) {
	for _, c := range closers {
		if strings.HasPrefix(b, c) {
			return len(c), false
		}
		partial = partial || strings.HasPrefix(c, b)
	}
	if s.fenced {
		if strings.HasPrefix(b, "```") {
			return 3, false
		}
		partial = partial || strings.HasPrefix("```", b)
	}
	return 0, partial
}
