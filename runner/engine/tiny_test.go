package engine_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/runnertest"
	"sluice/internal/tinygguf"
	"sluice/runner"
)

// seed of the tiny models: tests compare answers of models made from the same one.
const seed = 1

// tinyFile writes a tiny model and gives its file.
func tinyFile(t *testing.T, name string) string {
	t.Helper()
	path, err := tinygguf.Write(t.TempDir(), name, seed)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// written writes a file and gives its path.
func written(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadTiny starts the real runner with a tiny model.
func loadTiny(t *testing.T, name string, change func(*runner.LoadRequest)) (*runner.Process, runner.LoadReport) {
	t.Helper()
	return load(t, func(r *runner.LoadRequest) {
		r.ModelPath, r.Parallel = tinyFile(t, name), 2
		if change != nil {
			change(r)
		}
	})
}

// loadFails is the error of a load that must not succeed. The child must live on.
func loadFails(t *testing.T, req runner.LoadRequest) error {
	t.Helper()
	p := start(t)
	req.NumCtx, req.NumThread, req.UseMmap = runnertest.NumCtx, 1, true
	_, err := p.Load(t.Context(), req, nil)
	if err == nil {
		t.Fatal("it was loaded")
	}
	select {
	case <-p.Done():
		t.Errorf("the child died: %v", p.Err())
	default:
	}
	return err
}

// picture is a PNG of one colour.
func picture(t *testing.T, c color.Color, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, plain(c, width, height)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func photo(t *testing.T, c color.Color, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, plain(c, width, height), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func plain(c color.Color, width, height int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		m.Set(i%width, i/width, c)
	}
	return m
}

var (
	red  = color.RGBA{R: 255, A: 255}
	blue = color.RGBA{B: 255, A: 255}
)

// webp is a whole WebP file of one pixel.
var webp, _ = base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")

// TestThinkingModelThinks: other rooms' tests build on this.
func TestThinkingModelThinks(t *testing.T) {
	p, _ := loadTiny(t, "thinking", nil)
	text, _, last := answer(t, p, runnertest.Request(chat, 40))
	if text != "<think>"+tinygguf.ThinkScript+"</think>\n\n"+tinygguf.ThinkAnswer || last.DoneReason != "stop" {
		t.Errorf("%q, done %s", text, last.DoneReason)
	}
}
