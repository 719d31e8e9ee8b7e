package models

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollama/ollama/types/model"
)

// Bounds of a look through the folders. PUBLISHER/REPOSITORY/FILE, as other programs keep them, is two folders deep.
const (
	folderDepth   = 2
	folderFiles   = 4096
	folderEntries = 1 << 16
)

// settled is how old a folder's time must be to be trusted: a file that came in the same tick of the clock as the last look
// does not change it.
const settled = 2 * time.Second

// folders are the places whose GGUF files are models as they are. Only the names of files are read here.
type folders struct {
	roots []string

	mu     sync.Mutex
	looked time.Time
	dirs   map[string]time.Time // the folders that were read, and the times at which they had last changed
	models []*loose
	warned map[string]bool
}

// loose is a model in a folder.
type loose struct {
	name      model.Name
	paths     []string // of the file, or of all its shards by llama.cpp's names for them, be they there or not
	projector string   // path, or ""
}

// look gives the models that are there now, in a stable order. It reads the folders again only when one of them has changed.
func (f *folders) look() []*loose {
	if f == nil || len(f.roots) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh() {
		return f.models
	}
	f.looked, f.dirs, f.models = time.Now(), map[string]time.Time{}, nil
	w := &walk{folders: f}
	taken := map[string]string{}
	for _, root := range f.roots {
		w.root, f.dirs[root] = root, changed(root) // it may be a link, and lead elsewhere next time
		if resolved, err := filepath.EvalSymlinks(root); err == nil {
			w.root = resolved
		}
		w.dir(w.root, 0)
		for _, m := range w.take() {
			key := m.name.String()
			if other, ok := taken[key]; ok {
				if other == m.paths[0] { // one folder is inside another one
					continue
				}
				f.warn(m.paths[0], "a file is not served: an earlier one has the same name", "model", m.name.DisplayShortest(), "served", other)
				continue
			}
			taken[key] = m.paths[0]
			f.models = append(f.models, m)
		}
	}
	return f.models
}

// fresh tells that nothing has come or gone since the last look. The caller holds f.mu.
func (f *folders) fresh() bool {
	if f.dirs == nil {
		return false
	}
	for dir, was := range f.dirs {
		now := changed(dir)
		if !now.Equal(was) || f.looked.Sub(now) < settled {
			return false
		}
	}
	return true
}

// changed is when a file came to a folder or left it; zero when there is no such folder.
func changed(dir string) time.Time {
	fi, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// warn logs something about a file, once. The caller holds f.mu.
func (f *folders) warn(path, text string, args ...any) {
	if f.warned[path+text] {
		return
	}
	if f.warned == nil {
		f.warned = map[string]bool{}
	}
	f.warned[path+text] = true
	slog.Warn(text, append([]any{"file", path}, args...)...)
}

// walk is one look.
type walk struct {
	*folders
	root           string
	entries, files int
	found          []string // paths of GGUF files
}

// dir reads a folder and those below it.
func (w *walk) dir(path string, depth int) {
	w.dirs[path] = changed(path) // before it is read: what comes while it is read is found next time
	d, err := os.Open(path)
	if err != nil {
		w.warn(path, "a folder of models cannot be read", "error", err)
		return
	}
	defer d.Close()
	var below []string
	for w.entries < folderEntries {
		entries, err := d.ReadDir(256)
		w.entries += len(entries)
		for _, e := range entries {
			at := filepath.Join(path, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir() && depth < folderDepth:
				below = append(below, at)
			case w.isModel(at, e):
				w.found = append(w.found, at)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.warn(path, "a folder of models cannot be read", "error", err)
			}
			break
		}
	}
	slices.Sort(below)
	for _, sub := range below {
		if w.entries >= folderEntries {
			w.warn(w.root, "a folder of models has too many entries: some are not looked at", "most", folderEntries)
			return
		}
		w.dir(sub, depth+1)
	}
}

// isModel tells whether an entry is a GGUF file, perhaps by a link that does not leave the folder.
func (w *walk) isModel(path string, e fs.DirEntry) bool {
	if _, ok := cutSuffixFold(e.Name(), ".gguf"); !ok {
		return false
	}
	if e.Type()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		if rel, err := filepath.Rel(w.root, to); err != nil || !filepath.IsLocal(rel) {
			w.warn(path, "a link out of a folder of models is not followed")
			return false
		}
		fi, err := os.Stat(to)
		return err == nil && fi.Mode().IsRegular() && w.count()
	}
	return e.Type().IsRegular() && w.count()
}

func (w *walk) count() bool {
	if w.files == folderFiles {
		w.warn(w.root, "a folder of models has too many files: some are not served", "most", folderFiles)
		return false
	}
	w.files++
	return true
}

// take makes models of what was found below a root: shards and projectors belong to a model of the same folder.
func (w *walk) take() []*loose {
	slices.Sort(w.found)
	var out []*loose
	for len(w.found) > 0 {
		dir := filepath.Dir(w.found[0])
		n := slices.IndexFunc(w.found, func(p string) bool { return filepath.Dir(p) != dir })
		if n < 0 {
			n = len(w.found)
		}
		out = append(out, inFolder(w.found[:n])...)
		w.found = w.found[n:]
	}
	return out
}

// inFolder makes models of the files of one folder.
func inFolder(paths []string) []*loose {
	var projectors []string
	var out []*loose
	seen := map[string]bool{} // first shards
	for _, p := range paths {
		file := filepath.Base(p)
		if strings.Contains(strings.ToLower(file), "mmproj") {
			projectors = append(projectors, p)
			continue
		}
		all := ShardFiles(p)
		if seen[all[0]] {
			continue
		}
		seen[all[0]] = true
		if base, _, _, ok := shardName(file); ok {
			file = base
		}
		if n, ok := fileName(file); ok {
			out = append(out, &loose{name: n, paths: all})
		}
	}
	for _, m := range out {
		m.projector = projectorFor(m, out, projectors)
	}
	return out
}

// projectorFor chooses a model's projector among those of its folder: one that is named like the model, or any when all models
// of the folder are one in several types of weights. Of several the one in F16, which every device computes with.
func projectorFor(m *loose, all []*loose, projectors []string) string {
	alone := !slices.ContainsFunc(all, func(o *loose) bool { return o.name.Model != m.name.Model })
	best := ""
	for _, p := range projectors {
		base, _ := cutSuffixFold(filepath.Base(p), ".gguf")
		of, kind := splitType(base)
		of = strings.Trim(strings.ReplaceAll(tame(of), "mmproj", ""), "-._")
		if !alone && of != m.name.Model {
			continue
		}
		if best == "" || kind == "f16" {
			best = p
		}
	}
	return best
}
