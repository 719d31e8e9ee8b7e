package gateway

import (
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/models"
	"sluice/scheduler"
)

// model finds a model that the caller may use: an installed one, else one that a server elsewhere offers. One that they may not use
// does not exist for them.
func (s *server) model(c *gin.Context, name string) (*models.Model, error) {
	if strings.TrimSpace(name) == "" {
		return nil, fault.New(fault.Invalid, "gateway.model", "model is required")
	}
	if isAsk(name) {
		return nil, s.onlyAsks(c, name)
	}
	if err := countHops(c); err != nil {
		return nil, err
	}
	m, err := s.cfg.Models.Get(name)
	if fault.CodeOf(err) == fault.NotFound && err != nil {
		if away := s.offered(name); away != nil {
			m, err = away, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if !mayUse(principal(c), m.Name) {
		return nil, fault.New(fault.NotFound, "gateway.model", "model '%s' not found", printable(name, 200))
	}
	return m, nil
}

// lease asks for the use of a model; prefix is how its prompt begins, nil where that is no help. The caller must release it on every
// path.
func (s *server) lease(c *gin.Context, m *models.Model, options map[string]any, keep *keepAlive, prefix []uint64) (*scheduler.Lease, models.Options, error) {
	opts, unknown, err := m.Options(options)
	if err != nil {
		return nil, opts, err
	}
	if len(unknown) > 0 {
		s.cfg.Log.Debug("unknown options ignored", "request_id", requestIDOf(c), "count", len(unknown))
	}
	l, err := s.cfg.Scheduler.Lease(c.Request.Context(), scheduler.Want{Model: m, Options: opts, KeepAlive: keep.duration(), Prefix: prefix})
	return l, opts, err
}
