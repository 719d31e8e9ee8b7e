package models

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/parser"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
)

// TestManifestForm holds the form that an Ollama reads: a golden manifest and config, digests replaced by what they are of.
func TestManifestForm(t *testing.T) {
	s := newStore(t)
	gguf := tinyGGUF(t, nil)
	d := addBlob(t, s, gguf)
	req := CreateRequest{
		Name: "m:1", Files: map[string]string{"x.gguf": d}, System: "Be brief.", License: []string{"MIT", ""},
		Parameters: map[string]any{"temperature": 0.5}, Messages: []api.Message{msg("user", "hi")},
	}
	var said []string
	if err := s.Create(t.Context(), req, func(p api.ProgressResponse) { said = append(said, p.Status) }); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.dir, "manifests", "registry.ollama.ai", "library", "m", "1"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"CONFIG","size":N},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"GGUF","size":N},{"mediaType":"application/vnd.ollama.image.template","digest":"TEMPLATE","size":102},{"mediaType":"application/vnd.ollama.image.system","digest":"SYSTEM","size":9},{"mediaType":"application/vnd.ollama.image.license","digest":"LICENSE","size":3},{"mediaType":"application/vnd.ollama.image.params","digest":"PARAMS","size":77},{"mediaType":"application/vnd.ollama.image.messages","digest":"MESSAGES","size":33}]}
`
	m, err := s.Get("m:1")
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for text, name := range map[string]string{
		string(gguf): "GGUF", m.Template: "TEMPLATE", "Be brief.": "SYSTEM", "MIT": "LICENSE",
		"{\"stop\":[\"\\u003c|im_start|\\u003e\",\"\\u003c|im_end|\\u003e\"],\"temperature\":0.5}\n": "PARAMS",
		"[{\"role\":\"user\",\"content\":\"hi\"}]\n":                                                 "MESSAGES",
	} {
		got = strings.ReplaceAll(got, digestOf([]byte(text)), name)
	}
	mf, err := s.readManifest(mustName(t, "m:1"))
	if err != nil {
		t.Fatal(err)
	}
	got = strings.ReplaceAll(got, fmt.Sprintf(`%q,"size":%d}`, mf.Config.Digest, mf.Config.Size), `"CONFIG","size":N}`)
	got = strings.ReplaceAll(got, fmt.Sprintf(`"GGUF","size":%d}`, len(gguf)), `"GGUF","size":N}`)
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	config, err := s.readText(mf.Config.Digest, maxText)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"model_format":"gguf"`, `"model_family":"llama"`, `"model_families":["llama"]`, `"file_type":"Q8_0"`, `"rootfs":{"type":"layers","diff_ids":["sha256:`, `"os":"linux"`} {
		if !strings.Contains(config, part) {
			t.Errorf("the config lacks %s: %s", part, config)
		}
	}
	if said[0] != "parsing GGUF" || said[1] != "using autodetected template chatml" || said[len(said)-2] != "writing manifest" || said[len(said)-1] != "success" {
		t.Errorf("progress: %q", said)
	}
}

func mustName(t *testing.T, s string) model.Name {
	t.Helper()
	n, err := parseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCreateFromModel(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "base", "one")
	req := CreateRequest{
		Name: "mine", From: "BASE", System: "Sing.", Template: "{{ .Prompt }}!", Parameters: map[string]any{"stop": nil, "top_k": float64(1)},
	}
	if err := s.Create(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	base, err := s.Get("base")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("mine")
	if err != nil {
		t.Fatal(err)
	}
	if m.Path != base.Path || m.System != "Sing." || m.Template != "{{ .Prompt }}!" || !reflect.DeepEqual(m.Params, map[string]any{"top_k": 1.0}) {
		t.Errorf("got %+v", m)
	}
	if m.Details().ParentModel != "base:latest" {
		t.Errorf("parent is %q", m.Details().ParentModel)
	}
	// a Modelfile of it makes the same again
	f, err := parser.ParseFile(strings.NewReader(m.Modelfile()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, m.Modelfile())
	}
	got := map[string]string{}
	for _, c := range f.Commands {
		got[c.Name] = c.Args
	}
	if want := map[string]string{"model": m.Path, "template": "{{ .Prompt }}!", "system": "Sing.", "top_k": "1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the Modelfile says %v, want %v", got, want)
	}
	if !strings.Contains(m.Modelfile(), "# FROM mine:latest\n") {
		t.Error("the Modelfile does not name the model")
	}
	// base goes, what mine shares with it stays
	if err := s.Delete("base"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("mine"); err != nil {
		t.Fatalf("a model lost its layers with its parent: %v", err)
	}
	if err := s.Delete("MINE"); err != nil {
		t.Fatal(err)
	}
	if left := blobs(t, s); len(left) != 0 {
		t.Errorf("blobs that nobody uses: %v", left)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "manifests"))
	if err != nil || len(entries) != 0 {
		t.Errorf("empty folders are left: %v, %v", entries, err)
	}
	wantFault(t, s.Delete("mine"), fault.NotFound, "model 'mine' not found")
}

func TestCreateRefuses(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "base", "one")
	gguf := addBlob(t, s, tinyGGUF(t, nil))
	text := addBlob(t, s, []byte("no model at all"))
	lora := addBlob(t, s, tinyGGUF(t, map[string]any{"general.type": "adapter"}))
	files := func(path, digest string) map[string]string { return map[string]string{path: digest} }
	before := blobs(t, s)
	rows := map[string]struct {
		req  CreateRequest
		code fault.Code
		want string
	}{
		"no name":               {CreateRequest{From: "base"}, fault.Invalid, "invalid model name"},
		"a name with a path":    {CreateRequest{Name: "../x", From: "base"}, fault.Invalid, "invalid model name"},
		"neither from or files": {CreateRequest{Name: "x"}, fault.Invalid, "neither 'from' or 'files'"},
		"from nowhere":          {CreateRequest{Name: "x", From: "nobody"}, fault.NotFound, "model 'nobody' not found"},
		"an absolute path":      {CreateRequest{Name: "x", Files: files("/x.gguf", gguf)}, fault.Invalid, "must be relative"},
		"a path that climbs":    {CreateRequest{Name: "x", Files: files("a/../../x.gguf", gguf)}, fault.Invalid, "must be relative"},
		"a digest with a path":  {CreateRequest{Name: "x", Files: files("x.gguf", "sha256:../../x")}, fault.Invalid, "invalid digest"},
		"a blob not uploaded":   {CreateRequest{Name: "x", Files: files("x.gguf", digestOf([]byte("?")))}, fault.Invalid, "was not uploaded"},
		"no GGUF":               {CreateRequest{Name: "x", Files: files("x.gguf", text)}, fault.Invalid, "not in GGUF format"},
		"no safetensors":        {CreateRequest{Name: "x", Files: files("x.safetensors", text)}, fault.Invalid, "cannot be converted"},
		"an adapter":            {CreateRequest{Name: "x", Files: files("x.gguf", lora)}, fault.Invalid, "no model that it is for"},
		"two GGUF files":        {CreateRequest{Name: "x", Files: map[string]string{"a.gguf": gguf, "b.gguf": gguf}}, fault.Invalid, "these are several models"},
		"a bad template":        {CreateRequest{Name: "x", From: "base", Template: "{{ .X"}, fault.Invalid, "template error"},
		"a wrong parameter":     {CreateRequest{Name: "x", From: "base", System: "new text", Parameters: map[string]any{"top_k": "many"}}, fault.Invalid, "must be of type integer"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			wantFault(t, s.Create(t.Context(), row.req, nil), row.code, row.want)
			if after := blobs(t, s); !reflect.DeepEqual(after, before) {
				t.Errorf("blobs before: %d, after: %d", len(before), len(after))
			}
			if _, err := s.Get("x"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("something was made: %v", err)
			}
		})
	}
	if entries, err := filepath.Glob(filepath.Join(s.dir, tempPrefix+"*")); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestCreateReplaces(t *testing.T) {
	s := newStore(t)
	tinyModel(t, s, "m", "one")
	old, err := s.Get("m")
	if err != nil {
		t.Fatal(err)
	}
	tinyModel(t, s, "M", "two")
	m, err := s.Get("m")
	if err != nil || m.Path == old.Path {
		t.Fatalf("the old model is still there: %v", err)
	}
	if _, err := os.Stat(old.Path); err == nil {
		t.Error("what only the old model used is still there")
	}
	// the same once more, from itself, removes nothing that it needs
	if err := s.Create(t.Context(), CreateRequest{Name: "m", From: "m", System: "x"}, nil); err != nil {
		t.Fatal(err)
	}
	if m, err = s.Get("m"); err != nil || m.System != "x" {
		t.Errorf("made from itself: %+v, %v", m, err)
	}
}
