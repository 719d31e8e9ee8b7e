package gateway

import (
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/models"
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
