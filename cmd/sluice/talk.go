package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// talk is a conversation with a model.
type talk struct {
	client    *client
	model     string
	think     any             // as /api/chat has it; nil: as the model does
	format    json.RawMessage // nil: free
	options   map[string]any
	keepAlive string

	out      io.Writer // answers
	notes    io.Writer // everything else
	json     bool      // answers are printed as the server's lines
	terminal bool      // out is one: thinking is dimmed there; else it is not part of the answer
	verbose  bool

	messages []api.Message
	vision   *bool // nil: the server has not been asked
}

// Escape sequences for thinking on a terminal.
const (
	dim   = "\x1b[2m"
	plain = "\x1b[0m"
)

// ask sends the next turn, prints the answer as it comes, and remembers both. After an error, or when ctx ends, the
// conversation is as it was before.
func (t *talk) ask(ctx context.Context, prompt string) error {
	turn, err := t.turn(ctx, prompt)
	if err != nil {
		return err
	}
	body := map[string]any{"model": t.model, "messages": append(t.messages[:len(t.messages):len(t.messages)], turn)}
	for key, v := range map[string]any{"think": t.think, "keep_alive": t.keepAlive} {
		if v != nil && v != "" {
			body[key] = v
		}
	}
	if t.format != nil {
		body["format"] = t.format
	}
	if len(t.options) > 0 {
		body["options"] = t.options
	}
	p := &printer{talk: t}
	defer p.end()
	if err := t.client.lines(ctx, "POST", "/api/chat", body, p.line); err != nil {
		return err
	}
	t.messages = append(t.messages, turn, api.Message{Role: "assistant", Content: p.answer.String()})
	if t.verbose && !t.json {
		fmt.Fprint(t.notes, counts(p.last))
	}
	return nil
}

// printer shows an answer.
type printer struct {
	talk     *talk
	answer   strings.Builder
	thinking bool // that is what is being shown
	open     bool // the last line has not ended
	last     final
}

// final is the last line of an answer.
type final struct {
	api.Metrics
	Cached int `json:"prompt_cached_count"`
}

func (p *printer) line(line []byte) error {
	t := p.talk
	if t.json {
		_, err := t.out.Write(line)
		return err
	}
	var part api.ChatResponse
	if err := json.Unmarshal(line, &part); err != nil {
		return err
	}
	if text := part.Message.Thinking; text != "" {
		if !p.thinking {
			p.thinking = true
			p.note(dim)
		}
		p.note(printable(text))
	}
	if text := part.Message.Content; text != "" {
		if p.thinking {
			p.thinking = false
			p.note("\n" + plain + "\n")
		}
		p.answer.WriteString(text)
		if _, err := io.WriteString(t.out, printable(text)); err != nil {
			return err
		}
		p.open = true
	}
	if part.Done {
		return json.Unmarshal(line, &p.last)
	}
	return nil
}

// note shows what is not part of the answer: on a terminal in the same place, else beside it.
func (p *printer) note(text string) {
	if p.talk.terminal {
		fmt.Fprint(p.talk.out, text)
		p.open = true
		return
	}
	fmt.Fprint(p.talk.notes, strings.NewReplacer(dim, "", plain, "").Replace(text))
}

// end leaves the terminal as it was.
func (p *printer) end() {
	if p.thinking {
		p.note(plain)
	}
	if p.thinking && !p.talk.terminal {
		fmt.Fprintln(p.talk.notes)
	}
	if p.open {
		fmt.Fprintln(p.talk.out)
	}
}

// counts says what an answer cost.
func counts(f final) string {
	var b strings.Builder
	rate := func(n int, d time.Duration) string {
		if n == 0 || d <= 0 {
			return ""
		}
		return fmt.Sprintf("  %.1f tokens/s", float64(n)/d.Seconds())
	}
	cached := ""
	if f.Cached > 0 {
		cached = fmt.Sprintf("  %d of them cached", f.Cached)
	}
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Fprintf(&b, "\ntotal   %v\nload    %v\nprompt  %d tokens in %v%s%s\nanswer  %d tokens in %v%s\n", round(f.TotalDuration), round(f.LoadDuration),
		f.PromptEvalCount, round(f.PromptEvalDuration), rate(f.PromptEvalCount-f.Cached, f.PromptEvalDuration), cached,
		f.EvalCount, round(f.EvalDuration), rate(f.EvalCount, f.EvalDuration))
	return b.String()
}
