package engine

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestAVocabularyThatIsOnlyClaimedTakesNoMemory: a file of holes may be of any size, and claim as many tokens as that.
func TestAVocabularyThatIsOnlyClaimedTakesNoMemory(t *testing.T) {
	var head bytes.Buffer
	text := func(s string) {
		_ = binary.Write(&head, binary.LittleEndian, uint64(len(s)))
		head.WriteString(s)
	}
	put := func(v any) { _ = binary.Write(&head, binary.LittleEndian, v) }
	head.WriteString("GGUF")
	put(uint32(3))
	put([]uint64{0, 1})
	text("tokenizer.ggml.tokens")
	put([]uint32{ggufArray, ggufString})
	put(uint64(1 << 24))
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, head.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<28); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readFacts(path)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 64<<20 {
		t.Errorf("%d MiB for a file without a token: %v", used>>20, err)
	}
}
