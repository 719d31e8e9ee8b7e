package reply

import (
	"strings"
)

// tag is a text behind which models write calls.
type tag struct {
	open string
	read func(s *scanner, body string, final bool) found // gives the bytes of body that it took
}

// tags are those of all families. None begins another.
var tags = []tag{
	{"<tool_call>", (*scanner).anyForm},       // Hermes, Qwen, GLM, Nemotron
	{"<|tool_call|>", (*scanner).jsonForm},    // Granite, Phi
	{"<toolcall>", (*scanner).jsonForm},       // Nemotron Mini
	{"<function_call>", (*scanner).jsonForm},  //
	{"<|python_tag|>", (*scanner).jsonForm},   // Llama 3.1
	{"[TOOL_CALLS]", (*scanner).mistralForm},  // Mistral
	{"functools", (*scanner).listForm},        // Firefunction, Phi
	{"Action:", (*scanner).fencedForm},        // Command R
	{"<function=", (*scanner).functionForm},   // Llama 3.1, Qwen 3 Coder
	{toolCallsBegin, (*scanner).deepseekForm}, // DeepSeek, Cogito
	{toolCallBegin, (*scanner).deepseekCall},  // the same without its frame
	{"<|tool_call_start|>", region("lfm2", "<|tool_call_start|>", "<|tool_call_end|>")},
	{"<function_calls>", region("olmo3", "<function_calls>", "</function_calls>")},
	{"<start_function_call>", region("functiongemma", "<start_function_call>", "<end_function_call>")},
}

// tag reads what stands behind a tag at the beginning of b.
func (s *scanner) tag(b string, final bool) found {
	partial := false
	for _, t := range tags {
		body, ok := strings.CutPrefix(b, t.open)
		if !ok {
			partial = partial || strings.HasPrefix(t.open, b)
			continue
		}
		f := t.read(s, body, final)
		switch f.verdict {
		case isNone:
			return text(len(t.open))
		case isText, isCall:
			f.n += len(t.open)
		}
		return f
	}
	if partial {
		return unclear(final, none)
	}
	return none
}

// tagAt finds where in a text a tag begins behind which a call may stand, perhaps only partly at its end; -1 nowhere.
func (s *scanner) tagAt(t string) int {
	for i := 0; i < len(t); {
		if !strings.ContainsRune("<[fA", rune(t[i])) {
			i++
			continue
		}
		switch f := s.tag(t[i:], false); f.verdict {
		case isMore, isCall:
			return i
		default:
			i += max(f.n, 1)
		}
	}
	return -1
}

// jsonForm reads one JSON value that is calls.
func (s *scanner) jsonForm(body string, final bool) found {
	rest := strings.TrimLeft(body, spaces)
	switch {
	case rest == "":
		return unclear(final, none)
	case rest[0] != '{' && rest[0] != '[':
		return none
	}
	return s.value(rest, true, final).behind(len(body) - len(rest))
}

// behind adds the bytes that were taken before f.
func (f found) behind(n int) found {
	if f.verdict == isText || f.verdict == isCall {
		f.n += n
	}
	return f
}

// value reads a JSON value at the beginning of b: calls, text, or none when it cannot be calls from its first words on.
func (s *scanner) value(b string, lenient, final bool) found {
	switch s.gate(b, lenient) {
	case gateShut:
		return none
	case gateUnclear:
		return unclear(final, text(len(b)))
	}
	end := valueEnd(b)
	if end < 0 {
		return unclear(final, text(len(b))) // a cut call
	}
	calls, ok := s.callsIn(b[:end], lenient)
	if !ok {
		return text(end)
	}
	return found{verdict: isCall, n: end, calls: calls}
}

// listForm is a JSON list right behind the tag.
func (s *scanner) listForm(body string, final bool) found {
	if rest := strings.TrimLeft(body, spaces); rest != "" && rest[0] != '[' {
		return none
	}
	return s.jsonForm(body, final)
}

// fencedForm is JSON in a code fence, or bare.
func (s *scanner) fencedForm(body string, final bool) found {
	rest := strings.TrimLeft(body, spaces)
	inner, ok := strings.CutPrefix(rest, "```")
	if !ok {
		if rest == "" || strings.HasPrefix("```", rest) {
			return unclear(final, none)
		}
		return s.jsonForm(body, final)
	}
	if inner != "" && strings.HasPrefix("json", inner) {
		return unclear(final, none)
	}
	inner = strings.TrimPrefix(inner, "json")
	f := s.jsonForm(inner, final).behind(len(body) - len(inner))
	f.fenced = f.verdict == isCall
	return f
}

// anyForm is what stands in <tool_call>: JSON, XML, or a name and arguments between tags.
func (s *scanner) anyForm(body string, final bool) found {
	rest := strings.TrimLeft(body, spaces)
	skipped := len(body) - len(rest)
	const function = "<function="
	switch {
	case rest == "":
		return unclear(final, none)
	case rest[0] == '{' || rest[0] == '[':
		return s.jsonForm(body, final)
	case strings.HasPrefix(rest, "```"):
		return s.fencedForm(body, final)
	case strings.HasPrefix(rest, function):
		return s.functionForm(rest[len(function):], final).behind(skipped + len(function))
	case strings.HasPrefix(function, rest) || strings.HasPrefix("```", rest):
		return unclear(final, none)
	}
	switch s.named(rest, "\n <") {
	case gateShut:
		return none
	case gateUnclear:
		return unclear(final, none)
	}
	return region("glm-4.7", "<tool_call>", "</tool_call>")(s, body, final)
}

// named tells whether b begins with the name of a tool, which ends with one of the characters in ends.
func (s *scanner) named(b, ends string) gate {
	if i := strings.IndexAny(b, ends); i >= 0 {
		if s.names[b[:i]] {
			return gateOpen
		}
		return gateShut
	}
	for name := range s.names {
		if strings.HasPrefix(name, b) {
			return gateUnclear
		}
	}
	return gateShut
}

// mistralForm is a JSON list, or name[ARGS]{…} with an optional [CALL_ID] in between.
func (s *scanner) mistralForm(body string, final bool) found {
	rest := strings.TrimLeft(body, spaces)
	if rest == "" {
		return unclear(final, none)
	}
	if rest[0] == '[' || rest[0] == '{' {
		return s.jsonForm(body, final)
	}
	switch s.named(rest, "[{ \n") {
	case gateShut:
		return none
	case gateUnclear:
		return unclear(final, none)
	}
	i := strings.IndexAny(rest, "[{ \n")
	name, args := rest[:i], strings.TrimLeft(rest[i:], spaces)
	const argsTag, idTag = "[ARGS]", "[CALL_ID]"
	if strings.HasPrefix(args, idTag) {
		at := strings.Index(args, argsTag)
		if at < 0 {
			return unclear(final, text(len(body)))
		}
		args = args[at:]
	}
	args = strings.TrimLeft(strings.TrimPrefix(args, argsTag), spaces)
	switch {
	case args == "" || strings.HasPrefix(argsTag, args) || strings.HasPrefix(idTag, args):
		return unclear(final, text(len(body)))
	case args[0] != '{':
		return none
	}
	return s.arguments(name, args, final).behind(len(body) - len(args))
}

// arguments reads the arguments of a call whose name is known.
func (s *scanner) arguments(name, b string, final bool) found {
	end := valueEnd(b)
	if end < 0 {
		return unclear(final, text(len(b)))
	}
	call, ok := newCall(name, []byte(b[:end]))
	if !ok {
		return text(end)
	}
	return found{verdict: isCall, n: end, calls: []toolCall{call}}
}

// functionForm is what stands behind <function=: name>{…}, or name> and <parameter=…> to </function>.
func (s *scanner) functionForm(body string, final bool) found {
	switch s.named(body, ">") {
	case gateShut:
		return none
	case gateUnclear:
		return unclear(final, none)
	}
	name, rest, _ := strings.Cut(body, ">")
	inner := strings.TrimLeft(rest, spaces)
	switch {
	case inner == "":
		return unclear(final, text(len(body)))
	case inner[0] == '{':
		return s.arguments(name, inner, final).behind(len(body) - len(inner))
	case !strings.HasPrefix(inner, "<"):
		return none
	}
	read := func(upTo, n int) found {
		return byModule("qwen3-coder", "<tool_call><function="+body[:upTo]+"</function></tool_call>", n, s)
	}
	const end, outer = "</function>", "</tool_call>"
	i, j := strings.Index(body, end), strings.Index(body, outer)
	switch {
	case i >= 0 && (j < 0 || i < j):
		return read(i, i+len(end))
	case j >= 0: // the inner end was left out
		return read(j, j)
	}
	return unclear(final, text(len(body)))
}
