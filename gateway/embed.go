package gateway

import (
	"encoding/json"
	"math"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/runner"
)

type embedRequest struct {
	nameField
	Input      json.RawMessage `json:"input"`
	Prompt     string          `json:"prompt"` // of the old route
	Truncate   *bool           `json:"truncate"`
	Dimensions int             `json:"dimensions"`
	KeepAlive  *keepAlive      `json:"keep_alive"`
	Options    map[string]any  `json:"options"`
}

type embedResponse struct {
	Model           string        `json:"model"`
	Embeddings      [][]float32   `json:"embeddings"`
	TotalDuration   time.Duration `json:"total_duration"`
	LoadDuration    time.Duration `json:"load_duration"`
	PromptEvalCount int           `json:"prompt_eval_count"`
	Truncated       bool          `json:"truncated,omitempty"` // ours: an input was longer than the context
}

// maxInputs bounds how long one request holds its model: OpenAI's limit, which clients know.
const maxInputs = 2048

// inputs reads a text or a list of texts. Nothing, and an empty text, are no input.
func inputs(raw json.RawMessage) ([]string, error) {
	var v any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "gateway.embed", "invalid input")
		}
	}
	invalid := fault.New(fault.Invalid, "gateway.embed", "invalid input type: input must be a text or a list of texts")
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		if v == "" {
			return nil, nil
		}
		return []string{v}, nil
	case []any:
		if len(v) > maxInputs {
			return nil, fault.New(fault.Invalid, "gateway.embed", "%d inputs: at most %d go into one request", len(v), maxInputs)
		}
		texts := make([]string, len(v))
		for i, e := range v {
			text, ok := e.(string)
			if !ok {
				return nil, invalid
			}
			texts[i] = text
		}
		return texts, nil
	}
	return nil, invalid
}

func (s *server) embed(c *gin.Context) {
	start := s.now()
	var req embedRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	texts, err := inputs(req.Input)
	if err == nil && req.Dimensions < 0 {
		err = fault.New(fault.Invalid, "gateway.embed", "dimensions must not be negative")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	res, load, err := s.vectors(c, &req, texts)
	if fault.CodeOf(err) == fault.NotFound && err != nil {
		err = fault.New(fault.NotFound, "gateway.embed", "model %q not found, try pulling it first", printable(req.name(), 200))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	for i, v := range res.Vectors {
		res.Vectors[i] = unit(v)
		if n := req.Dimensions; n > 0 && n < len(v) {
			res.Vectors[i] = unit(v[:n])
		}
	}
	if res.Vectors == nil {
		res.Vectors = [][]float32{}
	}
	if res.Truncated {
		c.Header(truncatedHeader, "cut")
	}
	writeJSON(c, 200, embedResponse{Model: req.name(), Embeddings: res.Vectors, TotalDuration: max(s.now().Sub(start), 1),
		LoadDuration: max(load, 1), PromptEvalCount: res.PromptTokens, Truncated: res.Truncated})
}

// embeddings is the old route: one text, its vector not normalised. Some clients send it as input (#7490).
func (s *server) embeddings(c *gin.Context) {
	var req embedRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	texts := []string{req.Prompt}
	if req.Prompt == "" {
		var err error
		if texts, err = inputs(req.Input); err == nil && len(texts) > 1 {
			err = &fault.Error{Code: fault.Invalid, Op: "gateway.embeddings", Msg: "/api/embeddings embeds one text", Hint: "use /api/embed for a list"}
		}
		if err != nil {
			s.fail(c, err)
			return
		}
	}
	res, _, err := s.vectors(c, &req, texts)
	if err != nil {
		s.fail(c, err)
		return
	}
	vector := []float32{}
	if len(res.Vectors) > 0 {
		vector = res.Vectors[0]
	}
	writeJSON(c, 200, gin.H{"embedding": vector})
}

// vectors embeds texts on a lease. No texts only load the model.
func (s *server) vectors(c *gin.Context, req *embedRequest, texts []string) (runner.EmbedResponse, time.Duration, error) {
	m, err := s.model(c, req.name())
	if err != nil {
		return runner.EmbedResponse{}, 0, err
	}
	if err := mustSupport(m, req.name(), "embedding", "embeddings"); err != nil {
		return runner.EmbedResponse{}, 0, err
	}
	lease, _, err := s.lease(c, m, req.Options, req.KeepAlive)
	if err != nil {
		return runner.EmbedResponse{}, 0, err
	}
	defer lease.Release()
	if len(texts) == 0 {
		return runner.EmbedResponse{}, lease.LoadDuration(), nil
	}
	// A vector with a NaN never comes: it has no JSON form, so the engine refuses it, and names the input (#9639).
	res, err := lease.Runner().Embed(c.Request.Context(), runner.EmbedRequest{Inputs: texts, Truncate: req.Truncate == nil || *req.Truncate})
	if err == nil && len(res.Vectors) != len(texts) {
		err = fault.Bug("%d vectors for %d texts", len(res.Vectors), len(texts))
	}
	return res, lease.LoadDuration(), err
}

// unit scales a vector to length 1; the zero vector stays.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	if sum == 0 {
		return out
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out
}
