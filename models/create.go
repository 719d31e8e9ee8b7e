package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/format"
	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/template"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// CreateRequest says what a new model is made of: From an installed model, or from Files.
type CreateRequest struct {
	Name string
	From string
	// Files are uploaded blobs: relative path to digest. One GGUF file, or the files of a safetensors folder.
	Files map[string]string

	Template   string // "": that of From, or the one that fits the GGUF file's chat template
	System     string
	License    []string
	Parameters map[string]any // added to those of From; null removes one
	Messages   []api.Message  // replace those of From
}

// Create makes a model, or replaces the one of that name in one step; progress, with Ollama's texts, may be nil. Invalid
// when the request or a file of it is malformed, NotFound when From is not installed. After an error nothing has changed.
func (s *Store) Create(ctx context.Context, req CreateRequest, progress func(api.ProgressResponse)) error {
	if progress == nil {
		progress = func(api.ProgressResponse) {}
	}
	name, err := parseName(req.Name)
	if err != nil {
		return err
	}
	b := &builder{store: s, progress: progress, pinned: map[string]bool{}}
	defer b.close()
	if err := b.base(ctx, req); err != nil {
		return err
	}
	if err := b.overlay(req); err != nil {
		return err
	}
	mf, err := b.manifest()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	progress(api.ProgressResponse{Status: "writing manifest"})
	if err := s.replace(name, mf); err != nil {
		return err
	}
	b.kept = true
	progress(api.ProgressResponse{Status: "success"})
	return nil
}

// replace writes a manifest and removes what only its predecessor used.
func (s *Store) replace(name model.Name, mf *manifest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceLocked(name, mf)
}

// replaceLocked is replace for a caller that holds s.mu.
func (s *Store) replaceLocked(name model.Name, mf *manifest) error {
	name, ok := s.existing(name)
	var old *manifest
	if ok {
		old, _ = s.readManifest(name) // one that cannot be read is replaced all the same
	}
	if err := s.writeManifest(name, mf); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if old != nil {
		return s.removeUnused(old.all())
	}
	return nil
}

// builder collects the layers of a new model. Every digest that it touches is pinned until close.
type builder struct {
	store    *Store
	progress func(api.ProgressResponse)

	layers []layer
	config model.ConfigV2
	pinned map[string]bool
	made   []layer // blobs that were not there before
	kept   bool    // the manifest is written
}

func (b *builder) pin(digest string) {
	if b.pinned[digest] {
		return
	}
	b.pinned[digest] = true
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.pins[digest]++
}

// close unpins, and removes what a failed Create made.
func (b *builder) close() {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest := range b.pinned {
		if s.pins[digest]--; s.pins[digest] == 0 {
			delete(s.pins, digest)
		}
	}
	if !b.kept {
		_ = s.removeUnused(b.made) // the error of Create is the one to report
	}
}

// base takes the layers of From or of the files.
func (b *builder) base(ctx context.Context, req CreateRequest) error {
	switch {
	case req.From != "":
		return b.fromModel(req.From)
	case len(req.Files) == 0:
		return fault.New(fault.Invalid, "models.Create", "neither 'from' or 'files' was specified")
	}
	safetensors := false
	for path, digest := range req.Files {
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
		safetensors = safetensors || strings.HasSuffix(path, ".safetensors")
	}
	if safetensors {
		return b.fromSafetensors(ctx, req.Files)
	}
	if len(req.Files) > 1 {
		return fault.New(fault.Unimplemented, "models.Create", "a model of several GGUF files is not in this version")
	}
	for _, digest := range req.Files {
		b.progress(api.ProgressResponse{Status: "parsing GGUF"})
		return b.gguf(digest)
	}
	return nil
}

func (b *builder) fromModel(from string) error {
	m, err := b.store.Get(from)
	if err != nil {
		return err
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
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil || ggml.DetectContentType(magic) != "gguf" {
		return fault.New(fault.Invalid, "models.Create", "supplied file was not in GGUF format")
	}
	g, err := decode(f, keepArray)
	if err != nil {
		return err
	}
	facts, err := b.store.factsOf(d)
	if err != nil {
		return err
	}
	switch kind := g.KV().Kind(); kind {
	case "adapter", "projector":
		return fault.New(fault.Unimplemented, "models.Create", "the GGUF file is of type %s: only whole models are in this version", kind)
	}
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	b.layers = append(b.layers, layer{MediaType: mediaModel, Digest: d, Size: fi.Size()})
	b.config = model.ConfigV2{
		ModelFormat: g.Name(), ModelFamily: facts.Family, ModelFamilies: []string{facts.Family},
		ModelType: format.HumanNumber(g.KV().ParameterCount()), FileType: facts.Quantization,
	}
	if facts.Pooling {
		return nil
	}
	return b.detectTemplate(g.KV().ChatTemplate())
}

// detectTemplate adds the template that the module has for a GGUF file's Jinja template, and its stop strings.
func (b *builder) detectTemplate(jinja string) error {
	if jinja == "" || len(jinja) > maxRequestTemplate { // the search compares every pair of characters
		return nil
	}
	found, err := template.Named(jinja)
	if err != nil {
		// The index has few of the templates that are around. What writes <|im_start|> is ChatML, whatever else it does.
		if !strings.Contains(jinja, "<|im_start|>") {
			return nil
		}
		const chatML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}" +
			"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
		if found, err = template.Named(chatML); err != nil || found.Name != "chatml" {
			return fault.Bug("the template index has no ChatML: %v", err)
		}
	}
	b.progress(api.ProgressResponse{Status: "using autodetected template " + found.Name})
	text, err := io.ReadAll(found.Reader())
	if err != nil {
		return err
	}
	if err := b.add(mediaTemplate, text); err != nil {
		return err
	}
	if found.Parameters == nil {
		return nil
	}
	return b.addJSON(mediaParams, found.Parameters)
}

// overlay applies what the request says beyond its base.
func (b *builder) overlay(req CreateRequest) error {
	if req.Template != "" {
		if _, err := parseTemplate(req.Template); err != nil {
			return err
		}
		b.drop(mediaTemplate, mediaPrompt)
		if err := b.add(mediaTemplate, []byte(req.Template)); err != nil {
			return err
		}
	}
	if req.System != "" {
		b.drop(mediaSystem)
		if err := b.add(mediaSystem, []byte(req.System)); err != nil {
			return err
		}
	}
	for _, license := range req.License {
		if license == "" {
			continue
		}
		if err := b.add(mediaLicense, []byte(license)); err != nil {
			return err
		}
	}
	if len(req.Parameters) > 0 {
		if err := b.parameters(req.Parameters); err != nil {
			return err
		}
	}
	if len(req.Messages) > 0 {
		b.drop(mediaMessages)
		return b.addJSON(mediaMessages, req.Messages)
	}
	return nil
}

// parameters merges new parameters over those of the base.
func (b *builder) parameters(params map[string]any) error {
	probe := DefaultOptions()
	if _, err := probe.merge(params); err != nil {
		return err
	}
	merged := map[string]any{}
	for _, l := range b.layers {
		if l.MediaType == mediaParams {
			if err := b.store.readJSON(l.Digest, &merged); err != nil {
				return fault.Wrap(err, fault.Invalid, "models.Create", "the parameters of the base model are damaged")
			}
		}
	}
	maps.Copy(merged, params)
	maps.DeleteFunc(merged, func(_ string, v any) bool { return v == nil })
	b.drop(mediaParams)
	if len(merged) == 0 {
		return nil
	}
	return b.addJSON(mediaParams, merged)
}

func (b *builder) drop(types ...string) {
	b.layers = slices.DeleteFunc(b.layers, func(l layer) bool { return slices.Contains(types, l.MediaType) })
}

func (b *builder) add(mediaType string, data []byte) error {
	l, err := b.blob(mediaType, data)
	if err != nil {
		return err
	}
	same := func(have layer) bool { return have.MediaType == l.MediaType && have.Digest == l.Digest }
	if !slices.ContainsFunc(b.layers, same) {
		b.layers = append(b.layers, l)
	}
	return nil
}

func (b *builder) addJSON(mediaType string, v any) error {
	data, err := jsonLine(v)
	if err != nil {
		return err
	}
	return b.add(mediaType, data)
}

// blob stores bytes as a layer's blob.
func (b *builder) blob(mediaType string, data []byte) (layer, error) {
	d := digestOf(data)
	b.pin(d)
	l := layer{MediaType: mediaType, Digest: d, Size: int64(len(data))}
	if b.store.HasBlob(d) {
		b.progress(api.ProgressResponse{Status: "using existing layer " + d})
		return l, nil
	}
	b.progress(api.ProgressResponse{Status: "creating new layer " + d})
	b.made = append(b.made, l)
	_, err := b.store.storeBlob(bytes.NewReader(data), d)
	return l, err
}

func (b *builder) manifest() (*manifest, error) {
	if !slices.ContainsFunc(b.layers, func(l layer) bool { return l.MediaType == mediaModel }) {
		return nil, fault.New(fault.Invalid, "models.Create", "no model file was specified")
	}
	c := b.config
	c.OS, c.Architecture, c.RootFS = "linux", "amd64", model.RootFS{Type: "layers"}
	for _, l := range b.layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, l.Digest)
	}
	data, err := jsonLine(c)
	if err != nil {
		return nil, err
	}
	config, err := b.blob(mediaConfig, data)
	if err != nil {
		return nil, err
	}
	return &manifest{SchemaVersion: 2, MediaType: mediaManifest, Config: config, Layers: b.layers}, nil
}

func jsonLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(v); err != nil {
		var unsupported *json.UnsupportedValueError
		if errors.As(err, &unsupported) {
			return nil, fault.Wrap(err, fault.Invalid, "models.Create", "a value has no JSON form")
		}
		return nil, fmt.Errorf("models: %w", err)
	}
	return buf.Bytes(), nil
}
