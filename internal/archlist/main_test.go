package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestListIsFresh(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "runner", "engine", "architectures.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("runner/engine/architectures.go is stale; run: go generate ./runner/engine")
	}
}

func TestNamesInBothLists(t *testing.T) {
	source, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"llama",`, `"gemma-embedding",`, `"qwen25vl",`, `"bert_embed",`} {
		if !slices.ContainsFunc(bytes.Split(source, []byte("\n")), func(line []byte) bool { return string(bytes.TrimSpace(line)) == name }) {
			t.Errorf("%s is in no list", name)
		}
	}
}
