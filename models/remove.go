package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sluice/fault"
)

// Copy gives a model a second name. An existing model of that name is replaced. NotFound when there is no src.
func (s *Store) Copy(src, dst string) error {
	from, err := parseName(src)
	if err != nil {
		return err
	}
	to, err := parseName(dst)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from, ok := s.existing(from)
	if !ok {
		if err := s.notInstalled(from, "models.Copy"); err != nil {
			return err
		}
		return fault.New(fault.NotFound, "models.Copy", "model %q not found", shown(src))
	}
	mf, err := s.readManifest(from)
	if err != nil {
		return broken(from, err)
	}
	if have, _ := s.existing(to); have == from {
		return nil
	}
	return s.replaceLocked(to, mf)
}

// Delete removes a model and the blobs that no other model uses. NotFound: `model 'x' not found`. A model that is loaded
// keeps running until its runner goes; the caller asks the scheduler to unload it.
func (s *Store) Delete(name string) error {
	n, err := parseName(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.existing(n)
	if !ok {
		if err := s.notInstalled(n, "models.Delete"); err != nil {
			return err
		}
		return fault.New(fault.NotFound, "models.Delete", "model '%s' not found", shown(name))
	}
	mf, err := s.readManifest(n)
	if err != nil { // a broken manifest can be removed, its layers are unknown
		mf = &manifest{}
	}
	if err := s.removeManifest(n); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	return s.removeUnused(mf.all())
}

// removeUnused removes those of the layers' blobs that no manifest and no running Create or pull needs. The caller holds s.mu.
func (s *Store) removeUnused(layers []layer) error {
	_, err := s.collect(layers)
	return err
}

// removeUnpinned is removeUnused of blobs that the caller itself has pinned, and nobody else.
func (s *Store) removeUnpinned(layers []layer) error {
	for _, l := range layers {
		s.pins[l.Digest]--
	}
	defer func() {
		for _, l := range layers {
			s.pins[l.Digest]++
		}
	}()
	return s.removeUnused(layers)
}

// unpin ends the interest in blobs. What a model has left meanwhile, and was kept for the pin alone, goes now. The caller holds s.mu.
func (s *Store) unpin(digests []string) {
	var late []layer
	for _, d := range digests {
		if s.pins[d]--; s.pins[d] > 0 {
			continue
		}
		delete(s.pins, d)
		if s.dropped[d] {
			delete(s.dropped, d)
			late = append(late, layer{Digest: d})
		}
	}
	if len(late) > 0 {
		_ = s.removeUnused(late) // what cannot be removed only takes room
	}
}

// collect is removeUnused that tells whether there was something to remove.
func (s *Store) collect(layers []layer) (removed bool, err error) {
	used, err := s.inUse()
	if err != nil {
		return false, fmt.Errorf("models: blobs are kept, since a manifest cannot be read: %w", err)
	}
	var errs []error
	for _, l := range layers {
		d, err := cleanDigest(l.Digest)
		if err != nil || used[d] {
			continue
		}
		if s.pins[d] > 0 {
			s.dropped[d] = true
			continue
		}
		path, err := s.blobPath(d)
		if err != nil {
			continue
		}
		switch err := os.Remove(path); {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("models: %w", err)
	}
	return removed, nil
}
