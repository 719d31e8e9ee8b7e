package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// The media types of Ollama's layers.
const (
	mediaManifest  = "application/vnd.docker.distribution.manifest.v2+json"
	mediaConfig    = "application/vnd.docker.container.image.v1+json"
	mediaModel     = "application/vnd.ollama.image.model"
	mediaAdapter   = "application/vnd.ollama.image.adapter"
	mediaProjector = "application/vnd.ollama.image.projector"
	mediaTemplate  = "application/vnd.ollama.image.template"
	mediaPrompt    = "application/vnd.ollama.image.prompt" // the template's older name
	mediaSystem    = "application/vnd.ollama.image.system"
	mediaParams    = "application/vnd.ollama.image.params"
	mediaMessages  = "application/vnd.ollama.image.messages"
	mediaLicense   = "application/vnd.ollama.image.license"
)

// maxManifest is far more than any manifest has. More than this is damage or an attack.
const maxManifest = 1 << 20

type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	From      string `json:"from,omitempty"`
	Name      string `json:"name,omitempty"`
}

type manifest struct {
	SchemaVersion int     `json:"schemaVersion"`
	MediaType     string  `json:"mediaType"`
	Config        layer   `json:"config"`
	Layers        []layer `json:"layers"`

	digest   string // of the file, hex
	modified time.Time
}

// all gives the layers and the config.
func (m *manifest) all() []layer {
	out := append(make([]layer, 0, len(m.Layers)+1), m.Layers...)
	if m.Config.Digest != "" {
		out = append(out, m.Config)
	}
	return out
}

func (m *manifest) size() (n int64) {
	for _, l := range m.all() {
		n += l.Size
	}
	return n
}

func (s *Store) readManifest(n model.Name) (*manifest, error) {
	f, err := openFile(s.manifestPath(n))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxManifest {
		return nil, errors.New("the manifest is larger than 1 MiB")
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	sum := sha256.Sum256(data)
	m.digest, m.modified = hex.EncodeToString(sum[:]), fi.ModTime()
	return &m, nil
}

// writeManifest replaces a manifest in one step: whoever reads sees the old one or the new one, also after a power cut.
func (s *Store) writeManifest(n model.Name, m *manifest) error {
	path := s.manifestPath(n)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return writeDurably(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(m) })
}

// putManifest replaces a manifest by bytes that are kept as they are, so that the model has the digest that it has elsewhere, and
// removes what only its predecessor used. The caller holds s.mu.
func (s *Store) putManifest(n model.Name, data []byte) (collected bool, err error) {
	n, ok := s.existing(n)
	var old *manifest
	if ok {
		old, _ = s.readManifest(n) // one that cannot be read is replaced all the same
	}
	path := s.manifestPath(n)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, fmt.Errorf("models: %w", err)
	}
	err = writeDurably(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("models: %w", err)
	}
	if old == nil {
		return false, nil
	}
	return s.collect(old.all())
}

// removeManifest removes a manifest and the folders that it leaves empty.
func (s *Store) removeManifest(n model.Name) error {
	path := s.manifestPath(n)
	if err := os.Remove(path); err != nil {
		return err
	}
	root := filepath.Join(s.dir, "manifests")
	for dir := filepath.Dir(path); dir != root && len(dir) > len(root); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // not empty
			break
		}
	}
	return nil
}

// inUse lists the digests that manifests refer to. A manifest that is no JSON refers to nothing; one that cannot be read
// might refer to anything, so it is an error.
func (s *Store) inUse() (map[string]bool, error) {
	used := map[string]bool{}
	names, err := s.listNames()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		m, err := s.readManifest(n)
		var pathErr *fs.PathError
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed just now
			continue
		case errors.As(err, &pathErr):
			return nil, err
		case err != nil:
			continue
		}
		for _, l := range m.all() {
			if d, err := cleanDigest(l.Digest); err == nil {
				used[d] = true
			}
		}
	}
	return used, nil
}

// readText reads a text of a model, of at most the given length in bytes.
func (s *Store) readText(digest string, most int) (string, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return "", err
	}
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fault.New(fault.Invalid, "models.readText", "layer %s is longer than %d bytes, which is all that is left for it", digest, most)
	}
	return string(data), err
}

func (s *Store) readJSON(digest string, into any) error {
	text, err := s.readText(digest, maxJSON)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}
