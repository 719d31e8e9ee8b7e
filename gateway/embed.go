package gateway

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
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

// embed answers POST /api/embed: a vector of length 1 for each text, in their order.
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
	res, load, err := s.vectors(c, req.vectorRequest(texts))
	if fault.CodeOf(err) == fault.NotFound && err != nil {
		err = fault.New(fault.NotFound, "gateway.embed", "model %q not found, try pulling it first", printable(req.name(), 200))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	writeJSON(c, http.StatusOK, embedResponse{Model: req.name(), Embeddings: normalised(res.Vectors, req.Dimensions), TotalDuration: max(s.now().Sub(start), 1),
		LoadDuration: max(load, 1), PromptEvalCount: res.PromptTokens, Truncated: res.Truncated})
}

// embeddings answers the old POST /api/embeddings: one text, its vector not normalised. Some clients send it as input (#7490).
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
	res, _, err := s.vectors(c, req.vectorRequest(texts))
	if err != nil {
		s.fail(c, err)
		return
	}
	vector := []float32{}
	if len(res.Vectors) > 0 {
		vector = res.Vectors[0]
	}
	writeJSON(c, http.StatusOK, gin.H{"embedding": vector})
}

// embedTexts gives a vector of length 1 for each text, in their order, and how many tokens they had. dimensions above 0 cuts
// the vectors to their first so many numbers. No texts only load the model.
func (s *server) embedTexts(c *gin.Context, model string, texts []string, options map[string]any, keep *keepAlive, truncate bool, dimensions int) ([][]float32, int, error) {
	if dimensions < 0 {
		return nil, 0, fault.New(fault.Invalid, "gateway.embed", "dimensions must not be negative")
	}
	res, _, err := s.vectors(c, vectorRequest{model: model, texts: texts, options: options, keep: keep, truncate: truncate})
	if err != nil {
		return nil, 0, err
	}
	return normalised(res.Vectors, dimensions), res.PromptTokens, nil
}

// normalised are vectors cut to their first numbers, where dimensions is above 0, and scaled to length 1. Never nil.
func normalised(vectors [][]float32, dimensions int) [][]float32 {
	out := make([][]float32, len(vectors))
	for i, v := range vectors {
		if dimensions > 0 && dimensions < len(v) {
			v = v[:dimensions]
		}
		out[i] = unit(v)
	}
	return out
}

// vectorRequest is what vectors are made of, in no API's dialect.
type vectorRequest struct {
	model    string // as asked for
	texts    []string
	options  map[string]any
	keep     *keepAlive
	truncate bool
}

func (r *embedRequest) vectorRequest(texts []string) vectorRequest {
	return vectorRequest{model: r.name(), texts: texts, options: r.Options, keep: r.KeepAlive, truncate: r.Truncate == nil || *r.Truncate}
}

// vectors embeds texts on a lease, as the model makes them. No texts only load the model. Where a text was cut, a header says
// so.
func (s *server) vectors(c *gin.Context, r vectorRequest) (runner.EmbedResponse, time.Duration, error) {
	var none runner.EmbedResponse
	m, err := s.model(c, r.model)
	if err != nil {
		return none, 0, err
	}
	if err := mustSupport(m, r.model, "embedding", "embeddings"); err != nil {
		return none, 0, err
	}
	lease, _, err := s.lease(c, m, r.options, r.keep, nil)
	if err != nil {
		return none, 0, err
	}
	defer lease.Release()
	if len(r.texts) == 0 {
		return none, lease.LoadDuration(), nil
	}
	res, err := lease.Embed(c.Request.Context(), runner.EmbedRequest{Inputs: r.texts, Truncate: r.truncate})
	if err != nil {
		return none, 0, err
	}
	if len(res.Vectors) != len(r.texts) {
		return none, 0, fault.Bug("%d vectors for %d texts", len(res.Vectors), len(r.texts))
	}
	for i, v := range res.Vectors {
		if len(v) == 0 || !allFinite(v) { // neither has a form that a client could use (#9639)
			return none, 0, fault.New(fault.Invalid, "gateway.embed", "the model gives no usable vector for input %d: change or leave out that text", i)
		}
	}
	if res.Truncated {
		c.Header(truncatedHeader, "cut")
		s.cfg.Log.Warn("a text to embed was truncated to the context", "request_id", requestIDOf(c))
	}
	s.meters.read(m.Name, res.PromptTokens)
	return res, lease.LoadDuration(), nil
}

func allFinite(v []float32) bool {
	return !slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) })
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
