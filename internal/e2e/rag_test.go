package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/pgtest"
)

// The project's own pages, indexed by the command line and searched with a real model's vectors, in both stores: what a page
// says is found by a question that says it otherwise.
func TestRealDocumentsAreFound(t *testing.T) {
	ggufs, err := need("SLUICE_TEST_MODELS")
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]string{"embedded": "embedded", "postgres": pgtest.New(t).URL} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, "sluice.yaml")
			settings, err := json.Marshal(map[string]any{"listen": "127.0.0.1:0", "home": home, "rag": map[string]string{"store": store, "embed_model": embedder}})
			if err == nil {
				err = os.WriteFile(file, settings, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := launch(home)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.stop() })
			run := func(args ...string) string {
				t.Helper()
				out, err := s.command(adminKey, args...)
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return out
			}
			run("create", embedder, "--from", filepath.Join(ggufs, "all-minilm-l6-v2"))
			const pages = "../../docs"
			run("rag", "create", "docs")
			if out := run("rag", "add", "--json", "docs", pages); strings.Count(out, `"result": "added"`) < 10 {
				t.Errorf("%s", out)
			}
			if out := run("rag", "add", "--json", "docs", pages); strings.Contains(out, `"result": "added"`) || strings.Contains(out, `"result": "replaced"`) {
				t.Errorf("the same again: %s", out)
			}
			for question, page := range map[string]string{
				"How do I keep GPU memory free for other programs?":            "docs/GPU.md", // SETTINGS.md has it too, within a long example
				"Can somebody change the audit log without being noticed?":     "docs/SECURITY.md",
				"Which statements does the gate let through for reading?":      "docs/GATE.md",
				"What does make bench-rag measure about searching documents?":  "docs/RAG.md",
				"Which role may write to a collection of documents?":           "docs/RAG.md",
				"Which architectures of models can be loaded by this program?": "docs/MODELS.md",
			} {
				var found struct {
					Passages []struct {
						Source, Text string
						Similarity   float64
					}
				}
				out := run("rag", "search", "--json", "--limit", "3", question)
				if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Passages) != 3 {
					t.Fatalf("%v: %s", err, out)
				}
				hit := false
				for _, p := range found.Passages {
					hit = hit || strings.HasSuffix(p.Source, page) && p.Text != ""
				}
				if !hit {
					t.Errorf("%s: no passage of %s among\n%s", question, page, out)
				}
			}
		})
	}
}
