package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sluice/fault"
)

// tempPrefix begins the name of every file that is not yet what it will be. No digest and no tag begins with a dot.
const tempPrefix = ".sluice-tmp-"

// partialDir has what pulls have fetched so far. It is kept for the next pull to go on from, for partialLife after the last byte:
// longer than temporary files, since somebody waited for it, and nobody will for ever.
const (
	partialDir  = ".sluice-partial"
	partialLife = 7 * 24 * time.Hour
)

var digestForm = regexp.MustCompile(`^sha256[:-]([0-9a-fA-F]{64})$`)

// cleanDigest gives "sha256:" and lower-case hex. Anything else is Invalid, so that no digest can name another file.
func cleanDigest(d string) (string, error) {
	m := digestForm.FindStringSubmatch(d)
	if m == nil {
		return "", fault.New(fault.Invalid, "models.cleanDigest", "invalid digest format")
	}
	return "sha256:" + strings.ToLower(m[1]), nil
}

func (s *Store) blobPath(digest string) (string, error) {
	d, err := cleanDigest(digest)
	if err != nil {
		return "", err
	}
	return filepath.Join(s.dir, "blobs", strings.Replace(d, ":", "-", 1)), nil
}

// HasBlob tells whether a blob is there. A malformed digest is not.
func (s *Store) HasBlob(digest string) bool {
	path, err := s.blobPath(digest)
	if err != nil {
		return false
	}
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// AddBlob stores what r gives under its digest. Invalid when the digest is malformed or the bytes have another one: then
// nothing is stored. A blob that is there already is left, and r is read to its end all the same: a client that is cut
// off in mid-upload reports a broken connection instead of the answer.
func (s *Store) AddBlob(ctx context.Context, digest string, r io.Reader) error {
	want, err := cleanDigest(digest)
	if err != nil {
		return err
	}
	r = &ctxReader{ctx: ctx, r: r}
	if s.HasBlob(want) {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return fmt.Errorf("models: reading blob %s: %w", want, err)
		}
		return nil
	}
	_, err = s.storeBlob(r, want)
	return err
}

// LinkBlob takes a file into the store by a hard link, or by a copy where that is not possible, and gives its digest.
// The file must not be changed in place afterwards. It is for tools and tests that have the file on this machine.
func (s *Store) LinkBlob(ctx context.Context, path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "models.LinkBlob", "no such file")
	}
	f, err := openFile(path)
	if err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	digest, err := fileDigest(ctx, f)
	if err != nil {
		return "", err
	}
	if s.HasBlob(digest) {
		return digest, nil
	}
	to, err := s.blobPath(digest)
	if err != nil {
		return "", err
	}
	if err := os.Link(path, to); err == nil {
		return digest, syncDir(filepath.Dir(to))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	_, err = s.storeBlob(&ctxReader{ctx: ctx, r: f}, digest)
	return digest, err
}

// storeBlob writes a blob under a temporary name and renames it when its digest is known. An empty want takes any.
func (s *Store) storeBlob(r io.Reader, want string) (digest string, err error) {
	dir := filepath.Join(s.dir, "blobs")
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing of this name
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), r); err != nil {
		return "", fmt.Errorf("models: storing a blob: %w", err)
	}
	digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if want != "" && digest != want {
		return "", fault.New(fault.Invalid, "models.AddBlob", "digest mismatch, expected %q, got %q", want, digest)
	}
	path, err := s.blobPath(digest)
	if err != nil {
		return "", err
	}
	return digest, finish(f, path)
}

func fileDigest(ctx context.Context, f *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, &ctxReader{ctx: ctx, r: f}); err != nil {
		return "", fmt.Errorf("models: reading %s: %w", filepath.Base(f.Name()), err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writeDurably writes a file so that it is there whole, or not at all, whatever happens.
func writeDurably(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return finish(f, path)
}

// finish makes a temporary file the final one: sync the file, rename it, sync the folder.
func finish(f *os.File, path string) error {
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	return nil
}

// removeStaleTemps removes what a crash left behind. A day is longer than any upload that may still be running, also one
// of another process on the same folder.
func removeStaleTemps(dir string) {
	removeOlder(dir, tempPrefix, 24*time.Hour)
	removeOlder(filepath.Join(dir, partialDir), "", partialLife)
}

func removeOlder(dir, prefix string, age time.Duration) {
	old := time.Now().Add(-age)
	entries, _ := os.ReadDir(dir) // what cannot be read stays
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), prefix) && fi.ModTime().Before(old) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // another attempt at the next start
		}
	}
}

// ctxReader ends a copy when ctx ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
