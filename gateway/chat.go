package gateway

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
)

type chatRequest struct {
	inferenceFields
	Messages []api.Message `json:"messages"`
	Tools    []api.Tool    `json:"tools"`
}

// chatLine is a line of /api/chat's stream, or the whole answer. Index and choices are ours, where n is above 1.
type chatLine struct {
	Model     string        `json:"model"`
	CreatedAt time.Time     `json:"created_at"`
	Index     *int          `json:"index,omitempty"`
	Message   chatMessage   `json:"message"`
	Choices   []choice      `json:"choices,omitempty"`
	Logprobs  []api.Logprob `json:"logprobs,omitempty"`
	ending
}

type chatMessage struct {
	Role      string         `json:"role"`
	Content   string         `json:"content"`
	Thinking  string         `json:"thinking,omitempty"`
	ToolCalls []api.ToolCall `json:"tool_calls,omitempty"`
}

// chat answers POST /api/chat.
func (s *server) chat(c *gin.Context) {
	var req chatRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	out := s.nativeOut(c, &req.inferenceFields, func(at time.Time, t turn, index *int, end ending, choices []choice) any {
		return chatLine{Model: req.name(), CreatedAt: at, Index: index, Choices: choices, Logprobs: t.logprobs, ending: end,
			Message: chatMessage{Role: "assistant", Content: t.content, Thinking: t.thinking, ToolCalls: t.calls}}
	})
	err := s.converse(c, dialog{
		model: req.name(), messages: req.Messages, tools: req.Tools, format: req.Format, options: req.Options, keepAlive: req.KeepAlive, think: req.Think,
		truncate: req.truncates(), shift: req.shifts(), logprobs: req.Logprobs, topLogprobs: req.TopLogprobs, n: req.N, debugOnly: req.DebugOnly, held: !req.streams(),
	}, out.turn)
	if err != nil {
		out.lines.fail(err)
	}
}
