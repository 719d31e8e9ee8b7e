package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	"sluice/scheduler"
)

// root answers the probe that many clients begin with. They compare this text.
func (s *server) root(c *gin.Context) { c.String(http.StatusOK, "Ollama is running") }

func (s *server) version(c *gin.Context) { writeJSON(c, http.StatusOK, gin.H{"version": OllamaLevel}) }

// status answers Ollama's question whether its cloud may be used: there is none here.
func (s *server) status(c *gin.Context) {
	writeJSON(c, http.StatusOK, gin.H{"cloud": gin.H{"disabled": true, "source": "none"}})
}

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

// details are Ollama's with what newer ones have besides.
type details struct {
	api.ModelDetails
	ContextLength   int `json:"context_length,omitempty"` // tokens, as trained
	EmbeddingLength int `json:"embedding_length,omitempty"`
}

func detailsOf(m *models.Model) details {
	return details{ModelDetails: m.Details(), ContextLength: m.Facts.ContextLength, EmbeddingLength: m.Facts.EmbeddingLength}
}

// listed is an entry of /api/tags. Open WebUI indexes both name and model.
type listed struct {
	Name         string    `json:"name"`
	Model        string    `json:"model"`
	ModifiedAt   time.Time `json:"modified_at"`
	Size         int64     `json:"size"`
	Digest       string    `json:"digest"`
	Details      details   `json:"details"`
	Capabilities []string  `json:"capabilities"`
}

// tags lists the installed models that the caller may use, newest first.
func (s *server) tags(c *gin.Context) {
	installed, err := s.cfg.Models.List()
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []listed{} // never null: clients iterate over it
	for _, m := range installed {
		if mayUse(principal(c), m.Name) {
			list = append(list, listed{Name: m.Name, Model: m.Name, ModifiedAt: m.ModifiedAt, Size: m.Size, Digest: m.Digest, Details: detailsOf(m), Capabilities: capabilities(m)})
		}
	}
	writeJSON(c, http.StatusOK, gin.H{"models": list})
}

// capabilities are what clients are told. Never null: they crash on it. A model that generates embeds too, but as in Ollama only
// the others say so: programs take a model that says "embedding" for one that cannot chat, and leave it out of their lists.
func capabilities(m *models.Model) []string {
	told := append([]string{}, m.Capabilities()...)
	if slices.Contains(told, "completion") {
		told = slices.DeleteFunc(told, func(c string) bool { return c == "embedding" })
	}
	return told
}

// loadedModel is Ollama's entry of /api/ps with what Sluice knows besides.
type loadedModel struct {
	Name          string    `json:"name"`
	Model         string    `json:"model"`
	Size          int64     `json:"size"` // bytes in all, measured
	Digest        string    `json:"digest"`
	Details       details   `json:"details"`
	ExpiresAt     time.Time `json:"expires_at"`
	SizeVRAM      int64     `json:"size_vram"`      // of size, the bytes on GPUs
	ContextLength int       `json:"context_length"` // tokens of one sequence
	State         string    `json:"state"`          // loading, ready, draining, stopping
	InFlight      int       `json:"in_flight"`
	Parallel      int       `json:"parallel,omitempty"` // requests that are computed at a time
	Backend       string    `json:"backend,omitempty"`
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
	size := int64(l.Report.Bytes())
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
	return loadedModel{Name: m.Name, Model: m.Name, Size: size, Digest: m.Digest, Details: detailsOf(m), ExpiresAt: expires,
		SizeVRAM: int64(l.Report.GPUBytes()), ContextLength: l.Report.NumCtx, State: l.State, InFlight: l.InFlight,
		Parallel: l.Report.Parallel, Backend: l.Report.Backend}
}

// showResponse has every field always: clients crash on a missing model_info, and others on capabilities.
type showResponse struct {
	License      string         `json:"license"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	System       string         `json:"system"`
	Renderer     string         `json:"renderer,omitempty"`
	Parser       string         `json:"parser,omitempty"`
	Requires     string         `json:"requires,omitempty"`
	Details      details        `json:"details"`
	Messages     []api.Message  `json:"messages,omitempty"`
	ModelInfo    map[string]any `json:"model_info"`
	Projector    map[string]any `json:"projector_info,omitempty"`
	Tensors      []api.Tensor   `json:"tensors,omitempty"`
	Capabilities []string       `json:"capabilities"`
	ModifiedAt   time.Time      `json:"modified_at"`
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
	projector, err := s.projectorInfo(m, req.Verbose)
	if err != nil {
		s.fail(c, err)
		return
	}
	system := m.System
	if req.System != "" {
		system = req.System
	}
	writeJSON(c, http.StatusOK, showResponse{License: strings.Join(m.License, "\n"), Modelfile: m.Modelfile(), Parameters: m.Parameters(),
		Template: m.Template, System: system, Renderer: m.Renderer(), Parser: m.Parser(), Requires: m.Requires(), Details: detailsOf(m),
		Messages: m.Messages, ModelInfo: info, Projector: projector, Tensors: tensors, Capabilities: capabilities(m), ModifiedAt: m.ModifiedAt})
}

// projectorInfo is what the file tells that turns a model's images into embeddings; nil where there is none of its own.
func (s *server) projectorInfo(m *models.Model, verbose bool) (map[string]any, error) {
	if m.Projector() == "" {
		return nil, nil
	}
	file := *m
	file.Path = m.Projector()
	info, _, err := s.cfg.Models.Info(&file, verbose)
	return info, err
}
