package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"

	"sluice/runner"
)

// openaiEvent is an event of a stream of chat/completions or completions.
type openaiEvent struct {
	Error   json.RawMessage `json:"error"`
	Choices few[struct {
		Index        int             `json:"index"`
		Text         string          `json:"text"` // of completions
		Delta        *openaiDelta    `json:"delta"`
		Message      *openaiDelta    `json:"message"` // of a server that does not stream
		FinishReason *string         `json:"finish_reason"`
		StopReason   json.RawMessage `json:"stop_reason"` // vLLM: the stop text, or a token's number
		Logprobs     json.RawMessage `json:"logprobs"`
	}] `json:"choices"`
	Usage *struct {
		PromptTokens        int `json:"prompt_tokens"`
		CompletionTokens    int `json:"completion_tokens"`
		PromptTokensDetails *struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type openaiDelta struct {
	Content          string          `json:"content"`
	Reasoning        string          `json:"reasoning"` // Ollama, Sluice, OpenRouter, newer vLLM
	ReasoningContent string          `json:"reasoning_content"`
	ToolCalls        few[openaiCall] `json:"tool_calls"`
}

// openaiAnswers reads a stream of one or more answers.
type openaiAnswers struct {
	st      *streaming
	answers []openaiAnswer
	usage   runner.Usage
}

type openaiAnswer struct {
	calls []openaiCall // as put together so far
	bytes int          // of their arguments
	ended bool
}

func newOpenAIAnswers(st *streaming, n int) *openaiAnswers {
	return &openaiAnswers{st: st, answers: make([]openaiAnswer, n)}
}

// whole tells whether every answer has ended: then the stream's own end may be missing.
func (a *openaiAnswers) whole() bool {
	return !slices.ContainsFunc(a.answers, func(one openaiAnswer) bool { return !one.ended })
}

// end is the last chunk.
func (a *openaiAnswers) end() error {
	usage := sane(a.usage)
	return a.st.hand(runner.Chunk{Index: len(a.answers) - 1, Done: true, Usage: &usage})
}

// line reads a line of the stream: fields other than data, and comments, say nothing.
func (a *openaiAnswers) line(text []byte) (last bool, err error) {
	data, ok := bytes.CutPrefix(text, []byte("data:"))
	if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
		if !ok && len(text) > 0 && text[0] == '{' { // an error where a stream was expected
			data = text
		} else {
			return false, nil
		}
	}
	if string(data) == "[DONE]" {
		if !a.whole() {
			return false, a.st.failed(fmt.Errorf("the stream ends before its answers do"))
		}
		return true, nil
	}
	var e openaiEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, a.st.failed(fmt.Errorf("an event is no JSON: %w", err))
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		said, _ := a.st.s.message(data)
		return false, a.st.said(statusIn(e.Error), said)
	}
	if e.Usage != nil {
		a.usage.PromptTokens, a.usage.EvalTokens = e.Usage.PromptTokens, e.Usage.CompletionTokens
		if d := e.Usage.PromptTokensDetails; d != nil {
			a.usage.CachedTokens = d.CachedTokens
		}
	}
	for _, c := range e.Choices {
		if c.Index < 0 || c.Index >= len(a.answers) {
			return false, a.st.failed(fmt.Errorf("a piece of answer %d of %d", c.Index, len(a.answers)))
		}
		one := &a.answers[c.Index]
		if one.ended {
			continue
		}
		var d openaiDelta
		switch {
		case c.Delta != nil:
			d = *c.Delta
		case c.Message != nil:
			d = *c.Message
		}
		if err := one.add(d.ToolCalls); err != nil {
			return false, a.st.failed(err)
		}
		ch := runner.Chunk{Index: c.Index, Text: d.Content + c.Text, Thinking: d.Reasoning, Logprobs: openaiLogprobs(c.Logprobs)}
		if ch.Thinking == "" { // some servers send both
			ch.Thinking = d.ReasoningContent
		}
		if c.FinishReason != nil && *c.FinishReason != "" {
			one.ended = true
			ch.DoneReason = reasonOf(*c.FinishReason)
			_ = json.Unmarshal(c.StopReason, &ch.Stop) // a number, or null, is no text
			var broken string
			ch.Calls, broken = one.finished()
			ch.Text += broken
		}
		if ch.Text == "" && ch.Thinking == "" && len(ch.Logprobs) == 0 && ch.DoneReason == "" {
			continue
		}
		if err := a.st.hand(ch); err != nil {
			return false, err
		}
	}
	return false, nil
}

// statusIn is the status that an error within a stream would have had.
func statusIn(e json.RawMessage) int {
	var coded struct {
		Code json.RawMessage `json:"code"`
	}
	n := 0
	if json.Unmarshal(e, &coded) == nil && json.Unmarshal(coded.Code, &n) == nil && n >= 400 && n < 600 {
		return n
	}
	return http.StatusInternalServerError
}

// Bounds of the calls of one answer.
const (
	maxCalls     = 256
	maxArguments = 16 << 20 // bytes, of all together
)

// add puts pieces of calls together. Servers that send whole calls may give all of them the same index.
func (o *openaiAnswer) add(pieces []openaiCall) error {
	for _, p := range pieces {
		o.bytes += len(p.Function.Arguments) + len(p.Function.Name)
		if o.bytes > maxArguments {
			return fmt.Errorf("the calls of an answer are longer than %d MiB", maxArguments>>20)
		}
		i := -1
		for k := len(o.calls) - 1; k >= 0 && i < 0; k-- {
			if c := &o.calls[k]; c.Index == p.Index && (p.ID == "" || c.ID == "" || c.ID == p.ID) {
				i = k
			}
		}
		if i < 0 {
			if len(o.calls) == maxCalls {
				return fmt.Errorf("an answer has more than %d calls", maxCalls)
			}
			o.calls = append(o.calls, openaiCall{Index: p.Index})
			i = len(o.calls) - 1
		}
		c := &o.calls[i]
		if c.ID == "" {
			c.ID = p.ID
		}
		if c.Function.Name == "" { // some repeat it with each piece
			c.Function.Name = p.Function.Name
		}
		c.Function.Arguments += p.Function.Arguments
	}
	return nil
}

// finished are the calls of an answer that has ended. What is none, such as one that a limit cut off, comes back as text: nothing is lost.
func (o *openaiAnswer) finished() (calls []api.ToolCall, broken string) {
	for _, c := range o.calls {
		args, ok := arguments(strings.TrimSpace(c.Function.Arguments))
		if !ok || c.Function.Name == "" {
			broken += c.Function.Name + c.Function.Arguments
			continue
		}
		calls = append(calls, api.ToolCall{ID: c.ID, Function: api.ToolCallFunction{Index: len(calls), Name: c.Function.Name, Arguments: args}})
	}
	return calls, broken
}

// openaiLogprobs reads the forms of chat/completions ({"content": [...]}) and of completions ({"tokens": …, "token_logprobs": …}).
func openaiLogprobs(raw json.RawMessage) []runner.Logprob {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var both struct {
		Content       few[api.Logprob]        `json:"content"`
		Tokens        few[string]             `json:"tokens"`
		TokenLogprobs few[*float64]           `json:"token_logprobs"`
		TopLogprobs   few[map[string]float64] `json:"top_logprobs"`
	}
	if json.Unmarshal(raw, &both) != nil {
		return nil
	}
	if len(both.Content) > 0 {
		return logprobs(both.Content)
	}
	var out []runner.Logprob
	for i, token := range both.Tokens {
		if i >= len(both.TokenLogprobs) || both.TokenLogprobs[i] == nil {
			break
		}
		l := runner.Logprob{Token: token, Bytes: []byte(token), Logprob: *both.TokenLogprobs[i]}
		if i < len(both.TopLogprobs) {
			for t, p := range both.TopLogprobs[i] {
				l.Top = append(l.Top, runner.Logprob{Token: t, Bytes: []byte(t), Logprob: p})
			}
			slices.SortFunc(l.Top, func(a, b runner.Logprob) int {
				switch {
				case a.Logprob > b.Logprob:
					return -1
				case a.Logprob < b.Logprob:
					return 1
				}
				return strings.Compare(a.Token, b.Token)
			})
		}
		out = append(out, l)
	}
	return out
}
