package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/scheduler"
)

// root answers the probe that many clients begin with. They compare this text.
func (s *server) root(c *gin.Context) { c.String(http.StatusOK, "Ollama is running") }

func (s *server) version(c *gin.Context) { writeJSON(c, http.StatusOK, gin.H{"version": OllamaLevel}) }

func (s *server) healthz(c *gin.Context) { writeJSON(c, http.StatusOK, gin.H{"status": "ok"}) }

// readyz is ready when the scheduler answers. No model installed is a warning: databases work without one.
func (s *server) readyz(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.cfg.Scheduler.Loaded(ctx); err != nil {
		s.fail(c, &fault.Error{Code: fault.Busy, Op: "gateway.readyz", Msg: "the scheduler does not answer", RetryAfter: time.Second, Err: err})
		return
	}
	body := gin.H{"status": "ready"}
	if installed, err := s.cfg.Models.List(); err != nil {
		s.fail(c, &fault.Error{Code: fault.Busy, Op: "gateway.readyz", Msg: "the models folder cannot be read", RetryAfter: 5 * time.Second, Err: err})
		return
	} else if len(installed) == 0 {
		body["warnings"] = []string{"no model is installed"}
	}
	writeJSON(c, http.StatusOK, body)
}

// tags lists the installed models that the caller may use, newest first. Open WebUI indexes both name and model.
func (s *server) tags(c *gin.Context) {
	installed, err := s.cfg.Models.List()
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []api.ListModelResponse{} // never null: clients iterate over it
	for _, m := range installed {
		if mayUse(principal(c), m.Name) {
			list = append(list, api.ListModelResponse{Name: m.Name, Model: m.Name, ModifiedAt: m.ModifiedAt, Size: m.Size, Digest: m.Digest, Details: m.Details()})
		}
	}
	writeJSON(c, http.StatusOK, api.ListResponse{Models: list})
}

// loadedModel is Ollama's entry of /api/ps with what Sluice knows besides.
type loadedModel struct {
	api.ProcessModelResponse
	State    string `json:"state"`
	InFlight int    `json:"in_flight"`
}

func (s *server) ps(c *gin.Context) {
	loaded, err := s.cfg.Scheduler.Loaded(c.Request.Context())
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []loadedModel{}
	for _, l := range loaded {
		if mayUse(principal(c), l.Model.Name) {
			list = append(list, s.loadedModel(l))
		}
	}
	writeJSON(c, http.StatusOK, gin.H{"models": list})
}

func (s *server) loadedModel(l scheduler.Loaded) loadedModel {
	m := l.Model
	size := int64(l.Report.WeightBytes + l.Report.KVBytes + l.Report.ComputeBytes)
	if size == 0 {
		size = m.Size // still loading: what is known so far
	}
	expires := l.ExpiresAt
	if expires.IsZero() {
		expires = s.now()
	}
	if farthest := time.Date(2318, 1, 1, 0, 0, 0, 0, time.UTC); expires.After(farthest) {
		expires = farthest // as Ollama; a year beyond 9999 has no JSON form
	}
	return loadedModel{
		ProcessModelResponse: api.ProcessModelResponse{Name: m.Name, Model: m.Name, Size: size, Digest: m.Digest, Details: m.Details(),
			ExpiresAt: expires, SizeVRAM: int64(l.Report.GPUBytes), ContextLength: l.Report.NumCtx},
		State: l.State, InFlight: l.InFlight,
	}
}

// showResponse has every field always: clients crash on a missing model_info, and others on capabilities.
type showResponse struct {
	License      string           `json:"license"`
	Modelfile    string           `json:"modelfile"`
	Parameters   string           `json:"parameters"`
	Template     string           `json:"template"`
	System       string           `json:"system"`
	Details      api.ModelDetails `json:"details"`
	Messages     []api.Message    `json:"messages,omitempty"`
	ModelInfo    map[string]any   `json:"model_info"`
	Tensors      []api.Tensor     `json:"tensors,omitempty"`
	Capabilities []string         `json:"capabilities"`
	ModifiedAt   time.Time        `json:"modified_at"`
}

func (s *server) show(c *gin.Context) {
	var req struct {
		nameField
		System  string `json:"system"`
		Verbose bool   `json:"verbose"`
	}
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	info, tensors, err := s.cfg.Models.Info(m, req.Verbose)
	if err != nil {
		s.fail(c, err)
		return
	}
	if info == nil {
		info = map[string]any{}
	}
	system := m.System
	if req.System != "" {
		system = req.System
	}
	capabilities := m.Capabilities()
	if capabilities == nil {
		capabilities = []string{}
	}
	writeJSON(c, http.StatusOK, showResponse{License: strings.Join(m.License, "\n"), Modelfile: m.Modelfile(), Parameters: m.Parameters(),
		Template: m.Template, System: system, Details: m.Details(), Messages: m.Messages, ModelInfo: info, Tensors: tensors,
		Capabilities: capabilities, ModifiedAt: m.ModifiedAt})
}
