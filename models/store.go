package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ollama/ollama/template"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// Store is an Ollama-compatible models folder (manifests/ and blobs/). It is safe for concurrent use, also beside an Ollama.
type Store struct {
	dir string

	// mu is held by whatever replaces or removes a manifest or a blob, and guards pins.
	mu   sync.Mutex
	pins map[string]int // digests that a running Create, pull or push needs, not to be removed

	dropped map[string]bool // of those, what was to be removed

	cacheMu sync.Mutex
	facts   map[blobKey]Facts // a blob's content cannot change, so neither can its facts
	models  map[string]*Model // by the manifest's digest, for the same reason
	warned  map[string]string // what was logged of a broken manifest, once

	folders *folders
	loose   map[string]looseRead // by the path of the file; under cacheMu
}

// blobKey has the size too: a file cut short by a full disk is not the blob that its name says.
type blobKey struct {
	digest string
	size   int64
}

// OpenStore opens or creates the folder. The GGUF files in the further folders are models too, as they are: see folder.go.
func OpenStore(dir string, more ...string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	for _, sub := range []string{"manifests", "blobs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("models: %w", err)
		}
	}
	removeStaleTemps(dir)
	removeStaleTemps(filepath.Join(dir, "blobs"))
	f := &folders{}
	for _, folder := range more {
		if folder, err = filepath.Abs(folder); err != nil {
			return nil, fmt.Errorf("models: %w", err)
		}
		f.roots = append(f.roots, folder)
	}
	return &Store{
		dir: dir, pins: map[string]int{}, dropped: map[string]bool{}, facts: map[blobKey]Facts{}, models: map[string]*Model{}, warned: map[string]string{},
		folders: f, loose: map[string]looseRead{},
	}, nil
}

// List gives the models, newest first. A broken one is skipped and logged.
func (s *Store) List() ([]*Model, error) {
	out := []*Model{}
	installed := s.names()
	for _, n := range installed {
		m, err := s.load(n)
		if err != nil {
			if !removed(err) {
				s.warn(n.String(), err)
			}
			continue
		}
		out = append(out, m)
	}
	out = append(out, s.listLoose(installed)...)
	slices.SortFunc(out, func(a, b *Model) int {
		if c := b.ModifiedAt.Compare(a.ModifiedAt); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// shown is a caller's name as a message may repeat it: messages are logged, and a name may be megabytes long.
func shown(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// Get finds a model by a name as clients write it: any case, tag and namespace optional. NotFound: `model 'x' not found`.
// A model whose files are damaged or of a kind that cannot be served is Invalid or Unimplemented, with the reason.
func (s *Store) Get(name string) (*Model, error) {
	missing := func(err error) error {
		return fault.Wrap(err, fault.NotFound, "models.Get", "model '%s' not found", shown(name))
	}
	n, err := parseName(name)
	if err != nil {
		return nil, missing(err)
	}
	n, ok := s.existing(n)
	m, err := (*Model)(nil), error(nil)
	if ok {
		m, err = s.load(n)
	} else if f := s.looseNamed(n); f != nil {
		m, err = s.loadLoose(f)
	} else {
		return nil, missing(nil)
	}
	if removed(err) {
		return nil, missing(err)
	}
	return m, err
}

// removed tells that a manifest went between the listing of names and now. A blob that is missing is damage instead.
func removed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*fault.Error))
}

func (s *Store) warn(name string, err error) {
	s.cacheMu.Lock()
	defer s.cacheMu.Unlock()
	if s.warned[name] == err.Error() {
		return
	}
	s.warned[name] = err.Error()
	slog.Warn("skipping a model that cannot be used", "model", name, "error", err)
}

// load reads the model of an installed name.
func (s *Store) load(n model.Name) (*Model, error) {
	mf, err := s.readManifest(n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, broken(n, err)
	}
	s.cacheMu.Lock()
	cached := s.models[mf.digest]
	s.cacheMu.Unlock()
	if cached == nil || !s.whole(cached) {
		if cached, err = s.read(n, mf); err != nil {
			return nil, err
		}
		s.cacheMu.Lock()
		s.models[mf.digest] = cached
		s.cacheMu.Unlock()
	}
	m := *cached
	m.Name, m.ModifiedAt = n.DisplayShortest(), datable(mf.modified)
	return &m, nil
}

// whole tells that the model's GGUF files are as they were when it was read.
func (s *Store) whole(m *Model) bool {
	for _, b := range m.blobs {
		path, err := s.blobPath(b.digest)
		if err != nil {
			return false
		}
		if fi, err := os.Stat(path); err != nil || fi.Size() != b.size {
			return false
		}
	}
	return true
}

func broken(n model.Name, err error) error {
	if fe := (*fault.Error)(nil); errors.As(err, &fe) {
		return fault.Wrap(fe.Err, fe.Code, "models.load", "model '%s' cannot be used: %s", n.DisplayShortest(), fe.Msg)
	}
	return fault.Wrap(err, fault.Invalid, "models.load", "model '%s' is damaged: pull or create it again", n.DisplayShortest())
}

// read builds a model from its layers.
func (s *Store) read(n model.Name, mf *manifest) (*Model, error) {
	m := &Model{Digest: mf.digest, Size: mf.size()}
	if mf.Config.Digest != "" {
		if err := s.readJSON(mf.Config.Digest, &m.config); err != nil {
			return nil, broken(n, err)
		}
	}
	if err := withinBounds(mf); err != nil { // before anything is read
		return nil, broken(n, err)
	}
	left := maxText // the files may be longer than the manifest says
	for _, l := range mf.Layers {
		if err := s.readLayer(m, l, &left); err != nil {
			return nil, broken(n, err)
		}
	}
	if m.Path == "" {
		return nil, broken(n, fault.New(fault.Unimplemented, "models.read", "it has no GGUF file, and this version serves nothing else"))
	}
	if m.prog == nil {
		p, err := newProgram(template.DefaultTemplate)
		if err != nil {
			return nil, broken(n, err)
		}
		m.prog = p
	}
	m.Template = m.prog.source.String()
	return m, nil
}

// readLayer reads a layer. left is how many bytes its text may have, and is less afterwards.
func (s *Store) readLayer(m *Model, l layer, left *int) (err error) {
	text := ""
	if knownText(l.MediaType) {
		most := *left
		if l.MediaType == mediaParams {
			most = min(most, maxJSON)
		}
		if text, err = s.readText(l.Digest, most); err != nil {
			return err
		}
		*left -= len(text)
	}
	switch l.MediaType {
	case mediaModel:
		if m.Path != "" {
			return fault.New(fault.Unimplemented, "models.read", "it has several model files, and this version takes one")
		}
		m.parent = parentName(l.From)
		m.Path, m.Facts, err = s.readGGUF(m, l.Digest)
	case mediaAdapter:
		var path string
		path, _, err = s.readGGUF(m, l.Digest)
		m.adapters = append(m.adapters, path)
	case mediaProjector:
		if m.projector != "" {
			return fault.New(fault.Unimplemented, "models.read", "it has several projectors, and this version takes one")
		}
		m.projector, _, err = s.readGGUF(m, l.Digest)
	case mediaTemplate, mediaPrompt:
		m.prog, err = parseTemplate(text)
	case mediaSystem:
		m.System = text
	case mediaParams:
		err = json.Unmarshal([]byte(text), &m.Params)
	case mediaMessages:
		m.Messages, err = decodeMessages(text)
	case mediaLicense:
		m.License = append(m.License, text)
	}
	return err
}

// readGGUF checks a GGUF blob of a model before a runner sees it.
func (s *Store) readGGUF(m *Model, digest string) (path string, facts Facts, err error) {
	if path, err = s.blobPath(digest); err != nil {
		return "", facts, err
	}
	if facts, err = s.factsOf(digest); err != nil {
		return "", facts, err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return "", facts, err
	}
	m.blobs = append(m.blobs, blobKey{digest, fi.Size()})
	return path, facts, nil
}
