package duckdb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A spill folder is where one instance writes what does not fit into memory. Its owner holds a lock on a file in it as
// long as it lives; the lock of a process that was killed is gone, so a folder whose lock can be had is left over.
const (
	spillPrefix = "sluice-spill-"
	spillNew    = ".sluice-spill-" // being made: not locked yet, so nobody's to sweep
	spillLock   = "sluice.lock"
	engineFiles = "duckdb_temp_" // the engine's own prefix
)

type spill struct {
	dir  string
	lock *os.File
}

// newSpill makes a spill folder below dir ("" the system's folder for temporary files; else made if missing), and removes
// those that killed processes left there. What is in them and not ours stays.
func newSpill(dir string) (*spill, error) {
	if dir == "" {
		dir = os.TempDir()
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := sweepSpills(dir); err != nil {
		return nil, err
	}
	made, err := os.MkdirTemp(dir, spillNew)
	if err != nil {
		return nil, err
	}
	lock, err := lockSpill(made, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	s := &spill{dir: filepath.Join(dir, strings.TrimPrefix(filepath.Base(made), ".")), lock: lock}
	if err := os.Rename(made, s.dir); err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(made))
	}
	return s, nil
}

func (s *spill) remove() error { return errors.Join(os.RemoveAll(s.dir), s.lock.Close()) }

// lockSpill takes the lock of a folder, or fails at once. The lock ends when the file is closed.
func lockSpill(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, spillLock), os.O_RDWR|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweepSpills removes left-over folders. One that cannot be locked is in use, or another user's: it stays.
func sweepSpills(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), spillPrefix) {
			continue
		}
		left := filepath.Join(dir, e.Name())
		lock, err := lockSpill(left, 0)
		if err != nil {
			continue
		}
		files, err := os.ReadDir(left)
		for _, f := range files {
			if f.Type().IsRegular() && (strings.HasPrefix(f.Name(), engineFiles) || f.Name() == spillLock) {
				err = errors.Join(err, os.Remove(filepath.Join(left, f.Name())))
			}
		}
		// A folder that is not empty stays: what else is in it is not ours.
		if gone := os.Remove(left); gone != nil && !errors.Is(gone, syscall.ENOTEMPTY) {
			err = errors.Join(err, gone)
		}
		if err := errors.Join(err, lock.Close()); err != nil && !errors.Is(err, os.ErrNotExist) { // another process sweeps too
			return err
		}
	}
	return nil
}
