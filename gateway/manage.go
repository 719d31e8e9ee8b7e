package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

type createRequest struct {
	nameField
	Stream       *bool             `json:"stream"`
	From         string            `json:"from"`
	Files        map[string]string `json:"files"`
	Adapters     map[string]string `json:"adapters"`
	Template     string            `json:"template"`
	System       string            `json:"system"`
	License      json.RawMessage   `json:"license"` // a text or a list of texts
	Parameters   map[string]any    `json:"parameters"`
	Messages     []api.Message     `json:"messages"`
	Renderer     string            `json:"renderer"`
	Parser       string            `json:"parser"`
	Requires     string            `json:"requires"`
	Quantize     string            `json:"quantize"`
	Quantization string            `json:"quantization"` // the old name of quantize
	RemoteHost   string            `json:"remote_host"`
}

// model reads the request as the store takes it. What would be left out of the model in silence is refused.
func (r *createRequest) model() (models.CreateRequest, error) {
	const op = "gateway.create"
	out := models.CreateRequest{Name: r.name(), From: r.From, Files: r.Files, Adapters: r.Adapters, Template: r.Template, System: r.System,
		Parameters: r.Parameters, Messages: r.Messages, Renderer: r.Renderer, Parser: r.Parser, Requires: r.Requires, Quantize: r.Quantize}
	if out.Quantize == "" {
		out.Quantize = r.Quantization
	}
	if r.RemoteHost != "" {
		return out, fault.New(fault.Unimplemented, op, "remote models: not part of this version of Sluice")
	}
	if out.Name == "" {
		return out, fault.New(fault.Invalid, op, "model is required")
	}
	if err := notReserved(out.Name); err != nil {
		return out, err
	}
	if present(r.License) {
		var one string
		if err := json.Unmarshal(r.License, &one); err == nil {
			out.License = []string{one}
		} else if err := json.Unmarshal(r.License, &out.License); err != nil {
			return out, fault.Wrap(err, fault.Invalid, op, "license must be a text or a list of texts")
		}
	}
	return out, nil
}

func (s *server) create(c *gin.Context) {
	var req createRequest
	err := decode(c, &req)
	var make models.CreateRequest
	if err == nil {
		make, err = req.model()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out := ndjson{s: s, c: c}
	var tell func(api.ProgressResponse)
	if req.Stream == nil || *req.Stream {
		tell = func(p api.ProgressResponse) {
			if err := out.line(p); err != nil {
				noteFailure(c, err) // the request's context ends the work
			}
		}
	}
	err = s.audited(c, "model.create", map[string]any{"model": make.Name, "from": make.From}, func() error {
		if err := s.cfg.Models.Create(c.Request.Context(), make, tell); err != nil {
			return err
		}
		return s.retire(c.Request.Context(), make.Name)
	})
	switch {
	case err != nil:
		out.fail(err)
	case tell == nil:
		writeJSON(c, http.StatusOK, api.ProgressResponse{Status: success})
	}
}

func (s *server) copyModel(c *gin.Context) {
	var req api.CopyRequest
	err := decode(c, &req)
	if err == nil && (req.Source == "" || req.Destination == "") {
		err = fault.New(fault.Invalid, "gateway.copy", "source and destination are required")
	}
	if err == nil {
		err = notReserved(req.Destination)
	}
	if err == nil {
		err = s.audited(c, "model.copy", map[string]any{"model": req.Destination, "from": req.Source}, func() error {
			if err := s.cfg.Models.Copy(req.Source, req.Destination); err != nil {
				return err
			}
			return s.retire(c.Request.Context(), req.Destination)
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Status(http.StatusOK)
}

// deleteModel removes a model, and lets it go where it is loaded: Ollama would keep serving it (#4443).
func (s *server) deleteModel(c *gin.Context) {
	var req nameField
	err := decode(c, &req)
	if err == nil && req.name() == "" {
		err = fault.New(fault.Invalid, "gateway.delete", "model is required")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	m, unusable := s.cfg.Models.Get(req.name()) // a damaged model cannot be loaded, but it can be deleted
	err = s.audited(c, "model.delete", map[string]any{"model": req.name()}, func() error {
		if err := s.cfg.Models.Delete(req.name()); err != nil || unusable != nil {
			return err
		}
		return s.cfg.Scheduler.Unload(c.Request.Context(), m)
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Status(http.StatusOK)
}

func (s *server) hasBlob(c *gin.Context) {
	if !s.cfg.Models.HasBlob(c.Param("digest")) {
		s.fail(c, fault.New(fault.NotFound, "gateway.blob", "blob %q not found", printable(c.Param("digest"), 100)))
		return
	}
	c.Status(http.StatusOK)
}

// addBlob takes a file: 201 when it is new, 200 when it was there.
func (s *server) addBlob(c *gin.Context) {
	status := http.StatusCreated
	if s.cfg.Models.HasBlob(c.Param("digest")) {
		status = http.StatusOK
	}
	if err := s.cfg.Models.AddBlob(c.Request.Context(), c.Param("digest"), c.Request.Body); err != nil {
		s.fail(c, err)
		return
	}
	c.Status(status)
}
