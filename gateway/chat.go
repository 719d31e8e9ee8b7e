package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	"sluice/scheduler"
)

type chatRequest struct {
	inferenceFields
	Messages []api.Message     `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

// chatLine is a line of /api/chat's stream, or the whole answer.
type chatLine struct {
	Model     string      `json:"model"`
	CreatedAt time.Time   `json:"created_at"`
	Message   chatMessage `json:"message"`
	ending
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (s *server) chat(c *gin.Context) { s.infer(c, &chatRequest{}) }

func (req *chatRequest) empty() bool { return len(req.Messages) == 0 }

func (req *chatRequest) check(m *models.Model) error {
	if err := mustSupport(m, req.name(), "completion", "chat"); err != nil {
		return err
	}
	if len(req.Tools) > 0 {
		return fault.New(fault.Invalid, "gateway.chat", "%q does not support tools", req.name())
	}
	for _, msg := range req.Messages {
		if len(msg.Images) > 0 {
			return fault.New(fault.Invalid, "gateway.chat", "%q does not support images", req.name())
		}
	}
	return req.inferenceFields.check()
}

// fit leaves out the oldest turns of a conversation that is too long.
func (req *chatRequest) fit(ctx context.Context, m *models.Model, l *scheduler.Lease) (fitted, error) {
	return fitter{numCtx: l.Report().NumCtx, truncate: req.truncates(), render: m.Prompt, tokenize: l.Runner().Tokenize}.chat(ctx, req.Messages)
}

func (req *chatRequest) tokens(context.Context, *scheduler.Lease, string, string) ([]int, error) {
	return nil, nil
}

func (req *chatRequest) line(at time.Time, text string, end ending) any {
	return chatLine{Model: req.name(), CreatedAt: at, Message: chatMessage{Role: "assistant", Content: text}, ending: end}
}
