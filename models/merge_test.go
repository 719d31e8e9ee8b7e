package models

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

func TestMergeReal(t *testing.T) {
	path := realFile(t, smollmFile)
	s := newStore(t)
	files := upload(t, s, splitFile(t, path, t.TempDir(), "smol", 3)...)
	var bars []api.ProgressResponse
	err := s.Create(t.Context(), CreateRequest{Name: "smol", Files: files}, func(p api.ProgressResponse) {
		if p.Status == "merging 3 shards" {
			bars = append(bars, p)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("smol")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := fileDigest(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.blobPath(want); m.Path != got {
		t.Errorf("the merged file %s is not the original %s", m.Path, want)
	}
	original, err := realStore(t).Get("smollm2:135m")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Facts, original.Facts) || m.Template != original.Template || m.Size != original.Size {
		t.Errorf("got  %+v\nwant %+v", m, original)
	}
	if len(bars) < 50 || len(bars) > 110 {
		t.Errorf("%d lines of progress", len(bars))
	}
	last := bars[len(bars)-1]
	if last.Completed != last.Total || last.Total < 98e6 || last.Digest == "" {
		t.Errorf("the last line is %+v", last)
	}
	for name, d := range files {
		if s.HasBlob(d) {
			t.Errorf("%s takes room although nobody needs it", name)
		}
	}
}

func TestMergeTensors(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		for _, align := range []uint32{32, 64, 4096} {
			data := manyTensors(t, 7, map[string]any{"general.alignment": align})
			dir := t.TempDir()
			whole := write(t, filepath.Join(dir, "whole"), data)
			s := newStore(t)
			files := map[string]string{}
			for i, p := range splitFileAligned(t, whole, dir, n, align) {
				for _, d := range upload(t, s, p) {
					files[fmt.Sprintf("part-%c.gguf", 'z'-i)] = d // an order that is none
				}
			}
			if err := s.Create(t.Context(), CreateRequest{Name: "m", Files: files}, nil); err != nil {
				t.Fatal(err)
			}
			m, err := s.Get("m")
			if err != nil {
				t.Fatal(err)
			}
			want, got := tensorsOf(t, whole), tensorsOf(t, m.Path)
			if !reflect.DeepEqual(got, want) || len(got) != 7 {
				t.Errorf("%d shards, alignment %d: the tensors differ", n, align)
			}
			made, err := readShard("merged", m.Path)
			if err != nil {
				t.Fatal(err)
			}
			at := uint64(0) // llama.cpp wants each tensor right behind the one before, at the next multiple
			for _, info := range made.head.tensors {
				if info.offset != at || made.head.data%uint64(align) != 0 {
					t.Errorf("%s stands at %d, not at %d, of data that begins at %d", info.name, info.offset, at, made.head.data)
				}
				at = padded(at+info.bytes, uint64(align))
			}
			kv, _, err := s.Info(m, true)
			if err != nil {
				t.Fatal(err)
			}
			if kv["general.alignment"] != align || kv["llama.rope.freq_base"] != float32(1e6) {
				t.Errorf("keys were lost: %v", kv)
			}
			for key := range kv {
				if strings.HasPrefix(key, "split.") {
					t.Errorf("the merged file says %s", key)
				}
			}
		}
	}
}

func tensorsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := ggml.Decode(f, -1)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, info := range g.Tensors().Items() {
		data := make([]byte, info.Size())
		if _, err := f.ReadAt(data, int64(g.Tensors().Offset+info.Offset)); err != nil {
			t.Fatal(err)
		}
		out[info.Name] = fmt.Sprintf("%v %d %x", info.Shape, info.Kind, data)
	}
	return out
}

func TestMergeRefuses(t *testing.T) {
	dir := t.TempDir()
	a := splitFile(t, write(t, filepath.Join(dir, "a"), manyTensors(t, 6, nil)), dir, "a", 3)
	b := splitFile(t, write(t, filepath.Join(dir, "b"), manyTensors(t, 5, nil)), dir, "b", 3)
	again := splitFile(t, write(t, filepath.Join(dir, "c"), manyTensors(t, 6, map[string]any{"general.name": "again"})), dir, "c", 2)
	data, err := os.ReadFile(a[1])
	if err != nil {
		t.Fatal(err)
	}
	cut := write(t, filepath.Join(dir, "cut.gguf"), data[:len(data)-40])
	copied := write(t, filepath.Join(dir, "copy.gguf"), append(bytes.Clone(data), 0)) // a byte behind the end is nobody's
	third, err := os.ReadFile(a[2])
	if err != nil {
		t.Fatal(err)
	}
	twice := write(t, filepath.Join(dir, "twice.gguf"), bytes.Replace(third, []byte("blk.0.t04"), []byte("blk.0.t03"), 1))
	fewer := write(t, filepath.Join(dir, "fewer.gguf"), raw(3, 0, 3).key(keySplitNo, ggufUint16).num(uint16(2)).key(keySplitCount, ggufUint16).
		num(uint16(3)).key(keySplitTensors, ggufInt32).num(int32(6)).Bytes())
	wide := splitFile(t, write(t, filepath.Join(dir, "d"), manyTensors(t, 64, map[string]any{"general.alignment": uint32(1 << 16)})), dir, "d", 2)
	if err := os.Truncate(wide[0], 80<<10); err != nil { // as long as its key says
		t.Fatal(err)
	}
	plain := write(t, filepath.Join(dir, "plain.gguf"), tinyGGUF(t, nil))
	rows := map[string]struct {
		paths []string
		want  string
	}{
		"the second is missing":         {[]string{a[0], a[2]}, "of 3 shards of the model these are missing: 2"},
		"only one is there":             {[]string{a[0]}, "these are missing: 2, 3"},
		"the first is missing":          {[]string{a[1], a[2]}, "these are missing: 1"},
		"one is there twice":            {[]string{a[0], a[1], copied, a[2]}, "shard 2 of 3 is there twice: a-00002-of-00003.gguf and copy.gguf"},
		"one is of another model":       {[]string{a[0], a[1], b[2]}, "are not of one model"},
		"one is of another split":       {[]string{a[0], a[1], again[1]}, "are not of one model"},
		"one is cut":                    {[]string{a[0], cut, a[2]}, "cut.gguf: the GGUF file is damaged: it is cut short"},
		"a tensor is in two of them":    {[]string{a[0], a[1], twice}, `tensor "blk.0.t03.weight" is in two shards`},
		"they have fewer than they say": {[]string{a[0], a[1], fewer}, "4 tensors in all, and say that there are 6"},
		"an alignment that blows it up": {wide, "would make a file of"},
		"a whole model beside them":     {[]string{a[0], a[1], a[2], plain}, "these are several models"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			files := upload(t, s, row.paths...)
			before := blobs(t, s)
			wantFault(t, s.Create(t.Context(), CreateRequest{Name: "x", Files: files}, nil), fault.Invalid, row.want)
			if after := blobs(t, s); !reflect.DeepEqual(after, before) {
				t.Errorf("blobs before: %v, after: %v", before, after)
			}
		})
	}
}

func TestMergeStops(t *testing.T) {
	s := newStore(t)
	files := upload(t, s, splitFile(t, realFile(t, smollmFile), t.TempDir(), "smol", 3)...)
	before := blobs(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Create(ctx, CreateRequest{Name: "x", Files: files}, func(p api.ProgressResponse) {
		if p.Completed > p.Total/2 {
			cancel()
		}
	})
	if fault.CodeOf(err) != fault.Canceled || err == nil {
		t.Errorf("got %v", err)
	}
	if after := blobs(t, s); !reflect.DeepEqual(after, before) {
		t.Errorf("blobs before: %v, after: %v", before, after)
	}
}

func TestMergeShares(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	paths := splitFile(t, write(t, filepath.Join(dir, "a"), manyTensors(t, 6, nil)), dir, "a", 2)
	for _, name := range []string{"one", "two"} {
		if err := s.Create(t.Context(), CreateRequest{Name: name, Files: upload(t, s, paths...)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	one, err := s.Get("one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Get("two")
	if err != nil || one.Path != two.Path {
		t.Errorf("two blobs of one model: %v, %v", two, err)
	}
	if err := s.Delete("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("two"); err != nil {
		t.Errorf("the other lost its blob: %v", err)
	}
	// a manifest that names a shard itself, as another program may have left it
	d := upload(t, s, paths[0])["a-00001-of-00002.gguf"]
	if err := s.writeManifest(mustName(t, "planted"), &manifest{SchemaVersion: 2, Layers: []layer{{MediaType: mediaModel, Digest: d, Size: 1}}}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get("planted")
	wantFault(t, err, fault.Invalid, "shard 1 of 2 of a model")
	if err := s.Create(t.Context(), CreateRequest{Name: "three", Files: upload(t, s, paths...)}, nil); err != nil {
		t.Fatal(err)
	}
	if !s.HasBlob(d) {
		t.Error("a shard that a manifest names was removed")
	}
}

func FuzzMerge(f *testing.F) {
	dir := f.TempDir()
	paths := splitFile(f, write(f, filepath.Join(dir, "a"), manyTensors(f, 3, nil)), dir, "a", 2)
	var seeds [][]byte
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data)
	}
	f.Add(seeds[0], seeds[1])
	f.Add(seeds[1], seeds[0])
	f.Add(seeds[0], seeds[0])
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var shards []shard
		for i, data := range [][]byte{one, two} {
			s, err := readShard(fmt.Sprint(i), write(t, filepath.Join(dir, fmt.Sprint("f", i)), data))
			if err != nil {
				if code := fault.CodeOf(err); code != fault.Invalid && code != fault.Unimplemented {
					t.Errorf("%s: %v", code, err)
				}
				return
			}
			shards = append(shards, s)
		}
		if !shards[0].head.split.sharded() || !shards[1].head.split.sharded() {
			return
		}
		m, err := merge(shards)
		if err != nil {
			wantFault(t, err, fault.Invalid, "")
			return
		}
		if m.size > 1<<24 { // an alignment may pad to gigabytes
			return
		}
		data, err := io.ReadAll(m.reader())
		if err != nil || uint64(len(data)) != m.size {
			t.Fatalf("%d bytes of %d: %v", len(data), m.size, err)
		}
		if err := CheckGGUF(write(t, filepath.Join(dir, "merged"), data)); err != nil && !strings.Contains(err.Error(), "panic") {
			t.Errorf("two files that are whole make one that is not: %v", err)
		}
	})
}

// TestMergeTogether holds that Creates of the same shards and Deletes of what they made do not take each other's blobs.
func TestMergeTogether(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	paths := splitFile(t, write(t, filepath.Join(dir, "a"), manyTensors(t, 6, nil)), dir, "a", 2)
	var wg sync.WaitGroup
	for i := range 4 {
		name := fmt.Sprintf("m%d", i)
		wg.Go(func() {
			for range 8 {
				files := map[string]string{}
				for _, p := range paths {
					d, err := s.LinkBlob(t.Context(), p)
					if err != nil {
						t.Error(err)
					}
					files[filepath.Base(p)] = d
				}
				err := s.Create(t.Context(), CreateRequest{Name: name, Files: files}, nil)
				if err != nil && strings.Contains(err.Error(), "was not uploaded") { // another one needed it no more
					continue
				}
				if err != nil {
					t.Error(err)
					continue
				}
				if _, err := s.Get(name); err != nil {
					t.Error(err)
				}
				if err := s.Delete(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, p := range paths { // those whose Create came too late
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		d, err := fileDigest(t.Context(), f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if blob, err := s.blobPath(d); err == nil {
			os.Remove(blob)
		}
	}
	if left := blobs(t, s); len(left) != 0 {
		t.Errorf("blobs that nobody uses: %v", left)
	}
}
