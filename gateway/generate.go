package gateway

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
)

type generateRequest struct {
	inferenceFields
	Prompt   string          `json:"prompt"`
	Suffix   string          `json:"suffix"`
	System   string          `json:"system"`
	Template string          `json:"template"`
	Context  []int           `json:"context"`
	Raw      bool            `json:"raw"`
	Images   []api.ImageData `json:"images"`
}

// generateLine is a line of /api/generate's stream, or the whole answer. Index and choices are ours, where n is above 1.
type generateLine struct {
	Model     string         `json:"model"`
	CreatedAt time.Time      `json:"created_at"`
	Index     *int           `json:"index,omitempty"`
	Response  string         `json:"response"`
	Thinking  string         `json:"thinking,omitempty"`
	ToolCalls []api.ToolCall `json:"tool_calls,omitempty"`
	Choices   []choice       `json:"choices,omitempty"`
	Logprobs  []api.Logprob  `json:"logprobs,omitempty"`
	ending
}

// generate answers POST /api/generate.
func (s *server) generate(c *gin.Context) {
	var req generateRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	out := s.nativeOut(c, &req.inferenceFields, func(at time.Time, t turn, index *int, end ending, choices []choice) any {
		return generateLine{Model: req.name(), CreatedAt: at, Index: index, Response: t.content, Thinking: t.thinking, ToolCalls: t.calls,
			Choices: choices, Logprobs: t.logprobs, ending: end}
	})
	text := textRequest{
		model: req.name(), prompt: req.Prompt, suffix: req.Suffix, system: req.System, template: req.Template, raw: req.Raw,
		format: req.Format, options: req.Options, keepAlive: req.KeepAlive, think: req.Think, truncate: req.truncates(), shift: req.shifts(),
		logprobs: req.Logprobs, topLogprobs: req.TopLogprobs, n: req.N, context: req.Context, debugOnly: req.DebugOnly, held: !req.streams(),
	}
	for _, image := range req.Images {
		text.images = append(text.images, image)
	}
	if err := s.completeText(c, text, out.turn); err != nil {
		out.lines.fail(err)
	}
}
