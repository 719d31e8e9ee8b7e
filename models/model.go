package models

import (
	"slices"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/template"
	"github.com/ollama/ollama/types/model"
)

// Model is an installed model, as its manifest and GGUF file describe it. Treat it as read-only: its maps and slices are
// shared with the store.
type Model struct {
	Name       string // full short form with tag, "qwen2.5-coder:0.5b"
	Digest     string // of the manifest, hex
	Path       string // of the GGUF file
	Size       int64  // bytes of all layers
	ModifiedAt time.Time

	Template string
	System   string
	License  []string
	Params   map[string]any // default options from the Modelfile
	Messages []api.Message

	Facts Facts

	parent   string // the model that it was made from
	config   model.ConfigV2
	template *template.Template // of Template; nil in a Model that was not made by a Store
}

// Facts are read from the GGUF file's metadata.
type Facts struct {
	Architecture    string
	Family          string
	ParameterSize   string // "494.03M"
	Quantization    string // "Q4_K_M"
	ContextLength   int    // trained, tokens
	EmbeddingLength int
	BlockCount      int
	HeadsKV         int
	Pooling         bool // an encoder: embeds only
}

// Capabilities lists what the model can do here: "completion", "embedding", and "insert" where the template has a place
// for a suffix. Every decoder embeds too, in this engine.
func (m *Model) Capabilities() []string {
	if m.Facts.Pooling {
		return []string{string(model.CapabilityEmbedding)}
	}
	caps := []string{string(model.CapabilityCompletion), string(model.CapabilityEmbedding)}
	if m.canInsert() {
		caps = append(caps, string(model.CapabilityInsert))
	}
	return caps
}

// Details is the block that tags, ps and show share. What the manifest says goes before what the GGUF file says: a
// publisher may count parameters differently.
func (m *Model) Details() api.ModelDetails {
	d := api.ModelDetails{
		ParentModel: m.parent, Format: m.config.ModelFormat, Family: m.config.ModelFamily,
		Families: slices.Clone(m.config.ModelFamilies), ParameterSize: m.config.ModelType,
		QuantizationLevel: m.config.FileType,
	}
	or := func(have *string, fallback string) {
		if *have == "" {
			*have = fallback
		}
	}
	or(&d.Format, "gguf")
	or(&d.Family, m.Facts.Family)
	or(&d.ParameterSize, m.Facts.ParameterSize)
	or(&d.QuantizationLevel, m.Facts.Quantization)
	if d.Families == nil && d.Family != "" {
		d.Families = []string{d.Family}
	}
	return d
}

// parentName is the parent when it is a model. An Ollama also notes the path of a file there, which is no name and concerns
// nobody.
func parentName(from string) string {
	if !model.ParseName(from).IsValid() {
		return ""
	}
	return from
}
