package gateway

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	"sluice/scheduler"
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

// generateLine is a line of /api/generate's stream, or the whole answer.
type generateLine struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	Response  string    `json:"response"`
	ending
}

func (s *server) generate(c *gin.Context) { s.infer(c, &generateRequest{}) }

func (req *generateRequest) empty() bool { return req.Prompt == "" }

func (req *generateRequest) check(m *models.Model) error {
	const op = "gateway.generate"
	if err := mustSupport(m, req.name(), "completion", "generate"); err != nil {
		return err
	}
	if req.Suffix != "" {
		if err := mustSupport(m, req.name(), "insert", "insert"); err != nil {
			return err
		}
	}
	switch {
	case req.Raw && (req.Template != "" || req.System != "" || len(req.Context) > 0):
		return fault.New(fault.Invalid, op, "raw mode does not support template, system, or context")
	case len(req.Images) > 0:
		return fault.New(fault.Invalid, op, "%q does not support images", req.name())
	}
	for _, token := range req.Context {
		if token < 0 {
			return fault.New(fault.Invalid, op, "context holds %d, which is no token", token)
		}
	}
	return req.inferenceFields.check()
}

func (req *generateRequest) fit(ctx context.Context, m *models.Model, l *scheduler.Lease) (fitted, error) {
	prompt, err := req.render(ctx, m, l)
	if err != nil {
		return fitted{}, err
	}
	return fitter{numCtx: l.Report().NumCtx, truncate: req.truncates(), tokenize: l.Runner().Tokenize}.text(ctx, prompt)
}

// render makes the prompt: the caller's own text when raw, else what the template makes of it, after the conversation
// that an earlier answer's context stands for.
func (req *generateRequest) render(ctx context.Context, m *models.Model, l *scheduler.Lease) (string, error) {
	if req.Raw {
		return req.Prompt, nil
	}
	prompt, err := m.GeneratePrompt(req.Prompt, req.System, req.Template, req.Suffix)
	if err != nil || len(req.Context) == 0 {
		return prompt, err
	}
	before, err := l.Runner().Detokenize(ctx, req.Context)
	return before + prompt, err
}

// tokens are the old way to go on with a conversation: the next request sends this list back.
func (req *generateRequest) tokens(ctx context.Context, l *scheduler.Lease, prompt, answer string) ([]int, error) {
	if req.Raw {
		return nil, nil
	}
	return l.Runner().Tokenize(ctx, prompt+answer)
}

func (req *generateRequest) line(at time.Time, text string, end ending) any {
	return generateLine{Model: req.name(), CreatedAt: at, Response: text, ending: end}
}
