package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/openai"
)

type openaiEmbeddingRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	Dimensions     *int            `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`

	KeepAlive *keepAlive     `json:"keep_alive"` // Ollama's, as extensions
	Options   map[string]any `json:"options"`
	Truncate  *bool          `json:"truncate"`
}

// openaiEmbeddings is POST /v1/embeddings. The SDKs ask for base64 unless told otherwise.
func (s *server) openaiEmbeddings(c *gin.Context) {
	var req openaiEmbeddingRequest
	err := decode(c, &req)
	var texts []string
	if err == nil {
		texts, err = req.texts()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	dimensions := 0
	if req.Dimensions != nil {
		dimensions = *req.Dimensions
	}
	vectors, tokens, err := s.embedTexts(c, req.Model, texts, req.Options, req.KeepAlive, req.Truncate == nil || *req.Truncate, dimensions)
	if err == nil && dimensions > 0 && len(vectors) > 0 && len(vectors[0]) < dimensions {
		err = invalid("dimensions is %d, but the model's vectors have %d", dimensions, len(vectors[0]))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	list := openai.EmbeddingList{Object: "list", Data: make([]openai.Embedding, len(vectors)), Model: req.Model,
		Usage: openai.EmbeddingUsage{PromptTokens: tokens, TotalTokens: tokens}}
	for i, v := range vectors {
		list.Data[i] = openai.Embedding{Object: "embedding", Embedding: v, Index: i}
		if strings.EqualFold(req.EncodingFormat, "base64") {
			list.Data[i].Embedding = base64Floats(v)
		}
	}
	writeJSON(c, 200, list)
}

// texts reads what to embed. An empty text is an error that says which one it is: its vector would mean nothing, and Ollama
// gives none at all for it (#7490).
func (r *openaiEmbeddingRequest) texts() ([]string, error) {
	var texts []string
	switch {
	case r.Dimensions != nil && *r.Dimensions < 1:
		return nil, invalid("dimensions must be at least 1")
	case r.EncodingFormat != "" && !strings.EqualFold(r.EncodingFormat, "float") && !strings.EqualFold(r.EncodingFormat, "base64"):
		return nil, invalid("encoding_format %q is none of float, base64", printable(r.EncodingFormat, 40))
	case !given(r.Input):
		return nil, invalid("input is missing")
	case r.Input[0] == '"':
		texts = make([]string, 1)
		if err := json.Unmarshal(r.Input, &texts[0]); err != nil {
			return nil, invalid("input is not a valid text")
		}
	case json.Unmarshal(r.Input, &texts) != nil:
		if areTokenIDs(r.Input) {
			return nil, invalid("%s", errTokenIDs)
		}
		return nil, invalid("input must be a text or a list of texts")
	case len(texts) == 0:
		return nil, invalid("input must not be empty")
	case len(texts) > maxInputs:
		return nil, invalid("%d inputs: at most %d go into one request", len(texts), maxInputs)
	}
	if i := slices.Index(texts, ""); i >= 0 {
		return nil, invalid("input[%d] is empty: leave it out", i)
	}
	return texts, nil
}

// base64Floats writes a vector as little-endian float32.
func base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
