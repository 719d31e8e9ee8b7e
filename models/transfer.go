package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// Bounds of a manifest that comes from a registry.
const (
	maxLayers   = 4096    // those of models that are stored as single tensors
	maxBlobs    = 256     // each is an open file while it is pulled
	maxBlobSize = 1 << 44 // 16 TiB: the sum of all cannot overflow

	mediaOCIManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaOllama      = "application/vnd.ollama.image."
	mediaOCIConfig   = "application/vnd.oci.image.config.v1+json"
)

// Blob is a file of a model, as the model's manifest names it.
type Blob struct {
	MediaType string
	Digest    string // "sha256:" and lower-case hex
	Size      int64  // bytes
	From      string // the model that it was taken from, "" when that is not known
}

// GGUF tells whether it must be a GGUF file.
func (b Blob) GGUF() bool {
	return b.MediaType == mediaModel || b.MediaType == mediaAdapter || b.MediaType == mediaProjector
}

// ManifestBlobs checks a manifest that comes from a stranger, and gives the blobs that it names: each once, in its order, the
// config last. Invalid when it is malformed or is of something else than a model, Unimplemented when this version could not use
// the model: then there is no reason to get it.
func ManifestBlobs(data []byte) ([]Blob, error) {
	bad := func(format string, args ...any) ([]Blob, error) {
		return nil, fault.New(fault.Invalid, "models.ManifestBlobs", "the manifest is malformed: "+format, args...)
	}
	if len(data) > maxManifest {
		return bad("it is larger than 1 MiB")
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return bad("it is no JSON of that form")
	}
	if m.SchemaVersion != 2 {
		return bad("schemaVersion is %d, not 2", m.SchemaVersion)
	}
	if m.MediaType != "" && m.MediaType != mediaManifest && m.MediaType != mediaOCIManifest {
		return bad("it is of the type %.100q", m.MediaType)
	}
	if len(m.Layers) > maxLayers {
		return bad("%d layers are too many", len(m.Layers))
	}
	var out []Blob
	at := map[string]int{}
	hasModel, tensors := false, false
	for i, l := range m.all() {
		digest, err := cleanDigest(l.Digest)
		if err != nil || strings.Contains(l.Digest, "-") {
			return bad("layer %d has no well-formed sha256 digest", i+1)
		}
		isConfig := i == len(m.Layers)
		most := int64(maxText)
		b := Blob{MediaType: l.MediaType, Digest: digest, Size: l.Size, From: l.From}
		switch {
		case isConfig && (l.MediaType == mediaConfig || l.MediaType == mediaOCIConfig || strings.HasPrefix(l.MediaType, mediaOllama)):
		case isConfig || !strings.HasPrefix(l.MediaType, mediaOllama):
			return bad("layer %d is of the type %.100q, which no model has", i+1, l.MediaType)
		case b.GGUF() || !knownText(l.MediaType): // what is not known may be of any size
			most = maxBlobSize
		}
		if l.Size < 0 || l.Size > most {
			return bad("layer %d has %d bytes", i+1, l.Size)
		}
		hasModel = hasModel || l.MediaType == mediaModel && !isConfig
		tensors = tensors || l.MediaType == mediaOllama+"tensor"
		if j, twice := at[digest]; twice {
			if out[j].Size != l.Size {
				return bad("two layers of one digest have %d and %d bytes", out[j].Size, l.Size)
			}
			if b.GGUF() { // checked as what is the stricter of the two
				out[j].MediaType = b.MediaType
			}
			continue
		}
		at[digest] = len(out)
		out = append(out, b)
	}
	if err := withinBounds(&m); err != nil {
		return bad("%s", fault.Public(err).Msg)
	}
	switch {
	case hasModel && len(out) > maxBlobs:
		return bad("it names %d files, of which a model has no more than %d", len(out), maxBlobs)
	case hasModel:
		return out, nil
	case tensors:
		return nil, fault.New(fault.Unimplemented, "models.ManifestBlobs", "the model is stored as single tensors, and this version serves GGUF files only")
	}
	return nil, fault.New(fault.Unimplemented, "models.ManifestBlobs", "the model has no file: it runs on somebody else's machines, and this version serves local models only")
}

func knownText(mediaType string) bool {
	switch mediaType {
	case mediaTemplate, mediaPrompt, mediaSystem, mediaParams, mediaMessages, mediaLicense:
		return true
	}
	return false
}

// Dir is the models folder.
func (s *Store) Dir() string { return s.dir }

// Manifest gives the bytes of an installed model's manifest, and its whole name (host/namespace/model:tag). NotFound:
// `model 'x' not found`.
func (s *Store) Manifest(name string) (data []byte, full string, err error) {
	n, err := parseName(name)
	if err != nil {
		return nil, "", err
	}
	n, ok := s.existing(n)
	if !ok {
		if err := s.notInstalled(n, "models.Manifest"); err != nil {
			return nil, "", err
		}
		return nil, "", fault.New(fault.NotFound, "models.Manifest", "model '%s' not found", shown(name))
	}
	if _, err := s.readManifest(n); err != nil { // its bounds
		return nil, "", broken(n, err)
	}
	data, err = os.ReadFile(s.manifestPath(n))
	if err != nil {
		return nil, "", broken(n, err)
	}
	return data, n.String(), nil
}

// OpenBlob opens a blob for reading. Invalid when it is missing or has another size than the manifest says.
func (s *Store) OpenBlob(b Blob) (*os.File, error) {
	f, err := s.openBlob(b.Digest)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || fi.Size() != b.Size {
		f.Close()
		return nil, fault.Wrap(err, fault.Invalid, "models.OpenBlob", "blob %s is damaged: pull or create its model again", b.Digest)
	}
	return f, nil
}

// Intact tells whether a blob is there, with the size that it must have and, for a GGUF file, a header that can be read. What
// is not intact is to be fetched (again): Install replaces it.
func (s *Store) Intact(b Blob) bool {
	f, err := s.OpenBlob(b)
	if err != nil {
		return false
	}
	defer f.Close()
	return s.CheckFile(b, f) == nil
}

// CheckFile reads the header of a file that is to become a blob. Invalid when it must be a GGUF file and is a damaged one.
func (s *Store) CheckFile(b Blob, f *os.File) error {
	if !b.GGUF() {
		return nil
	}
	if _, err := f.Seek(0, 0); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	g, err := decode(f, keepArray)
	if err == nil {
		_, err = readFacts(g)
	}
	if err != nil {
		return fmt.Errorf("models: blob %s: %w", b.Digest, err)
	}
	return nil
}

// PartialPath is where the bytes of a blob are kept until all of them are there, and what begins with it is the caller's as
// well. The folder is beside blobs and not in it: an Ollama that starts on the same folder removes what has no digest for a name.
// What was not touched for a week is removed when a store is opened.
func (s *Store) PartialPath(digest string) (string, error) {
	d, err := cleanDigest(digest)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, partialDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	return filepath.Join(dir, strings.TrimPrefix(d, "sha256:")), nil
}

// Pin keeps blobs from being removed until release is called, also those that are not there yet. A blob whose last model was
// deleted in the meantime goes with the release.
func (s *Store) Pin(blobs []Blob) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digests := make([]string, 0, len(blobs))
	for _, b := range blobs {
		s.pins[b.Digest]++
		digests = append(digests, b.Digest)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unpin(digests)
	}
}

// Install makes a model of a manifest, whose bytes are kept as they are, and of blobs: those that files names by their digest
// are moved from there, the others must be there. In one step: nothing of it is seen before all of it is there, and after an error
// no model has changed. collected tells that blobs of the model that was replaced were removed.
//
// The caller has verified the digests, and has pinned the blobs.
func (s *Store) Install(name string, manifestBytes []byte, files map[string]string) (collected bool, err error) {
	n, err := parseName(name)
	if err != nil {
		return false, err
	}
	blobs, err := ManifestBlobs(manifestBytes)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var made []layer
	defer func() {
		if fault.CodeOf(err) == fault.Invalid { // what is damaged goes; for a full disk nobody shall fetch it all again
			_ = s.removeUnpinned(made) // the error of Install is the one to report
		}
	}()
	for _, b := range blobs {
		moved, err := s.take(b, files[b.Digest])
		if moved {
			made = append(made, layer{Digest: b.Digest})
		}
		if err != nil {
			return false, err
		}
	}
	if len(made) > 0 {
		if err := syncDir(filepath.Join(s.dir, "blobs")); err != nil {
			return false, err
		}
	}
	if err := s.readable(n, manifestBytes); err != nil {
		return false, err
	}
	return s.putManifest(n, manifestBytes)
}

// take moves a finished file to where the blob must be. The caller holds s.mu.
func (s *Store) take(b Blob, from string) (moved bool, err error) {
	to, err := s.blobPath(b.Digest)
	if err != nil {
		return false, err
	}
	fi, err := os.Stat(from)
	if err == nil && fi.Size() == b.Size { // or else it is another program's, which begins to fetch what it will find here
		err := os.Rename(from, to)
		if errors.Is(err, syscall.EXDEV) { // blobs is a link to another disk
			err = s.copyIn(from, b)
		}
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("models: %w", err)
		}
	}
	// it was there before, or another pull of the same blob was first
	if fi, err := os.Stat(to); err != nil || fi.Size() != b.Size {
		return false, fault.Wrap(err, fault.Conflict, "models.Install", "blob %s was removed or changed by another program while its model was pulled: pull again", b.Digest)
	}
	return false, nil
}

func (s *Store) copyIn(from string, b Blob) error {
	f, err := openFile(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := s.storeBlob(f, b.Digest); err != nil {
		return err
	}
	return os.Remove(from)
}

// readable refuses a model that is damaged. One that is of a kind that this version cannot serve is taken: an Ollama on the same
// folder may.
func (s *Store) readable(n model.Name, manifestBytes []byte) error {
	var m manifest
	if err := json.Unmarshal(manifestBytes, &m); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	_, err := s.read(n, &m)
	if fault.CodeOf(err) == fault.Unimplemented {
		return nil
	}
	return err
}
