package reply

import "strings"

// bare reads JSON without a tag. It is a call where it begins the answer or follows another call, where it has lines of its
// own, and where it ends the answer. Elsewhere it is an example in a sentence.
func (s *scanner) bare(b string, final bool) found {
	if !s.mayBegin() {
		return none
	}
	f := s.value(b, s.behind, final)
	if f.verdict != isCall || !s.begun || s.behind {
		return f
	}
	rest := strings.TrimLeft(b[f.n:], " \t\r")
	switch {
	case rest == "":
		return unclear(final, f)
	case s.line && rest[0] == '\n':
		return f
	}
	return s.ifNothingFollows(f, b, final)
}

// mayBegin tells whether a value may begin here: not inside another value or a piece of code.
func (s *scanner) mayBegin() bool {
	if s.behind || !s.begun {
		return true
	}
	switch s.last {
	case '[', '{', '(', ',', '`':
		return false
	case ':':
		return s.lastTwo != '"'
	case '>', '}':
		return true
	}
	return len(s.space) > 0
}

// ifNothingFollows makes calls text unless only further calls follow them up to the end of the answer.
func (s *scanner) ifNothingFollows(f found, b string, final bool) found {
	if s.at0 < s.followed { // the same calls, from one of them on: else each looks through all behind it
		return text(f.n)
	}
	calls, at := f, f.n
	for f.verdict == isCall {
		rest := strings.TrimLeft(b[at:], spaces+",;")
		if rest == "" {
			return unclear(final, calls)
		}
		at = len(b) - len(rest)
		if n, partial := s.closer(rest); n > 0 {
			return calls
		} else if partial && !final {
			return more
		}
		switch {
		case rest[0] == '{' || rest[0] == '[':
			f = s.value(rest, false, final)
		case strings.HasPrefix(rest, "```"):
			f = s.fenceAt(rest, final)
		case strings.HasPrefix("```", rest):
			f = unclear(final, none)
		default:
			f = s.tag(rest, final)
			if f.verdict == isCall {
				return calls
			}
		}
		if f.verdict == isMore {
			return more
		}
		at += f.n
	}
	s.followed = s.at0 + at
	return text(calls.n)
}

// fencedCalls reads a code fence that holds nothing but calls. It is calls where it begins or ends the answer.
func (s *scanner) fencedCalls(b string, final bool) found {
	f := s.fenceAt(b, final)
	if f.verdict != isCall || !s.begun || s.behind {
		return f
	}
	return s.ifNothingFollows(f, b, final)
}

// languages are what models write behind ``` before a call.
var languages = map[string]bool{
	"": true, "json": true, "jsonc": true, "tool_call": true, "tool_calls": true, "tool_code": true, "function_call": true, "xml": true, "text": true,
}

// fenceAt reads the fence at the beginning of b; none when something else than calls is in it.
func (s *scanner) fenceAt(b string, final bool) found {
	head := strings.TrimLeft(b[3:], "abcdefghijklmnopqrstuvwxyz_")
	language := b[3 : len(b)-len(head)]
	if head == "" {
		for l := range languages {
			if strings.HasPrefix(l, language) {
				return unclear(final, none)
			}
		}
		return none
	}
	if !languages[language] {
		return none
	}
	calls, at := found{verdict: isCall}, len(b)-len(head)
	for {
		rest := strings.TrimLeft(b[at:], spaces)
		at = len(b) - len(rest)
		if rest == "" {
			if final && len(calls.calls) > 0 { // the end was left out
				calls.n = at
				return calls
			}
			return unclear(final, none)
		}
		inside := len(calls.calls) > 0
		switch n, partial := s.fenceCloser(rest); {
		case inside && n > 0 && rest[0] == '`':
			calls.n = at + n
			return calls
		case inside && n > 0:
			at += n
			continue
		case inside && partial:
			calls.n = len(b)
			return unclear(final, calls)
		}
		var f found
		switch rest[0] {
		case '{', '[':
			f = s.value(rest, false, final)
		default:
			f = s.tag(rest, final)
		}
		switch f.verdict {
		case isCall:
			calls.calls = append(calls.calls, f.calls...)
			at += f.n
		case isMore:
			return more
		default:
			return none
		}
	}
}

// fenceCloser is closer, with the end of the fence and the signs between calls.
func (s *scanner) fenceCloser(b string) (n int, partial bool) {
	if b[0] == ',' || b[0] == ';' {
		return 1, false
	}
	for _, c := range append([]string{"```"}, closers...) {
		if strings.HasPrefix(b, c) {
			return len(c), false
		}
		partial = partial || strings.HasPrefix(c, b)
	}
	return 0, partial
}
