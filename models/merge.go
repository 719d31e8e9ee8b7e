package models

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

// merged is the one GGUF file that shards make together: the keys of the first but for those that tell shards, all tensors in the
// order of the shards. Only the header is in memory.
type merged struct {
	shards []shard
	head   []byte
	parts  []part
	size   uint64 // of the file
}

// part is the data of one tensor, and the padding behind it.
type part struct {
	shard            int
	from, bytes, pad uint64
}

// span is a range of bytes.
type span struct{ from, to uint64 }

// merge plans the file. Invalid when the shards are not those of one model.
func merge(shards []shard) (*merged, error) {
	shards, err := inOrder(shards)
	if err != nil {
		return nil, err
	}
	m := &merged{shards: shards}
	var infos bytes.Buffer
	num := func(v any) { _ = binary.Write(&infos, binary.LittleEndian, v) } // into memory
	align := shards[0].head.align
	tensors, at, given, seen := uint64(0), uint64(0), uint64(0), map[string]string{}
	for i, s := range shards {
		for _, t := range s.head.tensors {
			if other, twice := seen[t.name]; twice {
				return nil, fault.New(fault.Invalid, "models.merge", "tensor %.80q is in two shards: %s and %s", t.name, shown(other), shown(s.label))
			}
			seen[t.name] = s.label
			num(uint64(len(t.name)))
			infos.WriteString(t.name)
			num(uint32(len(t.shape)))
			for _, d := range t.shape {
				num(d)
			}
			num(t.kind)
			num(at)
			pad := padded(t.bytes, align) - t.bytes
			m.parts = append(m.parts, part{i, s.head.data + t.offset, t.bytes, pad})
			at += t.bytes + pad
		}
		tensors += uint64(len(s.head.tensors))
		given += s.head.size
	}
	if tensors > maxTensors {
		return nil, fault.New(fault.Invalid, "models.merge", "%d tensors are too many", tensors)
	}
	if m.head, err = mergedHead(shards[0], tensors, infos.Bytes()); err != nil {
		return nil, err
	}
	m.size = uint64(len(m.head)) + at
	if m.size > 2*given+1<<20 { // a large alignment and many small tensors: it would fill the disk with nothing
		return nil, fault.New(fault.Invalid, "models.merge", "%d bytes of shards would make a file of %d", given, m.size)
	}
	return m, nil
}

// mergedHead writes the header: the keys are the first shard's own bytes, so that no value of them changes.
func mergedHead(first shard, tensors uint64, infos []byte) ([]byte, error) {
	f, err := openFile(first.path)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	h := first.head
	var out bytes.Buffer
	out.WriteString("GGUF")
	for _, v := range []any{uint32(3), tensors, h.keys - uint64(len(h.shardKeys))} {
		_ = binary.Write(&out, binary.LittleEndian, v) // into memory
	}
	at := uint64(headStart)
	for _, cut := range append(h.shardKeys, span{h.keysEnd, h.keysEnd}) {
		if _, err := io.CopyN(&out, io.NewSectionReader(f, int64(at), int64(cut.from-at)), int64(cut.from-at)); err != nil {
			return nil, fmt.Errorf("models: reading %s: %w", first.label, err)
		}
		at = cut.to
	}
	out.Write(infos)
	end := padded(uint64(out.Len()), h.align) // keysEnd is below maxHeader
	if end > maxHeader {
		return nil, fault.New(fault.Invalid, "models.merge", "the header of the merged file would be larger than %d MiB", maxHeader>>20)
	}
	out.Write(make([]byte, end-uint64(out.Len())))
	return out.Bytes(), nil
}

// decode reads the metadata of the file as if it were there.
func (m *merged) decode(keep int) (g *ggml.GGML, err error) {
	err = guarded(func() error {
		g, err = ggml.Decode(&sparse{head: m.head, size: int64(m.size)}, keep)
		return err
	})
	return g, err
}

// sparse is a file of which only the head can be read.
type sparse struct {
	head     []byte
	size, at int64
}

func (s *sparse) Read(p []byte) (int, error) {
	if s.at >= int64(len(s.head)) {
		return 0, io.EOF
	}
	n := copy(p, s.head[s.at:])
	s.at += int64(n)
	return n, nil
}

func (s *sparse) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("models: a seek before the beginning")
	}
	s.at = offset
	return offset, nil
}

// mergeReader gives the file's bytes. It has one shard open at a time.
type mergeReader struct {
	m    *merged
	cur  io.Reader
	file *os.File
	open int // the shard that file is
	next int // part
	read uint64
}

func (m *merged) reader() *mergeReader { return &mergeReader{m: m, cur: bytes.NewReader(m.head)} }

func (r *mergeReader) Read(p []byte) (int, error) {
	for {
		n, err := r.cur.Read(p)
		r.read += uint64(n)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if r.next == len(r.m.parts) {
			if r.read != r.m.size {
				return 0, fmt.Errorf("models: a shard changed while it was read: %w", io.ErrUnexpectedEOF)
			}
			return 0, io.EOF
		}
		if err := r.part(r.m.parts[r.next]); err != nil {
			return 0, err
		}
		r.next++
	}
}

func (r *mergeReader) part(p part) error {
	if r.file == nil || r.open != p.shard {
		if err := r.Close(); err != nil {
			return err
		}
		f, err := openFile(r.m.shards[p.shard].path)
		if err != nil {
			return fmt.Errorf("models: %w", err)
		}
		r.file, r.open = f, p.shard
	}
	r.cur = io.MultiReader(io.NewSectionReader(r.file, int64(p.from), int64(p.bytes)), io.LimitReader(zeros{}, int64(p.pad)))
	return nil
}

// Close closes the open shard.
func (r *mergeReader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// emptyDigest stands where a digest must be, before there is one.
const emptyDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// shards adds the model that sharded GGUF files make together, as one new blob: an Ollama on this folder reads no shards.
func (b *builder) shards(ctx context.Context, shards []shard) error {
	m, err := merge(shards)
	if err != nil {
		return err
	}
	tell := func(done uint64) {
		b.progress(api.ProgressResponse{
			// Ollama's clients draw a bar for what has a digest, and the new one is not known yet
			Status: fmt.Sprintf("merging %d shards", len(m.shards)), Digest: emptyDigest, Total: int64(m.size), Completed: int64(done),
		})
	}
	digest := ""
	// It can be pinned only when its digest is known. Should a Delete of the same blob come between, it is made once more.
	for digest == "" || !b.store.HasBlob(digest) {
		tell(0)
		if digest, err = b.mergeBlob(ctx, m, tell); err != nil {
			return err
		}
		b.pin(digest)
	}
	b.made = append(b.made, layer{Digest: digest})
	tell(m.size)
	return b.gguf(digest)
}

func (b *builder) mergeBlob(ctx context.Context, m *merged, tell func(done uint64)) (string, error) {
	r := m.reader()
	defer r.Close()
	return b.store.storeBlob(&ctxReader{ctx: ctx, r: &told{r: r, step: m.size/100 + 1, tell: tell}}, "")
}

// told tells how much was read, once per step.
type told struct {
	r          io.Reader
	step       uint64
	done, last uint64
	tell       func(done uint64)
}

func (t *told) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.done += uint64(n)
	if t.done-t.last >= t.step {
		t.last = t.done
		t.tell(t.done)
	}
	return n, err
}
