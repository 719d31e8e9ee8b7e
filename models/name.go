package models

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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

// names lists the names in the manifests folder, valid ones only. What cannot be read has none.
func (s *Store) names() []model.Name {
	out, _ := s.listNames() // who must know of it asks listNames
	return out
}

// listNames is names with what could not be read. Links are followed. No pattern is matched: the models folder's own name may hold a
// bracket or a star.
func (s *Store) listNames() (out []model.Name, err error) {
	root := filepath.Join(s.dir, "manifests")
	var errs []error
	var look func(below string, depth int)
	look = func(below string, depth int) {
		entries, err := os.ReadDir(filepath.Join(root, below))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // it went just now, or a link leads to a file
			errs = append(errs, err)
		}
		for _, e := range entries {
			at, link := filepath.Join(below, e.Name()), e.Type()&fs.ModeSymlink != 0
			switch {
			case depth < nameDepth && (e.IsDir() || link):
				look(at, depth+1)
			case depth == nameDepth && (e.Type().IsRegular() || link) && !strings.HasPrefix(e.Name(), tempPrefix):
				if n := model.ParseNameFromFilepath(at); n.IsValid() {
					out = append(out, n)
				}
			}
		}
	}
	look("", 1)
	return out, errors.Join(errs...)
}

// nameDepth: host, namespace, model, tag.
const nameDepth = 4

func (s *Store) manifestPath(n model.Name) string {
	return filepath.Join(s.dir, "manifests", n.Filepath())
}
