package gateway

import (
	"math"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/openai"

	"sluice/fault"
)

// chatAnswers turns the pieces of n answers into a chat.completion, or into its chunks. One id goes through all of them.
type chatAnswers struct {
	head     chatHead
	logprobs bool
	answers  []chatAnswer
	usage    openaiUsage
}

type chatHead struct {
	ID                string `json:"id"`
	Object            string `json:"object"`
	Created           int64  `json:"created"` // Unix seconds
	Model             string `json:"model"`
	SystemFingerprint string `json:"system_fingerprint"`
}

type chatAnswer struct {
	text, thinking strings.Builder
	calls          []api.ToolCall
	logprobs       []api.Logprob
	begun          bool
	end            *turnEnd
}

type chatCompletion struct {
	chatHead
	Choices []chatChoice `json:"choices"`
	Usage   openaiUsage  `json:"usage"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatReply     `json:"message"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

type chatReply struct {
	Role      string            `json:"role"`
	Content   *string           `json:"content"` // null: there are only calls
	Refusal   *string           `json:"refusal"` // always null: no model here has a separate refusal
	Reasoning string            `json:"reasoning,omitempty"`
	ToolCalls []openai.ToolCall `json:"tool_calls,omitempty"`
}

type chatChunk struct {
	chatHead
	Choices []chunkChoice `json:"choices"`
	Usage   *openaiUsage  `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int           `json:"index"`
	Delta        chatDelta     `json:"delta"`
	Logprobs     *chatLogprobs `json:"logprobs,omitempty"`
	FinishReason *string       `json:"finish_reason"` // null but on an answer's last chunk
}

type chatDelta struct {
	Role      string            `json:"role,omitempty"`
	Content   *string           `json:"content,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"`
	ToolCalls []openai.ToolCall `json:"tool_calls,omitempty"`
}

func newChatAnswers(r *openaiChatRequest, fingerprint string, created int64) *chatAnswers {
	return &chatAnswers{logprobs: r.Logprobs, answers: make([]chatAnswer, r.answers()),
		head: chatHead{ID: newID("chatcmpl-"), Created: created, Model: r.Model, SystemFingerprint: fingerprint}}
}

// take keeps a piece for the whole answer.
func (a *chatAnswers) take(t turn) error {
	if t.index < 0 || t.index >= len(a.answers) {
		return fault.Bug("a piece of answer %d of %d", t.index, len(a.answers))
	}
	one := &a.answers[t.index]
	one.text.WriteString(t.content)
	one.thinking.WriteString(t.thinking)
	one.calls = append(one.calls, t.calls...)
	one.logprobs = append(one.logprobs, t.logprobs...)
	if t.end != nil {
		one.end, a.usage = t.end, usageOf(t.end)
	}
	return nil
}

// missing is a bug: an answer that has no end.
func (a *chatAnswers) missing() error {
	for i := range a.answers {
		if a.answers[i].end == nil {
			return fault.Bug("answer %d of %d has no end", i, len(a.answers))
		}
	}
	return nil
}

func (a *chatAnswers) whole() chatCompletion {
	out := chatCompletion{chatHead: a.head, Usage: a.usage}
	out.Object = "chat.completion"
	for i := range a.answers {
		one := &a.answers[i]
		msg := chatReply{Role: "assistant", Reasoning: one.thinking.String()}
		if text := one.text.String(); text != "" || len(one.calls) == 0 {
			msg.Content = &text
		}
		if len(one.calls) > 0 {
			msg.ToolCalls = openai.ToToolCalls(one.calls)
		}
		out.Choices = append(out.Choices, chatChoice{Index: i, Message: msg, Logprobs: a.logprobsOf(one.logprobs), FinishReason: finishOf(one.end)})
	}
	return out
}

// chunks are the chunks of a piece: the role before an answer's first, the reason of its end on one of its own.
func (a *chatAnswers) chunks(t turn) []chatChunk {
	var out []chatChunk
	add := func(c chunkChoice) {
		c.Index = t.index
		chunk := chatChunk{chatHead: a.head, Choices: []chunkChoice{c}}
		chunk.Object = "chat.completion.chunk"
		out = append(out, chunk)
	}
	if t.index < len(a.answers) && !a.answers[t.index].begun {
		a.answers[t.index].begun = true
		add(chunkChoice{Delta: chatDelta{Role: "assistant", Content: new(string)}})
	}
	if t.content != "" || t.thinking != "" || len(t.calls) > 0 || len(t.logprobs) > 0 {
		delta := chatDelta{Reasoning: t.thinking}
		if t.content != "" {
			delta.Content = &t.content
		}
		if len(t.calls) > 0 {
			delta.ToolCalls = openai.ToToolCalls(t.calls)
		}
		add(chunkChoice{Delta: delta, Logprobs: a.logprobsOf(t.logprobs)})
	}
	if t.end != nil {
		reason := finishOf(t.end)
		add(chunkChoice{FinishReason: &reason})
	}
	return out
}

// usageChunk is the last chunk of a stream whose request asked for it.
func (a *chatAnswers) usageChunk() chatChunk {
	chunk := chatChunk{chatHead: a.head, Choices: []chunkChoice{}, Usage: &a.usage}
	chunk.Object = "chat.completion.chunk"
	return chunk
}

// finishOf is OpenAI's word for how an answer ended. A call counts wherever in the answer it came.
func finishOf(end *turnEnd) string {
	if end.called {
		return "tool_calls"
	}
	return end.reason
}

// chatLogprobs are the tokens of an answer. The lists are never null, as programs walk over them.
type chatLogprobs struct {
	Content []tokenLogprobs `json:"content"`
	Refusal *string         `json:"refusal"`
}

type tokenLogprobs struct {
	tokenLogprob
	TopLogprobs []tokenLogprob `json:"top_logprobs"`
}

type tokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (a *chatAnswers) logprobsOf(list []api.Logprob) *chatLogprobs {
	if !a.logprobs || len(list) == 0 {
		return nil
	}
	return &chatLogprobs{Content: tokenLogprobsOf(list)}
}

func tokenLogprobsOf(list []api.Logprob) []tokenLogprobs {
	out := make([]tokenLogprobs, len(list))
	for i, l := range list {
		out[i] = tokenLogprobs{tokenLogprob: tokenLogprobOf(l.TokenLogprob), TopLogprobs: make([]tokenLogprob, len(l.TopLogprobs))}
		for j, top := range l.TopLogprobs {
			out[i].TopLogprobs[j] = tokenLogprobOf(top)
		}
	}
	return out
}

func tokenLogprobOf(l api.TokenLogprob) tokenLogprob {
	return tokenLogprob{Token: l.Token, Logprob: logarithm(l.Logprob), Bytes: l.Bytes}
}

// logarithm is a logarithm in a form that JSON has: a token that a grammar rules out has probability 0.
func logarithm(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return -9999 // as OpenAI writes it
	}
	return x
}
