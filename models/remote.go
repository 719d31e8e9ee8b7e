package models

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// Told is what a server elsewhere says about a model of its own. Zero fields are not known.
type Told struct {
	Digest       string // 64 hex digits; else one is made of the name
	Size         int64  // bytes
	ModifiedAt   time.Time
	Details      api.ModelDetails
	Capabilities []string // as Model.Capabilities has them
	Template     string
	System       string
	License      string

	ContextLength   int // tokens
	EmbeddingLength int
	BlockCount      int
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Remote is a model that is not installed here: a server elsewhere runs it. Its Path is "". It can be asked about, not loaded; its
// Prompt is that of the template which the server told, or of a plain one where it told none, for nobody but a reader's eyes. Invalid
// where the name, as clients write it, can be no model's.
func Remote(name string, t Told) (*Model, error) {
	n, err := parseName(name)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Name: n.DisplayShortest(), Digest: t.Digest, Size: t.Size, ModifiedAt: datable(t.ModifiedAt), System: t.System,
		parent: parentName(t.Details.ParentModel), told: append([]string{}, t.Capabilities...),
		config: model.ConfigV2{
			ModelFormat: t.Details.Format, ModelFamily: t.Details.Family, ModelFamilies: slices.Clone(t.Details.Families),
			ModelType: t.Details.ParameterSize, FileType: t.Details.QuantizationLevel,
		},
		Facts: Facts{
			Family: t.Details.Family, ParameterSize: t.Details.ParameterSize, Quantization: t.Details.QuantizationLevel,
			ContextLength: t.ContextLength, EmbeddingLength: t.EmbeddingLength, BlockCount: t.BlockCount,
			Reranks: slices.Contains(t.Capabilities, "rerank"), Vision: slices.Contains(t.Capabilities, string(model.CapabilityVision)),
		},
	}
	if !hexDigest.MatchString(m.Digest) { // clients cut it to twelve letters, and crash on fewer
		m.Digest = strings.TrimPrefix(digestOf([]byte("elsewhere\x00"+m.Name+"\x00"+t.Digest)), "sha256:")
	}
	if m.config.ModelFormat == "" {
		m.config.ModelFormat = "remote" // Details would call it a GGUF file
	}
	m.Facts.Pooling = m.Facts.Reranks || slices.Contains(t.Capabilities, string(model.CapabilityEmbedding)) && !slices.Contains(t.Capabilities, string(model.CapabilityCompletion))
	if t.License != "" {
		m.License = []string{t.License}
	}
	// A template that this version cannot read, or that is too large, is as good as none: the server elsewhere renders.
	if p, err := parseTemplate(t.Template); t.Template != "" && err == nil {
		m.Template, m.prog = t.Template, p
	}
	return m, nil
}

// Elsewhere tells whether the model is not installed here.
func (m *Model) Elsewhere() bool { return m.told != nil }
