package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/runner/engine"
)

func TestModelsPageIsFresh(t *testing.T) {
	list, err := engine.Probe()
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := engine.WriteModelsPage(&want, list); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "MODELS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/MODELS.md is stale; run: bin/sluice-runner probe --markdown >docs/MODELS.md")
	}
	backends := map[string]string{}
	for _, a := range list {
		backends[a.Name] = a.Backend
	}
	for name, backend := range map[string]string{"llama": "llama", "qwen25vl": "ollama", "olmo3": "ollama", "clip": ""} {
		if got, listed := backends[name]; !listed || got != backend {
			t.Errorf("%s runs on %q, listed %t", name, got, listed)
		}
	}
	if strings.Contains(want.String(), "_embed") {
		t.Error("the page has names of the module's registry that no file has")
	}
}
