package reply

import "strings"

// The tags of DeepSeek and Cogito, with the full-width bar and the block of their vocabulary.
const (
	toolCallsBegin = "<｜tool▁calls▁begin｜>"
	toolCallsEnd   = "<｜tool▁calls▁end｜>"
	toolCallBegin  = "<｜tool▁call▁begin｜>"
	toolCallEnd    = "<｜tool▁call▁end｜>"
	toolSep        = "<｜tool▁sep｜>"
)

// deepseekForm is the frame around calls: the first of them, whose followers stand on their own.
func (s *scanner) deepseekForm(body string, final bool) found {
	rest := strings.TrimLeft(body, spaces)
	inner, ok := strings.CutPrefix(rest, toolCallBegin)
	switch {
	case ok:
		return s.deepseekCall(inner, final).behind(len(body) - len(inner))
	case strings.HasPrefix(toolCallBegin, rest):
		return unclear(final, none)
	}
	return none
}

// deepseekCall is name<sep>{…} (V3.1) or function<sep>name and a code fence (R1, Cogito), up to the end of the call.
func (s *scanner) deepseekCall(body string, final bool) found {
	i := strings.Index(body, toolCallEnd)
	n := i + len(toolCallEnd)
	if outer := strings.Index(body, toolCallsEnd); outer >= 0 && (i < 0 || outer < i) { // the inner end was left out
		i, n = outer, outer
	}
	if i < 0 {
		return unclear(final, text(len(body)))
	}
	name, args, ok := strings.Cut(body[:i], toolSep)
	if !ok {
		return text(n)
	}
	name = strings.TrimSpace(name)
	if name == "function" && !s.names[name] {
		name, args, _ = strings.Cut(args, "\n")
		name = strings.TrimSpace(name)
	}
	args = strings.TrimSpace(args)
	if inner, ok := strings.CutPrefix(args, "```"); ok {
		args = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```"))
	}
	call, ok := newCall(name, []byte(args))
	if !ok || !s.names[name] {
		return text(n)
	}
	return found{verdict: isCall, n: n, calls: []toolCall{call}}
}
