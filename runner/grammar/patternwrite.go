package grammar

import (
	"fmt"
	"strings"
)

// pattern writes a JSON string whose text matches.
func (c *compiler) pattern(re *regex, hint string) (string, error) {
	// Formats come back often.
	k := "regex " + re.source
	if c.memo[k] != "" {
		return c.memo[k], nil
	}
	w := &patternWriter{}
	body, err := w.write(re)
	if err != nil {
		return "", err
	}
	if body == "" {
		return `"\"\""`, nil
	}
	name, err := c.rule(c.name(hint+"-text"), `"\"" `+body+` "\""`)
	c.memo[k] = name
	return name, err
}

type patternWriter struct{ bytes int }

// write gives a sequence of items for a tree, "" for one that matches only nothing. What may match nothing does so in one way only:
// llama.cpp tries each way at each place, so two ways in a row are four, and a loop over nothing never ends.
func (w *patternWriter) write(re *regex) (string, error) {
	switch re.op {
	case opChar:
		return re.set.inString(), nil
	case opSeq:
		return w.sequence(re)
	case opAlt:
		var out []string
		empty := false
		for _, sub := range re.subs {
			empty = empty || sub.nullable()
			if sub = sub.some(); sub == nil {
				continue
			}
			body, err := w.write(sub)
			if err != nil {
				return "", err
			}
			out = append(out, body)
		}
		if len(out) == 0 {
			return "", nil
		}
		expr := "(" + strings.Join(out, " | ") + ")"
		if empty {
			expr += "?"
		}
		return expr, w.bounded(expr)
	}
	return w.repetition(re)
}

func (w *patternWriter) sequence(re *regex) (string, error) {
	var out []string
	var text strings.Builder // single characters in a row become one string
	flush := func() {
		if text.Len() > 0 {
			out = append(out, literal(text.String()))
			text.Reset()
		}
	}
	for _, sub := range re.subs {
		if sub.op == opChar && len(sub.set) == 1 && sub.set[0].low == sub.set[0].high {
			q := quote(string(sub.set[0].low))
			text.WriteString(q[1 : len(q)-1])
			continue
		}
		flush()
		body, err := w.write(sub)
		if err != nil {
			return "", err
		}
		if body != "" {
			out = append(out, body)
		}
	}
	flush()
	return strings.Join(out, " "), nil
}

func (w *patternWriter) repetition(re *regex) (string, error) {
	sub, low := re.subs[0], re.low
	if sub.nullable() {
		if sub, low = sub.some(), 0; sub == nil {
			return "", nil
		}
	}
	if re.high == 0 {
		return "", nil
	}
	if re.high < 0 && low <= 1 {
		sub = sub.once()
	}
	body, err := w.write(sub)
	if err != nil {
		return "", err
	}
	if sub.op != opChar && sub.op != opAlt || strings.HasSuffix(body, "}") {
		body = "(" + body + ")"
	}
	switch {
	case re.high < 0 && low == 0:
		body += "*"
	case re.high < 0 && low == 1:
		body += "+"
	case re.high < 0:
		body += fmt.Sprintf("{%d,}", low)
	case low == 0 && re.high == 1:
		body += "?"
	case low != 1 || re.high != 1:
		body += fmt.Sprintf("{%d,%d}", low, re.high)
	}
	return body, w.bounded(body)
}

// bounded refuses a pattern whose text grows out of all proportion.
func (w *patternWriter) bounded(body string) error {
	if w.bytes += len(body); w.bytes > maxGrammarBytes {
		return refuse("", "a pattern's grammar is too long")
	}
	return nil
}

// nullable: whether it matches nothing.
func (re *regex) nullable() bool {
	switch re.op {
	case opSeq:
		for _, sub := range re.subs {
			if !sub.nullable() {
				return false
			}
		}
		return true
	case opAlt:
		for _, sub := range re.subs {
			if sub.nullable() {
				return true
			}
		}
		return false
	case opRepeat:
		return re.low == 0 || re.subs[0].nullable()
	}
	return false
}

// some gives a tree for the same matches except nothing; nil when nothing is the only one.
func (re *regex) some() *regex {
	if !re.nullable() {
		return re
	}
	switch re.op {
	case opAlt:
		out := &regex{op: opAlt}
		for _, sub := range re.subs {
			if sub = sub.some(); sub != nil {
				out.subs = append(out.subs, sub)
			}
		}
		if len(out.subs) > 0 {
			return out
		}
	case opSeq: // all parts may match nothing: one of them is the first that does not
		out := &regex{op: opAlt}
		for i, sub := range re.subs {
			if sub = sub.some(); sub != nil {
				out.subs = append(out.subs, seqOf(append([]*regex{sub}, re.subs[i+1:]...)...))
			}
		}
		if len(out.subs) > 0 {
			return out
		}
	case opRepeat:
		if sub := re.subs[0].some(); sub != nil && re.high != 0 {
			return repeat(sub, 1, re.high)
		}
	}
	return nil
}

// once gives a tree of which repetitions without end match the same: a part that is itself repeated without end need not be, and
// would only give each text many ways to be read.
func (re *regex) once() *regex {
	switch {
	case re.op == opSeq && len(re.subs) == 1:
		return re.subs[0].once()
	case re.op == opRepeat && re.high < 0 && re.low <= 1 && !re.subs[0].nullable():
		return re.subs[0].once()
	case re.op != opAlt:
		return re
	}
	out := &regex{op: opAlt}
	for _, sub := range re.subs {
		if sub.nullable() {
			out.subs = append(out.subs, sub)
		} else if sub = sub.once(); sub.op == opAlt {
			out.subs = append(out.subs, sub.subs...)
		} else {
			out.subs = append(out.subs, sub)
		}
	}
	if out.subs = joined(out.subs); len(out.subs) == 1 {
		return out.subs[0]
	}
	return out
}
