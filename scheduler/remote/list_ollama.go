package remote

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// shown is what /api/show told of a model, which stays as long as its digest.
type shown struct {
	digest string
	told   models.Told
}

// ollamaModel is an entry of /api/tags.
type ollamaModel struct {
	Name       string           `json:"name"`
	Model      string           `json:"model"`
	Size       float64          `json:"size"`
	Digest     string           `json:"digest"`
	ModifiedAt time.Time        `json:"modified_at"`
	Details    api.ModelDetails `json:"details"`
}

// listOllama reads /api/tags, and /api/show of each model that is new or has changed.
func (s *Server) listOllama(ctx context.Context) ([]entry, flavour, error) {
	var all struct {
		Models few[ollamaModel] `json:"models"`
	}
	h, err := s.call(ctx, "/api/tags", nil, &all, askLimit, maxList)
	if err != nil {
		return nil, unknown, err
	}
	var list []entry
	known := map[string]shown{}
	for _, m := range all.Models[:min(len(all.Models), maxModels)] {
		id := m.Model
		if id == "" {
			id = m.Name
		}
		if id == "" || !s.asksFor(id) {
			continue
		}
		sh, ok := s.shown[id]
		if !ok || sh.digest != m.Digest {
			told, err := s.show(ctx, id)
			switch {
			case ctx.Err() != nil:
				return nil, unknown, canceled(ctx)
			case Unavailable(err) && !errors.Is(err, errAnswered):
				return nil, unknown, err
			case err != nil: // one broken model is not a broken server
				s.cfg.Log.Debug("a server elsewhere lists a model and cannot show it", "remote", s.cfg.Name, "model", clean(id), "error", err)
				continue
			}
			sh = shown{digest: m.Digest, told: told}
		}
		known[id] = sh
		told := sh.told
		told.Digest, told.Size, told.ModifiedAt = m.Digest, int64(bounded(m.Size, 1<<50)), m.ModifiedAt
		if told.Details.Family == "" {
			told.Details = m.Details
		}
		list = append(list, entry{id: id, told: told})
	}
	s.shown = known
	return list, flavourOf(h), nil
}

func (s *Server) asksFor(id string) bool {
	return len(s.cfg.Models) == 0 || slices.ContainsFunc(s.cfg.Models, func(name string) bool { return models.SameName(id, name) })
}

// show reads /api/show.
func (s *Server) show(ctx context.Context, id string) (models.Told, error) {
	var res struct {
		Template     string                     `json:"template"`
		System       string                     `json:"system"`
		License      string                     `json:"license"`
		Details      api.ModelDetails           `json:"details"`
		ModelInfo    map[string]json.RawMessage `json:"model_info"`
		Capabilities []string                   `json:"capabilities"`
	}
	if _, err := s.call(ctx, "/api/show", map[string]any{"model": id}, &res, askLimit, maxShow); err != nil {
		return models.Told{}, err
	}
	arch := ""
	_ = json.Unmarshal(res.ModelInfo["general.architecture"], &arch)
	number := func(key string) int {
		n, err := strconv.ParseFloat(string(res.ModelInfo[arch+"."+key]), 64)
		if err != nil {
			return 0
		}
		return int(bounded(n, 1<<30))
	}
	caps := slices.DeleteFunc(slices.Clone(res.Capabilities), func(c string) bool { return strings.TrimSpace(c) == "" })
	if len(caps) == 0 { // an Ollama of before capabilities
		caps = []string{"completion"}
	}
	left := maxPages // of all models together it is counted again; here it keeps nothing alive that is too long
	return tame(models.Told{Details: res.Details, Capabilities: withEmbedding(caps), Template: res.Template, System: res.System, License: res.License,
		ContextLength: number("context_length"), EmbeddingLength: number("embedding_length"), BlockCount: number("block_count")}, &left), nil
}

// withEmbedding adds what Ollama and Sluice do not list: what generates there embeds too.
func withEmbedding(caps []string) []string {
	caps = slices.Clone(caps)
	if slices.Contains(caps, "completion") && !slices.Contains(caps, "embedding") {
		caps = append(caps, "embedding")
	}
	return caps
}

func isUnimplemented(err error) bool { return err != nil && fault.CodeOf(err) == fault.Unimplemented }
