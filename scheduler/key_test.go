package scheduler

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/tinygguf"
	"sluice/models"
)

// A file in a folder that was replaced under its name must not be answered by the runner of the old one.
func TestAReplacedFileIsAnotherModel(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x.gguf")
	store, err := models.OpenStore(t.TempDir(), folder)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for i, text := range [][]byte{tinygguf.Llama(1), tinygguf.Qwen2(2)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1e9+int64(i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder, at, at); err != nil {
			t.Fatal(err)
		}
		m, err := store.Get("x")
		if err != nil {
			t.Fatal(err)
		}
		keys[fileKey(m)] = true
	}
	if len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
}

func TestParallelOfAHybridIsOne(t *testing.T) {
	for name, row := range map[string]struct {
		settings Settings
		layout   models.Layout
		want     int
	}{
		"an ordinary model":      {want: 4},
		"a hybrid":               {layout: models.Layout{Hybrid: true}, want: 1},
		"a hybrid as it is told": {settings: Settings{Parallel: 3}, layout: models.Layout{Hybrid: true}, want: 3},
	} {
		if n, _ := (Config{}).parallel(row.settings, row.layout, 4096); n != row.want {
			t.Errorf("%s: %d, want %d", name, n, row.want)
		}
	}
}
