package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

func TestNames(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "Tiny", "one")
	tinyModel(t, s, "someone/Other:1B", "two")
	tinyModel(t, s, "example.com/a/far", "three")
	rows := map[string]struct{ ask, want string }{
		"a missing tag is latest":        {"Tiny", "Tiny:latest"},
		"any case":                       {"tINY:LATEST", "Tiny:latest"},
		"a missing namespace is library": {"library/tiny", "Tiny:latest"},
		"the whole name":                 {"registry.ollama.ai/library/tiny:latest", "Tiny:latest"},
		"another namespace":              {"SOMEONE/other:1b", "someone/Other:1B"},
		"another host":                   {"example.com/a/far", "example.com/a/far:latest"},
		"another tag":                    {"tiny:7b", ""},
		"empty":                          {"", ""},
		"the folder above":               {"../../blobs/x", ""},
		"a name with a path":             {"/etc/passwd", ""},
		"a temporary file is no tag":     {"tiny:.sluice-tmp-1", ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			m, err := s.Get(row.ask)
			if row.want == "" {
				wantFault(t, err, fault.NotFound, "model '"+row.ask+"' not found")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != row.want {
				t.Errorf("got %q, want %q", m.Name, row.want)
			}
		})
	}
	// a new model of another spelling is the same model
	tinyModel(t, s, "TINY", "four")
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	if want := []string{"Tiny:latest", "example.com/a/far:latest", "someone/Other:1B"}; !reflect.DeepEqual(names, want) {
		t.Errorf("listed, newest first: %v, want %v", names, want)
	}
}

// TestOllamasFolder reads a folder that is written file by file as an Ollama 0.17.4 writes it: manifest of a pulled model,
// with a config that counts parameters differently and a parent that is a path.
func TestOllamasFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(data []byte) string {
		d := digestOf(data)
		path := filepath.Join(dir, "blobs", strings.Replace(d, ":", "-", 1))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return d
	}
	gguf := put(tinyGGUF(t, nil))
	config := put([]byte(`{"model_format":"gguf","model_family":"qwen2","model_families":["qwen2"],"model_type":"494.03M","file_type":"Q8_0","architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`))
	tmpl := put([]byte(chatML))
	system := put([]byte("You are helpful."))
	params := put([]byte(`{"stop":["<|im_end|>"],"temperature":0.5,"num_ctx":4096}`))
	license := put([]byte("MIT"))
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
		`"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":%q,"size":10},"layers":[`+
		`{"mediaType":"application/vnd.ollama.image.model","digest":%q,"size":1000,"from":"/home/somebody/x.gguf"},`+
		`{"mediaType":"application/vnd.ollama.image.template","digest":%q,"size":1},{"mediaType":"application/vnd.ollama.image.system","digest":%q,"size":1},`+
		`{"mediaType":"application/vnd.ollama.image.params","digest":%q,"size":1},{"mediaType":"application/vnd.ollama.image.license","digest":%q,"size":1},`+
		`{"mediaType":"application/vnd.ollama.image.projector","digest":%q,"size":1},{"mediaType":"application/vnd.ollama.image.something-new","digest":"sha256:none","size":1}]}`,
		config, gguf, tmpl, system, params, license, gguf)
	path := filepath.Join(dir, "manifests", "registry.ollama.ai", "library", "qwen2.5", "0.5b")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("qwen2.5:0.5b")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "qwen2.5:0.5b" || m.Digest != strings.TrimPrefix(digestOf([]byte(manifest)), "sha256:") || m.Size != 10+1000+6 ||
		m.System != "You are helpful." || m.Template != chatML || !reflect.DeepEqual(m.License, []string{"MIT"}) {
		t.Errorf("got %+v", m)
	}
	want := api.ModelDetails{Format: "gguf", Family: "qwen2", Families: []string{"qwen2"}, ParameterSize: "494.03M", QuantizationLevel: "Q8_0"}
	if d := m.Details(); !reflect.DeepEqual(d, want) {
		t.Errorf("details: %+v, want %+v", d, want)
	}
	if got, want := m.Parameters(), "num_ctx                        4096\nstop                           \"<|im_end|>\"\ntemperature                    0.5"; got != want {
		t.Errorf("parameters:\n%s\nwant:\n%s", got, want)
	}
}

func TestBlobs(t *testing.T) {
	s := newStore(t)
	data := []byte("some bytes")
	d := digestOf(data)
	wantFault(t, s.AddBlob(t.Context(), digestOf([]byte("others")), bytes.NewReader(data)), fault.Invalid, "digest mismatch")
	wantFault(t, s.AddBlob(t.Context(), "sha256:../../../etc/x", bytes.NewReader(data)), fault.Invalid, "invalid digest")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.AddBlob(ctx, d, bytes.NewReader(data)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: %v", err)
	}
	broken := errors.New("the line broke")
	if err := s.AddBlob(t.Context(), d, io.MultiReader(bytes.NewReader(data[:4]), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("an upload that breaks off: %v", err)
	}
	if left := blobs(t, s); len(left) != 0 || s.HasBlob(d) {
		t.Fatalf("half a blob is there: %v", left)
	}
	if err := s.AddBlob(t.Context(), strings.ToUpper(strings.Replace(d, "sha256:", "", 1)), bytes.NewReader(data)); err == nil {
		t.Error("a digest without its kind is taken")
	}
	if err := s.AddBlob(t.Context(), d, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if !s.HasBlob(d) || !s.HasBlob(strings.Replace(d, ":", "-", 1)) {
		t.Error("the blob is not there")
	}
	// the same again is read to its end, so that the client is not cut off
	again := bytes.NewReader(data)
	if err := s.AddBlob(t.Context(), d, again); err != nil || again.Len() != 0 {
		t.Errorf("%v, %d bytes unread", err, again.Len())
	}
	// what a crash left is removed when it is old
	old, fresh := filepath.Join(s.dir, "blobs", tempPrefix+"old"), filepath.Join(s.dir, "blobs", tempPrefix+"fresh")
	for _, p := range []string{old, fresh} {
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(s.dir); err != nil {
		t.Fatal(err)
	}
	if left := blobs(t, s); left[tempPrefix+"old"] || !left[tempPrefix+"fresh"] {
		t.Errorf("after the next start: %v", left)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestDamage(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "a", "one")
	tinyModel(t, s, "b", "two")
	a, err := s.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(a.Path); err != nil {
		t.Fatal(err)
	}
	_, err = s.Get("a")
	wantFault(t, err, fault.Invalid, "model 'a:latest'")
	if strings.Contains(fault.Public(err).Msg, s.dir) {
		t.Errorf("the message has a path of the server: %s", fault.Public(err).Msg)
	}
	// a manifest cut short by a power cut of another program: skipped, and it can be deleted
	path := s.manifestPath(mustName(t, "c"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"schemaVersion":2,"lay`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Name != "b:latest" {
		t.Errorf("listed: %v, %v", list, err)
	}
	_, err = s.Get("c")
	wantFault(t, err, fault.Invalid, "model 'c:latest' is damaged")
	if err := s.Delete("c"); err != nil {
		t.Error(err)
	}
}

func TestCopy(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "a", "one")
	tinyModel(t, s, "b", "two")
	old, err := s.Get("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Copy("A", "B"); err != nil {
		t.Fatal(err)
	}
	a, _ := s.Get("a")
	b, err := s.Get("b")
	if err != nil || b.Path != a.Path || b.Name != "b:latest" {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := os.Stat(old.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what only the old b used is still there: %v", err)
	}
	if err := s.Copy("a", "A"); err != nil {
		t.Errorf("a copy on itself: %v", err)
	}
	if _, err := s.Get("a"); err != nil {
		t.Error(err)
	}
	wantFault(t, s.Copy("nobody", "c"), fault.NotFound, `model "nobody" not found`)
	wantFault(t, s.Copy("a", "../c"), fault.Invalid, "invalid model name")
}

// TestPinnedBlobStays holds the order that a race needs: a model is deleted while another is being made of its layers.
func TestPinnedBlobStays(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "base", "one")
	deleted := false
	err := s.Create(t.Context(), CreateRequest{Name: "mine", From: "base", System: "x"}, func(p api.ProgressResponse) {
		if p.Status == "writing manifest" {
			if err := s.Delete("base"); err != nil {
				t.Error(err)
			}
			deleted = true
		}
	})
	if err != nil || !deleted {
		t.Fatal(err)
	}
	if _, err := s.Get("mine"); err != nil {
		t.Fatalf("the layers of a running Create were removed: %v", err)
	}
	if err := s.Delete("mine"); err != nil {
		t.Fatal(err)
	}
	if left := blobs(t, s); len(left) != 0 || len(s.pins) != 0 {
		t.Errorf("left: %v, pinned: %v", left, s.pins)
	}
}

// TestConcurrentStore makes, copies, reads and deletes at once. Whatever is listed must be whole, always.
func TestConcurrentStore(t *testing.T) {
	s := newStore(t)
	var data [3][]byte
	for i := range data {
		// no chat template: to find the one that fits is what takes long, and it is not the point
		data[i] = tinyGGUF(t, map[string]any{"general.name": fmt.Sprint("m", i), "tokenizer.chat_template": nil})
	}
	for round := range uint64(25) {
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(worker), round))
				name := func() string { return fmt.Sprint("m", rnd.IntN(4)) }
				for range 8 {
					switch rnd.IntN(5) {
					case 0, 1:
						i := rnd.IntN(len(data))
						if err := s.AddBlob(t.Context(), digestOf(data[i]), bytes.NewReader(data[i])); err != nil {
							t.Error(err)
						}
						// between the two a Delete may have taken the blob: then the answer is that it was not uploaded
						err := s.Create(t.Context(), CreateRequest{Name: name(), Files: map[string]string{"x.gguf": digestOf(data[i])}, System: name()}, nil)
						if err != nil && fault.CodeOf(err) != fault.Invalid {
							t.Error(err)
						}
					case 2:
						if err := s.Copy(name(), name()); err != nil && fault.CodeOf(err) != fault.NotFound {
							t.Error(err)
						}
					case 3:
						if err := s.Delete(name()); err != nil && fault.CodeOf(err) != fault.NotFound {
							t.Error(err)
						}
					case 4:
						if _, err := s.List(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		all.Wait()
		list, err := s.List() // nobody works now: what is there must be whole
		if err != nil {
			t.Fatal(err)
		}
		if names := s.names(); len(names) != len(list) {
			t.Fatalf("round %d: %d manifests, but only %d are whole", round, len(names), len(list))
		}
	}
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if err := s.Delete(m.Name); err != nil {
			t.Error(err)
		}
	}
	for d := range blobs(t, s) {
		if strings.HasPrefix(d, tempPrefix) {
			t.Errorf("left behind: %s", d)
		}
	}
	if len(s.pins) != 0 {
		t.Errorf("still pinned: %v", s.pins)
	}
}
