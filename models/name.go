package models

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// parseName reads a name as clients write it and fills host, namespace and tag. The parts of a valid name are safe as
// path elements: each begins with a letter, a digit or an underscore, and has no separator.
func parseName(s string) (model.Name, error) {
	n := model.ParseName(s)
	if !n.IsValid() {
		return n, fault.New(fault.Invalid, "models.parseName", "invalid model name")
	}
	return n, nil
}

// SameName tells whether two names, as clients write them, are of one model: the case does not count, and host, namespace
// and tag need not be written where they are the usual ones (:latest).
func SameName(a, b string) bool {
	x, err := parseName(a)
	if err != nil {
		return false
	}
	y, err := parseName(b)
	return err == nil && x.EqualFold(y)
}

// existing gives the spelling under which a name is installed, and whether it is. Names are case-insensitive, the
// folders of a file system often are not.
func (s *Store) existing(n model.Name) (model.Name, bool) {
	if fi, err := os.Stat(s.manifestPath(n)); err == nil && fi.Mode().IsRegular() {
		return n, true
	}
	for _, have := range s.names() {
		if have.EqualFold(n) {
			return have, true
		}
	}
	return n, false
}

// names lists the names in the manifests folder, valid ones only.
func (s *Store) names() []model.Name {
	root := filepath.Join(s.dir, "manifests")
	paths, _ := filepath.Glob(filepath.Join(root, "*", "*", "*", "*")) // the pattern is constant, so it is never malformed
	out := make([]model.Name, 0, len(paths))
	for _, p := range paths {
		if strings.HasPrefix(filepath.Base(p), tempPrefix) {
			continue
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			continue
		}
		if n := model.ParseNameFromFilepath(rel); n.IsValid() {
			out = append(out, n)
		}
	}
	return out
}

func (s *Store) manifestPath(n model.Name) string {
	return filepath.Join(s.dir, "manifests", n.Filepath())
}
