package models

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ollama/ollama/fs/ggml"
)

// splitFile cuts a GGUF file into shards as llama-gguf-split does: the first has all keys, the others only those that say which
// shard they are; every offset begins again at 0. It gives the paths.
func splitFile(t testing.TB, path, dir, base string, n int) []string {
	t.Helper()
	src, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	whole, err := readShard("whole", path)
	if err != nil {
		t.Fatal(err)
	}
	h := whole.head
	keys := make([]byte, h.keysEnd-headStart)
	if _, err := src.ReadAt(keys, headStart); err != nil {
		t.Fatal(err)
	}
	var out []string
	for no := range n {
		mine := h.tensors[len(h.tensors)*no/n : len(h.tensors)*(no+1)/n]
		count := uint64(3)
		r := &rawGGUF{}
		r.WriteString("GGUF")
		r.num(uint32(3)).num(uint64(len(mine)))
		if no == 0 {
			r.num(count + h.keys).Write(keys)
		} else {
			r.num(count)
		}
		r.key(keySplitNo, ggufUint16).num(uint16(no)).key(keySplitCount, ggufUint16).num(uint16(n))
		r.key(keySplitTensors, ggufInt32).num(int32(len(h.tensors)))
		at := uint64(0)
		for _, info := range mine {
			r.info(info.name, info.kind, at, info.shape...)
			at = padded(at+info.bytes, 32)
		}
		r.Write(make([]byte, padded(uint64(r.Len()), 32)-uint64(r.Len())))
		out = append(out, filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.gguf", base, no+1, n)))
		f, err := os.Create(out[no])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(r.Bytes()); err != nil {
			t.Fatal(err)
		}
		for _, info := range mine {
			data := io.NewSectionReader(src, int64(h.data+info.offset), int64(info.bytes))
			if _, err := io.Copy(f, data); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(make([]byte, padded(info.bytes, 32)-info.bytes)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// manyTensors is a file of several tensors of different sizes and content, as f32 rows of 3 elements: their ends need padding.
func manyTensors(t testing.TB, n int, changes map[string]any) []byte {
	t.Helper()
	kv := ggml.KV{"general.architecture": "llama", "general.file_type": uint32(0), "llama.block_count": uint32(1), "general.name": "Many",
		"llama.rope.freq_base": float32(1e6)}
	for key, v := range changes {
		kv[key] = v
	}
	var tensors []*ggml.Tensor
	for i := range n {
		data := make([]byte, 12*(i+1))
		for j := range data {
			data[j] = byte(i*31 + j)
		}
		tensors = append(tensors, &ggml.Tensor{Name: fmt.Sprintf("blk.0.t%02d.weight", i), Kind: 0, Shape: []uint64{3, uint64(i + 1)}, WriterTo: bytes.NewReader(data)})
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "many.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ggml.WriteGGUF(f, kv, tensors); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return append(data, make([]byte, padded(uint64(len(data)), 32)-uint64(len(data)))...)
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// upload links files into the store: name to digest.
func upload(t *testing.T, s *Store, paths ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, p := range paths {
		d, err := s.LinkBlob(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = d
	}
	return files
}

// TestMergeReal splits a real model and merges it again. The file that comes out is the one that went in, to the byte: keys,
// order and bytes of all tensors.
// TestMergeTensors holds that every tensor comes through with its bytes, whatever the shards are called and wherever the cuts are.
// splitFileAligned is splitFile of a file that has an alignment of its own: only the first shard has the key.
func splitFileAligned(t *testing.T, path, dir string, n int, align uint32) []string {
	t.Helper()
	paths := splitFile(t, path, dir, "m", n)
	if align == 32 {
		return paths
	}
	// the first shard's tensors must stand as its own key says
	first, err := readShardLoose(paths[0], 32)
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	r := &rawGGUF{}
	r.Write(src[:first.keysEnd])
	at := uint64(0)
	for _, info := range first.tensors {
		r.info(info.name, info.kind, at, info.shape...)
		at = padded(at+info.bytes, uint64(align))
	}
	for _, info := range first.tensors {
		r.Write(make([]byte, padded(uint64(r.Len()), uint64(align))-uint64(r.Len())))
		from := first.data + info.offset
		r.Write(src[from : from+info.bytes])
	}
	write(t, paths[0], r.Bytes())
	return paths
}

// readShardLoose reads a header as if the file's alignment were another one.
func readShardLoose(path string, align uint64) (*header, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	at := bytes.Index(data, []byte("general.alignment")) + len("general.alignment") + 4
	binary.LittleEndian.PutUint32(data[at:], uint32(align))
	return readHeader(bytes.NewReader(data), int64(len(data)))
}

// tensorsOf reads all tensors of a file with the module's reader: name to shape and bytes.
// TestMergeStops holds that a Create that is cancelled while it merges leaves nothing behind.
// TestMergeShares holds that shards which another model needs stay, and that the same model made twice has its blob once.
func TestShardFiles(t *testing.T) {
	for path, want := range map[string][]string{
		"d/x-00002-of-00003.gguf": {"d/x-00001-of-00003.gguf", "d/x-00002-of-00003.gguf", "d/x-00003-of-00003.gguf"},
		"x.gguf":                  {"x.gguf"}, "x-00004-of-00003.gguf": {"x-00004-of-00003.gguf"}, "x-00000-of-00003.gguf": {"x-00000-of-00003.gguf"},
		"x-00001-of-99999.gguf": {"x-00001-of-99999.gguf"}, "x-1-of-3.gguf": {"x-1-of-3.gguf"}, "-00001-of-00001.gguf": {"-00001-of-00001.gguf"},
	} {
		if got := ShardFiles(path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// FuzzMerge holds for any two files: an error, or a plan whose file is whole and has the tensors of both.
