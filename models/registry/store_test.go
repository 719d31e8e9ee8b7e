package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/internal/registrytest"
)

func TestAnUpdateCollectsWhatTheOldModelNeeded(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	old := gguf(t, 300_000, 2)
	seed(t, r, "m", old, "first")
	c := newClient(t, t.TempDir(), r, nil)
	mustPull(t, c, "m")
	seed(t, r, "m", gguf(t, 300_000, 3), "second")
	var lines []api.ProgressResponse
	if err := c.Pull(t.Context(), Transfer{Name: "m", Insecure: true}, func(p api.ProgressResponse) { lines = append(lines, p) }); err != nil {
		t.Fatal(err)
	}
	wantModel(t, c, r, "m") // and nothing of the old one
	m, err := c.store.Get("m")
	if err != nil {
		t.Fatal(err)
	}
	if m.System != "second" {
		t.Errorf("the model says %q", m.System)
	}
	if said := statuses(lines); !slices.Equal(said[len(said)-3:], []string{"writing manifest", "removing unused layers", "success"}) {
		t.Errorf("the lines are %q", said)
	}
}

func TestAModelIsUsableWhileItsUpdateIsFetched(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	seed(t, r, "m", gguf(t, 300_000, 2), "first")
	c := newClient(t, t.TempDir(), r, nil)
	mustPull(t, c, "m")
	seed(t, r, "m", gguf(t, 300_000, 3), "second")
	looked := false
	c.at = func(point string) {
		if point == "manifest" {
			looked = true
			if m, err := c.store.Get("m"); err != nil || m.System != "first" {
				t.Errorf("before the manifest is written the model is %+v, %v", m, err)
			}
		}
	}
	mustPull(t, c, "m")
	if !looked {
		t.Error("the point did not come")
	}
}

// A delete in the middle of a pull takes no blob from it, and what a failed pull would have used goes all the same.
func TestDeleteDuringAPull(t *testing.T) {
	for name, fails := range map[string]bool{"the pull succeeds": false, "the pull fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			seed(t, r, "other", big(t), "Another prompt, the same file.")
			c := newClient(t, t.TempDir(), r, nil)
			mustPull(t, c, "big")
			r.Forget()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.at = func(point string) {
				if point != "manifest" {
					return
				}
				if err := c.store.Delete("big"); err != nil {
					t.Error(err)
				}
				if fails {
					cancel()
				}
			}
			err := c.pull(ctx, "other")
			if sent := r.Sent(digestOf(bigFile)); sent != 0 {
				t.Errorf("%d bytes were fetched that were there", sent)
			}
			if !fails {
				if err != nil {
					t.Fatal(err)
				}
				wantModel(t, c, r, "other")
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			wantNothing(t, c)
		})
	}
}

func TestADamagedBlobIsReplaced(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, nil)
	mustPull(t, c, "big")
	path := filepath.Join(c.dir, "blobs", strings.Replace(digestOf(bigFile), ":", "-", 1))
	for name, damage := range map[string]func(){
		"cut short": func() {
			if err := os.Truncate(path, 1000); err != nil {
				t.Fatal(err)
			}
		},
		"another header": func() { flip(t, path, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			damage()
			mustPull(t, c, "big")
			wantModel(t, c, r, "big")
		})
	}
}

// What a registry may not make us store, however well its digests fit.
func TestHostileModels(t *testing.T) {
	good := gguf(t, 3000, 4)
	const config = `{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d}`
	cases := map[string]struct {
		file     []byte
		manifest func(digest string, size int, config string) string
		code     fault.Code
		text     string
		blobs    bool // blobs were asked for
	}{
		"a file that is no GGUF":            {file: []byte("#!/bin/sh\necho hello, this is not a model at all\n"), code: fault.Invalid, text: "does not begin with GGUF", blobs: true},
		"a GGUF that is cut in its header":  {file: good[:200], code: fault.Invalid, text: "it ends too early", blobs: true},
		"a GGUF that claims a huge header":  {file: append(append([]byte{}, good[:8]...), []byte(strings.Repeat("\xff", 64))...), code: fault.Invalid, text: "too many", blobs: true},
		"a manifest that is no JSON":        {file: good, manifest: func(string, int, string) string { return "<html>Log in to the hotel's network</html>" }, code: fault.Invalid, text: "no JSON"},
		"a manifest of a megabyte and more": {file: good, manifest: func(string, int, string) string { return strings.Repeat(" ", 1<<20+1) }, code: fault.Invalid, text: "larger than 1 MiB"},
		"a digest that climbs out of the folder": {file: good, manifest: func(_ string, n int, config string) string {
			return manifestText("application/vnd.ollama.image.model", "sha256:../../../../etc/passwd", n, config)
		}, code: fault.Invalid, text: "no well-formed sha256 digest"},
		"a container image": {file: good, manifest: func(d string, n int, config string) string {
			return manifestText("application/vnd.docker.image.rootfs.diff.tar.gzip", d, n, config)
		}, code: fault.Invalid, text: "which no model has"},
		"a size below zero": {file: good, manifest: func(d string, _ int, config string) string {
			return manifestText("application/vnd.ollama.image.model", d, -1, config)
		}, code: fault.Invalid, text: "has -1 bytes"},
		"a size that no disk has": {file: good, manifest: func(d string, _ int, config string) string {
			return manifestText("application/vnd.ollama.image.model", d, 1<<60, config)
		}, code: fault.Invalid, text: "bytes"},
		"a smaller size than the blob has": {file: good, manifest: func(d string, n int, config string) string {
			return manifestText("application/vnd.ollama.image.model", d, n-1, config)
		}, code: fault.Conflict, text: "another size", blobs: true},
		"tensors one by one": {file: good, manifest: func(d string, n int, config string) string {
			return manifestText("application/vnd.ollama.image.tensor", d, n, config)
		}, code: fault.Unimplemented, text: "single tensors"},
		"no file at all": {file: good, manifest: func(_ string, _ int, config string) string {
			return `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":` + config + `,"layers":[]}`
		}, code: fault.Unimplemented, text: "somebody else's machines"},
		"a template that is none": {file: good, manifest: func(d string, n int, config string) string {
			bad := `{"mediaType":"application/vnd.ollama.image.template","digest":"` + digestOf([]byte("{{ .Prompt")) + `","size":10}`
			return strings.Replace(manifestText("application/vnd.ollama.image.model", d, n, config), `"layers":[`, `"layers":[`+bad+`,`, 1)
		}, code: fault.Invalid, text: "template", blobs: true},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t, registrytest.Options{})
			var digest string
			var err error
			for _, data := range [][]byte{[]byte("{}"), []byte("{{ .Prompt"), row.file} {
				if digest, err = r.AddBlob("library/evil", data); err != nil {
					t.Fatal(err)
				}
			}
			text := manifestText("application/vnd.ollama.image.model", digest, len(row.file), fmt.Sprintf(config, digestOf([]byte("{}")), 2))
			if row.manifest != nil {
				text = row.manifest(digest, len(row.file), fmt.Sprintf(config, digestOf([]byte("{}")), 2))
			}
			r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/manifests/", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(text)) // a client that left reads no more
			})})
			c := newClient(t, t.TempDir(), r, nil)
			wantFault(t, c.pull(t.Context(), "evil"), row.code, row.text)
			wantNothing(t, c)
			if asked := len(r.Requests("", "/blobs/")) > 0; asked != row.blobs {
				t.Errorf("blobs were asked for: %t", asked)
			}
		})
	}
}

func manifestText(mediaType, digest string, size int, config string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":%s,"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		config, mediaType, digest, size)
}
