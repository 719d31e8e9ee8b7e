package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
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
	body, warnings := gin.H{"status": "ready"}, []string{}
	if installed, err := s.cfg.Models.List(); err != nil {
		s.fail(c, &fault.Error{Code: fault.Busy, Op: "gateway.readyz", Msg: "the models folder cannot be read", RetryAfter: 5 * time.Second, Err: err})
		return
	} else if len(installed) == 0 {
		warnings = append(warnings, "no model is installed")
	}
	if s.cfg.Warnings != nil {
		warnings = append(warnings, s.cfg.Warnings()...)
	}
	if len(warnings) > 0 {
		body["warnings"] = warnings
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

// usable are the models that the caller may use: the installed ones, newest first, then those of servers elsewhere that are
// not installed here too.
func (s *server) usable(c *gin.Context) ([]*models.Model, error) {
	installed, err := s.cfg.Models.List()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(installed)
	for _, m := range s.offeredTo(c) {
		if !slices.ContainsFunc(installed, func(i *models.Model) bool { return models.SameName(i.Name, m.Name) }) {
			all = append(all, m)
		}
	}
	return slices.DeleteFunc(withoutAsk(all), func(m *models.Model) bool { return !mayUse(principal(c), m.Name) }), nil
}

// tags lists the models that the caller may use, and behind them the databases that are models to them.
func (s *server) tags(c *gin.Context) {
	usable, err := s.usable(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []listed{} // never null: clients iterate over it
	for _, m := range usable {
		list = append(list, listed{Name: m.Name, Model: m.Name, ModifiedAt: m.ModifiedAt, Size: m.Size, Digest: m.Digest, Details: detailsOf(m), Capabilities: capabilities(m)})
	}
	for _, name := range s.askable(c) {
		list = append(list, askListed(name, s.started))
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
	if isAsk(req.name()) {
		src, err := s.askSource(c, req.name())
		if err != nil {
			s.fail(c, err)
			return
		}
		writeJSON(c, http.StatusOK, askShown(src.Name(), s.started))
		return
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	info, tensors, err := s.info(m, req.Verbose)
	if err != nil {
		s.fail(c, err)
		return
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

// info is what the model's file tells, never nil. The file of a model that runs elsewhere is not here: then it is what that
// server told, under the names that clients look for.
func (s *server) info(m *models.Model, verbose bool) (map[string]any, []api.Tensor, error) {
	if !m.Elsewhere() {
		info, tensors, err := s.cfg.Models.Info(m, verbose)
		if info == nil {
			info = map[string]any{}
		}
		return info, tensors, err
	}
	arch := cmp.Or(m.Facts.Architecture, m.Facts.Family, "unknown")
	info := map[string]any{"general.architecture": arch}
	if m.Facts.ContextLength > 0 {
		info[arch+".context_length"] = m.Facts.ContextLength
	}
	if m.Facts.EmbeddingLength > 0 {
		info[arch+".embedding_length"] = m.Facts.EmbeddingLength
	}
	return info, nil, nil
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
