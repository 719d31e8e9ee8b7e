package models

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
)

func TestFolderShards(t *testing.T) {
	s, dir := folderStore(t)
	whole := write(t, filepath.Join(t.TempDir(), "w"), manyTensors(t, 6, nil))
	paths := splitFile(t, whole, dir, "Many-F32", 3)
	wantListed(t, s, "many:f32")
	m, err := s.Get("many:f32")
	if err != nil {
		t.Fatal(err)
	}
	one, err := OpenStore(t.TempDir(), filepath.Dir(whole))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, whole+".gguf"); err != nil {
		t.Fatal(err)
	}
	want, err := one.Get("w")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, p := range paths {
		fi, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		size += fi.Size()
	}
	if m.Path != paths[0] || m.Size != size || !reflect.DeepEqual(m.Facts, want.Facts) || m.Template != want.Template || len(m.Facts.Layout.Layers) == 0 {
		t.Errorf("got  %+v\nwant %+v of %d bytes", m, want, size)
	}
	if _, tensors, err := s.Info(m, true); err != nil || len(tensors) != 6 {
		t.Errorf("%d tensors: %v", len(tensors), err)
	}
	// files that are no shards any more, while somebody asks about them
	first, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		write(t, p, tinyGGUF(t, nil))
	}
	_, _, err = s.Info(m, true)
	wantFault(t, err, fault.Invalid, "is no shard, but a whole model")
	splitFile(t, whole+".gguf", dir, "Many-F32", 3)
	if again, err := os.ReadFile(paths[0]); err != nil || !bytes.Equal(again, first) {
		t.Fatalf("split again: %v", err)
	}
	// as damaged in every way that concerns shards
	data, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	third, err := os.ReadFile(paths[2])
	if err != nil {
		t.Fatal(err)
	}
	for text, change := range map[string]func(){
		"Many-F32-00002-of-00003.gguf: the GGUF file is damaged: it is cut short":       func() { write(t, paths[1], data[:len(data)-40]) },
		"Many-F32-00002-of-00003.gguf is not what its name says: it holds shard 3 of 3": func() { write(t, paths[1], third) },
		"of its 3 files these are missing: Many-F32-00002-of-00003.gguf":                func() { os.Remove(paths[1]) },
		"Many-F32-00002-of-00003.gguf is not what its name says: it holds shard 1 of 0": func() { write(t, paths[1], tinyGGUF(t, nil)) },
	} {
		change()
		_, err = s.Get("many:f32")
		wantFault(t, err, fault.Invalid, "model 'many:f32' cannot be used: "+text)
		wantListed(t, s)
		write(t, paths[1], data)
	}
	if _, err = s.Get("many:f32"); err != nil {
		t.Errorf("mended: %v", err)
	}
	if err := os.Rename(paths[0], filepath.Join(dir, "alone.gguf")); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get("alone")
	wantFault(t, err, fault.Invalid, "it is shard 1 of 3: the files must be named NAME-00001-of-00003.gguf")
}

func TestFolderShardsReal(t *testing.T) {
	s, dir := folderStore(t)
	splitFile(t, realFile(t, smollmFile), dir, "smol-Q4_1", 4)
	m, err := s.Get("smol:q4_1")
	if err != nil {
		t.Fatal(err)
	}
	want, err := realStore(t).Get("smollm2:135m")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Facts, want.Facts) || m.Template != want.Template {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
}

func TestFolderBadFiles(t *testing.T) {
	log := logged(t)
	s, dir := folderStore(t)
	whole := tinyGGUF(t, nil)
	rows := map[string]struct {
		data []byte
		code fault.Code
		want string
	}{
		"cut":    {whole[:len(whole)-8], fault.Invalid, "cut short"},
		"text":   {[]byte("this is no model at all"), fault.Invalid, "does not begin with GGUF"},
		"empty":  {nil, fault.Invalid, "ends too early"},
		"counts": {raw(3, 1<<60, 0).Bytes(), fault.Invalid, "too many"},
		"lora":   {tinyGGUF(t, map[string]any{"general.type": "adapter"}), fault.Unimplemented, "not a model"},
		"clip":   {tinyGGUF(t, map[string]any{"general.architecture": "clip"}), fault.Unimplemented, "not a model"},
	}
	write(t, filepath.Join(dir, "good.gguf"), whole)
	for name, row := range rows {
		write(t, filepath.Join(dir, name+".gguf"), row.data)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.gguf"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantListed(t, s, "good:latest")
	}
	for name, row := range rows {
		_, err := s.Get(name)
		wantFault(t, err, row.code, "model '"+name+":latest' cannot be used: ")
		wantFault(t, err, row.code, row.want)
		if strings.Contains(fault.Public(err).Msg, dir) {
			t.Errorf("a path of the server is told: %v", err)
		}
	}
	if n := strings.Count(log(), "skipping a file that cannot be used"); n != len(rows) {
		t.Errorf("%d warnings for %d files:\n%s", n, len(rows), log())
	}
}

func TestFolderIsNotTheStores(t *testing.T) {
	s, dir := folderStore(t)
	path := write(t, filepath.Join(dir, "m-q8_0.gguf"), tinyGGUF(t, nil))
	splitFile(t, write(t, filepath.Join(t.TempDir(), "w"), manyTensors(t, 6, nil)), dir, "many", 3)
	for what, err := range map[string]error{
		"delete": s.Delete("M:q8_0"), "copy": s.Copy("m:q8_0", "n"), "installed": s.Installed("m:q8_0"), "push": push(s, "m:q8_0"),
	} {
		wantFault(t, err, fault.Conflict, "model 'm:q8_0' is the file m-q8_0.gguf in a folder of models")
		if f := fault.Public(err); !strings.Contains(f.Hint, "sluice create NAME --from m-q8_0.gguf") || strings.Contains(f.Msg+f.Hint, dir) {
			t.Errorf("%s: the hint is %q", what, f.Hint)
		}
	}
	wantFault(t, s.Installed("nobody"), fault.NotFound, "model 'nobody' not found")
	wantFault(t, s.Delete("nobody"), fault.NotFound, "model 'nobody' not found")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	for from, size := range map[string]int{"m:q8_0": len(tinyGGUF(t, nil)), "many": len(manyTensors(t, 6, nil))} {
		if err := s.Create(t.Context(), CreateRequest{Name: "mine", From: from, System: "Sing."}, nil); err != nil {
			t.Fatal(err)
		}
		m, err := s.Get("mine")
		if err != nil || m.InFolder() || m.System != "Sing." || !strings.Contains(m.Path, filepath.Join("blobs", "sha256-")) || m.Template == "" {
			t.Errorf("imported: %+v, %v", m, err)
		}
		if fi, err := os.Stat(m.Path); err != nil || fi.Size() != int64(size) {
			t.Errorf("%s: its blob: %v, %v", from, fi, err)
		}
		if err := s.Installed("MINE"); err != nil {
			t.Error(err)
		}
	}
	// a blob is a copy: what is written into the file later does not reach it
	if err := s.Create(t.Context(), CreateRequest{Name: "copy", From: "m:q8_0"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("copy"); err != nil {
		t.Errorf("the blob was a link: %v", err)
	}
}

func push(s *Store, name string) error {
	_, _, err := s.Manifest(name)
	return err
}

func TestFolderShardsOfTheOtherEngine(t *testing.T) {
	s, dir := folderStore(t)
	whole := write(t, filepath.Join(t.TempDir(), "w"), manyTensors(t, 6, map[string]any{"general.architecture": "gptoss"}))
	paths := splitFile(t, whole, dir, "oss", 2)
	_, err := s.Get("oss")
	wantFault(t, err, fault.Unimplemented, "model 'oss:latest' cannot be used: the engine that runs gptoss models reads one file")
	if err := s.Create(t.Context(), CreateRequest{Name: "oss", Files: upload(t, s, paths...)}, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Get("oss"); err != nil || m.InFolder() {
		t.Errorf("made of the shards: %v, %v", m, err)
	}
}

func TestFolderProjectors(t *testing.T) {
	clip := tinyGGUF(t, map[string]any{"general.architecture": "clip", "general.type": nil})
	model := tinyGGUF(t, map[string]any{"tokenizer.chat_template": nil})
	rows := map[string]struct {
		files []string
		want  map[string]string // model to its projector
	}{
		"one for one":                  {[]string{"llava-q4_0.gguf", "mmproj-llava-f16.gguf"}, map[string]string{"llava:q4_0": "mmproj-llava-f16.gguf"}},
		"any name will do":             {[]string{"llava-q4_0.gguf", "mmproj-model.gguf"}, map[string]string{"llava:q4_0": "mmproj-model.gguf"}},
		"several types of one":         {[]string{"v-q4_0.gguf", "v-q8_0.gguf", "mmproj-F16.gguf"}, map[string]string{"v:q4_0": "mmproj-F16.gguf", "v:q8_0": "mmproj-F16.gguf"}},
		"F16 of several":               {[]string{"v-q4_0.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf"}, map[string]string{"v:q4_0": "mmproj-F16.gguf"}},
		"several models: by the name":  {[]string{"v-q4_0.gguf", "w-q4_0.gguf", "mmproj-v-f16.gguf"}, map[string]string{"v:q4_0": "mmproj-v-f16.gguf", "w:q4_0": ""}},
		"the name may stand before":    {[]string{"v-7b-q4_0.gguf", "w.gguf", "V-7B-mmproj-f16.gguf"}, map[string]string{"v-7b:q4_0": "V-7B-mmproj-f16.gguf", "w:latest": ""}},
		"several models: of nobody":    {[]string{"v-q4_0.gguf", "w-q4_0.gguf", "mmproj-F16.gguf"}, map[string]string{"v:q4_0": "", "w:q4_0": ""}},
		"not from another folder":      {[]string{"a/v-q4_0.gguf", "b/mmproj-F16.gguf"}, map[string]string{"v:q4_0": ""}},
		"a projector alone is nothing": {[]string{"mmproj-F16.gguf"}, map[string]string{}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s, dir := folderStore(t)
			for _, f := range row.files {
				data := model
				if strings.Contains(f, "mmproj") {
					data = clip
				}
				write(t, filepath.Join(dir, f), data)
			}
			list, err := s.List()
			if err != nil || len(list) != len(row.want) {
				t.Fatalf("listed: %v, %v", list, err)
			}
			for _, m := range list {
				got := ""
				if m.Projector() != "" {
					got = filepath.Base(m.Projector())
				}
				if want, ok := row.want[m.Name]; !ok || got != want {
					t.Errorf("%s has %q, want %q", m.Name, got, want)
				}
				if slices.Contains(m.Capabilities(), "vision") != (got != "") {
					t.Errorf("%s with %q: %v", m.Name, got, m.Capabilities())
				}
				if size := int64(len(model)); got != "" && m.Size != size+int64(len(clip)) {
					t.Errorf("its size is %d", m.Size)
				}
			}
		})
	}
	s, dir := folderStore(t)
	write(t, filepath.Join(dir, "v.gguf"), model)
	write(t, filepath.Join(dir, "mmproj.gguf"), clip[:len(clip)-8])
	_, err := s.Get("v")
	wantFault(t, err, fault.Invalid, "model 'v:latest' cannot be used: mmproj.gguf: the GGUF file is damaged: it is cut short")
	write(t, filepath.Join(dir, "mmproj.gguf"), model)
	_, err = s.Get("v")
	wantFault(t, err, fault.Invalid, "mmproj.gguf is not a projector")
}
