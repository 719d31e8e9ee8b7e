package gateway

import (
	"context"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/models"
	"sluice/scheduler"
)

// inferenceRequest is a request of /api/chat or /api/generate: what the two do not do alike.
type inferenceRequest interface {
	common() *inferenceFields
	// empty tells that there is nothing to answer: the request only loads its model, or unloads it.
	empty() bool
	// check refuses what this model cannot do, before it is loaded for it.
	check(m *models.Model) error
	// fit makes a prompt that the leased runner takes.
	fit(ctx context.Context, m *models.Model, l *scheduler.Lease) (fitted, error)
	// tokens stand for the conversation so far on the last line; nil where the API has none.
	tokens(ctx context.Context, l *scheduler.Lease, prompt, answer string) ([]int, error)
	// line is a line of the stream, or the whole answer.
	line(at time.Time, text string, end ending) any
}

// ending is the part of a line that only the last one has.
type ending struct {
	Done       bool   `json:"done"`
	DoneReason string `json:"done_reason,omitempty"`
	Context    []int  `json:"context,omitempty"`
	*counters
}

// infer answers a request to chat or to generate.
func (s *server) infer(c *gin.Context, req inferenceRequest) {
	start := s.now()
	if err := decode(c, req); err != nil {
		s.fail(c, err)
		return
	}
	fields := req.common()
	line := func(text string, end ending) any { return req.line(s.now().UTC(), text, end) }
	m, err := s.model(c, fields.name())
	if err == nil && req.empty() && fields.KeepAlive.unloads() {
		// It goes when nobody uses it any more; the answer comes at once.
		if err = s.cfg.Scheduler.Unload(c.Request.Context(), m); err == nil {
			writeJSON(c, 200, line("", ending{Done: true, DoneReason: "unload"}))
			return
		}
	}
	if err == nil {
		err = req.check(m)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	lease, opts, err := s.lease(c, m, fields.Options, fields.KeepAlive)
	if err != nil {
		s.fail(c, err)
		return
	}
	defer lease.Release()
	if req.empty() {
		writeJSON(c, 200, line("", ending{Done: true, DoneReason: "load"}))
		return
	}

	ctx := c.Request.Context()
	fit, err := req.fit(ctx, m, lease)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.tellTruncated(c, fit)
	schema, _ := schemaOf(fields.Format) // checked before
	var whole strings.Builder
	out := ndjson{s: s, c: c}
	usage, reason, err := complete(ctx, lease, scheduler.Completion{
		Prompt: fit.prompt, Options: opts, Schema: schema, Truncate: fields.truncates(), Shift: fields.shifts(),
	}, func(text string) error {
		whole.WriteString(text)
		if fields.streams() {
			return out.line(line(text, ending{}))
		}
		return nil
	})
	if err != nil {
		out.fail(err)
		return
	}
	end := ending{Done: true, DoneReason: reason}
	if end.Context, err = req.tokens(ctx, lease, fit.prompt, whole.String()); err != nil { // an answer stands without them
		s.cfg.Log.Warn("no context on the last line", "request_id", requestIDOf(c), "error", err)
	}
	end.counters = countersOf(s.now().Sub(start), lease.LoadDuration(), usage, fit.note() != "")
	if !fields.streams() {
		writeJSON(c, 200, line(whole.String(), end))
		return
	}
	if err := out.line(line("", end)); err != nil {
		noteFailure(c, err)
	}
}

// tellTruncated says in a header and in the log that a part of the prompt was left out.
func (s *server) tellTruncated(c *gin.Context, fit fitted) {
	if note := fit.note(); note != "" {
		c.Header(truncatedHeader, note)
		s.cfg.Log.Warn("prompt truncated to the context", "request_id", requestIDOf(c), "truncated", note)
	}
}
