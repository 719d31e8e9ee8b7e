package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// CreateRequest says what a new model is made of: From an installed model, or from Files.
type CreateRequest struct {
	Name string
	From string
	// Files are uploaded blobs: relative path to digest. One GGUF model, perhaps with adapters and a projector beside it, or
	// the files of a safetensors folder.
	Files    map[string]string
	Adapters map[string]string // further ones that are adapters (LoRA): GGUF, or a safetensors folder

	Template   string // "": that of From, or the one that fits the GGUF file's chat template
	System     string
	License    []string
	Parameters map[string]any // added to those of From; null removes one
	Messages   []api.Message  // replace those of From

	Renderer string // built-in renderer of its prompts; "": that of From
	Parser   string // built-in parser of its answers; "": that of From
	Requires string // least version of Ollama; "": that of From
	Quantize string // refused, unless the model has that type
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
	if err := b.adapters(ctx, req.Adapters); err != nil {
		return err
	}
	if err := b.quantized(req.Quantize); err != nil {
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
	spent  []layer // blobs of which a new one was made, and that only the request needed
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
	s.unpin(slices.Collect(maps.Keys(b.pinned)))
	if !b.kept {
		_ = s.removeUnused(b.made) // the error of Create is the one to report
	} else if len(b.spent) > 0 {
		_ = s.removeUnused(b.spent) // the model is there: what cannot be removed only takes room
	}
}

// overlay applies what the request says beyond its base.
func (b *builder) overlay(req CreateRequest) error {
	if err := b.formats(req); err != nil {
		return err
	}
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
		if len(req.Messages) > maxMessages {
			return fault.New(fault.Invalid, "models.Create", "a model may have at most %d messages", maxMessages)
		}
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
		if b.count(mediaAdapter)+b.count(mediaProjector) > 0 {
			return nil, fault.New(fault.Invalid, "models.Create", "there is an adapter or a projector, but no model that it is for: name one with 'from', or add its file")
		}
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
	m := &manifest{SchemaVersion: 2, MediaType: mediaManifest, Config: config, Layers: b.layers}
	if err := withinBounds(m); err != nil { // or else it could not be read again
		return nil, fault.Wrap(err, fault.Invalid, "models.Create", "the model would not be usable: %s", fault.Public(err).Msg)
	}
	return m, nil
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
