package models

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

// exported gives an installed model's manifest and blobs, and where copies of its files are.
func exported(t *testing.T, name, seed string) (data []byte, blobs []Blob, files map[string]string) {
	t.Helper()
	s := newStore(t)
	tinyModel(t, s, name, seed)
	data, _, err := s.Manifest(name)
	if err != nil {
		t.Fatal(err)
	}
	if blobs, err = ManifestBlobs(data); err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, b := range blobs {
		files[b.Digest] = filepath.Join(s.dir, "blobs", strings.Replace(b.Digest, ":", "-", 1))
	}
	return data, blobs, files
}

func TestInstallKeepsTheManifestAsItIs(t *testing.T) {
	data, blobs, files := exported(t, "m", "one")
	data = bytes.TrimSpace(bytes.ReplaceAll(data, []byte(`,"layers"`), []byte(",\n   \"layers\""))) // as no writer of ours would
	s := newStore(t)
	release := s.Pin(blobs)
	if _, err := s.Install("m", data, files); err != nil {
		t.Fatal(err)
	}
	release()
	m, err := s.Get("m")
	if err != nil {
		t.Fatal(err)
	}
	if "sha256:"+m.Digest != digestOf(data) {
		t.Errorf("the model's digest is %s, want the manifest's", m.Digest)
	}
	for _, b := range blobs {
		if !s.Intact(b) {
			t.Errorf("%+v is not there", b)
		}
		if _, err := os.Stat(files[b.Digest]); err == nil {
			t.Errorf("%+v was copied, not moved", b)
		}
	}
	if len(s.pins) != 0 {
		t.Errorf("there are pins left: %v", s.pins)
	}
}

func TestInstallRefuses(t *testing.T) {
	data, list, _ := exported(t, "m", "one")
	cases := map[string]struct {
		name  string
		spoil func(t *testing.T, dir string, files map[string]string)
		data  []byte
		code  fault.Code
		text  string
	}{
		"a file that is not there": {name: "m", spoil: func(_ *testing.T, _ string, files map[string]string) { delete(files, list[0].Digest) },
			code: fault.Conflict, text: "pull again"},
		"a file of another size": {name: "m", spoil: func(t *testing.T, dir string, files map[string]string) {
			if err := os.Truncate(files[list[0].Digest], 10); err != nil {
				t.Fatal(err)
			}
		}, code: fault.Conflict, text: "pull again"},
		"a GGUF that is damaged": {name: "m", spoil: func(t *testing.T, dir string, files map[string]string) {
			if err := os.WriteFile(files[list[0].Digest], make([]byte, list[0].Size), 0o600); err != nil {
				t.Fatal(err)
			}
		}, code: fault.Invalid, text: "does not begin with GGUF"},
		"a name that climbs":     {name: "../../m", code: fault.Invalid, text: "invalid model name"},
		"a manifest that is not": {name: "m", data: []byte("{}"), code: fault.Invalid, text: "schemaVersion"},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, files := exported(t, "m", "one")
			s := newStore(t)
			if row.spoil != nil {
				row.spoil(t, s.dir, files)
			}
			if row.data == nil {
				row.data = data
			}
			release := s.Pin(list)
			_, err := s.Install(row.name, row.data, files)
			release()
			wantFault(t, err, row.code, row.text)
			if have, _ := s.List(); len(have) != 0 {
				t.Errorf("there are models: %v", have)
			}
			if row.code == fault.Invalid && len(blobs(t, s)) != 0 {
				t.Errorf("the damaged blobs are kept: %v", blobs(t, s))
			}
		})
	}
}

func TestPinnedBlobsStay(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "m", "one")
	data, _, err := s.Manifest("m")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ManifestBlobs(data)
	if err != nil {
		t.Fatal(err)
	}
	first := s.Pin(list)
	second := s.Pin(list)
	if err := s.Delete("m"); err != nil {
		t.Fatal(err)
	}
	want := len(list)
	if got := len(blobs(t, s)); got != want {
		t.Errorf("%d of %d blobs are left while they are pinned", got, want)
	}
	first()
	if got := len(blobs(t, s)); got != want {
		t.Errorf("%d of %d blobs are left while another needs them", got, want)
	}
	second()
	if got := blobs(t, s); len(got) != 0 {
		t.Errorf("nobody needs them, and there are %v", got)
	}
}

// What was fetched is no file of blobs: an Ollama that starts on the same folder removes from there what has no digest for a name.
func TestPartialFiles(t *testing.T) {
	s := newStore(t)
	digest := digestOf([]byte("x"))
	path, err := s.PartialPath(digest)
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(filepath.Join(s.dir, "blobs"), path); err != nil || !strings.HasPrefix(rel, "..") {
		t.Errorf("it is %s", rel)
	}
	if _, err := s.PartialPath("sha256:../../x"); err == nil {
		t.Error("a malformed digest has a path")
	}
	for age, stays := range map[time.Duration]bool{3 * 24 * time.Hour: true, 8 * 24 * time.Hour: false} {
		for _, p := range []string{path, path + ".journal"} {
			if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			when := time.Now().Add(-age)
			if err := os.Chtimes(p, when, when); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := OpenStore(s.dir); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, path + ".journal"} {
			if _, err := os.Stat(p); (err == nil) != stays {
				t.Errorf("after %s: %v", age, err)
			}
		}
	}
}

func TestManifestBlobs(t *testing.T) {
	data, want, _ := exported(t, "m", "one")
	got, err := ManifestBlobs(data)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
	if !got[0].GGUF() || got[len(got)-1].MediaType != mediaConfig {
		t.Errorf("%+v", got)
	}
	d := digestOf([]byte("x"))
	layer := func(mediaType string, size int) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, mediaType, d, size)
	}
	text := func(layers ...string) string {
		return `{"schemaVersion":2,"config":` + fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":3}`, mediaConfig, digestOf([]byte("{}\n"))) +
			`,"layers":[` + strings.Join(layers, ",") + `]}`
	}
	cases := map[string]struct{ text, want string }{
		"one blob in two layers":         {text(layer(mediaModel, 9), layer(mediaAdapter, 9)), ""},
		"a kind of layer that is newer":  {text(layer(mediaModel, 9), strings.Replace(layer(mediaOllama+"later", 1<<30), d, digestOf([]byte("y")), 1)), ""},
		"two sizes of one blob":          {text(layer(mediaModel, 9), layer(mediaAdapter, 8)), "9 and 8 bytes"},
		"a text that is no text's size":  {text(layer(mediaModel, 9), layer(mediaTemplate, 1<<30)), "has 1073741824 bytes"},
		"a digest as a file name has it": {strings.Replace(text(layer(mediaModel, 9)), d, strings.Replace(d, ":", "-", 1), 1), "digest"},
		"an index of manifests":          {`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`, "of the type"},
		"the first version":              {`{"schemaVersion":1}`, "schemaVersion is 1"},
		"something behind it":            {text(layer(mediaModel, 9)) + "x", "no JSON"},
		"a config of another kind":       {strings.Replace(text(layer(mediaModel, 9)), mediaConfig, "text/plain", 1), "which no model has"},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ManifestBlobs([]byte(row.text))
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFault(t, err, fault.Invalid, row.want)
		})
	}
}

func FuzzManifestBlobs(f *testing.F) {
	d := digestOf([]byte("x"))
	f.Add([]byte(fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":3},"layers":[{"mediaType":%q,"digest":%q,"size":7,"from":"a:b"}]}`,
		mediaManifest, mediaConfig, d, mediaModel, digestOf([]byte("y")))))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ManifestBlobs(data)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.Invalid && c != fault.Unimplemented {
				t.Fatalf("%s: %v", c, err)
			}
			return
		}
		seen, total := map[string]bool{}, int64(0)
		for _, b := range list {
			if clean, err := cleanDigest(b.Digest); err != nil || clean != b.Digest || seen[b.Digest] || b.Size < 0 {
				t.Fatalf("%+v", b)
			}
			seen[b.Digest] = true
			if total += b.Size; total < 0 {
				t.Fatal("the sizes overflow")
			}
		}
	})
}
