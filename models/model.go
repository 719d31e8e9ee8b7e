package models

import (
	"slices"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/model/parsers"
	"github.com/ollama/ollama/types/model"
)

// Model is an installed model, as its manifest and GGUF file describe it. Treat it as read-only: its maps and slices are
// shared with the store.
type Model struct {
	Name       string // full short form with tag, "qwen2.5-coder:0.5b"
	Digest     string // of the manifest, hex; of a file in a folder see readLoose
	Path       string // of the GGUF file, or of the first of its shards
	Size       int64  // bytes of all layers, or of all files
	ModifiedAt time.Time

	Template string
	System   string
	License  []string
	Params   map[string]any // default options from the Modelfile
	Messages []api.Message

	Facts Facts

	parent    string // the model that it was made from
	config    model.ConfigV2
	prog      *program // of Template; nil in a Model that was not made by a Store
	adapters  []string
	projector string
	blobs     []blobKey // of GGUF files
	shards    []string  // paths of the files of a model in a folder; nil when it is installed
	told      []string  // capabilities of a model that is not installed here, see Remote
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
	Pooling         bool // an encoder: it embeds or scores, it does not generate
	Reranks         bool // an encoder that scores pairs of texts, and does not embed
	Vision          bool // the file itself has a part that sees
	Layout          Layout
}

// Capabilities lists what the model can do here: "completion", "embedding", "vision", "insert" where the template has a place
// for a suffix, "tools", "thinking", and "rerank" for a model that scores pairs of texts and does nothing else. Every decoder
// embeds too, in this engine.
func (m *Model) Capabilities() []string {
	switch {
	case m.told != nil:
		return slices.Clone(m.told)
	case m.Facts.Reranks:
		return []string{"rerank"}
	case m.Facts.Pooling:
		return []string{string(model.CapabilityEmbedding)}
	}
	caps := []string{string(model.CapabilityCompletion), string(model.CapabilityEmbedding)}
	add := func(can bool, c model.Capability) {
		if can {
			caps = append(caps, string(c))
		}
	}
	p, err := m.program()
	takes := func(variable string) bool { return err == nil && p.takes(variable) }
	parser := parsers.ParserForName(m.Parser())
	add(m.projector != "" || m.Facts.Vision, model.CapabilityVision)
	add(takes("suffix"), model.CapabilityInsert)
	add(takes("tools") || parser != nil && parser.HasToolSupport(), model.CapabilityTools)
	add(m.canThink(), model.CapabilityThinking)
	return caps
}

// InFolder tells that the model is a file in a folder, and not installed.
func (m *Model) InFolder() bool { return m.shards != nil }

// Adapters are the paths of the LoRA files that belong to the model.
func (m *Model) Adapters() []string { return slices.Clone(m.adapters) }

// Projector is the path of the file that turns images into embeddings, or "": there is none, or it is inside the model's file.
func (m *Model) Projector() string { return m.projector }

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
