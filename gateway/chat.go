package gateway

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

type chatRequest struct {
	inferenceFields
	Messages []api.Message     `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

// chatLine is a line of /api/chat's stream, or the whole answer.
type chatLine struct {
	Model      string      `json:"model"`
	CreatedAt  time.Time   `json:"created_at"`
	Message    chatMessage `json:"message"`
	Done       bool        `json:"done"`
	DoneReason string      `json:"done_reason,omitempty"`
	*counters
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (s *server) chat(c *gin.Context) {
	start := s.now()
	var req chatRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	line := func(text string) chatLine {
		return chatLine{Model: req.name(), CreatedAt: s.now().UTC(), Message: chatMessage{Role: "assistant", Content: text}}
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	if len(req.Messages) == 0 && req.KeepAlive.unloads() {
		s.unload(c, m, func() any { l := line(""); l.Done, l.DoneReason = true, "unload"; return l })
		return
	}
	if err := checkChat(m, &req); err != nil {
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
	if len(req.Messages) == 0 {
		l := line("")
		l.Done, l.DoneReason = true, "load"
		writeJSON(c, 200, l)
		return
	}

	ctx := c.Request.Context()
	fit, err := fitter{numCtx: lease.Report().NumCtx, truncate: req.truncates(), render: m.Prompt, tokenize: lease.Runner().Tokenize}.
		chat(ctx, req.Messages)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.tellTruncated(c, fit)

	g := completion{prompt: fit.prompt, schema: schema, options: opts, truncate: req.truncates(), shift: req.shifts()}
	var whole strings.Builder
	out := ndjson{s: s, c: c}
	usage, reason, err := g.run(ctx, lease, func(text string) error {
		if req.streams() {
			return out.line(line(text))
		}
		whole.WriteString(text)
		return nil
	})
	if err != nil {
		out.fail(err)
		return
	}
	last := line(whole.String())
	last.Done, last.DoneReason = true, reason
	last.counters = countersOf(s.now().Sub(start), lease.LoadDuration(), usage, fit.note() != "")
	s.finish(c, &out, req.streams(), last)
}

// checkChat refuses what this model cannot do, before it is loaded for it.
func checkChat(m *models.Model, req *chatRequest) error {
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
	return req.check()
}

// unload lets a model go when nobody uses it any more, and answers at once.
func (s *server) unload(c *gin.Context, m *models.Model, answer func() any) {
	if err := s.cfg.Scheduler.Unload(c.Request.Context(), m); err != nil {
		s.fail(c, err)
		return
	}
	writeJSON(c, 200, answer())
}

// tellTruncated says in a header and in the log that a part of the prompt was left out.
func (s *server) tellTruncated(c *gin.Context, fit fitted) {
	if note := fit.note(); note != "" {
		c.Header(truncatedHeader, note)
		s.cfg.Log.Warn("prompt truncated to the context", "request_id", requestIDOf(c), "truncated", note)
	}
}

// finish sends the last line of a stream, or the whole answer.
func (s *server) finish(c *gin.Context, out *ndjson, stream bool, last any) {
	if !stream {
		writeJSON(c, 200, last)
		return
	}
	if err := out.line(last); err != nil {
		noteFailure(c, err)
	}
}
