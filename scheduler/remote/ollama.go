package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ollama/ollama/api"

	"sluice/runner"
)

// ollamaLine is a line of /api/chat or /api/generate.
type ollamaLine struct {
	Error   json.RawMessage `json:"error"`
	Message struct {
		Content   string            `json:"content"`
		Thinking  string            `json:"thinking"`
		ToolCalls few[api.ToolCall] `json:"tool_calls"`
	} `json:"message"`
	Response   string           `json:"response"`
	Thinking   string           `json:"thinking"`
	Done       bool             `json:"done"`
	DoneReason string           `json:"done_reason"`
	Logprobs   few[api.Logprob] `json:"logprobs"`
	api.Metrics
}

// generateOllama asks for one answer after the other: Ollama gives one at a time, and reads the prompt of the next ones from its cache.
func (r *Runner) generateOllama(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	st := &streaming{s: r.s, emit: emit}
	n := max(1, req.N)
	var all runner.Usage
	for i := range n {
		path, body := r.ollamaRequest(req, i)
		one := ollamaAnswer{st: st, index: i, force: req.Chat != nil && req.Chat.Force != nil}
		if err := st.lines(ctx, path, body, one.line, func() bool { return false }); err != nil {
			return err
		}
		all.EvalTokens += one.usage.EvalTokens
		all.EvalDuration += one.usage.EvalDuration
		if i == 0 {
			all.PromptTokens, all.PromptDuration = one.usage.PromptTokens, one.usage.PromptDuration
		}
		end := runner.Chunk{Index: i, DoneReason: one.reason}
		if i == n-1 {
			end.Done, end.Usage = true, &all
		}
		if err := st.hand(end); err != nil {
			return err
		}
	}
	return nil
}

// ollamaRequest is the body for the i-th answer.
func (r *Runner) ollamaRequest(req runner.GenerateRequest, i int) (path string, body any) {
	opts := ofAnswer(options(req), i)
	if req.Grammar != "" {
		opts["grammar"] = req.Grammar // another Sluice knows it
	}
	unless := func(v bool) *bool { // what is true anyway is not said
		if v {
			return nil
		}
		return new(bool)
	}
	if req.Chat == nil || len(req.Chat.Messages) == 0 {
		g := api.GenerateRequest{Model: r.id, Prompt: req.Prompt, Raw: true, Options: opts, Format: ollamaFormat(req.Schema), Truncate: unless(req.Truncate),
			Shift: unless(req.Shift), Logprobs: req.Logprobs, TopLogprobs: req.TopLogprobs}
		for _, image := range req.Images {
			g.Images = append(g.Images, image)
		}
		return "/api/generate", g
	}
	c := req.Chat
	chat := api.ChatRequest{Model: r.id, Messages: c.Messages, Tools: c.Tools, Think: c.Think, Format: ollamaFormat(c.Format), Options: opts,
		Truncate: unless(req.Truncate), Shift: unless(req.Shift), Logprobs: req.Logprobs, TopLogprobs: req.TopLogprobs}
	if c.Force != nil { // Ollama knows no required calls: the answer is bound to the form of one instead
		chat.Format = ollamaFormat(c.Force.Schema)
		delete(opts, "stop") // a text that ends an answer would cut the call where it stands in an argument
	}
	return "/api/chat", chat
}

// ollamaFormat writes a schema as "format" has it.
func ollamaFormat(schema string) json.RawMessage {
	switch schema {
	case "":
		return nil
	case "null":
		return json.RawMessage(`"json"`)
	}
	return json.RawMessage(schema)
}

// ollamaAnswer reads one answer.
type ollamaAnswer struct {
	st     *streaming
	index  int
	force  bool // the text is a call
	call   strings.Builder
	called bool
	calls  int
	reason string
	usage  runner.Usage
}

func (a *ollamaAnswer) line(text []byte) (last bool, err error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return false, nil
	}
	var l ollamaLine
	if err := json.Unmarshal(text, &l); err != nil {
		return false, a.st.failed(fmt.Errorf("a line is no JSON: %w", err))
	}
	if e := string(l.Error); e != "" && e != "null" && e != `""` {
		said, _ := a.st.s.message(text)
		return false, a.st.said(http.StatusInternalServerError, said)
	}
	c := runner.Chunk{Index: a.index, Text: l.Message.Content + l.Response, Thinking: l.Message.Thinking + l.Thinking, Logprobs: logprobs(l.Logprobs)}
	for _, call := range l.Message.ToolCalls {
		if call.Function.Name == "" { // nobody can make it; as text it is not lost
			c.Text += call.Function.Arguments.String()
			continue
		}
		c.Calls = append(c.Calls, call)
	}
	if a.calls += len(c.Calls); a.calls > maxCalls {
		return false, a.st.failed(fmt.Errorf("an answer has more than %d calls", maxCalls))
	}
	if a.force {
		a.call.WriteString(c.Text)
		c.Text = ""
		a.called = a.called || len(c.Calls) > 0 // it knew it for a call by itself
		if a.call.Len() > maxLine {
			return false, a.st.failed(fmt.Errorf("a call is longer than %d MiB", maxLine>>20))
		}
		if l.Done && !a.called {
			c.Calls = callOf(a.call.String())
		}
	}
	if c.Text != "" || c.Thinking != "" || len(c.Calls) > 0 || len(c.Logprobs) > 0 {
		if err := a.st.hand(c); err != nil {
			return false, err
		}
	}
	if l.Done {
		a.reason = reasonOf(l.DoneReason)
		a.usage = sane(runner.Usage{PromptTokens: l.PromptEvalCount, PromptDuration: l.PromptEvalDuration, EvalTokens: l.EvalCount, EvalDuration: l.EvalDuration})
	}
	return l.Done, nil
}

// reasonOf is why an answer ended, in the two words that there are: whatever else a server says, the model had no more to say.
func reasonOf(word string) string {
	if word == "length" {
		return "length"
	}
	return "stop"
}

// callOf reads the text of a required call. One that was cut off is none.
func callOf(text string) []api.ToolCall {
	var f struct {
		Name      string                        `json:"name"`
		Arguments api.ToolCallFunctionArguments `json:"arguments"`
	}
	if json.Unmarshal([]byte(text), &f) != nil || f.Name == "" {
		return nil
	}
	return []api.ToolCall{{Function: api.ToolCallFunction{Name: f.Name, Arguments: f.Arguments}}}
}

// logprobs reads Ollama's form.
func logprobs(in []api.Logprob) []runner.Logprob {
	one := func(t api.TokenLogprob) runner.Logprob {
		l := runner.Logprob{Token: t.Token, Logprob: t.Logprob, Bytes: []byte(t.Token)}
		if len(t.Bytes) > 0 {
			l.Bytes = make([]byte, len(t.Bytes))
			for i, b := range t.Bytes {
				l.Bytes[i] = byte(b)
			}
		}
		return l
	}
	var out []runner.Logprob
	for _, lp := range in {
		l := one(lp.TokenLogprob)
		for _, top := range lp.TopLogprobs {
			l.Top = append(l.Top, one(top))
		}
		out = append(out, l)
	}
	return out
}
