package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// model finds an installed model that the caller may use. One that they may not use does not exist for them.
func (s *server) model(c *gin.Context, name string) (*models.Model, error) {
	if strings.TrimSpace(name) == "" {
		return nil, fault.New(fault.Invalid, "gateway.model", "model is required")
	}
	m, err := s.cfg.Models.Get(name)
	if err != nil {
		return nil, err
	}
	if !mayUse(principal(c), m.Name) {
		return nil, fault.New(fault.NotFound, "gateway.model", "model '%s' not found", printable(name, 200))
	}
	return m, nil
}

// mustSupport refuses a model that lacks a capability; verb is how the sentence calls it.
func mustSupport(m *models.Model, asked, capability, verb string) error {
	if slices.Contains(m.Capabilities(), capability) {
		return nil
	}
	return fault.New(fault.Invalid, "gateway.capability", "%q does not support %s", asked, verb)
}

// lease asks for the use of a model. The caller must release it on every path.
func (s *server) lease(c *gin.Context, m *models.Model, options map[string]any, keep *keepAlive) (*scheduler.Lease, models.Options, error) {
	opts, unknown, err := m.Options(options)
	if err != nil {
		return nil, opts, err
	}
	if len(unknown) > 0 {
		s.cfg.Log.Debug("unknown options ignored", "request_id", requestIDOf(c), "count", len(unknown))
	}
	l, err := s.cfg.Scheduler.Lease(c.Request.Context(), scheduler.Want{Model: m, Options: opts, KeepAlive: keep.duration()})
	return l, opts, err
}

// complete generates, handing each piece of text to emit, and tells what it cost and why it ended.
func complete(ctx context.Context, lease *scheduler.Lease, what scheduler.Completion, emit func(text string) error) (runner.Usage, string, error) {
	var usage runner.Usage
	reason := ""
	err := lease.Generate(ctx, what, func(ch runner.Chunk) error {
		if ch.Text != "" {
			if err := emit(ch.Text); err != nil {
				return err
			}
		}
		if ch.Done {
			reason = ch.DoneReason
			if reason == "" {
				reason = "stop"
			}
			if ch.Usage != nil {
				usage = *ch.Usage
			}
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return usage, "", fault.Wrap(err, fault.Canceled, "gateway.completion", "the request was cancelled")
	case err != nil:
		return usage, "", err
	case reason == "":
		return usage, "", fault.Bug("a runner's stream ended without its last chunk")
	}
	return usage, reason, nil
}
