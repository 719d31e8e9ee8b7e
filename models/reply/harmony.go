package reply

import (
	"strings"

	"github.com/ollama/ollama/harmony"

	"sluice/models"
)

// Harmony is a list of messages, each <|start|>header<|message|>text<|end|>, of which a prompt has begun the first. The header
// names a channel (analysis: thinking; final and commentary: the answer) and, for a call, the tool.
const (
	harmonyStart   = "<|start|>"
	harmonyMessage = "<|message|>"
	harmonyChannel = "<|channel|>"
	harmonyFinal   = "<|channel|>final<|message|>"
)

// harmonyEnds end a message's text.
var harmonyEnds = []string{"<|end|>", "<|return|>", "<|call|>", harmonyStart}

type harmonyReader struct {
	buf    string
	begun  bool   // inside a message's text
	tool   string // whom the message calls, by the caller's name; "" nobody
	toward bool   // the message is addressed to somebody
	think  bool   // the message is a thought
	call   string // the text of a message that is addressed to somebody
	first  bool   // the first header, which the prompt has begun
	names  *harmony.FunctionNameMap
	given  map[string]bool
	goesOn bool // the prompt begins the answer itself
}

func newHarmony(c models.Conversation, prompt string) *harmonyReader {
	h := &harmonyReader{first: true, names: models.HarmonyNames(c.Tools), given: map[string]bool{}}
	for _, t := range c.Tools {
		h.given[t.Function.Name] = t.Function.Name != ""
	}
	if last := lastOpen(c); last != nil && (last.Content != "" || last.Thinking != "") {
		h.begun, h.think, h.goesOn = true, last.Content == "", last.Content != ""
	} else if strings.HasSuffix(prompt, harmonyMessage) {
		h.open(prompt[strings.LastIndex(prompt, harmonyStart)+1 : len(prompt)-len(harmonyMessage)])
		h.goesOn = !h.think
	}
	return h
}

func (h *harmonyReader) after() string {
	if h.goesOn {
		return ""
	}
	return harmonyFinal
}

func (h *harmonyReader) add(text string, done bool, p *Part) {
	h.buf += text
	for h.step(done, p) {
	}
	if done {
		h.finish(p)
	}
}

// step takes one header or piece of text.
func (h *harmonyReader) step(done bool, p *Part) bool {
	if h.begun {
		return h.text(done, p)
	}
	if h.plain() {
		h.begun, h.first = true, false
		return true
	}
	header, rest, ok := strings.Cut(h.buf, harmonyMessage)
	if !ok {
		return false
	}
	h.open(header)
	h.buf = rest
	return true
}

// plain tells that the model answers without any header: it was asked for a format, or is no harmony model after all.
func (h *harmonyReader) plain() bool {
	b := strings.TrimSpace(h.buf)
	if !h.first || b == "" {
		return false
	}
	for _, word := range []string{"<|", "to=", "assistant", "commentary", "analysis", "final"} {
		if strings.HasPrefix(b, word) || strings.HasPrefix(word, b) {
			return false
		}
	}
	return true
}

// open reads a header.
func (h *harmonyReader) open(header string) {
	h.begun, h.first, h.call = true, false, ""
	h.think, h.toward, h.tool = false, false, ""
	channel := ""
	if _, after, ok := strings.Cut(header, harmonyChannel); ok {
		if words := strings.FieldsFunc(after, func(r rune) bool { return r == ' ' || r == '<' || r == '\n' }); len(words) > 0 {
			channel = words[0]
		}
	}
	if _, to, ok := strings.Cut(header, "to="); ok {
		h.toward = true
		if words := strings.FieldsFunc(to, func(r rune) bool { return r == ' ' || r == '<' || r == '\n' }); len(words) > 0 {
			h.tool = h.names.OriginalFromConverted(strings.TrimPrefix(words[0], "functions."))
		}
	}
	h.think = channel == "analysis" && !h.toward
}

// text hands a message's text on, up to its end.
func (h *harmonyReader) text(done bool, p *Part) bool {
	at, end, clear := -1, "", len(h.buf)
	for _, e := range harmonyEnds {
		if i := strings.Index(h.buf, e); i >= 0 && (at < 0 || i < at) {
			at, end = i, e
		}
		if !done {
			clear = min(clear, len(h.buf)-overlap(h.buf, e))
		}
	}
	if at < 0 {
		h.say(h.buf[:clear], p)
		h.buf = h.buf[clear:]
		return false
	}
	h.say(h.buf[:at], p)
	h.buf = h.buf[at:]
	if end != harmonyStart {
		h.buf = h.buf[len(end):]
	}
	h.close(p)
	return true
}

func (h *harmonyReader) say(s string, p *Part) {
	switch {
	case h.toward:
		h.call += s
	case h.think:
		p.Thinking += s
	default:
		p.Content += s
	}
}

// close ends a message: one to a given tool is a call, one to anybody else is text.
func (h *harmonyReader) close(p *Part) {
	if h.toward {
		call, ok := newCall(h.tool, []byte(h.call))
		if ok && h.given[h.tool] {
			p.Calls = append(p.Calls, call)
		} else {
			p.Content += h.call
		}
	}
	h.begun, h.toward, h.think, h.call = false, false, false, ""
}

// finish ends the answer. A header without a message is text, unless it is only what stands between two messages.
func (h *harmonyReader) finish(p *Part) {
	if h.begun {
		h.close(p)
		return
	}
	rest := strings.TrimPrefix(strings.TrimSpace(h.buf), harmonyStart)
	if rest = strings.TrimPrefix(rest, "assistant"); rest != "" {
		p.Content += h.buf
	}
	h.buf = ""
}
