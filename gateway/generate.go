package gateway

import (
	"context"
	"strings"
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
	Model      string    `json:"model"`
	CreatedAt  time.Time `json:"created_at"`
	Response   string    `json:"response"`
	Done       bool      `json:"done"`
	DoneReason string    `json:"done_reason,omitempty"`
	Context    []int     `json:"context,omitempty"`
	*counters
}

func (s *server) generate(c *gin.Context) {
	start := s.now()
	var req generateRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	line := func(text string) generateLine {
		return generateLine{Model: req.name(), CreatedAt: s.now().UTC(), Response: text}
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	if req.Prompt == "" && req.KeepAlive.unloads() {
		s.unload(c, m, func() any { l := line(""); l.Done, l.DoneReason = true, "unload"; return l })
		return
	}
	if err := checkGenerate(m, &req); err != nil {
		s.fail(c, err)
		return
	}
	schema, _ := schemaOf(req.Format) // checked above

	lease, opts, err := s.lease(c, m, req.Options, req.KeepAlive)
	if err != nil {
		s.fail(c, err)
		return
	}
	defer lease.Release()
	if req.Prompt == "" {
		l := line("")
		l.Done, l.DoneReason = true, "load"
		writeJSON(c, 200, l)
		return
	}

	ctx := c.Request.Context()
	prompt, err := req.render(ctx, m, lease)
	if err != nil {
		s.fail(c, err)
		return
	}
	fit, err := fitter{numCtx: lease.Report().NumCtx, truncate: req.truncates(), tokenize: lease.Runner().Tokenize}.text(ctx, prompt)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.tellTruncated(c, fit)

	g := completion{prompt: prompt, schema: schema, options: opts, truncate: req.truncates(), shift: req.shifts()}
	var whole strings.Builder
	out := ndjson{s: s, c: c}
	usage, reason, err := g.run(ctx, lease, func(text string) error {
		whole.WriteString(text)
		if req.streams() {
			return out.line(line(text))
		}
		return nil
	})
	if err != nil {
		out.fail(err)
		return
	}
	last := line("")
	if !req.streams() {
		last.Response = whole.String()
	}
	last.Done, last.DoneReason = true, reason
	if !req.Raw {
		// The old way to go on with a conversation: the next request sends this list back. An answer stands without it.
		if last.Context, err = lease.Runner().Tokenize(ctx, prompt+whole.String()); err != nil {
			s.cfg.Log.Warn("no context on the last line", "request_id", requestIDOf(c), "error", err)
		}
	}
	last.counters = countersOf(s.now().Sub(start), lease.LoadDuration(), usage, fit.note() != "")
	s.finish(c, &out, req.streams(), last)
}

// checkGenerate refuses what this model cannot do, before it is loaded for it.
func checkGenerate(m *models.Model, req *generateRequest) error {
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
	return req.check()
}

// render makes the prompt: the caller's own text when raw, else what the template makes of it, after the conversation
// that an earlier answer's context stands for.
func (req *generateRequest) render(ctx context.Context, m *models.Model, lease *scheduler.Lease) (string, error) {
	if req.Raw {
		return req.Prompt, nil
	}
	prompt, err := m.GeneratePrompt(req.Prompt, req.System, req.Template, req.Suffix)
	if err != nil || len(req.Context) == 0 {
		return prompt, err
	}
	before, err := lease.Runner().Detokenize(ctx, req.Context)
	return before + prompt, err
}
