package models

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

// TestTensorKinds holds the table against the module's own, which lacks three.
func TestTensorKinds(t *testing.T) {
	for n, kind := range tensorKinds {
		theirs := ggml.TensorType(n)
		if n == 34 || n == 35 {
			continue // TQ1_0 and TQ2_0 have no size there
		}
		if theirs.TypeSize() != kind.bytes || theirs.BlockSize() != kind.elements {
			t.Errorf("type %d: %d bytes for %d elements, the module says %d for %d", n, kind.bytes, kind.elements, theirs.TypeSize(), theirs.BlockSize())
		}
	}
	for n := range uint32(64) {
		if _, ok := tensorKinds[n]; !ok && ggml.TensorType(n).TypeSize() != 0 {
			t.Errorf("type %d is missing", n)
		}
	}
}

// ends gives where a file's header and its tensors end.
func ends(t *testing.T, path string) (header, tensors int64) {
	t.Helper()
	s, err := readShard("x", path)
	if err != nil {
		t.Fatal(err)
	}
	end := s.head.data
	for _, info := range s.head.tensors {
		end = max(end, s.head.data+info.offset+info.bytes)
	}
	return int64(s.head.data), int64(end)
}

// TestCutFiles cuts whole files at many places. Each cut is found, before a runner maps a file that is not there to its end.
func TestCutFiles(t *testing.T) {
	tiny := filepath.Join(t.TempDir(), "tiny")
	if err := os.WriteFile(tiny, tinyGGUF(t, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{"tiny": tiny, "real": realFile(t, smollmFile)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cut.gguf")
			copyFile(t, source, path)
			if err := CheckGGUF(path); err != nil {
				t.Fatalf("the whole file: %v", err)
			}
			header, end := ends(t, path)
			cuts := []int64{end - 1, end - 2, end - 31, header + 1, header, header - 1, header - 33, 1000, 100, 32, 24, 23, 16, 8, 7, 4, 3, 1, 0}
			for i := range int64(16) {
				cuts = append(cuts, header+(end-header)*i/16, header*i/16)
			}
			descending(cuts)
			for _, at := range cuts {
				if err := os.Truncate(path, at); err != nil {
					t.Fatal(err)
				}
				if err := CheckGGUF(path); fault.CodeOf(err) != fault.Invalid || err == nil {
					t.Errorf("cut at %d of %d: %v", at, end, err)
				}
			}
		})
	}
}

func descending(cuts []int64) {
	for i := range cuts {
		for j := i + 1; j < len(cuts); j++ {
			if cuts[j] > cuts[i] {
				cuts[i], cuts[j] = cuts[j], cuts[i]
			}
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

func TestCheckGGUF(t *testing.T) {
	dir := t.TempDir()
	wantFault(t, CheckGGUF(filepath.Join(dir, "none")), fault.NotFound, "no such file")
	wantFault(t, CheckGGUF(dir), fault.Invalid, "not a file")
}

// info writes a tensor's entry.
func (r *rawGGUF) info(name string, kind uint32, offset uint64, shape ...uint64) *rawGGUF {
	r.str(name).num(uint32(len(shape)))
	for _, d := range shape {
		r.num(d)
	}
	return r.num(kind).num(offset)
}

// TestHostileTensors holds that a list of tensors promises nothing that is not in the file, however it counts.
func TestHostileTensors(t *testing.T) {
	file := func(r *rawGGUF) []byte { return append(r.Bytes(), make([]byte, 4096)...) }
	one := func() *rawGGUF { return raw(3, 1, 1).arch() }
	rows := map[string]struct {
		data []byte
		want string // "": it passes
	}{
		"a whole one":         {file(one().info("t", 0, 0, 4, 4)), ""},
		"no tensor at all":    {raw(3, 0, 1).arch().Bytes(), ""},
		"a scalar":            {file(one().info("t", 0, 0)), ""},
		"one after the end":   {file(one().info("t", 0, 5000, 4)), "after the end"},
		"one over the end":    {file(one().info("t", 0, 4090, 4)), "cut short"},
		"an offset of 2^64-1": {file(one().info("t", 0, math.MaxUint64, 4)), "after the end"},
		"an offset that comes round to the start": {file(one().info("t", 0, math.MaxUint64-63, 32)), "after the end"},
		"elements that come round to 0":           {file(one().info("t", 0, 0, 1<<32, 1<<32)), "too large"},
		"elements that come round to a few":       {file(one().info("t", 0, 0, 3, 0x5555555555555556)), "too large"},
		"bytes that come round with the widest":   {file(one().info("t", 15, 0, 1<<55)), "cut short"},
		"2^55 doubles":                            {file(one().info("t", 28, 0, 1<<55)), "cut short"},
		"a dimension of 0":                        {file(one().info("t", 0, 0, 4, 0)), "no elements"},
		"five dimensions":                         {file(one().info("t", 0, 0, 1, 1, 1, 1, 1)), "dimensions"},
		"a type that was removed":                 {file(one().info("t", 31, 0, 256)), "type 31, which this version does not know"},
		"a type of the future":                    {file(one().info("t", 4000000000, 0, 256)), "which this version does not know"},
		"half a block":                            {file(one().info("t", 2, 0, 16)), "blocks of 32"},
		"rows of half a block":                    {file(one().info("t", 12, 0, 128, 2)), "blocks of 256"},
		"a name twice":                            {file(raw(3, 2, 1).arch().info("t", 0, 0, 4).info("t", 0, 32, 4)), "twice"},
		"a very long name":                        {file(one().info(string(make([]byte, 2000)), 0, 0, 4)), "too long"},
		"as many as no model has":                 {file(raw(3, maxTensors+1, 1).arch()), "too many"},
		"fewer than it says":                      {one().Bytes(), "ends too early"},
		"an alignment larger than the file":       {file(raw(3, 1, 2).arch().key("general.alignment", ggufUint32).num(uint32(1<<31)).info("t", 0, 0, 4)), "cut short"},
		"shard 3 of 2":                            {file(raw(3, 0, 3).arch().key(keySplitNo, ggufUint16).num(uint16(2)).key(keySplitCount, ggufUint16).num(uint16(2))), "shard 3 of 2"},
		"a shard of none":                         {file(raw(3, 0, 2).arch().key(keySplitNo, ggufUint16).num(uint16(2))), "shard 3 of 0"},
		"as many shards as no model has":          {file(raw(3, 0, 2).arch().key(keySplitCount, ggufUint16).num(uint16(math.MaxUint16))), "too many"},
		"a shard's number of another type":        {file(raw(3, 0, 2).arch().key(keySplitNo, ggufUint32).num(uint32(1))), "not a uint16"},
		"a number of shards in words":             {file(raw(3, 0, 2).arch().key(keySplitCount, ggufString).str("two")), "not a uint16"},
		"minus one tensor in all shards":          {file(raw(3, 0, 2).arch().key(keySplitTensors, ggufInt32).num(int32(-1))), "too many"},
		"tensors in all shards, of another type":  {file(raw(3, 0, 2).arch().key(keySplitTensors, ggufUint32).num(uint32(1))), "not an int32"},
		"one shard of two":                        {file(raw(3, 0, 3).arch().key(keySplitNo, ggufUint16).num(uint16(0)).key(keySplitCount, ggufUint16).num(uint16(2))), "shard 1 of 2 of a model"},
		"a shard of one":                          {file(raw(3, 0, 3).arch().key(keySplitNo, ggufUint16).num(uint16(0)).key(keySplitCount, ggufUint16).num(uint16(1))), ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.gguf")
			if err := os.WriteFile(path, row.data, 0o600); err != nil {
				t.Fatal(err)
			}
			err := CheckGGUF(path)
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			code := fault.Invalid
			if strings.Contains(row.want, "does not know") {
				code = fault.Unimplemented
			}
			wantFault(t, err, code, row.want)
		})
	}
}

// TestCutUnderTheStore holds that a blob which was cut after the model was read is noticed, in an adapter and a projector too.
func TestCutUnderTheStore(t *testing.T) {
	s := newStore(t)
	parts := map[string][]byte{
		"m.gguf": tinyGGUF(t, nil), "lora.gguf": tinyGGUF(t, map[string]any{"general.type": "adapter"}),
		"mmproj.gguf": tinyGGUF(t, map[string]any{"general.architecture": "clip", "general.type": nil}),
	}
	files := map[string]string{}
	for name, data := range parts {
		files[name] = addBlob(t, s, data)
	}
	if err := s.Create(t.Context(), CreateRequest{Name: "m", Files: files}, nil); err != nil {
		t.Fatal(err)
	}
	for name, data := range parts {
		if _, err := s.Get("m"); err != nil {
			t.Fatal(err)
		}
		path, err := s.blobPath(files[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(len(data)-8)); err != nil {
			t.Fatal(err)
		}
		_, err = s.Get("m")
		wantFault(t, err, fault.Invalid, "model 'm:latest' cannot be used: the GGUF file is damaged: it is cut short")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get("m"); err != nil {
		t.Errorf("mended: %v", err)
	}
}

// checkTensors holds what readHeader promises to whoever reads the tensors.
func checkTensors(t *testing.T, data []byte, g *ggml.GGML) {
	t.Helper()
	h, err := readHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("decoded, but: %v", err)
	}
	theirs := g.Tensors()
	if len(theirs.Items()) != len(h.tensors) || theirs.Offset != h.data {
		t.Fatalf("%d tensors from %d, the module says %d from %d", len(h.tensors), h.data, len(theirs.Items()), theirs.Offset)
	}
	for i, their := range theirs.Items() {
		our := h.tensors[i]
		if our.name != their.Name || our.offset != their.Offset || our.bytes != their.Size() && their.Size() != 0 {
			t.Errorf("tensor %+v, the module says %+v", our, their)
		}
		if end := h.data + our.offset + our.bytes; end > uint64(len(data)) {
			t.Errorf("tensor %q ends at %d of %d", our.name, end, len(data))
		}
	}
}
