package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"sluice/models"
)

// entry is a model as a server lists it.
type entry struct {
	id   string // as the server calls it
	told models.Told
}

// ask asks the server what it has.
func (s *Server) ask(ctx context.Context) (*offer, error) {
	list, flavour, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	o := &offer{well: true, ids: map[string]string{}, flavour: flavour}
	taken, left := map[string]bool{}, maxPages
	for _, e := range s.wanted(list) {
		e.told = tame(e.told, &left)
		m, err := named(e)
		if err != nil {
			s.cfg.Log.Debug("a model of a server elsewhere has a name that no client could write", "remote", s.cfg.Name, "model", clean(e.id))
			continue
		}
		if key := strings.ToLower(m.Name); taken[key] { // the case does not count
			continue
		} else {
			taken[key] = true
		}
		o.ids[m.Name] = e.id
		o.models = append(o.models, m)
	}
	return o, nil
}

func (s *Server) list(ctx context.Context) ([]entry, flavour, error) {
	if s.cfg.Kind == Ollama {
		return s.listOllama(ctx)
	}
	return s.listOpenAI(ctx)
}

// wanted are the entries that the configuration asks for, in its order; all where it asks for none.
func (s *Server) wanted(list []entry) []entry {
	if len(s.cfg.Models) == 0 {
		return list
	}
	var out []entry
	for _, name := range s.cfg.Models {
		i := slices.IndexFunc(list, func(e entry) bool { return e.id == name || models.SameName(e.id, name) })
		if i < 0 {
			s.cfg.Log.Debug("a server elsewhere does not have a model that the settings name", "remote", s.cfg.Name, "model", clean(name))
			continue
		}
		out = append(out, list[i])
	}
	return out
}

// named makes a model of an entry. A server that was started with the path of a file or folder may list that: then its last part is
// the name.
func named(e entry) (*models.Model, error) {
	m, err := models.Remote(e.id, e.told)
	if err != nil {
		return models.Remote(path.Base(e.id), e.told)
	}
	return m, nil
}

// flavourOf tells another Sluice by its header.
func flavourOf(h http.Header) flavour {
	if h.Get("X-Sluice-Version") != "" {
		return sluice
	}
	return unknown
}

// listOpenAI reads /v1/models. A server without that list is asked for what the configuration names.
func (s *Server) listOpenAI(ctx context.Context) ([]entry, flavour, error) {
	var all struct {
		Data few[openaiModel] `json:"data"`
	}
	h, err := s.call(ctx, "/v1/models", nil, &all, askLimit, maxList)
	if err != nil {
		if len(s.cfg.Models) == 0 || !isUnimplemented(err) {
			return nil, unknown, err
		}
		for _, name := range s.cfg.Models {
			all.Data = append(all.Data, openaiModel{ID: name})
		}
	}
	flavour := flavourOf(h)
	var list []entry
	for _, m := range all.Data[:min(len(all.Data), maxModels)] {
		if m.ID == "" {
			continue
		}
		if flavour == unknown {
			flavour = m.flavour()
		}
		list = append(list, entry{id: m.ID, told: m.told(flavour)})
	}
	return list, flavour, s.health(ctx, flavour)
}

// health asks the servers that tell of their engine apart from their lists, which are fine while the engine is dead or still loading.
func (s *Server) health(ctx context.Context, f flavour) error {
	if f != vllm && f != sglang && f != llamacpp {
		return nil
	}
	a, err := s.send(ctx, "/health", nil, askLimit, askLimit, maxError)
	if err == nil {
		a.Close()
	}
	if isUnimplemented(err) {
		return nil
	}
	return err
}

// openaiModel is an entry of /v1/models with what vLLM, SGLang, llama-server and Sluice add.
type openaiModel struct {
	ID           string          `json:"id"`
	OwnedBy      string          `json:"owned_by"`
	Created      float64         `json:"created"`
	MaxModelLen  float64         `json:"max_model_len"`
	Capabilities json.RawMessage `json:"capabilities"` // a list of words; an object with other servers
	Meta         struct {
		TrainCtx  float64 `json:"n_ctx_train"`
		Ctx       float64 `json:"n_ctx"`
		Embedding float64 `json:"n_embd"`
		Size      float64 `json:"size"`
	} `json:"meta"`
}

func (m *openaiModel) flavour() flavour {
	switch f := flavour(strings.ToLower(m.OwnedBy)); f {
	case vllm, sglang, llamacpp:
		return f
	}
	return unknown
}

func (m *openaiModel) told(f flavour) models.Told {
	t := models.Told{Capabilities: m.capabilities(f), Size: int64(bounded(m.Meta.Size, 1<<50)), EmbeddingLength: int(bounded(m.Meta.Embedding, 1<<20)),
		ContextLength: int(bounded(max(m.MaxModelLen, m.Meta.Ctx), 1<<30))}
	if t.ContextLength == 0 {
		t.ContextLength = int(bounded(m.Meta.TrainCtx, 1<<30))
	}
	if n := bounded(m.Created, 1<<40); n > 0 {
		t.ModifiedAt = time.Unix(int64(n), 0)
	}
	return t
}

// capabilities are those that the server lists, else what its name suggests: this API does not tell.
func (m *openaiModel) capabilities(f flavour) []string {
	var listed []string
	if json.Unmarshal(m.Capabilities, &listed) == nil && f == sluice && len(listed) > 0 {
		return withEmbedding(listed)
	}
	name := strings.ToLower(m.ID)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	switch {
	case has("rerank"):
		return []string{"rerank"}
	case has("embed", "bge-", "e5-", "gte-", "minilm"):
		return []string{"embedding"}
	}
	caps := []string{"completion", "tools"}
	if has("-vl-", "-vl:", "vision", "llava", "pixtral", "qwen2vl", "qwen2.5vl") || strings.HasSuffix(name, "-vl") || slices.Contains(listed, "multimodal") {
		caps = append(caps, "vision")
	}
	return caps
}

// bounded is a number that somebody else wrote, within reason; NaN and what is below 0 are 0.
func bounded(n, most float64) float64 {
	if !(n > 0) {
		return 0
	}
	return min(n, most)
}
