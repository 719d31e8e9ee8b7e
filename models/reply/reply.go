package reply

import (
	"strings"
	"unicode/utf8"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// Part is what a piece of raw text turned out to be. All of it may be empty: text is held back until its meaning is clear.
type Part struct {
	Content  string
	Thinking string
	Calls    []api.ToolCall // without ids; Index counts from 0 over the whole answer
}

// Reader splits the raw text of one answer. It is used by one goroutine.
type Reader struct {
	cut   string // the beginning of a character whose rest is still to come
	after string
	calls int

	// one of these
	thought *thought // with scan behind it
	harmony *harmonyReader

	scan    *scanner // of the answer proper; nil when no tool was given
	thinker *scanner // of a thought that never ended, for a call in it
}

// New makes a reader for the answer to a conversation that was rendered with m.Prompt (or m.GeneratePrompt: then c has only
// Think). A thought is never content: a model that thinks although it was told not to has its thought in Thinking all the
// same, where a client may drop it.
func New(m *models.Model, c models.Conversation, prompt models.Rendered) *Reader {
	r := &Reader{}
	format := m.Parser()
	if format == models.Harmony {
		r.harmony = newHarmony(c, prompt.Text)
		r.after = r.harmony.after()
		return r
	}
	begin, end := m.ThinkTags()
	r.thought = newThought(begin, end, inThought(begin, end, c, prompt.Text))
	r.thought.trim = format != ""
	if think := m.Thinks(c.Think); begin != "" && (r.thought.state == stateOpened || think != nil && think.Bool() && !closed(end, c, prompt.Text)) {
		r.after = end
	}
	if len(c.Tools) > 0 && format != "passthrough" {
		r.scan, r.thinker = newScanner(c.Tools, false), newScanner(c.Tools, true)
		r.thought.hold = r.thinker.tagAt
	}
	return r
}

// Open gives the prompt to use when the answer has a format. A format binds only behind After, so the thought that After
// ends must really come: where the model would open it by itself, the prompt does it instead.
func Open(m *models.Model, c models.Conversation, prompt models.Rendered) models.Rendered {
	r := New(m, c, prompt)
	if r.after == "" || r.thought == nil || r.thought.state == stateOpened {
		return prompt
	}
	begin, _ := m.ThinkTags()
	prompt.Text += begin + "\n"
	return prompt
}

// Add takes the next piece of text; done says that it is the last. What looks like a tool call and is none of a given tool,
// or is malformed, comes back as content: nothing is lost and nothing fails.
func (r *Reader) Add(text string, done bool) (p Part) {
	text = r.cut + text
	r.cut = ""
	if !done {
		whole := len(text) - partialRune(text)
		text, r.cut = text[:whole], text[whole:]
	}
	if r.harmony != nil {
		r.harmony.add(text, done, &p)
	} else {
		r.thought.add(text, done, func(k kind, s string) { r.piece(k, s, &p) })
		if done && r.scan != nil {
			content, calls := r.scan.add("", true)
			p.Content += content
			p.Calls = append(p.Calls, calls...)
		}
	}
	for i := range p.Calls {
		p.Calls[i].Function.Index = r.calls
		r.calls++
	}
	return p
}

// piece puts a piece of known kind where it belongs.
func (r *Reader) piece(k kind, s string, p *Part) {
	switch {
	case k == thinkingText:
		p.Thinking += s
	case k == unfinishedThought: // only then is a call in it one: a thought that ends may weigh calls
		thinking, calls := r.thinker.add(s, true)
		p.Thinking += thinking
		p.Calls = append(p.Calls, calls...)
	case r.scan == nil:
		p.Content += s
	default:
		content, calls := r.scan.add(s, false)
		p.Content += content
		p.Calls = append(p.Calls, calls...)
	}
}

// After is the text behind which the answer proper begins, such as "</think>": a format binds only behind it. "" means from
// the start.
func (r *Reader) After() string { return r.after }

// inThought tells whether a prompt ends inside a thought.
func inThought(begin, end string, c models.Conversation, prompt string) bool {
	if begin == "" {
		return false
	}
	if strings.HasSuffix(strings.TrimSpace(prompt), begin) {
		return true
	}
	last := lastOpen(c)
	return last != nil && last.Thinking != "" && last.Content == "" && strings.LastIndex(prompt, begin) > strings.LastIndex(prompt, end)
}

// closed tells whether the prompt has the end of the thought in it: the model was told not to think, or its answer was begun.
func closed(end string, c models.Conversation, prompt string) bool {
	if strings.HasSuffix(strings.TrimSpace(prompt), end) {
		return true
	}
	last := lastOpen(c)
	return last != nil && last.Content != ""
}

// lastOpen is the answer that the model goes on with, or nil.
func lastOpen(c models.Conversation) *api.Message {
	if n := len(c.Messages); n > 0 && c.Messages[n-1].Role == "assistant" && len(c.Messages[n-1].ToolCalls) == 0 {
		return &c.Messages[n-1]
	}
	return nil
}

// partialRune is the number of bytes at the end of s that begin a character without ending it.
func partialRune(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if b := s[len(s)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
