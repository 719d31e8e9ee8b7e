package models

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/convert"
	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

// fromSafetensors converts a folder of uploaded files to a GGUF blob. The keys are paths relative to the folder and keep
// their folders: an encoder has config.json and 1_Pooling/config.json, and the two are not the same. With the values of a
// model, base, the folder is an adapter for it.
func (b *builder) fromSafetensors(ctx context.Context, files map[string]string, base ggml.KV) error {
	dir, err := os.MkdirTemp(b.store.dir, tempPrefix)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer os.RemoveAll(dir)
	in := filepath.Join(dir, "in")
	for path, digest := range files {
		blob, err := b.store.blobPath(digest)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".safetensors") {
			if err := b.store.checkSafetensors(digest); err != nil {
				return fault.New(fault.Invalid, "models.Create", "file %q cannot be converted: %s", path, err)
			}
		}
		// base has checked that the path is relative and has no dot-dot
		to := filepath.Join(in, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fault.Wrap(err, fault.Invalid, "models.Create", "file %q collides with another file", path)
		}
		if err := os.Symlink(blob, to); errors.Is(err, os.ErrExist) {
			return fault.Wrap(err, fault.Invalid, "models.Create", "file %q collides with another file", path)
		} else if err != nil {
			return fmt.Errorf("models: %w", err)
		}
	}
	out, err := os.Create(filepath.Join(dir, "gguf"))
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer out.Close()
	what := "model"
	if base != nil {
		what = "adapter"
	}
	b.progress(api.ProgressResponse{Status: "converting " + what})
	if err := convertFolder(in, out, base); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	digest, err := b.takeFile(ctx, out)
	if err != nil {
		return err
	}
	return b.gguf(digest)
}

// convertFolder runs the module's converter, which panics on some malformed tensors.
func convertFolder(in string, out *os.File, base ggml.KV) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fmt.Errorf("panic: %v", r), fault.Invalid, "models.Create", "the safetensors files cannot be converted")
		}
	}()
	run := func() error { return convert.ConvertModel(os.DirFS(in), out) }
	if base != nil {
		run = func() error { return convert.ConvertAdapter(os.DirFS(in), out, base) }
	}
	if err := run(); err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) { // its text has a path of ours; the file's name is all that the caller needs
			return fault.Wrap(err, fault.Invalid, "models.Create", "the safetensors files cannot be converted: %s: %v",
				filepath.Base(pathErr.Path), pathErr.Err)
		}
		return fault.Wrap(err, fault.Invalid, "models.Create", "the safetensors files cannot be converted: %s", err)
	}
	return nil
}

// takeFile stores a file of this builder as a blob.
func (b *builder) takeFile(ctx context.Context, f *os.File) (digest string, err error) {
	if digest, err = fileDigest(ctx, f); err != nil {
		return "", err
	}
	b.pin(digest)
	if b.store.HasBlob(digest) {
		return digest, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("models: %w", err)
	}
	b.made = append(b.made, layer{Digest: digest})
	_, err = b.store.storeBlob(&ctxReader{ctx: ctx, r: f}, digest)
	return digest, err
}

// checkSafetensors makes sure that a file's header claims no more than the file has: the converter allocates what it says.
func (s *Store) checkSafetensors(digest string) error {
	f, err := s.openBlob(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	var length uint64
	if err := binary.Read(f, binary.LittleEndian, &length); err != nil {
		return errors.New("it has no header")
	}
	const most = 100 << 20 // the format's own limit
	if length > most || int64(length) > fi.Size()-8 {
		return errors.New("its header is longer than the file")
	}
	data := fi.Size() - 8 - int64(length)
	head := map[string]json.RawMessage{}
	if err := json.NewDecoder(io.LimitReader(f, int64(length))).Decode(&head); err != nil {
		return errors.New("its header is not JSON")
	}
	for name, value := range head {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			Shape   []uint64 `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(value, &t); err != nil {
			return fmt.Errorf("tensor %.80q is malformed", name)
		}
		if t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > data {
			return fmt.Errorf("tensor %.80q lies outside the file", name)
		}
		elements := uint64(1)
		for _, d := range t.Shape {
			over, product := bits.Mul64(elements, d)
			if over != 0 || product > uint64(t.Offsets[1]-t.Offsets[0]) {
				return fmt.Errorf("tensor %.80q has more elements than bytes", name)
			}
			elements = product
		}
	}
	return nil
}
