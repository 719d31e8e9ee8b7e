package models

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/template"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// looseRead is what was read of a model in a folder, an error too.
type looseRead struct {
	stamp string // of the files at that time
	model *Model
	err   error
}

// listLoose gives the models of the folders whose names are not those of installed ones.
func (s *Store) listLoose(installed []model.Name) (out []*Model) {
	all := s.folders.look()
	s.forget(all)
	for _, f := range all {
		if slices.ContainsFunc(installed, f.name.EqualFold) {
			s.warnLoose(f, "a file is not served: an installed model has the same name", nil)
			continue
		}
		m, err := s.loadLoose(f)
		if err == nil {
			out = append(out, m)
		} else if !removed(err) {
			s.warnLoose(f, "skipping a file that cannot be used", err)
		}
	}
	return out
}

// forget drops what was read of files that are gone.
func (s *Store) forget(all []*loose) {
	there := make(map[string]bool, len(all))
	for _, f := range all {
		there[f.paths[0]] = true
	}
	s.cacheMu.Lock()
	defer s.cacheMu.Unlock()
	maps.DeleteFunc(s.loose, func(path string, _ looseRead) bool { return !there[path] })
}

func (s *Store) warnLoose(f *loose, text string, err error) {
	s.folders.mu.Lock()
	defer s.folders.mu.Unlock()
	args := []any{"model", f.name.DisplayShortest()}
	if err != nil {
		args = append(args, "error", err)
	}
	s.folders.warn(f.paths[0], text, args...)
}

// looseNamed finds a model of the folders, nil when there is none.
func (s *Store) looseNamed(n model.Name) *loose {
	for _, f := range s.folders.look() {
		if f.name.EqualFold(n) {
			return f
		}
	}
	return nil
}

// notInstalled is the refusal to change a model that is a file in a folder: the file is not the store's. Nil when n is no such model.
func (s *Store) notInstalled(n model.Name, op string) error {
	f := s.looseNamed(n)
	if f == nil {
		return nil
	}
	file := filepath.Base(f.paths[0])
	return &fault.Error{
		Code: fault.Conflict, Op: op,
		Msg: fmt.Sprintf("model '%s' is the file %s in a folder of models: it is served as it is, and nothing here changes it", f.name.DisplayShortest(), shown(file)),
		Hint: fmt.Sprintf("to remove it, remove the file; to have a model that can be copied, changed and pushed, import it: sluice create NAME --from %s",
			shown(file)),
	}
}

// Installed tells whether a model can be copied, deleted and pushed: nil when it has a manifest. Conflict when it is a file in a
// folder, NotFound when there is none.
func (s *Store) Installed(name string) error {
	n, err := parseName(name)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "models.Installed", "model '%s' not found", shown(name))
	}
	if _, ok := s.existing(n); ok {
		return nil
	}
	if err := s.notInstalled(n, "models.Installed"); err != nil {
		return err
	}
	return fault.New(fault.NotFound, "models.Installed", "model '%s' not found", shown(name))
}

// loadLoose reads a model of a folder, or gives what was read when its files have not changed since.
func (s *Store) loadLoose(f *loose) (*Model, error) {
	stamp, modified, size, err := f.stat()
	if err != nil {
		return nil, err
	}
	s.cacheMu.Lock()
	read, ok := s.loose[f.paths[0]]
	s.cacheMu.Unlock()
	if !ok || read.stamp != stamp {
		read.stamp = stamp
		read.model, read.err = readLoose(f)
		if !unread(read.err) { // a right that is given does not change the stamp
			s.cacheMu.Lock()
			s.loose[f.paths[0]] = read
			s.cacheMu.Unlock()
		}
	}
	if read.err != nil {
		return nil, read.err
	}
	m := *read.model
	m.Name, m.ModifiedAt, m.Size = f.name.DisplayShortest(), datable(modified), size
	return &m, nil
}

// files are all that the model is made of.
func (l *loose) files() []string {
	if l.projector == "" {
		return l.paths
	}
	return append(l.paths[:len(l.paths):len(l.paths)], l.projector)
}

// stat gives a stamp that changes with the files, the newest time and the sum of the sizes. When no file is there it is fs.ErrNotExist,
// unclassified; when some are missing they are named.
func (l *loose) stat() (stamp string, modified time.Time, size int64, err error) {
	var b strings.Builder
	var missing []string
	for _, p := range l.files() {
		fi, statErr := os.Stat(p)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			missing, err = append(missing, shown(filepath.Base(p))), statErr
			continue
		case statErr != nil:
			return "", modified, 0, l.broken(statErr)
		case !fi.Mode().IsRegular():
			return "", modified, 0, l.broken(fault.New(fault.Invalid, "models.stat", "%s is not a file", shown(filepath.Base(p))))
		}
		fmt.Fprintf(&b, "%s\x00%d\x00%d\n", p, fi.Size(), fi.ModTime().UnixNano())
		size += fi.Size()
		if fi.ModTime().After(modified) {
			modified = fi.ModTime()
		}
	}
	if err != nil && b.Len() > 0 {
		const most = 5
		if len(missing) > most {
			missing = append(missing[:most], fmt.Sprintf("and %d more", len(missing)-most))
		}
		err = l.broken(fault.New(fault.Invalid, "models.stat", "of its %d files these are missing: %s", len(l.files()), strings.Join(missing, ", ")))
	}
	return b.String(), modified, size, err
}

func (l *loose) broken(err error) error {
	fe := (*fault.Error)(nil)
	if errors.As(err, &fe) {
		return fault.Wrap(fe.Err, fe.Code, "models.loadLoose", "model '%s' cannot be used: %s", l.name.DisplayShortest(), fe.Msg)
	}
	return fault.Wrap(err, fault.Invalid, "models.loadLoose", "model '%s' cannot be used: its file cannot be read", l.name.DisplayShortest())
}

// readLoose reads a model as Create would make one of its files. Its digest stands for its content without reading all of it: it is the
// SHA-256 of each file's size, time of change and GGUF header, in order.
func readLoose(l *loose) (*Model, error) {
	g, sum, err := readFiles(l)
	if err != nil {
		return nil, l.broken(err)
	}
	if what := mediaType(g); what != mediaModel {
		return nil, l.broken(fault.New(fault.Unimplemented, "models.readLoose", "it is not a model, but an adapter or a projector of one"))
	}
	m := &Model{Digest: hex.EncodeToString(sum), Path: l.paths[0], shards: l.paths, projector: l.projector}
	if m.Facts, err = readFacts(g); err != nil {
		return nil, l.broken(err)
	}
	if len(l.paths) > 1 && m.Facts.Layout.OtherEngine {
		return nil, l.broken(fault.New(fault.Unimplemented, "models.readLoose",
			"the engine that runs %s models reads one file, and these are %d shards: join them with sluice create", m.Facts.Architecture, len(l.paths)))
	}
	m.config = configOf(g, m.Facts)
	found := detected{}
	if !m.Facts.Pooling {
		if found, err = detect(g.KV().ChatTemplate()); err != nil {
			return nil, l.broken(err)
		}
	}
	m.config.Renderer, m.config.Parser = found.renderer, found.parser
	if found.stop != nil {
		stop := make([]any, 0, len(found.stop))
		for _, s := range found.stop {
			stop = append(stop, s)
		}
		m.Params = map[string]any{"stop": stop}
	}
	if found.text != "" {
		m.prog, err = parseTemplate(found.text)
	} else {
		m.prog, err = newProgram(template.DefaultTemplate)
	}
	if err != nil {
		return nil, l.broken(err)
	}
	m.Template = m.prog.source.String()
	return m, nil
}

// readFiles reads the headers of the model's files, all of which must be whole.
func readFiles(l *loose) (*ggml.GGML, []byte, error) {
	sum := sha256.New()
	shards := make([]shard, 0, len(l.paths))
	for i, p := range l.paths {
		s, err := readShard(filepath.Base(p), p)
		if err != nil {
			return nil, nil, err
		}
		is := s.head.split
		if len(l.paths) == 1 && is.sharded() {
			return nil, nil, fault.New(fault.Invalid, "models.readFiles", "it is %s: the files must be named NAME-%05d-of-%05d.gguf and so on", is, is.no+1, is.count)
		}
		if len(l.paths) > 1 && (is.no != i || is.count != len(l.paths) || is.tensors == 0) {
			// llama.cpp takes the shards by their names
			return nil, nil, fault.New(fault.Invalid, "models.readFiles", "%s is not what its name says: it holds %s", shown(s.label), is)
		}
		if err := s.stamp(sum); err != nil {
			return nil, nil, err
		}
		shards = append(shards, s)
	}
	if l.projector != "" {
		if err := stampProjector(l.projector, sum); err != nil {
			return nil, nil, err
		}
	}
	g, err := decodeFiles(shards, keepArray)
	return g, sum.Sum(nil), err
}

func stampProjector(path string, sum io.Writer) error {
	s, err := readShard(filepath.Base(path), path)
	if err != nil {
		return err
	}
	g, err := decodeFiles([]shard{s}, keepArray)
	if err != nil {
		return err
	}
	if mediaType(g) != mediaProjector {
		return fault.New(fault.Invalid, "models.readFiles", "%s is not a projector, as its name says", shown(s.label))
	}
	return s.stamp(sum)
}

// stamp writes what stands for the file's content.
func (s shard) stamp(w io.Writer) error {
	f, err := openFile(s.path)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	for _, v := range []int64{fi.Size(), fi.ModTime().UnixNano()} {
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			return fmt.Errorf("models: %w", err)
		}
	}
	_, err = io.CopyN(w, f, int64(min(s.head.data, uint64(fi.Size()))))
	return err
}

// decode reads the metadata of the model's files.
func (m *Model) decode(keep int) (*ggml.GGML, error) {
	if len(m.shards) < 2 {
		return decodeFiles([]shard{{path: m.Path}}, keep)
	}
	shards := make([]shard, 0, len(m.shards))
	for _, p := range m.shards {
		s, err := readShard(filepath.Base(p), p)
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return decodeFiles(shards, keep)
}

// decodeFiles reads the metadata of a file, or of the one that its shards make together.
func decodeFiles(shards []shard, keep int) (*ggml.GGML, error) {
	if len(shards) == 1 {
		f, err := openFile(shards[0].path)
		if err != nil {
			return nil, fmt.Errorf("models: %w", err)
		}
		defer f.Close()
		return decode(f, keep)
	}
	m, err := merge(shards)
	if err != nil {
		return nil, err
	}
	return m.decode(keep)
}
