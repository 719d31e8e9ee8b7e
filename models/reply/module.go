package reply

import (
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/model/parsers"
)

// toolCall is a call without id and index.
type toolCall = api.ToolCall

// region reads from a tag to its end by one of the module's parsers.
func region(parser, open, end string) func(s *scanner, body string, final bool) found {
	return func(s *scanner, body string, final bool) found {
		i := strings.Index(body, end)
		if i < 0 {
			return unclear(final, text(len(body)))
		}
		n := i + len(end)
		return byModule(parser, open+body[:n], n, s)
	}
}

// byModule has a complete region read by a parser of the module. It is text, n bytes of it, when the parser fails, or finds
// anything else than calls of given tools.
func byModule(parser, whole string, n int, s *scanner) (f found) {
	defer func() {
		if recover() != nil {
			f = text(n)
		}
	}()
	p := parsers.ParserForName(parser)
	p.Init(s.tools, nil, &api.ThinkValue{Value: false})
	content, thinking, calls, err := p.Add(whole, false)
	if err != nil || strings.TrimSpace(content+thinking) != "" || len(calls) == 0 {
		return text(n)
	}
	for i := range calls {
		if !s.names[calls[i].Function.Name] {
			return text(n)
		}
		calls[i] = toolCall{Function: api.ToolCallFunction{Name: calls[i].Function.Name, Arguments: calls[i].Function.Arguments}}
	}
	return found{verdict: isCall, n: n, calls: calls}
}
