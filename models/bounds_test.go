package models

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/fault"
)

// pulled is a manifest as a registry could have it: of a whole model and of more layers, which are blobs of the store.
func pulled(t *testing.T, s *Store, more ...layer) []byte {
	t.Helper()
	file := tinyGGUF(t, nil)
	config := []byte(`{"model_format":"gguf"}`)
	m := manifest{
		SchemaVersion: 2, MediaType: mediaManifest, Config: layer{MediaType: mediaConfig, Digest: addBlob(t, s, config), Size: int64(len(config))},
		Layers: append([]layer{{MediaType: mediaModel, Digest: addBlob(t, s, file), Size: int64(len(file))}}, more...),
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A manifest is small, and what it names is not: each layer as often as it is named.
func TestWhatAManifestMayName(t *testing.T) {
	text := func(kind string, size int, times int) func(t *testing.T, s *Store) []layer {
		return func(t *testing.T, s *Store) (out []layer) {
			data := []byte(strings.Repeat("x", size))
			for range times {
				out = append(out, layer{MediaType: kind, Digest: addBlob(t, s, data), Size: int64(size)})
			}
			return out
		}
	}
	literal := func(kind, data string) func(t *testing.T, s *Store) []layer {
		return func(t *testing.T, s *Store) []layer {
			return []layer{{MediaType: kind, Digest: addBlob(t, s, []byte(data)), Size: int64(len(data))}}
		}
	}
	cases := map[string]struct {
		layers func(*testing.T, *Store) []layer
		says   string
	}{
		"one license, very often":       {text(mediaLicense, 1<<20, 17), "longer than 16 MiB together"},
		"one system prompt, very often": {text(mediaSystem, 1<<20, 17), "longer than 16 MiB together"},
		"parameters that are too long":  {text(mediaParams, 1<<20+1, 1), "longer than 1 MiB"},
		"messages without number":       {literal(mediaMessages, "["+strings.Repeat("{},", 100_000)+"{}]"), "more than 4096 messages"},
		"messages that are no list":     {literal(mediaMessages, `{"role":"user"}`), "damaged"},
		"as many adapters as layers":    {text(mediaAdapter, 10, maxAdapters+1), "more than 64 adapters"},
		"several licenses":              {text(mediaLicense, 1<<20, 3), ""},
		"a conversation to begin with":  {literal(mediaMessages, `[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]`), ""},
		"no messages, as some write it": {literal(mediaMessages, `null`), ""},
		"a system prompt and parameters": {func(t *testing.T, s *Store) []layer {
			return append(text(mediaSystem, 10, 1)(t, s), literal(mediaParams, `{"top_k":3}`)(t, s)...)
		}, ""},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			data := pulled(t, s, row.layers(t, s)...)
			_, err := s.Install("m", data, nil)
			if row.says != "" {
				wantFault(t, err, fault.Invalid, row.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get("m"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A file that another program put into the folder may be longer than its manifest says.
func TestTextsThatLieAboutTheirSize(t *testing.T) {
	s := newStore(t)
	long := []byte(strings.Repeat("x", 9<<20))
	l := layer{MediaType: mediaLicense, Digest: addBlob(t, s, long), Size: 5}
	data := pulled(t, s, l, l)
	dir := filepath.Join(s.dir, "manifests", "registry.ollama.ai", "library", "m")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "latest"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get("m")
	wantFault(t, err, fault.Invalid, "which is all that is left")
}

func TestCreateKeepsToTheBounds(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "m", "one")
	before := blobs(t, s)
	for name, req := range map[string]CreateRequest{
		"a license that is too long":    {License: []string{strings.Repeat("x", maxText)}},
		"parameters that are too many":  {Parameters: map[string]any{"stop": []any{strings.Repeat("x", 100)}, "more": strings.Repeat("x", maxJSON)}},
		"a system prompt beyond reason": {System: strings.Repeat("x", maxText+1)},
	} {
		t.Run(name, func(t *testing.T) {
			req.Name, req.From = "n", "m"
			wantFault(t, s.Create(t.Context(), req, nil), fault.Invalid, "longer than")
			if after := blobs(t, s); len(after) != len(before) {
				t.Errorf("there are %d blobs, before there were %d", len(after), len(before))
			}
		})
	}
}

// The folder's own name is nobody's pattern: with a bracket in it no model was found, so that a deletion took the blobs of all others.
func TestFoldersWithOddNames(t *testing.T) {
	for _, name := range []string{"models[1]", "a*b", `back\slash`, "{x}", "white space"} {
		t.Run(name, func(t *testing.T) {
			s, err := OpenStore(filepath.Join(t.TempDir(), name))
			if err != nil {
				t.Fatal(err)
			}
			tinyModel(t, s, "one", "same")
			if err := s.Copy("one", "two"); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete("one"); err != nil {
				t.Fatal(err)
			}
			list, err := s.List()
			if err != nil || len(list) != 1 {
				t.Fatalf("%d models, %v", len(list), err)
			}
			if _, err := s.Get("TWO"); err != nil {
				t.Error(err)
			}
			b := s.dir + "/" + tempPrefix + "old"
			if err := os.WriteFile(b, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(b, time.Time{}, time.Now().Add(-100*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenStore(s.dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(b); err == nil {
				t.Error("what a crash left behind is still there")
			}
		})
	}
}

// Nobody will ever write into a pipe that lies where a file should.
func TestPipesAreNotWaitedFor(t *testing.T) {
	cases := map[string]func(t *testing.T, s *Store) string{
		"a manifest": func(t *testing.T, s *Store) string {
			return filepath.Join(s.dir, "manifests", "registry.ollama.ai", "library", "m", "other")
		},
		"a model's manifest": func(t *testing.T, s *Store) string {
			return filepath.Join(s.dir, "manifests", "registry.ollama.ai", "library", "m", "latest")
		},
		"a blob": func(t *testing.T, s *Store) string {
			m, err := s.Get("m")
			if err != nil {
				t.Fatal(err)
			}
			return m.Path
		},
	}
	for name, where := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			tinyModel(t, s, "m", "one")
			tinyModel(t, s, "sound", "two")
			path := where(t, s)
			_ = os.Remove(path) // there may be none
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			fresh, err := OpenStore(s.dir) // nothing in its cache
			if err != nil {
				t.Fatal(err)
			}
			list, err := fresh.List()
			if err != nil || len(list) == 0 {
				t.Fatalf("%d models, %v", len(list), err)
			}
			if err := fresh.Delete("sound"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTimesThatHaveNoForm(t *testing.T) {
	far := time.Date(34_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Time{
		"far away": far, "before all": time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), "the last hour of the last year": time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*3600)),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Remote("m", Told{ModifiedAt: at})
			if err != nil {
				t.Fatal(err)
			}
			for _, shown := range []time.Time{m.ModifiedAt, m.ModifiedAt.UTC(), m.ModifiedAt.In(time.FixedZone("", 14*3600))} {
				if _, err := json.Marshal(shown); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if now := time.Now(); datable(now) != now {
		t.Error("a time of today is changed")
	}
}

func TestOneModelOfManyNames(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "m", "one")
	for i := range 20 {
		if err := s.Copy("m", fmt.Sprintf("m:v%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(s.dir, "manifests", "linked.example")
	if err := os.Symlink(filepath.Join(s.dir, "manifests", "registry.ollama.ai"), link); err != nil {
		t.Fatal(err)
	}
	if got := len(s.names()); got != 42 { // links are followed, as Ollama's are
		t.Errorf("%d names", got)
	}
}
