package models

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/format"
	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/model/parsers"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// base takes the layers of From or of the files.
func (b *builder) base(ctx context.Context, req CreateRequest) error {
	switch {
	case req.From != "":
		return b.fromModel(ctx, req.From)
	case len(req.Files) == 0:
		return fault.New(fault.Invalid, "models.Create", "neither 'from' or 'files' was specified")
	}
	if err := b.uploaded(req.Files); err != nil {
		return err
	}
	if isSafetensors(req.Files) {
		return b.fromSafetensors(ctx, req.Files, nil)
	}
	return b.ggufs(ctx, req.Files)
}

// ggufs adds GGUF blobs: those that are shards of one model as one.
func (b *builder) ggufs(ctx context.Context, files map[string]string) error {
	var shards []shard
	for _, path := range slices.Sorted(maps.Keys(files)) {
		b.progress(api.ProgressResponse{Status: "parsing GGUF"})
		s, err := b.store.shardOf(path, files[path])
		if err != nil {
			return err
		}
		if s.head.split.sharded() {
			shards = append(shards, s)
			b.spent = append(b.spent, layer{Digest: files[path]})
			continue
		}
		if err := b.gguf(files[path]); err != nil {
			return err
		}
	}
	if len(shards) == 0 {
		return nil
	}
	return b.shards(ctx, shards)
}

// shardOf reads the header of an uploaded GGUF file.
func (s *Store) shardOf(label, digest string) (shard, error) {
	f, err := s.openBlob(digest)
	if err != nil {
		return shard{}, err
	}
	defer f.Close()
	if err := mustBeGGUF(f); err != nil {
		return shard{}, err
	}
	return readShard(label, f.Name())
}

func mustBeGGUF(f *os.File) error {
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil || ggml.DetectContentType(magic) != "gguf" {
		return fault.New(fault.Invalid, "models.Create", "supplied file was not in GGUF format")
	}
	return nil
}

// uploaded checks that files are in the store and their paths tame, and pins them.
func (b *builder) uploaded(files map[string]string) error {
	for path, digest := range files {
		if !fs.ValidPath(path) || path == "." {
			return fault.New(fault.Invalid, "models.Create", "file path must be relative")
		}
		d, err := cleanDigest(digest)
		if err != nil {
			return err
		}
		b.pin(d)
		if !b.store.HasBlob(d) {
			return fault.New(fault.Invalid, "models.Create", "blob %s of file %q was not uploaded", d, path)
		}
	}
	return nil
}

func isSafetensors(files map[string]string) bool {
	for path := range files {
		if strings.HasSuffix(path, ".safetensors") {
			return true
		}
	}
	return false
}

// adapters adds files that must be adapters of the base model.
func (b *builder) adapters(ctx context.Context, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	if err := b.uploaded(files); err != nil {
		return err
	}
	if isSafetensors(files) {
		base, err := b.baseKV()
		if err != nil {
			return err
		}
		return b.fromSafetensors(ctx, files, base)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		before := b.count(mediaAdapter)
		if err := b.gguf(files[path]); err != nil {
			return err
		}
		if b.count(mediaAdapter) == before {
			return fault.New(fault.Invalid, "models.Create", "the file %q is not an adapter: its general.type must be adapter", path)
		}
	}
	return nil
}

func (b *builder) count(mediaType string) (n int) {
	for _, l := range b.layers {
		if l.MediaType == mediaType {
			n++
		}
	}
	return n
}

// modelDigest is the blob of the model itself, or "".
func (b *builder) modelDigest() string {
	for _, l := range b.layers {
		if l.MediaType == mediaModel {
			return l.Digest
		}
	}
	return ""
}

// baseKV reads what an adapter's converter needs to know of the model that it is for.
func (b *builder) baseKV() (ggml.KV, error) {
	digest := b.modelDigest()
	if digest == "" {
		return nil, fault.New(fault.Invalid, "models.Create", "an adapter needs a model: say which with 'from' or 'files'")
	}
	f, err := b.store.openBlob(digest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := decode(f, keepArray)
	if err != nil {
		return nil, err
	}
	return g.KV(), nil
}

// quantized refuses to change the type of a model's weights. That is llama.cpp's work, and it is not in this process.
func (b *builder) quantized(to string) error {
	if to == "" {
		return nil
	}
	facts, err := b.store.factsOf(b.modelDigest())
	if err != nil || strings.EqualFold(facts.Quantization, to) {
		return err
	}
	return fault.New(fault.Unimplemented, "models.Create",
		"quantize: this version cannot change the type of a model's weights from %s to %.20q: create it from a GGUF file that has that type, as llama-quantize of llama.cpp makes it", facts.Quantization, to)
}

// formats sets the built-in renderer and parser, which must be known.
func (b *builder) formats(req CreateRequest) error {
	if req.Renderer != "" {
		hello := []api.Message{{Role: "user", Content: "hello"}}
		if _, err := callRenderer(req.Renderer, hello, nil, nil); fault.CodeOf(err) == fault.Unimplemented && err != nil {
			return fault.New(fault.Invalid, "models.Create", "there is no renderer %.50q in this version", req.Renderer)
		}
		b.config.Renderer = req.Renderer
	}
	if req.Parser != "" {
		if parsers.ParserForName(req.Parser) == nil {
			return fault.New(fault.Invalid, "models.Create", "there is no parser %.50q in this version", req.Parser)
		}
		b.config.Parser = req.Parser
	}
	if req.Requires != "" {
		b.config.Requires = req.Requires
	}
	return nil
}

func (b *builder) fromModel(ctx context.Context, from string) error {
	m, err := b.store.Get(from)
	if err != nil {
		return err
	}
	if m.InFolder() {
		return b.imported(ctx, m)
	}
	n, err := parseName(m.Name)
	if err != nil {
		return err
	}
	n, _ = b.store.existing(n)
	mf, err := b.store.readManifest(n)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	b.config = m.config
	for _, l := range mf.Layers {
		d, err := cleanDigest(l.Digest)
		if err != nil {
			return err
		}
		b.pin(d)
		// only now that it is pinned does "it is there" hold
		if !b.store.HasBlob(d) {
			return fault.New(fault.NotFound, "models.Create", "model '%s' not found", shown(from))
		}
		l.Digest, l.From = d, m.Name
		b.layers = append(b.layers, l)
		b.progress(api.ProgressResponse{Status: "using existing layer " + d})
	}
	return nil
}

// imported takes the files of a model in a folder into the store. They are copied: a blob must never change, and a file may.
func (b *builder) imported(ctx context.Context, m *Model) error {
	take := func(path string) error {
		f, err := openFile(path)
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "models.Create", "model '%s' cannot be read", m.Name)
		}
		defer f.Close()
		b.progress(api.ProgressResponse{Status: "copying " + filepath.Base(path)})
		digest, err := b.takeFile(ctx, f)
		if err != nil {
			return err
		}
		return b.gguf(digest)
	}
	if m.projector != "" {
		if err := take(m.projector); err != nil {
			return err
		}
	}
	if len(m.shards) == 1 {
		return take(m.Path)
	}
	shards := make([]shard, 0, len(m.shards))
	for _, path := range m.shards {
		s, err := readShard(filepath.Base(path), path)
		if err != nil {
			return err
		}
		shards = append(shards, s)
	}
	return b.shards(ctx, shards)
}

// gguf adds a GGUF blob that is in the store, and the template that fits it.
func (b *builder) gguf(digest string) error {
	d, err := cleanDigest(digest)
	if err != nil {
		return err
	}
	b.pin(d)
	f, err := b.store.openBlob(d)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mustBeGGUF(f); err != nil {
		return err
	}
	g, err := decode(f, keepArray)
	if err != nil {
		return err
	}
	facts, err := b.store.factsOf(d)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	l := layer{MediaType: mediaType(g), Digest: d, Size: fi.Size()}
	switch l.MediaType {
	case mediaAdapter:
		return b.addAdapter(l, facts)
	case mediaProjector:
		if b.count(mediaProjector) > 0 {
			return fault.New(fault.Invalid, "models.Create", "a model takes one projector")
		}
		b.layers = append(b.layers, l)
		b.config.ModelFamilies = append(b.config.ModelFamilies, facts.Family)
		return nil
	}
	if b.count(mediaModel) > 0 {
		return fault.New(fault.Invalid, "models.Create", "these are several models, and not shards of one: make a model of each")
	}
	b.layers = append(b.layers, l)
	families := b.config.ModelFamilies
	b.config = configOf(g, facts)
	b.config.ModelFamilies = append(b.config.ModelFamilies, families...)
	if facts.Pooling {
		return nil
	}
	return b.detectTemplate(g.KV().ChatTemplate())
}

// configOf is what a manifest's config says of a GGUF file.
func configOf(g *ggml.GGML, facts Facts) model.ConfigV2 {
	return model.ConfigV2{
		ModelFormat: g.Name(), ModelFamily: facts.Family, ModelFamilies: []string{facts.Family},
		ModelType: format.HumanNumber(g.KV().ParameterCount()), FileType: facts.Quantization,
	}
}

// mediaType tells what a GGUF file is of.
func mediaType(g *ggml.GGML) string {
	kv := g.KV()
	switch {
	case kv.Kind() == "adapter":
		return mediaAdapter
	case kv.Kind() == "projector", kv.Kind() == "mmproj", kv.Architecture() == "clip",
		kv.Uint("block_count") == 0 && kv.Uint("vision.block_count") > 0: // a part that sees, and nothing else
		return mediaProjector
	}
	return mediaModel
}

// addAdapter adds an adapter, which must be of the model's architecture. The order of the files does not matter, so one
// that comes before the model is checked when it is loaded.
func (b *builder) addAdapter(l layer, adapter Facts) error {
	if digest := b.modelDigest(); digest != "" {
		base, err := b.store.factsOf(digest)
		if err != nil {
			return err
		}
		if base.Architecture != adapter.Architecture {
			return fault.New(fault.Invalid, "models.Create", "the adapter is for %s models, and the model is %s", adapter.Architecture, base.Architecture)
		}
	}
	b.layers = append(b.layers, l)
	return nil
}
