package engine

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"sluice/fault"
)

// A strip is painted on a larger ground: this file of 50 KB would take 250 GB.
func TestImageThatIsTooThinIsRefused(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 1_000_000, 50))); err != nil {
		t.Fatal(err)
	}
	_, err := plainImage(0, file.Bytes(), maxStrip)
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too thin a strip") {
		t.Errorf("error %v", err)
	}
}
