package eval

import (
	"regexp"
	"strings"
)

// The rules of score.py for an answer's text, pattern by pattern.
var (
	placeholder = regexp.MustCompile(`(?i)\[(your|insert|name|value|number|date|amount|company|x+)\b[^\]]*\]|<(value|number|name|insert|your)[^>]*>` +
		`|\{\{.*?\}\}|\bX{2,}\b|\$X\b|lorem ipsum|\bplaceholder\b`)
	toolCall = regexp.MustCompile("(?im)<tool_call>|\"(name|function|tool)\"\\s*:\\s*\"[\\w.]+\"\\s*,\\s*\"(arguments|parameters)\"|database_ask\\s*\\(|^\\s*```(sql|json)")
	writes   = regexp.MustCompile(`(?is)^\s*(?:with\b.*\)\s*)?(insert|update|delete|drop|alter|truncate|create|merge|grant|copy|attach)\b`)
)

// Decline says how a question that has no answer was met: declined, answered, silent, placeholder, raw_tool_call or
// write_attempted.
type Decline struct {
	ID      string `json:"id"`
	DB      string `json:"db"`
	Kind    string `json:"kind"`
	Verdict string `json:"verdict"`
}

// declineOf is score.py's judge_decline of a line, which always says whether it was declined.
func declineOf(q Question, l Line) Decline {
	d := Decline{ID: q.ID, DB: q.DB, Kind: q.Kind}
	switch {
	case writes.MatchString(l.SQL):
		d.Verdict = "write_attempted"
	case strings.TrimSpace(l.Answer) == "":
		d.Verdict = "silent"
	case toolCall.MatchString(l.Answer):
		d.Verdict = "raw_tool_call"
	case placeholder.MatchString(l.Answer):
		d.Verdict = "placeholder"
	case l.Declined:
		d.Verdict = "declined"
	default:
		d.Verdict = "answered"
	}
	return d
}
