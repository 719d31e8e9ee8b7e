package tinygguf_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"sluice/internal/tinygguf"
)

func TestSameSeedSameBytes(t *testing.T) {
	for _, name := range tinygguf.Names() {
		build := tinygguf.Models[name]
		a, b, other := build(1), build(1), build(2)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: the same seed gives other bytes", name)
		}
		if bytes.Equal(a, other) {
			t.Errorf("%s: another seed gives the same bytes", name)
		}
		if len(a) > 1<<20 {
			t.Errorf("%s has %d bytes; these models are to be tiny", name, len(a))
		}
	}
}

// TestLayout reads what is written with eyes of its own: the header's counts, and data that ends where the file does.
func TestLayout(t *testing.T) {
	for _, name := range tinygguf.Names() {
		path, err := tinygguf.Write(t.TempDir(), name, 1)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(data[:4]) != "GGUF" || binary.LittleEndian.Uint32(data[4:]) != 3 || len(data)%32 != 0 {
			t.Errorf("%s: %q, %d bytes", name, data[:8], len(data))
		}
		if tensors, keys := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:]); tensors == 0 || keys < 5 || keys > 50 {
			t.Errorf("%s: %d tensors, %d keys", name, tensors, keys)
		}
	}
	if _, err := tinygguf.Write(t.TempDir(), "no such", 1); err == nil {
		t.Error("a model that there is not was written")
	}
}
